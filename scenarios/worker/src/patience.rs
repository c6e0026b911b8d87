//! Patience with a ledger that can't be written: what is in hand stays in hand for a while, and is written when the
//! ledger can be. What must not happen is to go on without a record.

use std::time::{Duration, Instant};

use crate::alarm;
use crate::clock::pause;
use crate::error::WorkerError;

/// How long the ledger may be unwritable before the worker stops.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause before the next try, in milliseconds.
const TRY_PAUSE_MS: u64 = 50;

/// Does it again while the ledger can't be written, and raises an alarm the first time.
pub(crate) fn patiently<T>(mut act: impl FnMut() -> Result<T, WorkerError>) -> Result<T, WorkerError> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        match act() {
            Err(error) if error.is_ledger_unwritable() && begun.elapsed() < PATIENCE => {
                if !std::mem::replace(&mut told, true) {
                    alarm::raise(&format!("bookkeeping: {error}; waiting, nothing is sent meanwhile"));
                }
                pause(TRY_PAUSE_MS);
            }
            outcome => return outcome,
        }
    }
}
