//! What a run is asked for.

use std::path::PathBuf;

use killpoint_model::checklist::RunProfile;
use killpoint_model::{HitName, Plan, Settings};

use crate::explore::ExploreRequest;
use crate::shard::Shard;

/// Where the plans come from.
#[derive(Debug, Clone)]
pub enum Strategy {
    /// One trial per boundary hit of the baseline, and one per provider plan.
    Sweep,
    /// The kill trials of these boundaries only.
    Boundaries(Vec<HitName>),
    /// Plans as written.
    Scenarios(Vec<Plan>),
    /// The trials of a sweep, then plans as written.
    SweepAnd(Vec<Plan>),
    /// Plans that nobody wrote down, drawn one after the other.
    Explore(ExploreRequest),
}

/// One run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The user's settings.
    pub settings: Settings,
    /// Where the plans come from.
    pub strategy: Strategy,
    /// The profile that chose the trials; its checklist is answered after them.
    pub profile: Option<RunProfile>,
    /// Trials at the same time.
    pub jobs: usize,
    /// How often each trial is done.
    pub repeat: u32,
    /// Where counterexamples that were found before are kept: in a sweep they are tried before anything else.
    pub regressions: Option<PathBuf>,
    /// Which part of the run is done, where it is divided.
    pub shard: Option<Shard>,
    /// A new or empty directory.
    pub folder: PathBuf,
    /// The words after `killpoint`, for the record.
    pub command_line: Vec<String>,
    /// The words with which a replay command begins, such as `killpoint run --config killpoint.toml`, and
    /// those with which it ends, such as `-- ./worker`.
    pub replay: (String, String),
}

impl RunRequest {
    /// A sweep with one job and no repetition.
    pub fn sweep(settings: Settings, folder: impl Into<PathBuf>) -> Self {
        Self {
            settings,
            strategy: Strategy::Sweep,
            profile: None,
            jobs: 1,
            repeat: 1,
            regressions: None,
            shard: None,
            folder: folder.into(),
            command_line: Vec::new(),
            replay: ("killpoint run".into(), String::new()),
        }
    }
}

/// One trial to be done, with its place on disk.
#[derive(Debug, Clone)]
pub struct Job {
    /// Position in the run.
    pub index: usize,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// What to do.
    pub plan: Plan,
    /// Which pair of baselines it is compared with.
    pub group: usize,
}

impl Job {
    /// Folder name: sorted by position, readable, without anything that a shell would mind.
    pub fn folder(&self) -> String {
        let words: String = self
            .plan
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' })
            .take(60)
            .collect();
        format!("{:04}-{words}", self.index)
    }
}
