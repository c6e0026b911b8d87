//! Text in, data out: `killpoint.toml` to [`Settings`], scenario files to plans, a baseline to the
//! trials of a sweep. No I/O: the caller reads the files.
//!
//! Reading goes in two passes. *Syntax* parses TOML with the place of each value; *resolve* walks the
//! values, checks names against the catalog and sections against each other. Each pass notes all of its
//! problems, not only the first. Nothing goes through derived deserialisers: these stop at the first
//! problem and put Rust types into their messages.
//!
//! Reading order: [`load_config`], [`load_scenario`], [`LIBRARY`], [`KINDS`], [`missing_needs`], [`sweep()`], [`second_level`], [`bind()`], [`search`]. The
//! formats are described in this folder's `README.md`.

mod actions;
mod bare;
mod bind;
mod boundary;
mod code;
mod config;
mod depth;
mod duration;
mod gate;
mod item;
mod kinds;
mod library;
mod log;
mod needs;
mod presets;
mod rule;
mod scenario;
pub mod search;
mod sweep;
mod table;
mod template;
mod write;

pub use bare::bare_settings;
pub use bind::bind;
pub use code::Code;
pub use config::load_config;
pub use depth::{DepthPlan, second_level};
pub use gate::{boundaries_toml, known_toml, load_boundaries, load_known};
pub use kinds::{KINDS, Kind};
pub use library::{LIBRARY, LibraryScenario, unknown_scenario};
pub use log::Loaded;
pub use needs::{NEEDS, Need, missing_needs};
pub use presets::{PRESETS, Preset, STATES as PRESET_STATES};
pub use scenario::{Scenario, load_scenario};
pub use sweep::{SweepPlan, kill_plan, sweep};
pub use write::to_toml;

#[cfg(doc)]
use killpoint_model::Settings;
