//! A row is confirmed only after the provider's acceptance could be known.

use killpoint_model::hit::Source;
use killpoint_model::{Entry, HitName, RowState};

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;
use crate::facts::ledger::ViewFact;
use crate::facts::units::Unit;

static ENTRY: Entry = Entry {
    name: "confirmed-after-acceptance",
    summary: "a row says delivered only after the provider said so, or a lookup found it",
    explanation: "\
The ledger said that an action was delivered at a moment at which no answer can have told the worker so: \
nothing was committed yet, or the answer was still held back. A crash right there leaves a row that will never \
be sent again, for a message that nobody received.

Right is to confirm after the acceptance was read, after a provider's \"already done\", or after a lookup that \
found the message. (Your Agent Finished the Job: \"mark delivery confirmed only after the provider acceptance \
response is parsed\".)",
    example: "[[fault]]\nat = \"provider:received#1\"\ndo = \"kill\"",
};

/// See [`ENTRY`].
pub(crate) struct ConfirmedAfterAcceptance;

impl Invariant for ConfirmedAfterAcceptance {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no confirmed row was seen: map the ledger with the states that mean delivered",
        );
        if facts.unjoined {
            doubt_unusable_rows(facts, &mut looked);
            return looked;
        }
        let ledger = &facts.book.ledger;
        for (index, row) in ledger.rows.iter().enumerate() {
            let confirmed = row.sightings.iter().find(|(_, row)| row.state == RowState::Confirmed);
            let Some(view) = confirmed.map(|(view, _)| &ledger.views[*view]) else { continue };
            let units = facts.units_of_row(index);
            if units.is_empty() {
                continue;
            }
            if units.iter().all(|unit| facts.accounts[*unit].preexisting) {
                continue;
            }
            looked.look();
            if !units.iter().any(|unit| could_know(facts, *unit, view)) {
                let unit = &facts.book.units[units[0]];
                let mut events: Vec<u64> =
                    facts.attempt_events(unit).into_iter().filter(|seq| *seq < view.seq).collect();
                events.push(view.seq);
                looked.violation(
                    unit.subject(),
                    "the row says delivered although no answer can have told the worker so by then",
                    events,
                );
            }
        }
        looked
    }
}

/// Whether some byte may have told the worker of an acceptance before the view. Generous at races: a
/// reply may be parsed before its last byte is recorded.
fn could_know(facts: &Facts<'_>, unit: usize, view: &ViewFact<'_>) -> bool {
    let wire = &facts.book.wire;
    let of: &Unit = &facts.book.units[unit];
    let waiting = view.at.and_then(|at| waiting_attempt(facts, at, view.seq));
    let by_lookup = facts.lookups.found(unit).is_some_and(|looked| looked < view.seq);
    let by_receipt =
        of.effects.iter().any(|index| wire.effects[*index].receipt.is_some_and(|receipt| receipt < view.seq));
    by_lookup
        || by_receipt
        || of.attempts.iter().filter(|index| Some(**index) != waiting).any(|index| {
            let fact = &wire.attempts[*index];
            let told = fact.acceptance_told().is_some_and(|told| told < view.seq);
            let accepted = fact.accepted_seq(&wire.effects).is_some_and(|seq| seq < view.seq);
            let effect_before = of.effects.first().is_some_and(|first| wire.effects[*first].seq < view.seq);
            let duplicate = fact.says_already_done() && effect_before && fact.seq < view.seq;
            told || duplicate || (accepted && !fact.reply_withheld())
        })
}

/// The attempt whose request waits at the hit at which the ledger was read: it has no answer yet.
fn waiting_attempt(facts: &Facts<'_>, at: &HitName, seq: u64) -> Option<usize> {
    if at.source != Some(Source::Provider) || !matches!(at.point.as_str(), "received" | "committed") {
        return None;
    }
    let wire = &facts.book.wire;
    let (hit, subject) = facts.hit_before(at, seq)?;
    if let Some(id) = subject.and_then(|subject| subject.parse::<u32>().ok()) {
        // Numbers count up in order of arrival.
        return wire.attempts.binary_search_by_key(&id, |fact| fact.attempt.id).ok();
    }
    if at.point == "received" {
        let passed = wire.attempts.partition_point(|fact| fact.seq < hit);
        return passed.checked_sub(1);
    }
    let passed = wire.effects.partition_point(|fact| fact.seq < hit);
    wire.effects[passed.checked_sub(1)?].attempt
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, Violated};
    use killpoint_model::provider::Replay;
    use killpoint_model::{LedgerRow, RowState};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "confirmed-after-acceptance";

    fn done() -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", RowState::Confirmed)]
    }

    #[test]
    fn a_mark_before_the_send_is_seen_at_its_own_request() {
        for (point, commit) in [("provider:received#1", false), ("provider:committed#1", true)] {
            let mut trial = Trial::new();
            let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
            if commit {
                trial.commit(attempt);
            }
            trial.hit(point).view(Some(point), done());
            if !commit {
                trial.commit(attempt);
            }
            trial.reply(attempt, 200);
            assert_eq!(status(&mapped(), &trial.end_rows(done()), NAME), Violated, "{point}");
        }
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), Holds);
    }

    #[test]
    fn a_reply_may_be_parsed_before_its_end_is_recorded() {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.commit(attempt);
        trial.hit("ledger:confirmed#1").view(Some("ledger:confirmed#1"), done());
        trial.reply(attempt, 200);
        assert_eq!(status(&mapped(), &trial.end_rows(done()), NAME), Holds);
    }

    #[test]
    fn what_a_lookup_found_or_the_provider_already_had_is_confirmed_rightly() {
        let mut found = Trial::new();
        found.lose("bob@x", Some("k-deploy-42"), "deployed", true).look_up("k-deploy-42", &["msg_1"]);
        found.view(None, done());
        assert_eq!(status(&mapped(), &found.end_rows(done()), NAME), Holds);
        let mut replayed = Trial::new();
        replayed.lose("bob@x", Some("k-deploy-42"), "deployed", true);
        let again = replayed.send("bob@x", Some("k-deploy-42"), "deployed");
        replayed.replay(again, Replay::Replayed, "msg_1").reply(again, 200).view(None, done());
        assert_eq!(status(&mapped(), &replayed.end_rows(done()), NAME), Holds);
        let mut withheld = Trial::new();
        withheld.lose("bob@x", Some("k-deploy-42"), "deployed", true).view(None, done());
        assert_eq!(status(&mapped(), &withheld.end_rows(done()), NAME), Violated);
    }
}
