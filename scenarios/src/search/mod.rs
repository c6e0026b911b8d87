//! Exploring: plans that nobody wrote down, which of them to try next, and how a failing one is made small. The
//! pure half: trials are run elsewhere, and told here.
//!
//! A [`Space`] says what can be done to a worker, by its settings and its fault-free trial. [`next_plan`] draws a
//! plan out of it; [`Coverage`] remembers from histories which moments were struck, so that the others come first.
//! A plan that fails goes through [`Shrink`], and what is left is written by [`regression_toml`] as a scenario
//! file, and by [`token::Token`] as one line.

mod coverage;
mod family;
#[cfg(test)]
mod fixture;
mod generate;
mod menu;
mod regression;
mod shrink;
mod single;
mod space;
mod stroke;
mod swarm;
pub mod token;
mod weighted;

pub use coverage::{Coverage, Matrix, Pair, Seen};
pub use family::{FAMILIES, Family, FamilyEntry};
pub use generate::{next_plan, plans};
pub use regression::{describe, regression_toml, stale};
pub use shrink::Shrink;
pub use space::{GENERATIONS_MAX, Space};
pub use stroke::delays_acceptance;
pub use swarm::Swarm;
