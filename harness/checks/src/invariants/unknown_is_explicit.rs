//! A final state claims no outcome that nobody told the worker.

use killpoint_model::{Entry, RowState};

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;
use crate::facts::units::Unit;
use crate::facts::wire::AttemptFact;

static ENTRY: Entry = Entry {
    name: "unknown-is-explicit",
    summary: "what the worker can't know ends as unknown, not as failed or delivered",
    explanation: "\
The final state claims an outcome that nothing on the wire told the worker: failed after an attempt that may \
have been accepted, with no refusal and no answered lookup since, or delivered with no acceptance at all. The \
claim may happen to be true; the same bytes come from the opposite truth, so it is a guess in both cases. The \
guess hides the doubt from the operator.

Right is unknown, or parked for review, until a lookup answers. (Your Agent Finished the Job: \"treat timeouts, \
broken connections, and process termination as delivery unknown\".)",
    example: "[ledger]\npath = \"{state}/outbox.db\"\nquery = \"select id as action, status as state from outbox\"\nstates = { send_uncertain = \"unknown\" }",
};

/// See [`ENTRY`].
pub(crate) struct UnknownIsExplicit;

impl Invariant for UnknownIsExplicit {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no final row claims an outcome: map the ledger with the states that mean delivered, failed and unknown",
        );
        for (index, unit, account) in facts.units() {
            // Rows that nothing tells apart: which attempt was whose is a guess.
            if account.preexisting || facts.unjoined || unit.rows.len() != 1 {
                continue;
            }
            let Some((state, _)) = account.states.first_key_value() else { continue };
            let claim = match state {
                RowState::Failed | RowState::Cancelled => failed_on_a_guess(facts, index, unit),
                RowState::Confirmed => confirmed_on_a_guess(facts, index, unit, &mut looked),
                RowState::Unknown | RowState::Review => None,
                RowState::Created | RowState::Dispatching => continue,
            };
            looked.look();
            if let Some(why) = claim {
                looked.violation(
                    unit.subject(),
                    format!("the row ends as `{state}` {why}"),
                    account.events.clone(),
                );
            }
        }
        doubt_unusable_rows(facts, &mut looked);
        looked
    }
}

fn attempts<'b>(
    facts: &'b Facts<'_>,
    unit: &'b Unit,
) -> impl DoubleEndedIterator<Item = &'b AttemptFact<'b>> {
    unit.attempts.iter().map(|index| &facts.book.wire.attempts[*index])
}

fn failed_on_a_guess(facts: &Facts<'_>, index: usize, unit: &Unit) -> Option<String> {
    let effects = || unit.effects.iter().map(|index| &facts.book.wire.effects[*index]);
    if effects().any(|fact| fact.effect.bounced_at_ms.is_some()) {
        return None;
    }
    let doubtful = attempts(facts, unit).rfind(|fact| fact.doubtful())?;
    let refused_later = attempts(facts, unit)
        .rev()
        .take_while(|fact| fact.seq > doubtful.seq)
        .any(|fact| fact.status().is_some_and(|status| (400..500).contains(&status)));
    let answered = facts.lookups.answered_between(index, doubtful.seq, u64::MAX);
    // A conflict after an earlier doubtful attempt is the provider's word on the action.
    let conflict = doubtful.status() == Some(409) && unit.attempts.len() > 1;
    (!refused_later && !answered && !conflict).then(|| {
        format!(
            "though attempt {} may have been accepted and no refusal or lookup said otherwise",
            doubtful.attempt.id
        )
    })
}

fn confirmed_on_a_guess(facts: &Facts<'_>, index: usize, unit: &Unit, looked: &mut Looked) -> Option<String> {
    let effects = || unit.effects.iter().map(|index| &facts.book.wire.effects[*index]);
    let receipt = effects().any(|fact| fact.receipt.is_some());
    let already = !unit.effects.is_empty() && attempts(facts, unit).any(AttemptFact::says_already_done);
    if facts.lookups.found(index).is_some() || receipt || already {
        return None;
    }
    let told = || attempts(facts, unit).filter(|fact| fact.acceptance_told().is_some());
    if told().next().is_none() {
        return Some("though no answer and no lookup ever told the worker that it was accepted".to_owned());
    }
    if told().all(AttemptFact::cut_in_body) {
        looked.note(
            unit.subject(),
            "taken for delivered on a reply whose body was cut off: success without a receipt",
            facts.attempt_events(unit),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use killpoint_model::RowState;
    use killpoint_model::finding::InvariantStatus::{self, Holds, Violated};
    use killpoint_model::provider::Replay;

    use crate::sample::{Trial, mapped, row, status};

    const NAME: &str = "unknown-is-explicit";

    fn ends(trial: &mut Trial, state: RowState) -> InvariantStatus {
        let history = trial.end_rows(vec![row("deploy-42", "bob@x", state)]);
        status(&mapped(), &history, NAME)
    }

    #[test]
    fn a_guess_is_wrong_in_both_twins() {
        for commit in [true, false] {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", commit);
            for (state, expected) in [
                (RowState::Failed, Violated),
                (RowState::Cancelled, Violated),
                (RowState::Confirmed, Violated),
                (RowState::Unknown, Holds),
                (RowState::Review, Holds),
            ] {
                assert_eq!(ends(&mut trial, state), expected, "commit {commit}, {state}");
            }
        }
    }

    #[test]
    fn a_lookup_or_a_refusal_resolves() {
        let lost = |commit| {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", commit);
            trial
        };
        assert_eq!(ends(lost(false).look_up("k-deploy-42", &[]), RowState::Failed), Holds);
        assert_eq!(ends(lost(true).look_up("k-deploy-42", &["msg_1"]), RowState::Confirmed), Holds);
        let mut refused = lost(false);
        let again = refused.send("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(ends(refused.reply(again, 422), RowState::Failed), Holds);
        let mut error = Trial::new();
        let attempt = error.send("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(ends(error.reply(attempt, 500), RowState::Failed), Violated);
        assert_eq!(ends(&mut Trial::new(), RowState::Failed), Holds, "never sent");
    }

    #[test]
    fn a_conflict_is_the_word_of_an_earlier_success() {
        let mut trial = Trial::new();
        trial.lose("bob@x", Some("k-deploy-42"), "deployed", true);
        let again = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.replay(again, Replay::Concurrent, "msg_1").reply(again, 409);
        assert_eq!(ends(&mut trial, RowState::Confirmed), Holds);
    }
}
