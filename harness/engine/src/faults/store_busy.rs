//! Another writer holds the database's write lock.

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::{duration, known_only};
use crate::store::competitor::Writer;
use crate::store::on_files;
use crate::store::target::{begins, database, landed, refusal, until};
use crate::trial::Trial;

/// The `store-busy` fault.
#[derive(Debug)]
pub(super) struct StoreBusy;

static ENTRY: Entry = Entry {
    name: "store-busy",
    summary: "another connection holds the SQLite database's write lock for a time",
    explanation: "A backup, a migration, an operator's shell or another worker is in the middle of a write transaction, and every \
        write of the worker gets SQLITE_BUSY once its own busy timeout has passed; `for` should be longer than that timeout. \
        Reads go on. Only the lock is taken, as another connection would take it: the database is not opened and nothing is \
        written. What the provider accepted meanwhile must be recorded as soon as the store takes it, or be in doubt; an outcome \
        whose write failed is not an outcome that may be forgotten.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"store-busy\"\nwith = { for = \"2s\" }",
};

impl Fault for StoreBusy {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["for"])?;
        duration(with, "for").map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let target = match database(trial, ENTRY.name) {
                Ok(target) => target,
                Err(landing) => return Ok(landing),
            };
            let (until, path) = (until(with), target.path().to_owned());
            match on_files(move || Writer::begin(&target, until)).await {
                Ok(writer) => {
                    begins(trial, ENTRY.name, &path, "another connection holds the write lock");
                    trial.keep_active(Box::new(writer));
                    Ok(landed("another connection holds the write lock"))
                }
                Err(error) => refusal(error),
            }
        })
    }
}
