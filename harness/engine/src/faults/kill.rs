//! SIGKILL to the whole tree, then a restart on the same ledger.

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters, known_only};
use crate::trial::Trial;

/// The `kill` fault.
#[derive(Debug)]
pub(super) struct Kill;

static ENTRY: Entry = Entry {
    name: "kill",
    summary: "SIGKILL to the worker's whole process tree, then a restart on the same ledger",
    explanation: "The boundary's name is in the history before the signal is sent. Every process of the worker's tree gets \
        SIGKILL, daemons included, and is proven dead before the next generation starts. At a provider boundary all workers \
        are killed, because the wire does not tell whose request it is; `worker` chooses one.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"",
};

impl Fault for Kill {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["worker"])?;
        match with.get("worker").map(serde_json::Value::as_u64) {
            Some(None | Some(0)) => Err("`worker`: a number from 1 is needed".into()),
            _ => Ok(()),
        }
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        let target =
            with.get("worker").and_then(serde_json::Value::as_u64).map_or(worker, |number| number as u32);
        Box::pin(async move {
            let landed = trial.kill(target).await?;
            let note = if landed {
                "signal 9 landed"
            } else {
                "no live worker was left to kill: the kill came too late"
            };
            Ok(Landing { landed, note: note.into() })
        })
    }
}
