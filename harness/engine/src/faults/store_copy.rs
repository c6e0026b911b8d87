//! The state directory is remembered as it is.

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::known_only;
use crate::store::target::{begins, landed, refusal};
use crate::store::{copy, on_files};
use crate::trial::Trial;

/// The `store-copy` fault.
#[derive(Debug)]
pub(super) struct StoreCopy;

static ENTRY: Entry = Entry {
    name: "store-copy",
    summary: "remembers the state directory as it is, as a backup would",
    explanation: "The worker's tree stands still while its whole state directory is copied, and then goes on. A later \
        `store-restore` puts the copy back, and `store-second` starts a second instance on it. Only the last copy is remembered.",
    example: "[[fault]]\nat = \"mark:item-claimed#1\"\ndo = \"store-copy\"",
};

impl Fault for StoreCopy {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &[])
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, _with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let (state, folder) = (trial.state_dir().to_owned(), trial.folder().to_owned());
            match on_files(move || copy::remember(&state, &folder)).await {
                Ok(()) => {
                    begins(trial, ENTRY.name, trial.state_dir(), "remembered");
                    Ok(landed("the state directory is remembered"))
                }
                Err(error) => refusal(error),
            }
        })
    }
}
