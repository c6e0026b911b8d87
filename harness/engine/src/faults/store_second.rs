//! A second instance on a copy of the state.

use std::time::Duration;

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters, no_number};
use crate::parameters::{duration, known_only};
use crate::store::target::{begins, landed, refusal};
use crate::store::{copy, on_files};
use crate::trial::{Goal, Trial};

/// How long it must be quiet before the first goes on.
const QUIET_DEFAULT: Duration = Duration::from_secs(1);

/// The `store-second` fault.
#[derive(Debug)]
pub(super) struct StoreSecond;

static ENTRY: Entry = Entry {
    name: "store-second",
    summary: "starts a second instance on a copy of the state directory",
    explanation: "A copied container, a restored clean host while the old one still runs: {state} of the second instance is the \
        state as an earlier `store-copy` remembered it, or else as it is now. It runs until it ends by itself or nothing happens \
        for `quiet`; then the first goes on, and the second lives on where it does not end. The two share no lock, only the \
        provider: the same action must go out under the same key, or not twice.",
    example: "[[fault]]\nat = \"mark:done#1\"\ndo = \"store-second\"\nwith = { quiet = \"1s\" }",
};

impl Fault for StoreSecond {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["quiet"])?;
        duration(with, "quiet").map(drop)
    }

    fn holds_long(&self, _with: &Parameters) -> bool {
        true
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let quiet = duration(with, "quiet").ok().flatten().unwrap_or(QUIET_DEFAULT);
            let (state, folder) = (trial.state_dir().to_owned(), trial.folder().to_owned());
            let (second, remembered) = match on_files(move || copy::second_instance(&state, &folder)).await {
                Ok(made) => made,
                Err(error) => return refusal(error),
            };
            let of = if remembered { "of the remembered state" } else { "of the state as it is" };
            begins(trial, ENTRY.name, &second, &format!("a copy {of} for a second instance"));
            let first = trial.target(None, worker);
            let Some(number) = trial.free_numbers(first, 1).pop() else { return Ok(no_number()) };
            trial.move_state(number, second);
            trial.let_go_on().await?;
            trial.start_worker(number).await?;
            trial.drive(Goal::WorkerRests { worker: number, quiet }).await?;
            Ok(landed(format!("the first worker goes on after a second one rested on a copy {of}")))
        })
    }
}
