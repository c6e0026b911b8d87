//! SIGSTOP to the whole tree, and SIGCONT later.

use std::time::{Duration, Instant};

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::{duration, known_only, number};
use crate::trial::{Goal, Trial};

/// How long a worker is stopped unless told otherwise.
const FOR_DEFAULT: Duration = Duration::from_secs(1);
/// Workers that a fault can name.
const WORKERS_MAX: u32 = 64;

/// The `stop` fault.
#[derive(Debug)]
pub(super) struct Stop;

static ENTRY: Entry = Entry {
    name: "stop",
    summary: "SIGSTOP to the worker's whole tree, and SIGCONT after a time",
    explanation: "A suspended host, a long garbage collection, a paused virtual machine: the worker loses its lease without \
        dying, and then goes on as if nothing had happened. Heartbeat threads are stopped as well. Other workers of the trial \
        go on meanwhile. What it does afterwards must be fenced: it may have lost what it holds.",
    example: "[[fault]]\nat = \"mark:item-claimed#1\"\ndo = \"stop\"\nwith = { for = \"2s\" }",
};

impl Fault for Stop {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["for", "worker"])?;
        duration(with, "for")?;
        number(with, "worker", WORKERS_MAX).map(drop)
    }

    fn holds_long(&self, _with: &Parameters) -> bool {
        true
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let named = number(with, "worker", WORKERS_MAX).unwrap_or_default();
            let target = trial.target(named, worker);
            if !trial.stop_worker(target).await? {
                return Ok(Landing { landed: false, note: "no live worker was left to stop".into() });
            }
            let stopped_for = duration(with, "for").ok().flatten().unwrap_or(FOR_DEFAULT);
            trial.drive(Goal::Elapsed { until: Instant::now() + stopped_for }).await?;
            trial.resume_worker(target).await?;
            Ok(Landing { landed: true, note: format!("stopped for {} ms", stopped_for.as_millis()) })
        })
    }
}
