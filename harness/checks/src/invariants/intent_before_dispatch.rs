//! The row is durable before the request is on the wire.

use std::collections::BTreeSet;

use killpoint_model::Entry;

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;
use crate::facts::ledger::ViewFact;
use crate::facts::units::Unit;
use crate::facts::wire::AttemptFact;

static ENTRY: Entry = Entry {
    name: "intent-before-dispatch",
    summary: "an action has its durable row, with its key, before its request is sent",
    explanation: "\
The ledger was read while a request was at the provider and unanswered, and had no row for it, or not its key. \
If the worker dies at that moment, nothing remembers that something may have been sent: recovery either \
forgets it or makes it anew under another identity.

Right is to commit the row, with key and destination, and only then to send. (Your Agent Finished the Job: \
\"Before dispatch, write the row and commit it.\")",
    example: "[[fault]]\nat = \"provider:received#1\"\ndo = \"kill\"",
};

/// See [`ENTRY`].
pub(crate) struct IntentBeforeDispatch;

impl Invariant for IntentBeforeDispatch {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "the ledger was not read while a request was unanswered: map the ledger and use a boundary such as `provider:received`",
        );
        if facts.unjoined {
            doubt_unusable_rows(facts, &mut looked);
            return looked;
        }
        let ledger = &facts.book.ledger;
        let shown: Vec<BTreeSet<usize>> =
            ledger.shown.iter().map(|rows| rows.iter().copied().collect()).collect();
        for (index, fact) in facts.book.wire.attempts.iter().enumerate() {
            let Some(view) = ledger.first_after(fact.seq) else { continue };
            // A connection that broke because the worker died is no answer.
            let answered = facts.first_kill_after(fact.seq).is_none_or(|kill| fact.end_seq < Some(kill));
            let in_flight = !answered || fact.end_seq.is_none_or(|end| end > ledger.views[view].seq);
            // After a restart the row may be the recovery's work.
            let same_life = ledger.views[view].generation == facts.generation_of(fact.seq);
            if ledger.views[view].is_final || !in_flight || !same_life {
                continue;
            }
            looked.look();
            let unit = &facts.book.units[facts.book.unit_of_attempt[index]];
            let rows: Vec<usize> =
                unit.rows.iter().copied().filter(|row| shown[view].contains(row)).collect();
            let events = vec![fact.seq, ledger.views[view].seq];
            if rows.is_empty() {
                looked.violation(
                    unit.subject(),
                    format!(
                        "attempt {} was at the provider and the ledger had no row for it",
                        fact.attempt.id
                    ),
                    events,
                );
            } else if key_is_missing(facts, unit, &rows, fact, &ledger.views[view]) {
                looked.violation(
                    unit.subject(),
                    format!(
                        "attempt {} was at the provider with a key that its row did not hold",
                        fact.attempt.id
                    ),
                    events,
                );
            }
        }
        looked
    }
}

/// Whether the mapping has keys, the request bears one, and none of its rows held it at the time.
fn key_is_missing(
    facts: &Facts<'_>,
    unit: &Unit,
    rows: &[usize],
    fact: &AttemptFact<'_>,
    view: &ViewFact<'_>,
) -> bool {
    let Some(key) = &fact.attempt.key else { return false };
    let ledger = &facts.book.ledger;
    let ever = unit.rows.iter().flat_map(|row| &ledger.rows[*row].sightings);
    let mapped = ever.filter(|(_, row)| row.key.is_some()).count() > 0;
    let held = rows
        .iter()
        .flat_map(|row| &ledger.rows[*row].sightings)
        .any(|(at, row)| ledger.views[*at].seq == view.seq && row.key.as_ref() == Some(key));
    mapped && !held
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};
    use killpoint_model::{History, LedgerRow, RowState};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    fn seen_at_received(rows: Vec<LedgerRow>) -> History {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.hit("provider:received#1").view(Some("provider:received#1"), rows);
        trial.commit(attempt);
        trial.reply(attempt, 200).end_rows(vec![row("deploy-42", "bob@x", RowState::Confirmed)])
    }

    #[test]
    fn the_row_and_its_key_come_first() {
        let name = "intent-before-dispatch";
        let intent = row("deploy-42", "bob@x", RowState::Dispatching);
        assert_eq!(status(&mapped(), &seen_at_received(vec![intent.clone()]), name), Holds);
        assert_eq!(status(&mapped(), &seen_at_received(Vec::new()), name), Violated);
        let keyless = LedgerRow { key: None, ..intent };
        assert_eq!(status(&mapped(), &seen_at_received(vec![keyless]), name), Violated);
        assert_eq!(status(&mapped(), &mapped_baseline(), name), NotShown);
    }

    #[test]
    fn a_dead_tree_is_read_as_it_died() {
        for (rows, expected) in
            [(Vec::new(), Violated), (vec![row("deploy-42", "bob@x", RowState::Dispatching)], Holds)]
        {
            let mut trial = Trial::new();
            let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
            trial.die("provider:received#1").drop_reply(attempt).view(None, rows);
            let trial = trial.spawn().end_rows(vec![row("deploy-42", "bob@x", RowState::Unknown)]);
            assert_eq!(status(&mapped(), &trial, "intent-before-dispatch"), expected);
        }
    }

    #[test]
    fn recoverys_rows_are_no_intent() {
        let mut trial = Trial::new();
        trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.kill("provider:received#1");
        let rows = || vec![row("deploy-42", "bob@x", RowState::Unknown)];
        trial.view(None, rows());
        assert_eq!(status(&mapped(), &trial.end_rows(rows()), "intent-before-dispatch"), NotShown);
    }
}
