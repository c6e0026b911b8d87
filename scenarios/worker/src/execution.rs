//! Executing runs: the work itself, and the commit that makes its result and its deliveries durable together.

use killpoint_mark::mark;

use crate::alarm;
use crate::error::WorkerError;
use crate::store::Run;
use crate::worker::Worker;

/// Starts of one run that may end without a result; then it is put aside, because it may be what kills its worker.
const STARTS_MAX: u32 = 4;
/// The text of an action that kills its worker, as a bad input to a native library would.
const POISON: &str = "poison";

impl Worker {
    /// Executes the next run. Says whether there was one.
    pub(crate) fn execute_next(&mut self) -> Result<bool, WorkerError> {
        let Some(mut run) = self.store.next_run()? else { return Ok(false) };
        if run.starts >= STARTS_MAX {
            return self.put_aside(&run).map(|()| true);
        }
        let (owner, lease_ms) = (&self.settings.worker_id, self.settings.lease_ms);
        if !self.store.start_run(&mut run, owner, lease_ms, !self.policy.starts_uncounted)? {
            return Ok(true);
        }
        mark("execution-started")?;
        let text = render(&run);
        mark("before-result-commit")?;
        let destinations = self.destinations_of(&run);
        // Nothing to commit: the lease ended and another worker executed the run.
        let Some(items) = self.commit(&run, &text, &destinations)? else { return Ok(true) };
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

    /// Commits the result with its items, and marks that.
    fn commit(
        &mut self,
        run: &Run,
        text: &str,
        destinations: &[String],
    ) -> Result<Option<Vec<String>>, WorkerError> {
        let start = self.item_start();
        if self.policy.commit_apart {
            if !self.store.commit_result_alone(run, text)? {
                return Ok(None);
            }
            mark("result-committed")?;
            return self.store.commit_items_alone(run, text, destinations, start).map(Some);
        }
        let items = self.store.commit_result(run, text, destinations, start)?;
        if items.is_some() {
            mark("result-committed")?;
        }
        Ok(items)
    }

    fn put_aside(&self, run: &Run) -> Result<(), WorkerError> {
        let evidence = format!("begun {} times without a result; its worker ended each time", run.starts);
        if self.store.quarantine(run, &evidence)? {
            alarm::raise(&format!("{} is quarantined: {evidence}", run.id));
            mark("run-quarantined")?;
        }
        Ok(())
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
    if run.input.trim() == POISON {
        std::process::abort();
    }
    run.input.replace("{run}", &run.id)
}
