//! Everything about one trial.

use std::collections::BTreeSet;

use killpoint_model::provider::Counters;
use killpoint_model::run::TrialRole;
use killpoint_model::verdict::{ActionOutcome, ActionVerdict};
use killpoint_model::{Finding, InvariantOutcome, InvariantStatus, SourceLine, TrialRecord, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use super::rows::{boundary_text, provider_plan_text};
use super::sketch::Sketch;
use super::timeline::Timeline;

/// What an invariant that does not hold has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Judged {
    /// The invariant's name.
    pub invariant: String,
    /// `violated` or `inconclusive`.
    pub status: InvariantStatus,
    /// How many things it looked at.
    pub looked_at: u32,
    /// Violations or doubts, each with the numbers of the events that show it.
    pub findings: Vec<Finding>,
}

/// One piece of the evidence without which a trial is vacuous.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidencePiece {
    /// What it is about.
    pub name: String,
    /// Whether it is there; absent where the plan has no such part.
    pub present: Option<bool>,
}

/// One trial in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Detail {
    /// Folder of the trial within the run directory.
    pub folder: String,
    /// The plan's name.
    pub plan: String,
    /// What the trial is for.
    pub role: TrialRole,
    /// The scenario that the plan comes from, where it comes from one.
    pub scenario: Option<String>,
    /// The file that the plan was read from, else the worker's configuration; absent where there is neither.
    pub source: Option<SourceLine>,
    /// What the plan does, without its names: the same in every run and on every machine.
    pub content_id: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// What is done where.
    pub boundary: String,
    /// The provider plan's name.
    pub provider_plan: String,
    /// The verdict; absent where it was not judged.
    pub verdict: Option<Verdict>,
    /// Whether its verdict counts for the run ([`TrialRecord::counts`]).
    #[serde(skip)]
    pub counts: bool,
    /// The invariants that do not hold.
    pub judged: Vec<Judged>,
    /// Things that are reported but are no violation under the promise.
    pub notes: Vec<Finding>,
    /// The evidence, piece by piece.
    pub evidence: Vec<EvidencePiece>,
    /// What is missing, in words, each with what to do.
    pub missing: Vec<String>,
    /// The provider's three numbers.
    pub counters: Counters,
    /// One per action and destination.
    pub actions: Vec<ActionOutcome>,
    /// What happened, shortened; absent where the history is not there.
    pub timeline: Option<Timeline>,
    /// The command that replays just this trial.
    pub replay: String,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

impl Detail {
    /// The detail of a trial; `sketch` is absent where its history is not there.
    pub(super) fn new(trial: &TrialRecord, sketch: Option<Sketch>) -> Self {
        let judgement = trial.verdict.as_ref();
        let evidence = judgement.map(|judgement| judgement.evidence.fields().map(piece).to_vec());
        let counted = sketch.as_ref().map(|sketch| sketch.counters);
        Self {
            folder: trial.folder.clone(),
            plan: trial.plan.name.clone(),
            role: trial.role,
            scenario: trial.plan.scenario.clone(),
            source: trial.source.clone(),
            content_id: trial.plan.content_id(),
            repetition: trial.repetition,
            boundary: boundary_text(trial),
            provider_plan: provider_plan_text(&trial.plan),
            verdict: judgement.map(|judgement| judgement.verdict),
            counts: trial.counts(),
            judged: wrong(trial).map(judged).collect(),
            notes: outcomes(trial).iter().flat_map(|outcome| outcome.notes.clone()).collect(),
            evidence: evidence.unwrap_or_default(),
            missing: judgement.map(|judgement| judgement.evidence.missing.clone()).unwrap_or_default(),
            counters: judgement.map(|judgement| judgement.counters).or(counted).unwrap_or_default(),
            actions: judgement.map(|judgement| judgement.actions.clone()).unwrap_or_default(),
            timeline: sketch.and_then(|sketch| sketch.timeline),
            replay: trial.replay.clone(),
            duration_ms: trial.duration_ms,
        }
    }
}

impl Detail {
    /// The invariants that are violated.
    pub(crate) fn violations(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|judged| judged.status == InvariantStatus::Violated)
    }
}

fn outcomes(trial: &TrialRecord) -> &[InvariantOutcome] {
    trial.verdict.as_ref().map_or(&[], |judgement| &judgement.outcomes)
}

/// The invariants that do not hold.
fn wrong(trial: &TrialRecord) -> impl Iterator<Item = &InvariantOutcome> {
    let is_wrong = |status| matches!(status, InvariantStatus::Violated | InvariantStatus::Inconclusive);
    outcomes(trial).iter().filter(move |outcome| is_wrong(outcome.status))
}

fn judged(outcome: &InvariantOutcome) -> Judged {
    Judged {
        invariant: outcome.invariant.clone(),
        status: outcome.status,
        looked_at: outcome.looked_at,
        findings: outcome.findings.clone(),
    }
}

fn piece((name, present): (&'static str, Option<bool>)) -> EvidencePiece {
    EvidencePiece { name: name.to_owned(), present }
}

/// What the findings and the bad actions point at.
#[derive(Debug, Default)]
pub(super) struct Marked {
    /// Sequence numbers of events.
    pub(super) events: BTreeSet<u64>,
    /// Actions and recipients.
    pub(super) subjects: BTreeSet<String>,
}

impl Marked {
    pub(super) fn of(trial: &TrialRecord) -> Self {
        let mut marked = Self::default();
        for finding in wrong(trial).flat_map(|outcome| &outcome.findings) {
            marked.events.extend(&finding.events);
            marked.subjects.insert(finding.subject.clone());
        }
        let actions = trial.verdict.iter().flat_map(|judgement| &judgement.actions);
        for outcome in actions.filter(|outcome| is_bad(outcome.verdict)) {
            marked.events.extend(&outcome.events);
            marked.subjects.insert(outcome.action.clone());
        }
        marked
    }
}

/// Whether an action did not come out right.
pub const fn is_bad(verdict: ActionVerdict) -> bool {
    match verdict {
        ActionVerdict::DeliveredOnce | ActionVerdict::ExplicitUnknown | ActionVerdict::ExplicitFailure => {
            false
        }
        ActionVerdict::Duplicate
        | ActionVerdict::Lost
        | ActionVerdict::FalseSuccess
        | ActionVerdict::FalseFailure
        | ActionVerdict::Stuck
        | ActionVerdict::Undetermined => true,
    }
}

/// Something that a trial which holds has to report: no violation under the promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialNote {
    /// Folder of the trial within the run directory.
    pub folder: String,
    /// What is done where.
    pub boundary: String,
    /// The provider plan's name.
    pub provider_plan: String,
    /// What is reported.
    pub note: Finding,
}

/// The notes of the trials that hold; those of the others are in their details.
pub(super) fn notes(trials: &[&TrialRecord]) -> Vec<TrialNote> {
    let holding = trials.iter().filter_map(|trial| {
        trial.verdict.as_ref().filter(|judgement| judgement.verdict == Verdict::Holds).map(|j| (trial, j))
    });
    holding
        .flat_map(|(trial, judgement)| {
            judgement.outcomes.iter().flat_map(|outcome| &outcome.notes).map(|note| TrialNote {
                folder: trial.folder.clone(),
                boundary: boundary_text(trial),
                provider_plan: provider_plan_text(&trial.plan),
                note: note.clone(),
            })
        })
        .collect()
}
