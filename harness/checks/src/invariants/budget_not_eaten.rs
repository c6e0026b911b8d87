//! Interruptions do not use up the attempts.

use killpoint_model::{Entry, ExecutionState, RowState};

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;
use crate::facts::units::Unit;

static ENTRY: Entry = Entry {
    name: "budget-not-eaten",
    summary: "no action ends failed without one request to the provider, because its worker was interrupted",
    explanation: "\
The row says failed, and the provider never got a request for it: deaths, stops or restarts were counted as attempts \
until none was left. A deployment that restarts a worker a few times throws messages away that nobody ever tried to \
send, and each of them says that it was tried.

Right is to count what was sent, or may have been. What is proven unsent can still be sent; what is not proven is \
unknown or goes to review. (K26 attempt-accounting-wrong: \"never failed with 0 requests\".)",
    example: "[[fault]]\nat = \"item-claimed#1\"\ndo = \"kill\"\n\n[[fault]]\nat = \"item-claimed#2\"\ndo = \"kill\"",
};

/// See [`ENTRY`].
pub(crate) struct BudgetNotEaten;

impl Invariant for BudgetNotEaten {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no worker was interrupted, or there are no rows to compare: map the ledger, and kill before a request is sent",
        );
        let interrupted = &facts.timeline.deaths;
        if !facts.is_mapped() || interrupted.is_empty() {
            return looked;
        }
        doubt_unusable_rows(facts, &mut looked);
        let Some((seq, _)) = facts.final_rows() else { return looked };
        let turned_away = turned_away(facts);
        for (_, unit, account) in facts.units() {
            if account.preexisting || unit.rows.is_empty() {
                continue;
            }
            looked.look();
            let failed = account.count(RowState::Failed);
            if failed > 0 && unit.attempts.is_empty() && !turned_away && !had_other_reason(facts, unit) {
                let mut events = interrupted.clone();
                events.push(seq);
                let message = format!(
                    "it ends as failed, the provider got no request for it, and its worker was interrupted {}",
                    if interrupted.len() == 1 {
                        "once".into()
                    } else {
                        format!("{} times", interrupted.len())
                    }
                );
                looked.violation(unit.subject(), message, events);
            }
        }
        looked
    }
}

/// Whether the provider turned connections away more often than deaths explain: attempts that no request shows.
fn turned_away(facts: &Facts<'_>) -> bool {
    let used: std::collections::BTreeSet<u32> = (facts.book.wire.attempts.iter())
        .map(|fact| fact.attempt.connection)
        .chain(facts.book.wire.lookups.iter().map(|fact| fact.lookup.connection))
        .collect();
    facts.book.wire.connections as usize > used.len() + facts.timeline.deaths.len()
}

/// Whether the work behind it failed, or it is not sent in the fault-free trial either.
fn had_other_reason(facts: &Facts<'_>, unit: &Unit) -> bool {
    let work_failed = unit
        .rows
        .iter()
        .flat_map(|row| &facts.book.ledger.rows[*row].last)
        .any(|row| row.execution == Some(ExecutionState::Failed));
    let never_sent = facts.baseline.is_some() && unit.baseline.units > 0 && unit.baseline.attempts == 0;
    work_failed || never_sent || facts.unjoined
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};
    use killpoint_model::{ExecutionState, LedgerRow, RowState};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "budget-not-eaten";

    fn rows(state: RowState) -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", state)]
    }

    fn killed_twice() -> Trial {
        let mut trial = Trial::new();
        trial.view(None, rows(RowState::Dispatching));
        trial.kill("mark:item-claimed#1").kill("mark:item-claimed#2");
        trial
    }

    #[test]
    fn nobody_fails_what_nobody_tried() {
        for (state, expected) in
            [(RowState::Failed, Violated), (RowState::Review, Holds), (RowState::Unknown, Holds)]
        {
            assert_eq!(status(&mapped(), &killed_twice().end_rows(rows(state)), NAME), expected, "{state}");
        }
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
        let unmapped = Trial::new().kill("mark:item-claimed#1").end();
        assert_eq!(status(&killpoint_model::Settings::default(), &unmapped, NAME), NotShown);
    }

    #[test]
    fn a_refused_request_or_failed_work_is_a_reason() {
        let mut refused = killed_twice();
        let attempt = refused.send("bob@x", Some("k-deploy-42"), "deployed");
        refused.reply(attempt, 422);
        assert_eq!(status(&mapped(), &refused.end_rows(rows(RowState::Failed)), NAME), Holds);
        let failed_work =
            vec![LedgerRow { execution: Some(ExecutionState::Failed), ..rows(RowState::Failed).remove(0) }];
        assert_eq!(status(&mapped(), &killed_twice().end_rows(failed_work), NAME), Holds);
    }
}
