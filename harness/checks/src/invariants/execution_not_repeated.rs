//! Work whose result is committed is not done again.

use std::collections::BTreeMap;

use killpoint_model::event::EventKind;
use killpoint_model::hit::Source;
use killpoint_model::{Entry, ExecutionState};

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::ledger::RowFact;

static ENTRY: Entry = Entry {
    name: "execution-not-repeated",
    summary: "work whose result is committed is not executed again after a restart",
    explanation: "\
The ledger said that the execution had succeeded, and afterwards it was begun again: its state went back, its \
count grew, or the worker committed its result once more in a later life. Recovery of execution and recovery of \
delivery were mixed up: an undelivered message made the agent do the work again, with all its side effects.

Right is to keep the result and to resume with the delivery alone. (Your AI Agent Finished the Job, But the \
Message Never Sent: \"Record execution and delivery separately\".)",
    example: "[ledger]\npath = \"{state}/jobs.db\"\nquery = \"SELECT id AS action, delivery AS state, execution, runs AS executions FROM jobs\"",
};

/// See [`ENTRY`].
pub(crate) struct ExecutionNotRepeated;

impl Invariant for ExecutionNotRepeated {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no row was seen with its execution succeeded before another look: map `execution` and `executions` in the ledger's query",
        );
        let mut succeeded_at: BTreeMap<&str, (u64, u32)> = BTreeMap::new();
        for row in &facts.book.ledger.rows {
            let succeeded =
                row.sightings.iter().position(|(_, row)| row.execution == Some(ExecutionState::Succeeded));
            let Some(from) = succeeded.filter(|from| from + 1 < row.sightings.len()) else { continue };
            looked.look();
            let view = &facts.book.ledger.views[row.sightings[from].0];
            succeeded_at.entry(row.action).or_insert((view.seq, view.generation));
            row_repeated(facts, row, from, &mut looked);
        }
        marks_repeated(facts, &succeeded_at, &mut looked);
        looked
    }
}

fn row_repeated(facts: &Facts<'_>, row: &RowFact<'_>, from: usize, looked: &mut Looked) {
    let (view, first) = row.sightings[from];
    let seq = |view: usize| facts.book.ledger.views[view].seq;
    let later = row.sightings[from + 1..].iter().find_map(|(later, row)| {
        // A store that was put back does not know that it was done.
        if facts.timeline.rolled_back_between(seq(view), seq(*later)) {
            return None;
        }
        let back = matches!(row.execution, Some(ExecutionState::Pending | ExecutionState::Running));
        let grown = row.executions.zip(first.executions).is_some_and(|(now, before)| now > before);
        match (grown, back) {
            (true, _) => Some((*later, "its count of executions grew")),
            (false, true) => Some((*later, "its execution went back to the beginning")),
            (false, false) => None,
        }
    });
    if let Some((at, what)) = later {
        looked.violation(
            row.action,
            format!("after the execution had succeeded {what}"),
            vec![seq(view), seq(at)],
        );
    }
}

/// `mark:result-committed[ID]` hit again in a later life.
fn marks_repeated(facts: &Facts<'_>, succeeded_at: &BTreeMap<&str, (u64, u32)>, looked: &mut Looked) {
    if succeeded_at.is_empty() {
        return;
    }
    let mut committed: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &facts.history.events {
        let EventKind::Hit { hit, .. } = &event.event else { continue };
        let is_result = hit.source == Some(Source::Mark) && hit.point == "result-committed";
        let Some(id) = hit.selector.as_deref().filter(|_| is_result) else { continue };
        let before = committed.insert(id, event.seq);
        let Some((view, generation)) = succeeded_at.get(id) else { continue };
        let later = event.generation > *generation && event.seq > *view;
        let put_back = facts.timeline.rolled_back_between(*view, event.seq);
        if let Some(before) = before.filter(|_| later && !put_back) {
            looked.violation(
                id,
                "its result was committed again after a restart",
                vec![before, *view, event.seq],
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};
    use killpoint_model::{ExecutionState, History, LedgerRow, RowState};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "execution-not-repeated";

    fn work(execution: ExecutionState, executions: u32) -> Vec<LedgerRow> {
        let row = row("deploy-42", "bob@x", RowState::Confirmed);
        vec![LedgerRow { execution: Some(execution), executions: Some(executions), ..row }]
    }

    fn then(rows: Vec<LedgerRow>) -> History {
        let mut trial = Trial::new();
        trial.view(None, work(ExecutionState::Succeeded, 1));
        trial.kill("mark:result-committed[deploy-42]#1").view(None, rows);
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed").end_rows(work(ExecutionState::Succeeded, 1))
    }

    #[test]
    fn a_committed_result_is_kept() {
        assert_eq!(status(&mapped(), &then(work(ExecutionState::Succeeded, 1)), NAME), Holds);
        assert_eq!(status(&mapped(), &then(work(ExecutionState::Running, 1)), NAME), Violated);
        assert_eq!(status(&mapped(), &then(work(ExecutionState::Succeeded, 2)), NAME), Violated);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_result_is_committed_once() {
        let mut trial = Trial::new();
        trial.hit("mark:result-committed[deploy-42]#1");
        trial.view(None, work(ExecutionState::Succeeded, 1));
        trial.kill("mark:claimed#1").hit("mark:result-committed[deploy-42]#2");
        let trial = trial
            .deliver("bob@x", Some("k-deploy-42"), "deployed")
            .end_rows(work(ExecutionState::Succeeded, 1));
        assert_eq!(status(&mapped(), &trial, NAME), Violated);
    }
}
