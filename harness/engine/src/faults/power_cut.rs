//! What was not synced is gone.

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::known_only;
use crate::store::target::{NOBODY_LEFT, begins, database, landed, limitation, missed, refusal};
use crate::store::{on_files, synced};
use crate::trial::Trial;

/// The `power-cut` fault.
#[derive(Debug)]
pub(super) struct PowerCut;

static ENTRY: Entry = Entry {
    name: "power-cut",
    summary: "kills the workers and takes from the SQLite write-ahead log what was never synced to the disk",
    explanation: "A SIGKILL keeps the page cache, so it can't show a missing fsync. Here the kernel is asked which pages of the \
        write-ahead log are not on the disk at the hit; the workers are killed, and the log is cut before the first commit that \
        lies on these pages. With `synchronous = FULL` nothing that was committed is lost; with NORMAL or OFF everything since \
        the last checkpoint or the last page that the kernel wrote back by itself can be. Losing just the log's unsynced tail \
        is one of the outcomes that a power cut can have; others, such as a damaged database file with OFF, are not shown. It \
        needs Linux 6.5 and a run directory on a disk's file system: not tmpfs, not a container's overlay.",
    example: "[[fault]]\nat = \"mark:done#1\"\ndo = \"power-cut\"",
};

impl Fault for PowerCut {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &[])
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, _with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let target = match database(trial, ENTRY.name) {
                Ok(target) => target,
                Err(landing) => return Ok(landing),
            };
            let log = target.clone();
            let unsynced = match on_files(move || synced::unsynced(&log)).await {
                Ok(unsynced) => unsynced,
                Err(error) => return limitation(trial, ENTRY.name, error),
            };
            if !trial.kill(0).await? {
                return Ok(missed(NOBODY_LEFT));
            }
            let log = target.clone();
            match on_files(move || synced::cut_power(&log, unsynced)).await {
                Ok(cut) => {
                    let note = match cut.lost {
                        0 => "every commit was on the disk, and none is lost".to_owned(),
                        lost => format!(
                            "{lost} commits were never synced and are lost, {} are left in the log",
                            cut.kept
                        ),
                    };
                    begins(trial, ENTRY.name, &target.wal(), &note);
                    Ok(landed(format!("killed; {note}")))
                }
                Err(error) => refusal(error),
            }
        })
    }
}
