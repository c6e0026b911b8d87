//! What a trial waits for, in words.

use killpoint_model::settings::SettleBy;

use super::Trial;
use super::drive::Goal;
use super::setup::COMMANDS;
use super::worker::Life;

/// Moments of the plan that are named at most.
const NAMED_MAX: usize = 2;

/// What is known when a trial is at rest only after more has come.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unsettled {
    /// Moments of the plan that have not come.
    pending: Vec<String>,
    provider_busy: bool,
    restart_due: bool,
    by: SettleBy,
    quiet_ms: u64,
    has_query: bool,
}

impl Unsettled {
    fn words(&self) -> String {
        if self.provider_busy {
            return "an exchange with the provider to end".to_owned();
        }
        if self.restart_due {
            return "the worker's next start".to_owned();
        }
        let rest = match (self.by, self.has_query) {
            (SettleBy::Exit, _) => "the worker to exit".to_owned(),
            (SettleBy::Quiet, _) => format!("{} ms without any event", self.quiet_ms),
            (SettleBy::Query, true) => "the query of `settle` to give 0".to_owned(),
            (SettleBy::Query, false) => "every row of the ledger to be decided".to_owned(),
        };
        let named: Vec<&str> = self.pending.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = match self.pending.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if named.is_empty() { rest } else { format!("{}{more}, or {rest}", named.join(", ")) }
    }
}

impl Trial {
    /// Tells whoever watches what the trial waits for.
    pub(super) fn tell(&self, goal: Goal) {
        if let Some(pulse) = &self.pulse {
            pulse.set(self.waits_for(goal), self.deadline);
        }
    }

    fn waits_for(&self, goal: Goal) -> String {
        match goal {
            Goal::Ended(COMMANDS) => "a command of the configuration to end".to_owned(),
            Goal::Ended(_) => "the producer to end".to_owned(),
            Goal::BarrierFull { .. } => "the other workers at the barrier".to_owned(),
            Goal::Elapsed { .. } => "the time that a fault lasts".to_owned(),
            Goal::Gone { worker, .. } => format!("worker {worker} to end as it was asked to"),
            Goal::WorkerRests { worker, .. } => format!("worker {worker} to be at rest"),
            Goal::Settled => self.unsettled().words(),
        }
    }

    fn unsettled(&self) -> Unsettled {
        let mut workers = self.workers.values().filter(|worker| worker.is_worker());
        Unsettled {
            pending: self.pending.iter().map(|fault| fault.at.to_string()).collect(),
            provider_busy: self.provider_busy(),
            restart_due: workers.any(|worker| matches!(worker.life, Life::Again(_) | Life::Killed)),
            by: self.settings.settle.by,
            quiet_ms: self.settings.settle.quiet_ms,
            has_query: self.settings.settle.query.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_said_in_the_order_in_which_it_must_come() {
        let idle = Unsettled {
            pending: Vec::new(),
            provider_busy: false,
            restart_due: false,
            by: SettleBy::Exit,
            quiet_ms: 1500,
            has_query: false,
        };
        assert_eq!(idle.words(), "the worker to exit");
        let quiet = Unsettled { by: SettleBy::Quiet, ..idle.clone() };
        assert_eq!(quiet.words(), "1500 ms without any event");
        let query = Unsettled { by: SettleBy::Query, ..idle.clone() };
        assert_eq!(query.words(), "every row of the ledger to be decided");
        let pending = ["a:b#1", "a:b#2", "a:b#3"].map(str::to_owned).to_vec();
        let owed = Unsettled { pending, ..idle.clone() };
        assert_eq!(owed.words(), "a:b#1, a:b#2 and 1 more, or the worker to exit");
        assert_eq!(Unsettled { restart_due: true, ..owed.clone() }.words(), "the worker's next start");
        assert_eq!(Unsettled { provider_busy: true, ..owed }.words(), "an exchange with the provider to end");
    }
}
