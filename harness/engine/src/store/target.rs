//! What store faults are done to, and how they are put on record.

use std::path::Path;
use std::time::{Duration, Instant};

use killpoint_model::event::EventKind;

use crate::error::TrialError;
use crate::faults::Landing;
use crate::parameters::{Parameters, duration};
use crate::store::{Database, StoreError};
use crate::trial::Trial;

/// How long a store fault lasts unless told otherwise.
const FOR_DEFAULT: Duration = Duration::from_secs(2);

/// What stands where a fault came too late.
pub(crate) const NOBODY_LEFT: &str = "no live worker was left to kill: the fault came too late";

/// The worker's database; without one, what to configure.
pub(crate) fn database(trial: &mut Trial, fault: &str) -> Result<Database, Landing> {
    trial.ledger_path().map(Database::new).ok_or_else(|| {
        let why =
            "it needs the worker's SQLite database: configure `[ledger] kind = \"sqlite\"` and its `path`";
        trial.limitation(fault, why.into())
    })
}

/// When a fault that lasts is over.
pub(crate) fn until(with: &Parameters) -> Instant {
    Instant::now() + duration(with, "for").ok().flatten().unwrap_or(FOR_DEFAULT)
}

/// Puts on record that something was done to the store.
pub(crate) fn begins(trial: &Trial, fault: &str, path: &Path, detail: &str) {
    trial.record(EventKind::StoreFault {
        name: fault.into(),
        path: path.display().to_string(),
        begins: true,
        detail: detail.into(),
    });
}

/// A store fault that took hold.
pub(crate) fn landed(note: impl Into<String>) -> Landing {
    Landing { landed: true, note: note.into() }
}

/// One that came to nothing.
pub(crate) fn missed(note: impl Into<String>) -> Landing {
    Landing { landed: false, note: note.into() }
}

/// A refusal of the store is how the fault landed; anything else is the machine's failure.
pub(crate) fn refusal(error: StoreError) -> Result<Landing, TrialError> {
    error.into_refusal().map(missed)
}

/// The same where the machine lacks what the fault needs: that is shown as a limitation.
pub(crate) fn limitation(trial: &mut Trial, fault: &str, error: StoreError) -> Result<Landing, TrialError> {
    error.into_refusal().map(|why| trial.limitation(fault, why))
}
