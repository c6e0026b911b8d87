//! A fake remote system: what it accepts, drops, delays and forgets is a value, and it counts what
//! recipients really received.
//!
//! [`observer`] is the seam to whoever watches.

pub mod observer;

pub use observer::{Crossing, Moment, Observer, Passage, Point, Unobserved};
