//! The worker's own retention.

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::known_only;
use crate::trial::Trial;

/// The `cleanup` fault.
#[derive(Debug)]
pub(super) struct Cleanup;

static ENTRY: Entry = Entry {
    name: "cleanup",
    summary: "runs the worker's own cleanup command while the worker waits at the hit",
    explanation: "A retention job runs while work is live or a redelivery is due. It may make the store small; it must not take \
        away the marker that prevents a second delivery, nor the only evidence of the first.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"cleanup\"",
};

impl Fault for Cleanup {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &[])
    }

    /// The command takes its own time.
    fn holds_long(&self, _: &Parameters) -> bool {
        true
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _: u32, _: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            if trial.clean_up().await? {
                return Ok(Landing { landed: true, note: "the cleanup command ended".into() });
            }
            Ok(trial.limitation(
                "cleanup",
                "the worker's cleanup is not known; configure `[cleanup] command`".into(),
            ))
        })
    }
}
