//! Several workers at the same moment.

use std::time::Duration;

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::{duration, known_only, number};
use crate::trial::Trial;

/// How long the barrier waits unless told otherwise.
const LIMIT_DEFAULT: Duration = Duration::from_secs(5);
/// Workers that a barrier can hold.
const WORKERS_MAX: u32 = 16;

/// The `barrier` fault.
#[derive(Debug)]
pub(super) struct Barrier;

static ENTRY: Entry = Entry {
    name: "barrier",
    summary: "holds each worker at a mark until enough of them are there, then lets all go on together",
    explanation: "Makes a race certain that luck would show once in a thousand runs: several workers stand between reading a free \
        item and claiming it. Where not enough of them come within `limit`, they wait for each other or one never gets there: \
        the barrier is lifted and the trial shows nothing.",
    example: "workers = 5\n\n[[fault]]\nat = \"mark:before-claim#1\"\ndo = \"barrier\"\nwith = { workers = 5 }",
};

impl Fault for Barrier {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["workers", "limit"])?;
        duration(with, "limit")?;
        number(with, "workers", WORKERS_MAX).map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let wanted = number(with, "workers", WORKERS_MAX).ok().flatten().unwrap_or(2);
            let limit = duration(with, "limit").ok().flatten().unwrap_or(LIMIT_DEFAULT);
            let Some(at) = trial.at().filter(|_| worker > 0) else {
                return Ok(Landing { landed: false, note: "a barrier stands at a mark".into() });
            };
            let arrived = trial.gather(&at, worker, wanted, limit).await?;
            let note = if arrived == 0 {
                format!(
                    "workers stand at another barrier already: they and those at `{}` would wait for each other",
                    at.series()
                )
            } else if arrived >= wanted {
                format!("{arrived} workers went on together")
            } else {
                format!(
                    "only {arrived} of {wanted} workers came to `{}` within {} ms: another one waits for something that \
                     one of these holds, or never gets there",
                    at.series(),
                    limit.as_millis()
                )
            };
            Ok(Landing { landed: arrived >= wanted, note })
        })
    }
}
