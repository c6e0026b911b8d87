//! A fake remote system: what it accepts, drops, delays and forgets is a value, and it counts what
//! recipients really received.
//!
//! Reading order: [`core`] is the pure state machine; [`dialects`] are the contracts that it speaks;
//! `wire` does the faults of a reply, to the byte; [`observer`] is the seam to whoever watches;
//! [`server`] puts them on a port; [`control`] lets other programs steer it; [`mod@standalone`] is the
//! program.

mod answer;
pub mod control;
pub mod core;
pub mod dialects;
pub mod http;
pub mod observer;
pub mod server;
mod shared;
mod sightings;
pub mod standalone;
mod wire;

pub use control::{Control, serve_control};
pub use dialects::DIALECTS;
pub use observer::{Crossing, Moment, Observer, Passage, Point, Unobserved};
pub use server::{Server, ServerConfig, ServerError};
pub use shared::ReleaseError;
pub use standalone::{Ready, StandaloneOptions, standalone};
