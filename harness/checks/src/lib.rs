//! Invariants over a history, and how their findings merge into a verdict.
//!
//! Pure: no I/O, no clock, no threads. [`judge`] takes the history of one trial, the histories of the
//! fault-free trials and the settings, and gives the verdict with all its evidence. The facts of a trial
//! are computed once; each invariant is a pure function over them, one file each, registered in
//! [`INVARIANTS`].
//!
//! Three numbers stay apart everywhere: requests, effects, acknowledgements. An oracle is always an
//! effect or a row, never the number of requests.

mod evidence;
mod facts;
mod invariants;
mod judge;
pub mod profiles;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod slow_model;
#[cfg(test)]
mod slow_model_states;
#[cfg(test)]
mod traps;
mod volatile;

pub use facts::Facts;
pub use invariants::{INVARIANTS, Invariant, Looked, entries};
pub use judge::{Case, judge};
pub use volatile::{BaselinesDiffer, volatile_pointers};
