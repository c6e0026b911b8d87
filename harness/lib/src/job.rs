//! What a run is asked for.

use std::path::PathBuf;
use std::time::Duration;

use killpoint_model::checklist::RunProfile;
use killpoint_model::{Diagnostic, HitName, Plan, Settings, SourceLine};

use crate::changed::StoredBoundaries;
use crate::code::Code;
use crate::explore::ExploreRequest;
use crate::known::KnownFailures;
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

/// Faults during recovery: after the kill trials of a sweep, trials that kill once more in the recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecondLevel {
    /// How long new trials of the second level are begun; no limit where absent.
    pub time: Option<Duration>,
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
    /// Faults during recovery, where they are asked for; only after a sweep or boundaries, and in one part.
    pub second_level: Option<SecondLevel>,
    /// Which part of the run is done, where it is divided.
    pub shard: Option<Shard>,
    /// Known failures that the run is held against.
    pub known: Option<KnownFailures>,
    /// Boundaries of an earlier run that those of this one are held against.
    pub changed: Option<StoredBoundaries>,
    /// What is to be warned of in every report.
    pub warnings: Vec<String>,
    /// A new or empty directory.
    pub folder: PathBuf,
    /// The words after `killpoint`, for the record.
    pub command_line: Vec<String>,
    /// The words with which a replay command begins, such as `killpoint run --config killpoint.toml`, and
    /// those with which it ends, such as `-- ./worker`.
    pub replay: (String, String),
    /// The configuration that describes the worker: where reports point for plans that come from no file.
    pub source: Option<SourceLine>,
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
            second_level: None,
            shard: None,
            known: None,
            changed: None,
            warnings: Vec::new(),
            folder: folder.into(),
            command_line: Vec::new(),
            replay: ("killpoint run".into(), String::new()),
            source: None,
        }
    }

    /// What of the request excludes each other.
    pub(crate) fn problem(&self) -> Option<Diagnostic> {
        if let Some(problem) = self.known.as_ref().and_then(|known| known.problem(self.shard.is_some())) {
            return Some(problem);
        }
        self.second_level?;
        let what = if self.shard.is_some() {
            "the trials of depth 2 follow from what the kill trials of the same run reached, so that a shard can't \
             know its share of them; leave --shard out, or run depth 1 in shards and depth 2 in one process"
        } else if !matches!(self.strategy, Strategy::Sweep | Strategy::Boundaries(_)) {
            "depth 2 goes on from the kill trials of a sweep; scenarios, profiles and explorations choose their own \
             trials: leave --depth out, or run a sweep (--boundary narrows it)"
        } else {
            return None;
        };
        Some(Diagnostic::error(Code::BadDepth, what))
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
    /// Moments that come although no baseline reaches them: those of a recovery.
    pub known: Vec<HitName>,
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
