//! Another worker on the same ledger, while the first waits at the hit.

use std::time::Duration;

use killpoint_model::Entry;
use killpoint_model::plan::duration_ms;

use super::{Applying, Fault, Landing, Parameters, known_only};
use crate::trial::{Goal, Trial};

/// Number of the worker that is added.
const SECOND: u32 = 2;
/// How long the second worker must be quiet before the first goes on.
const QUIET_DEFAULT_MS: u64 = 1000;

/// The `second-worker` fault.
#[derive(Debug)]
pub(super) struct SecondWorker;

static ENTRY: Entry = Entry {
    name: "second-worker",
    summary: "starts another worker on the same ledger while the first is held at the hit",
    explanation: "The first worker waits at the boundary (its other threads go on); a second one is started with the same \
        command and {worker} = 2, and runs until it ends by itself or nothing happens for `quiet`. Then the first goes on, or, \
        with then = \"kill\", is killed and restarted. Both must not do the same action: a claim needs a lease or a \
        compare-and-swap.",
    example: "[[fault]]\nat = \"mark:before-claim#1\"\ndo = \"second-worker\"\nwith = { quiet = \"1s\" }",
};

fn quiet_ms(with: &Parameters) -> Result<u64, String> {
    let Some(quiet) = with.get("quiet") else { return Ok(QUIET_DEFAULT_MS) };
    quiet.as_str().and_then(duration_ms).ok_or_else(|| "`quiet`: a duration such as \"1s\" is needed".into())
}

impl Fault for SecondWorker {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["quiet", "then"])?;
        quiet_ms(with)?;
        match with.get("then").map(|then| then.as_str()) {
            None | Some(Some("continue" | "kill")) => Ok(()),
            Some(_) => Err("`then`: one of continue, kill".into()),
        }
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let quiet = Duration::from_millis(quiet_ms(with).unwrap_or(QUIET_DEFAULT_MS));
            trial.let_go_on().await?;
            trial.start_worker(SECOND).await?;
            trial.drive(Goal::WorkerRests { worker: SECOND, quiet }).await?;
            if with.get("then").and_then(serde_json::Value::as_str) == Some("kill") {
                let landed = trial.kill(worker.max(1)).await?;
                return Ok(Landing {
                    landed,
                    note: "the first worker was killed after the second rested".into(),
                });
            }
            Ok(Landing { landed: true, note: "the first worker goes on after the second rested".into() })
        })
    }
}
