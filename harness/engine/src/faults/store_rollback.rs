//! The last commits are gone.

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::{known_only, number};
use crate::store::target::{NOBODY_LEFT, begins, database, landed, missed, refusal};
use crate::store::{on_files, wal};
use crate::trial::Trial;

/// Commits that can be rolled back at once.
const COMMITS_MAX: u32 = 10_000;

/// The `store-rollback` fault.
#[derive(Debug)]
pub(super) struct StoreRollback;

static ENTRY: Entry = Entry {
    name: "store-rollback",
    summary: "kills the workers and takes the last commits of the SQLite write-ahead log away",
    explanation: "The log is cut at the end of an earlier commit, which leaves a sound database without the last `commits`. It is a \
        tool for asking \"what if these were lost\", whatever the worker's `synchronous` level is: with FULL a commit can't be \
        lost in this way, so a finding says something about a worker only where its durability policy allows the loss. For \
        what a power cut may take, and nothing else, use `power-cut`. Commits that a checkpoint has copied into the database \
        file are not taken away; without a write-ahead log the fault does not land.",
    example: "[[fault]]\nat = \"mark:done#1\"\ndo = \"store-rollback\"\nwith = { commits = 1 }",
};

impl Fault for StoreRollback {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["commits"])?;
        number(with, "commits", COMMITS_MAX).map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let target = match database(trial, ENTRY.name) {
                Ok(target) => target,
                Err(landing) => return Ok(landing),
            };
            let commits = number(with, "commits", COMMITS_MAX).ok().flatten().unwrap_or(1) as usize;
            if !trial.kill(0).await? {
                return Ok(missed(NOBODY_LEFT));
            }
            let log = target.clone();
            match on_files(move || wal::roll_back(&log, commits)).await {
                Ok(cut) => {
                    let note =
                        format!("{} commits were taken away, {} are left in the log", cut.lost, cut.kept);
                    begins(trial, ENTRY.name, &target.wal(), &note);
                    Ok(landed(format!("killed; {note}")))
                }
                Err(error) => refusal(error),
            }
        })
    }
}
