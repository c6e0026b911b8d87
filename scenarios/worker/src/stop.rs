//! The graceful stop: SIGTERM raises a flag, and the worker looks at it wherever it could begin something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGTERM;

use crate::error::WorkerError;

/// Whether a stop was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that SIGTERM raises from now on, in place of ending the process.
    pub(crate) fn on_sigterm() -> Result<Self, WorkerError> {
        let stop = Self::default();
        signal_hook::flag::register(SIGTERM, Arc::clone(&stop.0)).map_err(WorkerError::Signal)?;
        Ok(stop)
    }

    pub(crate) fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
