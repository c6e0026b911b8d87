//! A row that says failed has no effect.

use killpoint_model::{Entry, RowState};

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "no-false-failure",
    summary: "what the worker calls failed was not received",
    explanation: "\
The worker's final state says that an action failed or was called off, and the recipient received it. Whoever \
reads that will send it again by hand, or refund what was charged. It comes from taking a lost answer, a \
timeout or a server error for a refusal, and from taking a provider's \"duplicate\" for an error.

Right is to say unknown until a refusal was read or a lookup answered. A message that was accepted and later \
bounced may be called failed. (Your Agent Finished the Job. Did the Email Actually Leave?)",
    example: "[ledger]\npath = \"{state}/outbox.db\"\nquery = \"select id as action, status as state from outbox\"\nstates = { error = \"failed\", delivery_unknown = \"unknown\" }",
};

/// See [`ENTRY`].
pub(crate) struct NoFalseFailure;

impl Invariant for NoFalseFailure {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no final row says failed or cancelled: nothing to compare; map the ledger if the worker has such states",
        );
        for (_, unit, account) in facts.units() {
            let failed = account.count(RowState::Failed) + account.count(RowState::Cancelled);
            if failed == 0 || account.preexisting {
                continue;
            }
            looked.look();
            if account.false_failure > 0 {
                looked.violation(
                    unit.subject(),
                    format!(
                        "{} in the ledger, {} received: the worker says that it was not sent and it was",
                        account.state_words().unwrap_or_default(),
                        unit.effects.len()
                    ),
                    account.events.clone(),
                );
            } else if !account.lies.is_empty() {
                looked.note(
                    unit.subject(),
                    "the provider refused it in a whole answer and delivered it all the same: the worker could not know",
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
    use killpoint_model::RowState;
    use killpoint_model::finding::InvariantStatus::{Holds, Violated};

    use crate::sample::{Trial, mapped, row, status};

    #[test]
    fn failed_must_not_have_an_effect() {
        let failed = || vec![row("deploy-42", "bob@x", RowState::Failed)];
        let refused = |commit: bool| {
            let mut trial = Trial::new();
            let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
            if commit {
                trial.commit(attempt);
            }
            trial.reply(attempt, 422).end_rows(failed())
        };
        assert_eq!(status(&mapped(), &refused(false), "no-false-failure"), Holds);
        assert_eq!(status(&mapped(), &refused(true), "no-false-failure"), Holds, "the provider lied");
        let lost = Trial::new().lose("bob@x", Some("k-deploy-42"), "deployed", true).end_rows(failed());
        assert_eq!(status(&mapped(), &lost, "no-false-failure"), Violated);
    }
}
