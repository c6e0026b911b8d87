//! A replay says what was committed, to whom it was committed.

use std::collections::BTreeMap;

use killpoint_model::Entry;

use super::{Invariant, Looked};
use crate::facts::join::text_of;
use crate::facts::units::Unit;
use crate::facts::wire::AttemptFact;
use crate::facts::{Facts, by_certain_action};
use crate::volatile::normalised;

static ENTRY: Entry = Entry {
    name: "replay-faithful",
    summary: "every request of an action has the committed words and goes to the committed recipient",
    explanation: "\
Two requests of one action differ in what they say, or one says something else than the row that was committed, or \
goes to somebody else. The replay was made anew from today's configuration, template or roster instead of from the \
record: a header is lost, an account is another one, a recipient is new. With a key the provider refuses it or \
swallows it; without one a second, different message goes out.

Right is to commit the whole request, and to replay those bytes. After a definite refusal a corrected request may be \
sent. Fields that differ between two fault-free trials are overlooked. (K14 replay-not-faithful-or-retargeted; Your \
Agent Recovered the Run: \"freeze the resolved destination list at commit time\".)",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"change\"\nwith = { env = { ROSTER = \"new@example.com\" } }",
};

/// See [`ENTRY`].
pub(crate) struct ReplayFaithful;

impl Invariant for ReplayFaithful {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no action was sent twice, and no row has a committed text: map `text`, or let a plan make the worker send again",
        );
        let texts_compare = texts_compare(facts);
        for (index, unit, _) in facts.units().filter(|(_, unit, _)| !unit.attempts.is_empty()) {
            if unit.attempts.len() > 1 {
                looked.look();
                same_words(facts, index, unit, &mut looked);
            }
            if texts_compare {
                committed_words(facts, unit, &mut looked);
            }
        }
        if !facts.unjoined && facts.book.directed {
            retargeted(facts, &mut looked);
        }
        looked
    }
}

/// Attempts of one action among themselves.
fn same_words(facts: &Facts<'_>, index: usize, unit: &Unit, looked: &mut Looked) {
    if unit.texts.len() < 2 && (unit.payloads.len() < 2 || !facts.volatile_known) {
        return;
    }
    for group in by_certain_action(facts, index) {
        let mut first: Option<(&AttemptFact<'_>, String)> = None;
        for fact in group.iter().map(|at| &facts.book.wire.attempts[*at]) {
            let words = said(facts, fact);
            let different = first.as_ref().filter(|(_, known)| *known != words).map(|(fact, _)| fact.seq);
            if let Some(before) = different {
                // A counter in the body is an oddity; with a key it is `stable-key`'s business.
                let is_note = first.as_ref().is_some_and(|(one, _)| same_text(facts, one, fact));
                let message = "two requests of the action differ in what they say".to_owned();
                looked.violation_or_note(is_note, unit.subject(), message, vec![before, fact.seq]);
                break;
            }
            let correctable = fact.refused() && fact.status() != Some(429);
            if first.is_none() && !correctable {
                first = Some((fact, words));
            }
        }
    }
}

fn said(facts: &Facts<'_>, fact: &AttemptFact<'_>) -> String {
    if facts.volatile_known {
        return normalised(&fact.attempt.body, &facts.volatile);
    }
    text_of(fact, &facts.book.wire.effects, facts.settings).unwrap_or_default().to_owned()
}

fn same_text(facts: &Facts<'_>, one: &AttemptFact<'_>, other: &AttemptFact<'_>) -> bool {
    let text = |fact| text_of(fact, &facts.book.wire.effects, facts.settings);
    text(one).is_some() && text(one) == text(other)
}

/// The text of the row as it was committed before the unit's first attempt.
fn committed<'b>(facts: &'b Facts<'_>, unit: &Unit) -> Option<(u64, &'b str)> {
    let [row] = unit.rows[..] else { return None };
    let first = facts.book.wire.attempts[*unit.attempts.first()?].seq;
    let views = &facts.book.ledger.views;
    let sightings = facts.book.ledger.rows[row].sightings.iter();
    let mut texts = sightings.filter_map(|(view, row)| Some((views[*view].seq, row.text.as_deref()?)));
    texts.by_ref().take_while(|(seq, _)| *seq < first).last()
}

/// Whether rows hold the words that are sent, and not only a part or a template of them.
fn texts_compare(facts: &Facts<'_>) -> bool {
    facts.units().any(|(_, unit, _)| {
        let Some((_, text)) = committed(facts, unit).filter(|(_, text)| !text.trim().is_empty()) else {
            return false;
        };
        unit.texts.iter().any(|sent| sent.contains(text.trim()) && !sent.is_empty())
            && unit.attempts.iter().any(|at| {
                text_of(&facts.book.wire.attempts[*at], &facts.book.wire.effects, facts.settings)
                    .is_some_and(|sent| sent.contains(text.trim()))
            })
    })
}

fn committed_words(facts: &Facts<'_>, unit: &Unit, looked: &mut Looked) {
    let Some((seq, text)) = committed(facts, unit) else { return };
    looked.look();
    let other = unit.attempts.iter().map(|at| &facts.book.wire.attempts[*at]).find(|fact| {
        let sent = text_of(fact, &facts.book.wire.effects, facts.settings);
        sent.is_some_and(|sent| !sent.contains(text.trim()))
    });
    if let Some(fact) = other {
        let message = "the request says something else than the row that was committed";
        looked.violation(unit.subject(), message, vec![seq, fact.seq]);
    }
}

/// The words of one committed action at a recipient that is none of its own.
fn retargeted(facts: &Facts<'_>, looked: &mut Looked) {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &facts.book.ledger.rows {
        places.entry(row.action).or_default().extend(row.destination);
    }
    let mut texts: BTreeMap<&str, Vec<&Unit>> = BTreeMap::new();
    for (_, unit, _) in facts.units().filter(|(_, unit, _)| !unit.rows.is_empty()) {
        for action in &unit.actions {
            texts.entry(action).or_default().push(unit);
        }
    }
    for (_, unit, account) in facts.units() {
        if !unit.rows.is_empty() || unit.attempts.is_empty() || unit.baseline.units > 0 {
            continue;
        }
        let Some(action) = unit.actions.iter().find(|action| places.contains_key(action.as_str())) else {
            continue;
        };
        let own = &places[action.as_str()];
        let same_words = texts
            .get(action.as_str())
            .into_iter()
            .flatten()
            .any(|committed| committed.operation.is_empty() || committed.texts.meet(&unit.texts));
        if same_words && !own.is_empty() && !own.contains(&unit.recipient.as_str()) {
            looked.look();
            let message =
                format!("it went to `{}`, and was committed for {}", unit.recipient, own.join(", "));
            looked.violation(unit.subject(), message, account.events.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};
    use killpoint_model::{LedgerRow, RowState, Settings};
    use serde_json::json;

    use crate::sample::{Trial, judged, mapped, mapped_baseline, outcome, plain_baseline, row, status};

    const NAME: &str = "replay-faithful";

    fn again(second: &str) -> Trial {
        let mut trial = Trial::new();
        let body = json!({"to": "bob@x", "text": "deployed", "id": "deploy-42"});
        let attempt = trial.send_body("bob@x", Some("k-deploy-42"), body);
        trial.drop_reply(attempt).look_up("k-deploy-42", &[]);
        let body = json!({"to": "bob@x", "text": second, "id": "deploy-42"});
        let attempt = trial.send_body("bob@x", Some("k-deploy-42"), body);
        trial.commit(attempt);
        trial.reply(attempt, 200);
        trial
    }

    fn done() -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", RowState::Confirmed)]
    }

    #[test]
    fn a_replay_has_the_same_words() {
        assert_eq!(status(&mapped(), &again("deployed").end_rows(done()), NAME), Holds);
        assert_eq!(status(&mapped(), &again("deployed to staging").end_rows(done()), NAME), Violated);
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), NotShown);
    }

    #[test]
    fn what_was_refused_may_be_corrected() {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", Some("k-deploy-42"), "deploied");
        let history = trial.reply(attempt, 422).deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(status(&mapped(), &history.end_rows(done()), NAME), Holds);
    }

    #[test]
    fn the_request_says_what_was_committed() {
        let rows = |first: &str| {
            let text = |action: &str, to: &str, text: &str| LedgerRow {
                text: Some(text.into()),
                ..row(action, to, RowState::Confirmed)
            };
            vec![text("deploy-42", "bob@x", first), text("deploy-43", "eve@x", "deployed")]
        };
        for (committed, expected) in [("deployed", Holds), ("rolled back", Violated)] {
            let mut trial = Trial::new();
            trial.view(None, rows(committed));
            trial.deliver("eve@x", Some("k-deploy-43"), "deployed");
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
            let history = trial.end_rows(rows(committed));
            assert_eq!(outcome(&judged(&mapped(), &history, &history), NAME).status, expected);
        }
    }

    #[test]
    fn a_text_of_which_the_row_holds_a_template_is_no_difference() {
        let templated = || vec![LedgerRow { text: Some("deployed {version}".into()), ..done().remove(0) }];
        let mut trial = Trial::new();
        trial.view(None, templated());
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed 1.2");
        assert_eq!(status(&mapped(), &trial.end_rows(templated()), NAME), NotShown);
    }

    #[test]
    fn the_same_words_to_somebody_else_are_retargeted_and_an_alarm_is_not() {
        let mut trial = Trial::new();
        trial.lose("bob@x", Some("k-deploy-42"), "deployed", false);
        let words = |text: &str| {
            let mut trial = trial.clone();
            let body = json!({"to": "eve@x", "text": text, "id": "deploy-42"});
            let attempt = trial.send_body("eve@x", None, body);
            trial.commit(attempt);
            trial.reply(attempt, 200).end_rows(done())
        };
        assert_eq!(status(&mapped(), &words("deployed"), NAME), Violated);
        assert_ne!(status(&mapped(), &words("deploy-42 is stuck"), NAME), Violated);
        assert_ne!(status(&mapped(), &mapped_baseline(), NAME), Violated);
    }
}
