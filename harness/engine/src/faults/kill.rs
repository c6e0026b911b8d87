//! SIGKILL to the whole tree, or to a part of it, then a restart on the same ledger.

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::{flag, known_only, number, word};
use crate::trial::Trial;

/// Workers that a fault can name.
const WORKERS_MAX: u32 = 64;

/// The `kill` fault.
#[derive(Debug)]
pub(super) struct Kill;

static ENTRY: Entry = Entry {
    name: "kill",
    summary: "SIGKILL to the worker's whole process tree, then a restart on the same ledger",
    explanation: "The boundary's name is in the history before the signal is sent. Every process of the worker's tree gets \
        SIGKILL, daemons included, and is proven dead before the next generation starts. At a provider boundary all workers \
        are killed, because the wire does not tell whose request it is; `worker` chooses one. With new-identity = true the \
        restarted worker's {worker} is another one: another host takes over. part = \"root\" kills the first process only and \
        part = \"children\" all the others: killing the parent is not killing the worker.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"",
};

impl Fault for Kill {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["worker", "part", "new-identity"])?;
        number(with, "worker", WORKERS_MAX)?;
        flag(with, "new-identity")?;
        word(with, "part", &["tree", "root", "children"]).map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let named = number(with, "worker", WORKERS_MAX).unwrap_or_default();
            let target = trial.target(named, worker);
            if flag(with, "new-identity").unwrap_or_default() {
                trial.new_identity(target);
            }
            let part = word(with, "part", &["tree", "root", "children"]).unwrap_or("tree");
            if part != "tree" {
                let killed = trial.kill_part(target, part == "root").await?;
                return Ok(Landing { landed: killed > 0, note: format!("{killed} processes got signal 9") });
            }
            let landed = trial.kill(named.unwrap_or(worker)).await?;
            let note = if landed {
                "signal 9 landed"
            } else {
                "no live worker was left to kill: the kill came too late"
            };
            Ok(Landing { landed, note: note.into() })
        })
    }
}
