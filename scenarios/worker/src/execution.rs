//! Executing runs: the work itself, and the commit that makes its result and its deliveries durable together.

use killpoint_mark::mark;

use crate::error::WorkerError;
use crate::store::Run;
use crate::worker::Worker;

impl Worker {
    /// Executes the next run. Says whether there was one.
    pub(crate) fn execute_next(&mut self) -> Result<bool, WorkerError> {
        let Some(mut run) = self.store.next_run()? else { return Ok(false) };
        if !self.store.start_run(&mut run, &self.settings.worker_id, self.settings.lease_ms)? {
            return Ok(true);
        }
        mark("execution-started")?;
        let text = render(&run);
        mark("before-result-commit")?;
        let destinations = self.destinations_of(&run);
        let items = self.store.commit_result(&run, &text, &destinations, self.item_start())?;
        // Nothing to commit: the lease ended and another worker executed the run.
        let Some(items) = items else { return Ok(true) };
        mark("result-committed")?;
        for _ in &items {
            mark("item-enqueued")?;
        }
        if self.policy.done_with_execution {
            for item in &items {
                self.send_from_memory(item)?;
            }
        }
        Ok(true)
    }

    fn destinations_of(&self, run: &Run) -> Vec<String> {
        let mut destinations = run.destinations.clone();
        if self.policy.recompute_recipients && self.life > 1 {
            destinations.push(self.roster_addition());
        }
        destinations
    }
}

/// The work: deterministic, so that a repetition gives the same result.
fn render(run: &Run) -> String {
    run.input.replace("{run}", &run.id)
}
