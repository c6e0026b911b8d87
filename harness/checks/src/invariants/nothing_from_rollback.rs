//! What was rolled back has no effect.

use killpoint_model::Entry;
use killpoint_model::event::{CommandRole, EventKind};

use super::{Invariant, Looked};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "nothing-from-rollback",
    summary: "nothing is sent for a producer's transaction that was rolled back",
    explanation: "\
The producer's transaction was open while the worker ran, it was rolled back, and a message of it was sent. The message \
went out before the commit, or the enqueue went past the transaction (another connection, a queue in memory, a broker): \
the recipient is told of something that never happened, and nothing in the ledger says why.

Right is an outbox row in the same transaction as the business change, read by the worker only once it is committed. \
(K19 effect-before-commit, K20 dual-write-lost-or-doubled.)",
    example: "[producer]\ncommand = [\"python3\", \"worker.py\", \"produce\", \"{state}/outbox.db\"]",
};

/// The mark that a producer makes inside its open transaction.
const PRODUCER_MARK: &str = "producer-open";

/// See [`ENTRY`].
pub(crate) struct NothingFromRollback;

impl Invariant for NothingFromRollback {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no producer's transaction was rolled back: configure `[producer]`, and use the fault `hold-producer` with end = \"rollback\"",
        );
        let Some((held, ended)) = rolled_back(facts) else { return looked };
        looked.look();
        let enqueued = facts.rare.iter().any(|event| {
            matches!(event.event, EventKind::CommandRan { role: CommandRole::Enqueue, code: Some(0), .. })
        });
        for (_, unit, _) in facts.units() {
            let sent = unit.attempts.iter().map(|at| &facts.book.wire.attempts[*at]);
            let after: Vec<u64> = sent.filter(|fact| fact.seq > held).map(|fact| fact.seq).collect();
            // What is owed otherwise: in the fault-free trial, which has no producer, or by a committed row.
            let owed = unit.baseline.units > 0
                || unit.rows.iter().any(|row| !appeared_with_the_producer(facts, *row, ended));
            let unowed = if facts.baseline.is_some() || facts.is_mapped() { !owed } else { !enqueued };
            if after.is_empty() || !unowed {
                continue;
            }
            let effects = facts.effect_events(unit);
            let is_note = effects.is_empty();
            let message = if is_note {
                "it was asked for while its transaction was open, and not delivered"
            } else {
                "it was delivered, and its transaction was rolled back"
            };
            let events = [held, ended].into_iter().chain(after).chain(effects).collect();
            looked.violation_or_note(is_note, unit.subject(), message.into(), events);
        }
        looked
    }
}

/// Whether a row was first seen while the producer ran, after a look that did not have it: its transaction
/// was not committed, so the row came past it.
fn appeared_with_the_producer(facts: &Facts<'_>, row: usize, ended: u64) -> bool {
    let ledger = &facts.book.ledger;
    let Some((first, _)) = ledger.rows[row].sightings.first() else { return false };
    let seen = ledger.views[*first].seq;
    let started = facts.first_mark(PRODUCER_MARK).unwrap_or(u64::MAX);
    let looked_before = ledger.last_until(started).is_some_and(|view| ledger.views[view].seq < started);
    facts.baseline.is_some() && looked_before && (started..=ended).contains(&seen)
}

/// Where the transaction was open and where it was rolled back, unless one was committed as well.
fn rolled_back(facts: &Facts<'_>) -> Option<(u64, u64)> {
    let mut held = None;
    let mut ended = None;
    for event in &facts.rare {
        match event.event {
            EventKind::ProducerHeld => held = held.or(Some(event.seq)),
            EventKind::ProducerEnded { committed: true } => return None,
            EventKind::ProducerEnded { committed: false } => ended = Some(event.seq),
            _ => {}
        }
    }
    held.zip(ended)
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{RowState, Settings};

    use crate::sample::{Trial, mapped, mapped_baseline, plain_baseline, row, status};

    const NAME: &str = "nothing-from-rollback";

    fn produced(committed: bool, sent: &[&str], early: bool) -> InvariantStatus {
        let mut trial = Trial::new();
        trial.push(EventKind::ProducerHeld);
        if early {
            for text in sent {
                trial.deliver("bob@x", None, text);
            }
        }
        trial.push(EventKind::ProducerEnded { committed });
        if !early {
            for text in sent {
                trial.deliver("bob@x", None, text);
            }
        }
        status(&Settings::default(), &trial.end(), NAME)
    }

    #[test]
    fn what_was_rolled_back_is_not_sent_before_or_after() {
        for early in [true, false] {
            assert_eq!(produced(false, &["deployed", "order 7 is paid"], early), Violated, "{early}");
            assert_eq!(produced(false, &["deployed"], early), Holds, "the fault-free trial owes it");
        }
        assert_eq!(produced(true, &["order 7 is paid"], false), NotShown, "committed");
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_row_that_came_past_the_transaction_is_not_owed() {
        for (early, expected) in [(false, Violated), (true, Holds)] {
            let rows = |with: bool| {
                let mut rows = vec![row("deploy-42", "bob@x", RowState::Confirmed)];
                rows.extend(with.then(|| row("order-7", "eve@x", RowState::Created)));
                rows
            };
            let mut trial = Trial::new();
            trial.view(None, rows(early));
            trial.hit("mark:producer-open#1").view(None, rows(true));
            trial.push(EventKind::ProducerHeld);
            trial.push(EventKind::ProducerEnded { committed: false });
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
            trial.deliver("eve@x", Some("k-order-7"), "order 7 is paid");
            assert_eq!(status(&mapped(), &trial.end_rows(rows(true)), NAME), expected, "{early}");
        }
    }

    #[test]
    fn a_committed_row_is_owed() {
        let mut trial = Trial::new();
        trial.push(EventKind::ProducerHeld);
        trial.push(EventKind::ProducerEnded { committed: false });
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        let rows = vec![row("deploy-42", "bob@x", RowState::Confirmed)];
        assert_eq!(status(&mapped(), &trial.end_rows(rows), NAME), Holds);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
    }
}
