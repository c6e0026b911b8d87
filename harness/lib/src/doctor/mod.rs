//! What this machine can do, what a configuration reaches, and what is left out because of either.

mod left_out;
mod machine;
mod reach;
mod show;

use std::path::Path;

use killpoint_model::Settings;
use serde::Serialize;

pub use left_out::{Kind, LeftOut};
pub use machine::{PROBES, Probe, Tried};
pub use reach::{Reach, Reached};
pub use show::show;

use crate::error::RunError;

/// Version of the JSON form; a reader of this version understands all that have the same one.
pub const DOCTOR_VERSION: u32 = 1;

/// How well something of the machine can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It was tried and works.
    Works,
    /// It works in part.
    Limited,
    /// It was tried and can't be had.
    Missing,
    /// killpoint makes no use of it.
    NotUsed,
}

impl State {
    /// The word of the JSON form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Limited => "limited",
            Self::Missing => "missing",
            Self::NotUsed => "not-used",
        }
    }
}

/// Everything that was found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Always `killpoint-doctor`.
    pub format: &'static str,
    /// [`DOCTOR_VERSION`].
    pub version: u32,
    /// Whether the gate can run: on this machine, and with this configuration where one was read.
    pub can_run: bool,
    /// Each thing that was tried on the machine.
    pub machine: Vec<Tried>,
    /// The configuration's file, where one was read.
    pub config: Option<String>,
    /// What the configuration reaches; empty without one.
    pub reached: Vec<Reached>,
    /// What can't be shown, with what to do.
    pub left_out: Vec<LeftOut>,
}

/// Tries the machine, and holds a configuration against it. `folder` is where runs are put: that is where files
/// are tried. The trials of a run are not begun, and no program of the configuration is started.
///
/// # Errors
/// A scenario of the library can't be read.
pub async fn diagnose(config: Option<(&str, &Settings)>, folder: &Path) -> Result<Diagnosis, RunError> {
    let machine = machine::try_all(folder).await;
    let reached = config.map_or_else(Vec::new, |(_, settings)| reach::reach(settings));
    let left_out = left_out::left_out(config.map(|(_, settings)| settings), &machine)?;
    let vital = |tried: &Tried| tried.vital && tried.state == State::Missing;
    let broken = |reached: &Reached| reached.vital && reached.state == Reach::Broken;
    Ok(Diagnosis {
        format: "killpoint-doctor",
        version: DOCTOR_VERSION,
        can_run: !machine.iter().any(vital) && !reached.iter().any(broken),
        machine,
        config: config.map(|(file, _)| file.to_owned()),
        reached,
        left_out,
    })
}
