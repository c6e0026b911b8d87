//! The reference worker: an outbox that is right in every schedule, and [`BUGS`] that make it wrong on purpose.
//!
//! Its ledger keeps two state machines apart. An *execution* does the work and commits its result together
//! with one delivery item per destination. A *delivery* is claimed under a lease, its intent is committed,
//! and only then is it sent; what comes back decides it, and where nothing decides it the row says `unknown`
//! until the provider has been asked.
//!
//! [`main`] is the whole command line, so that another program can be this worker by starting itself again.

mod alarm;
mod bugs;
mod cleanup;
mod cli;
mod clock;
mod delivery;
mod enqueue;
mod error;
mod execution;
mod feed;
mod leases;
mod patience;
mod policy;
mod provider;
mod reconcile;
mod redact;
mod restart;
mod schedule;
mod sending;
mod status;
mod stop;
mod store;
mod worker;

pub use bugs::{BUGS, Bug, bug_named};
pub use cli::main;
pub use error::WorkerError;
pub use status::{LEDGER_QUERY, LEDGER_STATES, METRICS_QUERY};
