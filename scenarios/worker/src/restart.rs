//! What a worker does first. The right one does nothing here: all that is owed is in the ledger, and the loop
//! finds it there in every life in the same way. The bugs rebuild something from elsewhere.

use crate::error::WorkerError;
use crate::worker::Worker;

impl Worker {
    /// The start of a life after the first.
    pub(crate) fn restart_anew(&mut self) -> Result<(), WorkerError> {
        if self.life == 1 {
            return Ok(());
        }
        if self.policy.re_execute {
            self.store.reopen_undelivered_runs()?;
        }
        if self.policy.rebuild_items {
            self.store.rebuild_unfinished(self.life, self.item_start())?;
        }
        if self.policy.recompute_recipients {
            self.store.add_destination_to_unfinished(&self.roster_addition(), self.item_start())?;
        }
        Ok(())
    }

    /// Who joined the roster since the last life.
    pub(crate) fn roster_addition(&self) -> String {
        format!("joined-before-life-{}@example.test", self.life)
    }
}
