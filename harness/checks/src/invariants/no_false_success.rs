//! A row that says delivered has an effect.

use killpoint_model::{Entry, RowState};

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "no-false-success",
    summary: "what the worker calls delivered was received",
    explanation: "\
The worker's final state says that an action was delivered, and no recipient received it. Nobody will ever \
look again: it is the loss that hides best. Typical causes are a mark that is written before the request, a \
swallowed error, and an exit code of 0 that is taken for delivery.

Right is to confirm only after the provider's acceptance was read, or after a lookup found the message. (Your \
Agent Finished the Job. Did the Email Actually Leave?)",
    example: "[ledger]\npath = \"{state}/outbox.db\"\nquery = \"select id as action, status as state from outbox\"\nstates = { sent = \"confirmed\" }",
};

/// See [`ENTRY`].
pub(crate) struct NoFalseSuccess;

impl Invariant for NoFalseSuccess {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no final row says delivered: map the ledger with its states, so that the worker's word can be compared",
        );
        for (_, unit, account) in facts.units() {
            let confirmed = account.count(RowState::Confirmed);
            if confirmed == 0 || account.preexisting {
                continue;
            }
            looked.look();
            if account.false_success > 0 {
                looked.violation(
                    unit.subject(),
                    format!(
                        "{confirmed} confirmed in the ledger, {} received: the worker says delivered and it was not",
                        unit.effects.len()
                    ),
                    account.events.clone(),
                );
            }
        }
        doubt_unusable_rows(facts, &mut looked);
        looked
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, Inconclusive, NotShown, Violated};
    use killpoint_model::{RowState, Settings};

    use crate::sample::{
        Trial, judged, mapped, mapped_baseline, plain_baseline, row, status, view, violated,
    };

    #[test]
    fn confirmed_needs_an_effect() {
        assert_eq!(status(&mapped(), &mapped_baseline(), "no-false-success"), Holds);
        let done = || vec![row("deploy-42", "bob@x", RowState::Confirmed)];
        let nothing = Trial::new().lose("bob@x", Some("k-deploy-42"), "deployed", false).end_rows(done());
        assert_eq!(status(&mapped(), &nothing, "no-false-success"), Violated);
    }

    #[test]
    fn an_unreadable_ledger_is_inconclusive_and_none_is_not_shown() {
        let mut unreadable = view(None);
        unreadable.error = Some("file is not a database".into());
        let trial = Trial::new().deliver("bob@x", Some("k-deploy-42"), "deployed").end_with(unreadable);
        assert_eq!(status(&mapped(), &trial, "no-false-success"), Inconclusive);
        assert_eq!(status(&Settings::default(), &plain_baseline(), "no-false-success"), NotShown);
    }

    #[test]
    fn rows_that_came_with_the_state_owe_nothing() {
        let rows = || {
            vec![row("deploy-42", "bob@x", RowState::Confirmed), row("old-1", "eve@x", RowState::Confirmed)]
        };
        let trial = || Trial::new().deliver("bob@x", Some("k-deploy-42"), "deployed").end_rows(rows());
        let mut settings = mapped();
        assert!(violated(&judged(&settings, &trial(), &trial())).contains(&"no-false-success"));
        settings.state.from = Some("fixtures/state".into());
        assert_eq!(violated(&judged(&settings, &trial(), &trial())), Vec::<&str>::new());
    }
}
