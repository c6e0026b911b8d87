//! Registering a schedule, relative to now.

use clap::Args;

use crate::clock::now_ms;
use crate::error::WorkerError;
use crate::store::{Schedule, Store};

/// What happens at regular times; `#` in a text becomes the occurrence's number, from 1.
#[derive(Debug, Args)]
pub(crate) struct Registration {
    /// Time between two occurrences
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..))]
    every_ms: i64,
    /// How many there are
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    occurrences: i64,
    /// When the first is due, counted from now; may be negative
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    start_ms: i64,
    /// Id of an occurrence
    #[arg(long, default_value = "action-#")]
    id: String,
    /// Destination of an occurrence
    #[arg(long, default_value = "user#@example.com")]
    to: String,
    /// Text of an occurrence
    #[arg(long, default_value = "hello #")]
    body: String,
}

/// Commits the schedule; the worker makes runs of it as they fall due.
pub(crate) fn register(store: &Store, registration: Registration) -> Result<(), WorkerError> {
    store.register(&Schedule {
        run_id: registration.id,
        destination: registration.to,
        input: registration.body,
        start_at: now_ms().saturating_add(registration.start_ms),
        every_ms: registration.every_ms,
        occurrences: registration.occurrences,
    })
}
