//! What a trial waits for, for whoever watches it while it runs. Nothing is decided by it, and nothing of it is on
//! record.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Shared between a trial and those who watch it.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<Mutex<Beat>>);

/// The state of a trial that is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beat {
    /// What it waits for, such as `the worker to exit`; empty before it waits for anything.
    pub waits_for: String,
    /// When it is given up at the latest, unless a fault gives it more time.
    pub deadline: Option<Instant>,
}

impl Pulse {
    /// The latest state.
    pub fn read(&self) -> Beat {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, waits_for: String, deadline: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Beat { waits_for, deadline: Some(deadline) };
    }
}
