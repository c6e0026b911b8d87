//! Runs a worker through trials: supervisor, boundaries, faults and ledgers.
//!
//! Reading order: [`trial`] (the loop), [`boundaries`] (what it waits for), [`faults`] (what it does),
//! [`ledgers`] (what it reads), `store` (what is done to the ledger's files), [`os`] (process trees; the only unsafe code), [`recorder`] (the history).

pub mod boundaries;
pub mod capture;
pub mod environment;
pub mod error;
pub mod faults;
pub mod glimpse;
pub mod ledgers;
pub mod machine;
mod observe;
pub mod os;
mod output;
mod parameters;
mod pulse;
pub mod recorder;
pub mod state;
mod store;
pub mod template;
pub mod trial;

pub use error::TrialError;
pub use output::output_tail;
pub use pulse::{Beat, Pulse};
pub use trial::{TrialResult, TrialSpec, run_trial};
