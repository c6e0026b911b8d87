//! No space is left for the store.

use std::path::Path;

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::{duration, known_only};
use crate::store::on_files;
use crate::store::space::{Full, Mount};
use crate::store::target::{begins, landed, limitation, until};
use crate::trial::{ActiveFault, Trial};

/// The `store-no-space` fault.
#[derive(Debug)]
pub(super) struct StoreNoSpace;

static ENTRY: Entry = Entry {
    name: "store-no-space",
    summary: "no space is left in the state directory for a time",
    explanation: "The disk is full: what is there can be read and overwritten, nothing can be added (ENOSPC, SQLITE_FULL). A trial \
        with this fault has its state directory on a file system in memory, whose size is set at the hit to what it holds, and \
        enlarged again after `for`. The worker lives on. What the provider accepted meanwhile must not be sent again because \
        its outcome could not be written. Mounting needs root, or a user namespace; elsewhere the check is not shown. A harness that \
        is itself killed meanwhile can leave the mount behind; `umount` removes it.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"store-no-space\"\nwith = { for = \"2s\" }",
};

impl Fault for StoreNoSpace {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["for"])?;
        duration(with, "for").map(drop)
    }

    fn prepare(&self, state: &Path) -> Result<Option<Box<dyn ActiveFault>>, String> {
        Ok(Some(Box::new(Mount::over(state)?)))
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let (until, state) = (until(with), trial.state_dir().to_owned());
            let path = state.clone();
            match on_files(move || Full::begin(&state, until)).await {
                Ok(full) => {
                    begins(trial, ENTRY.name, &path, "no space is left");
                    trial.keep_active(Box::new(full));
                    Ok(landed("no space is left in the state directory"))
                }
                Err(error) => limitation(trial, ENTRY.name, error),
            }
        })
    }
}
