//! A stop signal neither loses nor doubles what is under way.

use killpoint_model::Entry;
use killpoint_model::verdict::ActionVerdict;

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::account::Account;
use crate::facts::units::Unit;

static ENTRY: Entry = Entry {
    name: "stop-is-graceful",
    summary: "what was under way at a stop signal is finished, parked, or still there: neither lost nor doubled",
    explanation: "\
The worker got SIGTERM, and an action that was not yet decided ended lost, doubled, stuck, or with a false outcome. The \
signal cut a send and the next life sent it again, the drain finished the request and forgot to write it down, or what \
had been taken off the queue was in nobody's hands when the process ended. Every deployment does this.

Right is to stop claiming, to let the request that is under way end and to write its outcome down within the grace \
time, or else to leave a row that says that it is unknown; and to put back what was claimed and not begun. (K21 \
graceful-shutdown-cuts-send, K15 ack-before-work.)",
    example: "[[fault]]\nat = \"provider:received#1\"\ndo = \"terminate\"\nwith = { grace = \"5s\" }",
};

/// See [`ENTRY`].
pub(crate) struct StopIsGraceful;

impl Invariant for StopIsGraceful {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no worker got a stop signal while something was undecided: use the fault `terminate`",
        );
        let Some(signal) = facts.timeline.terminations.first().copied() else { return looked };
        for (_, unit, account) in facts.units() {
            if account.preexisting || facts.unjoined || was_over(facts, unit, signal) {
                continue;
            }
            looked.look();
            let Some(how) = how_it_ended(facts, account) else { continue };
            let mut events = account.events.clone();
            events.push(signal);
            looked.violation(unit.subject(), format!("undecided at a stop signal, it ended {how}"), events);
        }
        looked
    }
}

/// Whether nothing of the unit was open at the signal: its last attempt was answered before it, and no look
/// since shows it undecided.
fn was_over(facts: &Facts<'_>, unit: &Unit, signal: u64) -> bool {
    let wire = &facts.book.wire;
    let Some(last) = unit.attempts.last().map(|at| &wire.attempts[*at]) else { return false };
    let answered = last.seq < signal && last.end_seq.is_some_and(|end| end < signal);
    let ledger = &facts.book.ledger;
    let undecided = unit.rows.iter().flat_map(|row| &ledger.rows[*row].sightings).any(|(view, row)| {
        let view = &ledger.views[*view];
        view.seq > signal && !view.is_final && !row.state.is_terminal()
    });
    answered && !undecided
}

fn how_it_ended(facts: &Facts<'_>, account: &Account) -> Option<&'static str> {
    match account.verdict {
        ActionVerdict::Duplicate if facts.duplicates_allowed() => None,
        ActionVerdict::Duplicate => Some("delivered twice"),
        ActionVerdict::Lost => Some("lost, and nothing says so"),
        ActionVerdict::FalseSuccess => Some("as delivered, and nobody received it"),
        ActionVerdict::FalseFailure => Some("as failed, and it was received"),
        ActionVerdict::Stuck => Some("neither done nor given up"),
        ActionVerdict::DeliveredOnce
        | ActionVerdict::ExplicitUnknown
        | ActionVerdict::ExplicitFailure
        | ActionVerdict::Undetermined => None,
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{LedgerRow, RowState};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "stop-is-graceful";

    fn rows(state: RowState) -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", state)]
    }

    fn stopped(then: impl Fn(&mut Trial, u32), state: RowState) -> InvariantStatus {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.push(EventKind::Signalled { worker: 1, signal: 15 });
        then(&mut trial, attempt);
        status(&mapped(), &trial.end_rows(rows(state)), NAME)
    }

    #[test]
    fn what_is_finished_or_parked_is_right() {
        let finished = |trial: &mut Trial, attempt: u32| {
            trial.commit(attempt);
            trial.reply(attempt, 200).spawn();
        };
        assert_eq!(stopped(finished, RowState::Confirmed), Holds);
        let cut = |trial: &mut Trial, attempt: u32| {
            trial.commit(attempt);
            trial.drop_reply(attempt).spawn();
        };
        assert_eq!(stopped(cut, RowState::Unknown), Holds);
        assert_eq!(stopped(cut, RowState::Dispatching), Violated);
        assert_eq!(stopped(cut, RowState::Failed), Violated);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_cut_send_that_is_sent_again_is_wrong() {
        let again = |trial: &mut Trial, attempt: u32| {
            trial.commit(attempt);
            trial.drop_reply(attempt).spawn().deliver("bob@x", Some("k-deploy-42"), "deployed");
        };
        assert_eq!(stopped(again, RowState::Confirmed), Violated);
    }

    #[test]
    fn what_was_over_before_is_not_the_signals_business() {
        let mut trial = Trial::new();
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        trial.push(EventKind::Signalled { worker: 1, signal: 15 });
        assert_eq!(status(&mapped(), &trial.end_rows(rows(RowState::Confirmed)), NAME), NotShown);
    }
}
