//! Clocks: the provider's own, and the workers'.

use std::time::Duration;

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::{duration, known_only, number, signed_ms};
use crate::trial::{CLOCK_FAULT, Trial};

/// Workers that a fault can name.
const WORKERS_MAX: u32 = 64;

/// The `provider-clock` fault.
#[derive(Debug)]
pub(super) struct ProviderClock;

static PROVIDER: Entry = Entry {
    name: "provider-clock",
    summary: "steps the provider's own clock, on which its dedupe window runs",
    explanation: "\"25 hours later\" in no time: keys that the provider had remembered are forgotten, and a retry with the same \
        key is a new request. The worker must refuse such a retry or look first: its whole backoff must stay inside the window.",
    example: "[[fault]]\nat = \"provider:dropped#1\"\ndo = \"provider-clock\"\nwith = { by = \"25h\" }",
};

impl Fault for ProviderClock {
    fn entry(&self) -> &'static Entry {
        &PROVIDER
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["by"])?;
        duration(with, "by").map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let by = duration(with, "by").ok().flatten().unwrap_or(Duration::from_secs(25 * 3600));
            trial.step_provider_clock(by);
            Ok(Landing { landed: true, note: format!("the provider's clock is {} s later", by.as_secs()) })
        })
    }
}

/// The `worker-clock` fault.
#[derive(Debug)]
pub(super) struct WorkerClock;

static WORKER: Entry = Entry {
    name: CLOCK_FAULT,
    summary: "from its next start on, a worker's clock is off",
    explanation: "Leases, due times and ids that trust the wall clock of one host break when another one's differs.\n\n\
        Nothing is needed of the worker: the harness traces its tree (x86-64 only) and changes the table by which each program \
        finds the kernel's clock functions, in children and new programs too. Monotonic clocks, and so ordinary waits, stay as \
        they are. Not moved: times that the kernel itself takes, as of files; waits until a time of day (of a semaphore with \
        a timeout, for one), which last longer or shorter by the offset; and programs that make the system call without the C \
        library. A program that can't be patched, such as one of 32 bits, leaves the trial without a verdict.\n\n\
        With `clock = \"environment\"` under `[worker]` the offset is handed over in the environment variable \
        KILLPOINT_CLOCK_OFFSET_MS instead, in milliseconds, to workers that read it; for one that does not, nothing is shown.",
    example: "[[fault]]\nat = \"mark:item-claimed#1\"\ndo = \"worker-clock\"\nwith = { worker = 2, by = \"5m\" }\n\n[[fault]]\nat = \"mark:item-claimed#1\"\ndo = \"second-worker\"",
};

impl Fault for WorkerClock {
    fn entry(&self) -> &'static Entry {
        &WORKER
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["by", "worker"])?;
        number(with, "worker", WORKERS_MAX)?;
        signed_ms(with, "by").map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let named = number(with, "worker", WORKERS_MAX).unwrap_or_default();
            let by = signed_ms(with, "by").ok().flatten().unwrap_or(300_000);
            let target = trial.target(named, worker);
            trial.set_clock(target, by).await
        })
    }
}
