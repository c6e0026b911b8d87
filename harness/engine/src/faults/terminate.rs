//! SIGTERM, a grace time, then SIGKILL; then the next start.

use std::time::Duration;

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::{duration, known_only, number};
use crate::trial::Trial;

/// The grace time unless told otherwise.
const GRACE_DEFAULT: Duration = Duration::from_secs(5);
/// Workers that a fault can name.
const WORKERS_MAX: u32 = 64;

/// The `terminate` fault.
#[derive(Debug)]
pub(super) struct Terminate;

static ENTRY: Entry = Entry {
    name: "terminate",
    summary: "SIGTERM to the worker's first process, SIGKILL to the tree after a grace time, then the next start",
    explanation: "What every deployment does. Whatever is in flight goes on meanwhile: the worker may finish it, or must park it \
        so that the next life can tell. grace = \"0s\" is a host that does not wait. With answer-after, whoever waits at the \
        hit (a request of the worker, say) goes on only so long after the signal: a provider that is slow just then.",
    example: "[[fault]]\nat = \"provider:received#1\"\ndo = \"terminate\"\nwith = { grace = \"5s\" }",
};

impl Fault for Terminate {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["grace", "worker", "answer-after"])?;
        let grace = duration(with, "grace")?.unwrap_or(GRACE_DEFAULT);
        if duration(with, "answer-after")?.is_some_and(|after| after >= grace) {
            return Err(
                "`answer-after` must be shorter than `grace`: after it nobody is left to be answered".into(),
            );
        }
        number(with, "worker", WORKERS_MAX).map(drop)
    }

    fn holds_long(&self, with: &Parameters) -> bool {
        with.contains_key("answer-after")
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let grace = duration(with, "grace").ok().flatten().unwrap_or(GRACE_DEFAULT);
            let named = number(with, "worker", WORKERS_MAX).unwrap_or_default();
            let answer_after = duration(with, "answer-after").ok().flatten().unwrap_or_default();
            let target = trial.target(named, worker);
            let landed = trial.terminate(target, grace, answer_after).await?;
            let note = if landed {
                format!("SIGTERM sent; {} ms of grace", grace.as_millis())
            } else {
                "no live worker was left to ask".into()
            };
            Ok(Landing { landed, note })
        })
    }
}
