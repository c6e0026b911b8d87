//! Another writer commits between a transaction's read and its write.

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::{duration, known_only};
use crate::store::competitor::{Rush, overtake};
use crate::store::on_files;
use crate::store::target::{begins, database, landed, refusal, until};
use crate::trial::Trial;

/// The `store-busy-snapshot` fault.
#[derive(Debug)]
pub(super) struct StoreBusySnapshot;

static ENTRY: Entry = Entry {
    name: "store-busy-snapshot",
    summary: "another connection commits while the worker holds an SQLite snapshot that it wants to write from",
    explanation: "A transaction that begins with a read and then writes fails at once with SQLITE_BUSY_SNAPSHOT where another \
        connection has committed in between, however long the busy timeout is: it must be rolled back and begun anew. The other \
        connection rewrites the user version with the value that it has, which changes nothing that a reader can see; it never \
        checkpoints. It commits once at the hit, which must lie between the read and the write; with `for`, it commits again \
        under each snapshot that is held for milliseconds within that time; a write in the very instant of such a commit \
        fails with SQLITE_BUSY, at once too. Right workers begin such transactions with \
        `begin immediate`, or begin anew.",
    example: "[[fault]]\nat = \"mark:row-read#1\"\ndo = \"store-busy-snapshot\"",
};

impl Fault for StoreBusySnapshot {
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
            let path = target.path().to_owned();
            if with.contains_key("for") {
                let until = until(with);
                return match on_files(move || Rush::begin(&target, until)).await {
                    Ok(rush) => {
                        begins(trial, ENTRY.name, &path, "another connection commits under each snapshot");
                        trial.keep_active(Box::new(rush));
                        Ok(landed("another connection commits under each snapshot"))
                    }
                    Err(error) => refusal(error),
                };
            }
            match on_files(move || overtake(&target)).await {
                Ok(()) => {
                    begins(
                        trial,
                        ENTRY.name,
                        &path,
                        "another connection committed under the worker's snapshot",
                    );
                    Ok(landed("another connection committed under the worker's snapshot"))
                }
                Err(error) => refusal(error),
            }
        })
    }
}
