//! What a worker does first. The right one only looks whether the ledger's file is the one it wrote: all that is
//! owed is in the ledger, and the loop finds it there in every life in the same way. The bugs rebuild something
//! from elsewhere.

use std::io::Write;

use crate::error::WorkerError;
use crate::worker::Worker;

impl Worker {
    /// The start of a life.
    pub(crate) fn begin(&mut self) -> Result<(), WorkerError> {
        if !self.policy.trust_copies {
            let suspects = self.store.move_in()?;
            if suspects > 0 {
                // Nothing can be done about a closed stderr.
                let _ = writeln!(
                    std::io::stderr(),
                    "outbox-worker: the ledger is a copy or was restored; {suspects} open rows are looked up before \
                     anything is sent"
                );
            }
        }
        if self.policy.steal_at_start {
            self.store.reset_in_flight()?;
        }
        if self.policy.reregister_schedules {
            self.store.rewind_schedules()?;
        }
        if self.life > 1 { self.restart_anew() } else { Ok(()) }
    }

    /// The start of a life after the first.
    fn restart_anew(&mut self) -> Result<(), WorkerError> {
        if self.policy.re_execute {
            self.store.reopen_undelivered_runs()?;
        }
        if self.policy.rebuild_items {
            self.store.rebuild_unfinished(self.life, self.item_start())?;
        }
        if self.policy.recompute_recipients {
            self.store.add_destination_to_unfinished(&self.roster_addition(), self.item_start())?;
        }
        if self.policy.reopen_failed {
            self.store.reopen_failed()?;
        }
        Ok(())
    }

    /// Who joined the roster since the last life.
    pub(crate) fn roster_addition(&self) -> String {
        format!("joined-before-life-{}@example.test", self.life)
    }
}
