//! Attempts have a bound.

use killpoint_model::Entry;

use super::{Invariant, Looked};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "attempts-bounded",
    summary: "no action is tried more often than the configured bound",
    explanation: "\
One action made more requests than `checks.attempts-max` allows, over all lives of the worker. A permanent error \
that is retried for ever, retry layers that multiply, or a counter that a restart sets back to zero look like \
this, and they take the provider's rate limit from everybody else.

Right is a durable count of attempts and a decided state when it is used up. (Your Agent Finished the Job: \
\"never an unbounded duplicate loop\".)",
    example: "[checks]\nattempts-max = 10",
};

/// See [`ENTRY`].
pub(crate) struct AttemptsBounded;

impl Invariant for AttemptsBounded {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked =
            Looked::new(&ENTRY, "no request reached the provider: check that the worker uses its address");
        let per_action = facts.settings.checks.attempts_max;
        for (index, unit, _) in facts.units().filter(|(_, unit, _)| !unit.attempts.is_empty()) {
            looked.look();
            let bound = per_action.saturating_mul(facts.slots(index));
            if unit.attempts.len() > bound as usize {
                looked.violation(
                    unit.subject(),
                    format!("{} attempts, more than the {bound} that are allowed", unit.attempts.len()),
                    facts.attempt_events(unit),
                );
            }
        }
        looked
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::Settings;
    use killpoint_model::finding::InvariantStatus::{Holds, Violated};

    use crate::sample::{Trial, status};

    #[test]
    fn the_bound_is_inclusive() {
        let refused = |times: u32| {
            let mut trial = Trial::new();
            for _ in 0..times {
                let attempt = trial.send("bob@x", None, "deployed");
                trial.reply(attempt, 429);
            }
            trial.end()
        };
        assert_eq!(status(&Settings::default(), &refused(10), "attempts-bounded"), Holds);
        assert_eq!(status(&Settings::default(), &refused(11), "attempts-bounded"), Violated);
    }
}
