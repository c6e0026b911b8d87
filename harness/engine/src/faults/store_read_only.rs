//! The store can't be written in the next life.

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::{duration, known_only};
use crate::store::read_only::ReadOnly;
use crate::store::target::{NOBODY_LEFT, begins, landed, limitation, missed, until};
use crate::store::{Database, on_files};
use crate::trial::Trial;

/// The `store-read-only` fault.
#[derive(Debug)]
pub(super) struct StoreReadOnly;

static ENTRY: Entry = Entry {
    name: "store-read-only",
    summary: "kills the workers and starts them again on a store that can't be written for a time",
    explanation: "A file system that was remounted read-only after an error, a wrong owner after a deployment: the store can be \
        read, and every write fails. The ledger's SQLite files, or, without one, everything in the state directory, are made \
        read-only while all workers are dead, by their permissions and for root by the immutable attribute, and are writable \
        again after `for` or when the faults are over. A worker that can't write down that it is about to send must not send. \
        A harness that is itself killed meanwhile can leave the attribute behind; `chattr -R -i` removes it.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"store-read-only\"\nwith = { for = \"2s\" }",
};

impl Fault for StoreReadOnly {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["for"])?;
        duration(with, "for").map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            if !trial.kill(0).await? {
                return Ok(missed(NOBODY_LEFT));
            }
            let (until, state) = (until(with), trial.state_dir().to_owned());
            let target = trial.ledger_path().map(Database::new);
            let path = target.as_ref().map_or_else(|| state.clone(), |target| target.path().to_owned());
            let named = path.clone();
            let made = on_files(move || match target {
                Some(target) => ReadOnly::begin(&named, &target.existing_files(), until),
                None => ReadOnly::begin(&named, &crate::state::entries(&state), until),
            });
            match made.await {
                Ok(active) => {
                    begins(trial, ENTRY.name, &path, "read-only");
                    trial.keep_active(Box::new(active));
                    Ok(landed("killed; the next life finds a read-only store"))
                }
                Err(error) => limitation(trial, ENTRY.name, error),
            }
        })
    }
}
