//! The worker comes to rest and leaves nothing half done.

use killpoint_model::Entry;
use killpoint_model::event::EventKind;

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "terminal-state-explicit",
    summary: "recovery ends, and every row ends delivered, failed, unknown or called off",
    explanation: "\
After the faults were over and the worker had its time, a row is still waiting or in flight, or the worker never \
came to rest. Nobody owns such a row and nothing will raise an alarm for it: the error rate stays at zero \
because nothing is tried.

Right is that recovery scans everything that is not decided, and that each row ends in a state that says what \
happened. Unknown is such a state. (Your Agent Finished the Job: \"reconciliation => terminal state is \
explicit\".)",
    example: "[settle]\nby = \"query\"\nquery = \"SELECT count(*) FROM outbox WHERE status IN ('pending', 'sending')\"\ndeadline = \"30s\"",
};

/// See [`ENTRY`].
pub(crate) struct TerminalStateExplicit;

impl Invariant for TerminalStateExplicit {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(&ENTRY, "there are no final rows: map the ledger with its states");
        for event in &facts.rare {
            if let EventKind::NotSettled { why } = &event.event {
                looked.look();
                looked.violation("the worker", format!("it never came to rest: {why}"), vec![event.seq]);
            }
        }
        let Some((seq, rows)) = facts.final_rows() else {
            doubt_unusable_rows(facts, &mut looked);
            return looked;
        };
        for row in rows {
            looked.look();
            if !row.state.is_terminal() {
                let subject = match &row.destination {
                    Some(destination) => format!("{} to {destination}", row.action),
                    None => row.action.clone(),
                };
                looked.violation(
                    subject,
                    format!("the row ends as `{}`: neither done nor given up", row.state),
                    vec![seq],
                );
            }
        }
        looked
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};
    use killpoint_model::{RowState, Settings};

    use crate::sample::{Trial, mapped, plain_baseline, row, status};

    const NAME: &str = "terminal-state-explicit";

    #[test]
    fn every_row_is_decided_at_the_end() {
        for (state, expected) in [
            (RowState::Created, Violated),
            (RowState::Dispatching, Violated),
            (RowState::Unknown, Holds),
            (RowState::Confirmed, Holds),
        ] {
            let trial = Trial::new().deliver("bob@x", Some("k-deploy-42"), "deployed").end_rows(vec![row(
                "deploy-42",
                "bob@x",
                state,
            )]);
            assert_eq!(status(&mapped(), &trial, NAME), expected, "{state}");
        }
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_worker_that_never_rests_violates_with_that_event() {
        let trial = Trial::new().deliver("bob@x", None, "deployed").not_settled().end();
        assert_eq!(status(&Settings::default(), &trial, NAME), Violated);
    }
}
