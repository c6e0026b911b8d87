//! Other workers on the same ledger, while the first waits at the hit.

use std::time::Duration;

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters, no_number};
use crate::error::TrialError;
use crate::parameters::{duration, flag, known_only, number, word};
use crate::trial::{Goal, Trial};

/// How long the others must be quiet before the first goes on.
const QUIET_DEFAULT: Duration = Duration::from_secs(1);
/// Workers that can be added.
const COUNT_MAX: u32 = 16;

/// The `second-worker` fault.
#[derive(Debug)]
pub(super) struct SecondWorker;

static ENTRY: Entry = Entry {
    name: "second-worker",
    summary: "starts another worker on the same ledger while the first is held at the hit",
    explanation: "The first worker waits at the boundary (its other threads go on; with stop = true its whole tree is stopped, \
        heartbeats included: a zombie, when it goes on). Others are started with the same command and the next numbers for \
        {worker} that no living one has, or with same-identity = true under the first one's, and run until they end by \
        themselves or nothing happens for `quiet`. Then the first goes on, or, with then = \"kill\", is killed and restarted. \
        No two may do the same action: a claim needs a lease or a compare-and-swap, and a fence where the lease can run out.",
    example: "[[fault]]\nat = \"mark:before-claim#1\"\ndo = \"second-worker\"\nwith = { quiet = \"1s\" }",
};

impl Fault for SecondWorker {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["quiet", "then", "stop", "same-identity", "count"])?;
        duration(with, "quiet")?;
        flag(with, "stop")?;
        flag(with, "same-identity")?;
        number(with, "count", COUNT_MAX)?;
        word(with, "then", &["continue", "kill"]).map(drop)
    }

    fn holds_long(&self, _with: &Parameters) -> bool {
        true
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(run(trial, worker, with))
    }
}

async fn run(trial: &mut Trial, worker: u32, with: &Parameters) -> Result<Landing, TrialError> {
    let quiet = duration(with, "quiet").ok().flatten().unwrap_or(QUIET_DEFAULT);
    let first = trial.target(None, worker);
    let count = number(with, "count", COUNT_MAX).ok().flatten().unwrap_or(1);
    let others = trial.free_numbers(first, count);
    if others.len() < count as usize {
        return Ok(no_number());
    }
    let stop = flag(with, "stop").unwrap_or_default();
    if stop && !trial.stop_worker(first).await? {
        return Ok(Landing { landed: false, note: "no live worker was left to stop".into() });
    }
    trial.let_go_on().await?;
    for &other in &others {
        if flag(with, "same-identity").unwrap_or_default() {
            trial.same_identity(other, first);
        }
        trial.start_worker(other).await?;
    }
    for other in others {
        trial.drive(Goal::WorkerRests { worker: other, quiet }).await?;
    }
    if word(with, "then", &["continue", "kill"]) == Ok("kill") {
        let landed = trial.kill(first).await?;
        return Ok(Landing { landed, note: "the first worker was killed after the others rested".into() });
    }
    trial.resume_worker(first).await?;
    Ok(Landing { landed: true, note: "the first worker goes on after the others rested".into() })
}
