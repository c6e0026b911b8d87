//! The computed view over a run: everything that a report shows, and nothing that it would have to work
//! out itself. Computed once from the record and the histories; every format works on it.

mod detail;
mod gate;
mod ledger_changes;
mod narrate;
mod narrate_control;
mod narrate_provider;
mod rows;
mod sketch;
mod surroundings;
mod timeline;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use killpoint_model::changed::ChangedRecord;
use killpoint_model::checklist::{HostFacts, RunProfile};
use killpoint_model::exploration::Exploration;
use killpoint_model::known::Baseline;
use killpoint_model::settings::Promise;
use killpoint_model::{Event, History, MergedRecord, RunRecord, TrialRecord, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

pub use detail::{Detail, EvidencePiece, Judged, TrialNote, is_bad};
pub use rows::{Repetition, Row, Tally};
pub use sketch::Reading;
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
    /// trial was not judged, or where the history of one is cut short.
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
    /// The first trial of each row that holds, up to a maximum, so that a picture can show what right looks like.
    /// Not part of the JSON report: the histories are beside it.
    #[serde(skip)]
    pub holding: Vec<Detail>,
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
fn shown(record: &RunRecord) -> Vec<&TrialRecord> {
    let found = record.exploration.iter().flat_map(|exploration| &exploration.counterexamples);
    let ends: BTreeSet<&str> = found.map(|found| found.folder.as_str()).collect();
    let unclear = |trial: &TrialRecord| {
        trial.verdict.as_ref().is_none_or(|judged| judged.verdict == Verdict::Inconclusive)
    };
    let shown = |trial: &&TrialRecord| !trial.drawn || ends.contains(&*trial.folder) || unclear(trial);
    record.trials.iter().filter(shown).collect()
}

impl View {
    /// Computes the view. `histories` are by trial folder; a missing one is a warning, not an error.
    pub fn new(record: &RunRecord, histories: &BTreeMap<String, History>) -> Self {
        let read = |trial: &TrialRecord, sink: &mut dyn FnMut(&Event)| {
            let Some(history) = histories.get(&trial.folder) else { return Ok(Reading::Missing) };
            history.events.iter().for_each(sink);
            Ok(if history.truncated { Reading::Truncated } else { Reading::Whole })
        };
        let Ok(view) = Self::read::<Infallible>(record, read);
        view
    }

    /// Computes the view of histories that are read one after the other. `read` gives the events of a trial's
    /// history in order, and is asked once for each trial that is shown.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(
        record: &RunRecord,
        read: impl FnMut(&TrialRecord, &mut dyn FnMut(&Event)) -> Result<Reading, E>,
    ) -> Result<Self, E> {
        let trials = shown(record);
        let rows = rows::fold(&trials);
        let told = told::tell(&trials, &rows, read)?;
        let tally = rows.iter().fold(Tally::default(), |sum, row| sum.plus(row.tally));
        let counting = record.trials.iter().filter(|trial| trial.counts());
        let judged = counting.filter_map(|trial| trial.verdict.as_ref().map(|v| v.verdict));
        let unclear = (tally.not_judged > 0 || told.is_cut).then_some(Verdict::Inconclusive);
        let warnings = record.warnings.iter().cloned().chain(told.warnings).collect();
        Ok(Self {
            verdict: Verdict::worst(judged.chain(unclear).chain([record.verdict])),
            interrupted: record.interrupted,
            killpoint: record.killpoint.clone(),
            command_line: record.command_line.clone(),
            started_at_ms: record.started_at_ms,
            duration_ms: record.duration_ms,
            promise: record.settings.promise,
            tally,
            rows,
            details: told.details,
            holding: told.holding,
            notes: detail::notes(&trials),
            boundaries: told.surroundings.boundaries,
            not_shown: surroundings::not_shown(&trials),
            containments: told.surroundings.containments,
            warnings,
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
            // A history that is cut short may hide a violation that is not known.
            baseline: Baseline::of(record).map(|baseline| Baseline {
                rest: Verdict::worst([baseline.rest].into_iter().chain(unclear)),
                ..baseline
            }),
            changed: record.changed.clone(),
        })
    }
}
