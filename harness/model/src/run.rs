//! The record of a run, `run.json`: what a later `check` needs beside the histories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::changed::ChangedRecord;
use crate::checklist::{HostFacts, RunProfile};
use crate::exploration::{Exploration, RegressionOutcome};
use crate::known::BaselineRecord;
use crate::plan::{Plan, SourceLine};
use crate::settings::Settings;
use crate::shard::{MergedRecord, ShardRecord};
use crate::text_enum::text_enum;
use crate::verdict::{TrialVerdict, Verdict};

/// Version of `run.json`: major, minor. The refuse rules are those of a history.
pub const RUN_VERSION: (u32, u32) = (1, 3);

text_enum! {
    /// What a trial is for.
    pub enum TrialRole {
        /// The first fault-free trial.
        Baseline = "baseline",
        /// The second one: what differs between the two is volatile.
        BaselineAgain = "baseline-again",
        /// A plan with faults.
        Faulted = "faulted",
    }
}

/// One trial of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    /// Folder of the trial within the run directory; its `history.jsonl` is the truth.
    pub folder: String,
    /// What it is for.
    pub role: TrialRole,
    /// What was to be done.
    pub plan: Plan,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// The judgement; `None` while it runs, or when the run was interrupted before.
    pub verdict: Option<TrialVerdict>,
    /// The command that replays just this trial.
    pub replay: String,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// Whether its plan was drawn by an exploration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// In a merged run the part that ran it. It was compared with the baselines of that part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<u32>,
    /// The scenario file that the plan comes from, else the configuration of the worker; absent where there is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

impl TrialRecord {
    /// Whether its verdict counts for the run. Whoever draws a plan can't know whether its moments will come, or
    /// whether what it does can be told apart; one that showed nothing says nothing of the worker.
    pub fn counts(&self) -> bool {
        let shows = |judged: &TrialVerdict| matches!(judged.verdict, Verdict::Holds | Verdict::Violated);
        !self.drawn || self.verdict.as_ref().is_none_or(shows)
    }
}

/// One run: a directory with this record and a folder per trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Always `killpoint-run`.
    pub format: String,
    /// Major and minor.
    pub version: (u32, u32),
    /// The program's version.
    pub killpoint: String,
    /// Milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// How the run was asked for: the words after `killpoint`.
    pub command_line: Vec<String>,
    /// Everything that was configured; secrets are not in it.
    pub settings: Settings,
    /// In order of the plan.
    pub trials: Vec<TrialRecord>,
    /// Boundaries that were asked for and that no baseline reached, and hits that were left out.
    pub warnings: Vec<String>,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// The verdict; worst wins.
    pub verdict: Verdict,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// The profile that was asked for, with its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RunProfile>,
    /// What was seen of the machine and of the worker's files, where a profile asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostFacts>,
    /// What an exploration did and found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration: Option<Exploration>,
    /// Which part of a divided run this is; absent where it is a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRecord>,
    /// From which parts it was put together, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergedRecord>,
    /// The known failures that the run was held against, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineRecord>,
    /// The boundaries of the fault-free trial held against those of an earlier run, where they were, and the trials
    /// that were left out for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedRecord>,
}

impl RunRecord {
    /// A run of which nothing is on record yet: it has shown nothing.
    pub fn new(settings: Settings) -> Self {
        Self {
            format: "killpoint-run".into(),
            version: RUN_VERSION,
            killpoint: String::new(),
            started_at_ms: 0,
            command_line: Vec::new(),
            settings,
            trials: Vec::new(),
            warnings: Vec::new(),
            interrupted: false,
            verdict: Verdict::Inconclusive,
            duration_ms: 0,
            profile: None,
            host: None,
            exploration: None,
            shard: None,
            merged: None,
            baseline: None,
            changed: None,
        }
    }

    /// The verdict on the run, with `verdict_of` giving that of a trial: a trial without one is inconclusive, and so is
    /// a run without a violation that was interrupted, of which a part is not there, or in which a stored
    /// counterexample showed nothing. The answers to a profile's checklist count as well, but for those of a part of
    /// a run: it answers none.
    pub fn verdict_with(&self, verdict_of: impl Fn(&TrialRecord) -> Option<Verdict>) -> Verdict {
        let counting = || self.trials.iter().filter(|trial| trial.counts());
        let each = counting().map(|trial| verdict_of(trial).unwrap_or(Verdict::Inconclusive));
        let faulted = counting().any(|trial| trial.role == TrialRole::Faulted);
        let lacks = self.merged.as_ref().is_some_and(|merged| !merged.is_complete());
        let regressions = self.exploration.iter().flat_map(|exploration| &exploration.regressions);
        let stale = regressions.into_iter().any(|regression| regression.outcome == RegressionOutcome::Stale);
        let whole = if self.interrupted || lacks || stale { Verdict::Inconclusive } else { Verdict::Holds };
        // A run of baselines alone has killed nothing: it can't be green.
        let tried = if faulted { Verdict::Holds } else { Verdict::Vacuous };
        let asked = self.profile.as_ref().filter(|_| self.shard.is_none());
        let answered = asked.map_or(Verdict::Holds, RunProfile::verdict);
        Verdict::worst(each.chain([whole, tried, answered]))
    }
}
