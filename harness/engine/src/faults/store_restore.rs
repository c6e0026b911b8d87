//! The remembered state directory is put back.

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::known_only;
use crate::store::target::{NOBODY_LEFT, begins, landed, missed, refusal};
use crate::store::{copy, on_files};
use crate::trial::Trial;

/// The `store-restore` fault.
#[derive(Debug)]
pub(super) struct StoreRestore;

static ENTRY: Entry = Entry {
    name: "store-restore",
    summary: "kills the workers, puts the remembered state directory back, and starts them on it",
    explanation: "A host is rebuilt from a backup: what was done since an earlier `store-copy` is gone from the ledger and not \
        from the world. Actions that were sent meanwhile look unsent. A right worker finds out at the provider before it sends \
        again, or sends under the same key; it never gives an old key or id to another action.",
    example: "[[fault]]\nat = \"mark:done#1\"\ndo = \"store-restore\"",
};

impl Fault for StoreRestore {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &[])
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, _with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let (state, folder) = (trial.state_dir().to_owned(), trial.folder().to_owned());
            if !trial.kill(0).await? {
                return Ok(missed(NOBODY_LEFT));
            }
            match on_files(move || copy::restore(&state, &folder)).await {
                Ok(()) => {
                    begins(trial, ENTRY.name, trial.state_dir(), "the remembered state is back");
                    Ok(landed("killed; the next life finds the remembered state"))
                }
                Err(error) => refusal(error),
            }
        })
    }
}
