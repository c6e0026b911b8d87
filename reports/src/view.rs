//! The computed view over a run: everything that a report shows, and nothing that it would have to work
//! out itself. Computed once from the record and the histories; every format works on it.

mod detail;
mod gate;
mod ledger_changes;
mod narrate;
mod narrate_control;
mod narrate_provider;
mod rows;
mod surroundings;
mod timeline;

use std::collections::BTreeMap;

use killpoint_model::changed::ChangedRecord;
use killpoint_model::checklist::{HostFacts, RunProfile};
use killpoint_model::exploration::Exploration;
use killpoint_model::known::Baseline;
use killpoint_model::settings::Promise;
use killpoint_model::{History, MergedRecord, RunRecord, TrialRecord, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

pub use detail::{Detail, EvidencePiece, Judged, TrialNote, is_bad};
pub use rows::{Repetition, Row, Tally};
pub use surroundings::{Boundary, ContainmentUse, NotShown, Precision};
pub use timeline::{Generation, Step, StepKind, Timeline};

/// What no run shows, whatever its verdict.
const NOT_CLAIMED: &[&str] = &[
    "power loss and torn disk writes: a kill keeps what the operating system has cached",
    "the real provider: the fake one speaks its contract, and is never kinder than it",
];

/// Everything that a report shows about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct View {
    /// The verdict; worst wins. Never better than the worst trial, and at best `inconclusive` where a
    /// trial was not judged.
    pub verdict: Verdict,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// The program's version.
    pub killpoint: String,
    /// How the run was asked for: the words after `killpoint`.
    pub command_line: Vec<String>,
    /// Milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// What the worker claims.
    pub promise: Promise,
    /// Trials per verdict.
    pub tally: Tally,
    /// One per boundary and provider plan, in order of the plan; repetitions are folded.
    pub rows: Vec<Row>,
    /// One per trial that does not hold: violated first, then inconclusive, vacuous and not judged.
    pub details: Vec<Detail>,
    /// What the trials that hold have to report though it is no violation under the promise.
    pub notes: Vec<TrialNote>,
    /// The boundaries that the trials reached, those of the fault-free trials first.
    pub boundaries: Vec<Boundary>,
    /// Invariants that had nothing to look at, with the reason.
    pub not_shown: Vec<NotShown>,
    /// How the workers were held together.
    pub containments: Vec<ContainmentUse>,
    /// Warnings of the run, and what this report could not read.
    pub warnings: Vec<String>,
    /// What no run shows, whatever its verdict.
    pub not_claimed: Vec<String>,
    /// The profile that chose the trials, with the answers to its checklist; absent where none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<RunProfile>,
    /// What was seen of the machine and of the worker's files, where a profile asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostFacts>,
    /// What an exploration did and found; its plans are no rows, but for those that it ends with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exploration: Option<Exploration>,
    /// Which part of a divided run this is; absent where it is a whole one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardPart>,
    /// From which parts the run was put together, and what is not there; absent where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergedRecord>,
    /// The trials held against a file of known failures; absent where none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What changed since the stored boundaries, and what was left out for it; absent where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedRecord>,
}

/// One part of a divided run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShardPart {
    /// Which one, from 1.
    pub index: u32,
    /// Into how many the run was divided.
    pub count: u32,
    /// Faulted trials of the whole run.
    pub planned: u32,
}

/// The trials that are shown one by one. Of those that an exploration drew, the ones that it ends with, and those
/// that could not be judged.
fn shown(record: &RunRecord) -> Vec<TrialRecord> {
    let ends = |folder: &str| {
        let found = record.exploration.iter().flat_map(|exploration| &exploration.counterexamples);
        found.into_iter().any(|found| found.folder == folder)
    };
    let unclear = |trial: &TrialRecord| {
        trial.verdict.as_ref().is_none_or(|judged| judged.verdict == Verdict::Inconclusive)
    };
    let shown = record.trials.iter().filter(|trial| !trial.drawn || ends(&trial.folder) || unclear(trial));
    shown.cloned().collect()
}

impl View {
    /// Computes the view. `histories` are by trial folder; a missing one is a warning, not an error.
    pub fn new(record: &RunRecord, histories: &BTreeMap<String, History>) -> Self {
        let trials = shown(record);
        let rows = rows::fold(&trials);
        let tally = rows.iter().fold(Tally::default(), |sum, row| sum.plus(row.tally));
        let counting = record.trials.iter().filter(|trial| trial.counts());
        let judged = counting.filter_map(|trial| trial.verdict.as_ref().map(|v| v.verdict));
        let unjudged = (tally.not_judged > 0).then_some(Verdict::Inconclusive);
        Self {
            verdict: Verdict::worst(judged.chain(unjudged).chain([record.verdict])),
            interrupted: record.interrupted,
            killpoint: record.killpoint.clone(),
            command_line: record.command_line.clone(),
            started_at_ms: record.started_at_ms,
            duration_ms: record.duration_ms,
            promise: record.settings.promise,
            tally,
            rows,
            details: detail::all(&trials, histories),
            notes: detail::notes(&trials),
            boundaries: surroundings::boundaries(&trials, histories),
            not_shown: surroundings::not_shown(&trials),
            containments: surroundings::containments(&trials, histories),
            warnings: warnings(record, &trials, histories),
            not_claimed: NOT_CLAIMED.iter().map(|text| (*text).to_owned()).collect(),
            profile: record.profile.clone(),
            host: record.host.clone(),
            exploration: record.exploration.clone(),
            shard: record.shard.as_ref().map(|shard| ShardPart {
                index: shard.index,
                count: shard.count,
                planned: shard.planned.len() as u32,
            }),
            merged: record.merged.clone(),
            baseline: Baseline::of(record),
            changed: record.changed.clone(),
        }
    }
}

fn warnings(record: &RunRecord, shown: &[TrialRecord], histories: &BTreeMap<String, History>) -> Vec<String> {
    let mut warnings = record.warnings.clone();
    for trial in shown {
        match histories.get(&trial.folder) {
            None if trial.verdict.is_some() => {
                warnings.push(format!(
                    "no history of trial `{}`: its boundaries and timeline are not shown",
                    trial.folder
                ));
            }
            Some(history) if history.truncated => {
                warnings.push(format!("the history of trial `{}` ends before the trial does", trial.folder));
            }
            _ => {}
        }
    }
    warnings
}
