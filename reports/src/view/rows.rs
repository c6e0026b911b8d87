//! One row per boundary and provider plan, with its repetitions folded.

use std::collections::BTreeMap;

use killpoint_model::provider::Counters;
use killpoint_model::run::TrialRole;
use killpoint_model::{Fault, Plan, TrialRecord, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use crate::sanitise::shorten;

/// Longest fault parameter that a row shows, in characters.
const PARAMETER_CHARS_MAX: usize = 40;

/// How many trials came to which verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tally {
    /// All of them.
    pub trials: u32,
    /// Every check holds, with all the evidence.
    pub holds: u32,
    /// Nothing was proven.
    pub vacuous: u32,
    /// It can't be told.
    pub inconclusive: u32,
    /// At least one violation.
    pub violated: u32,
    /// Not judged: the run ended before.
    pub not_judged: u32,
}

impl Tally {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            trials: self.trials + other.trials,
            holds: self.holds + other.holds,
            vacuous: self.vacuous + other.vacuous,
            inconclusive: self.inconclusive + other.inconclusive,
            violated: self.violated + other.violated,
            not_judged: self.not_judged + other.not_judged,
        }
    }

    fn of(verdict: Option<Verdict>) -> Self {
        let mut tally = Self { trials: 1, ..Self::default() };
        *match verdict {
            Some(Verdict::Holds) => &mut tally.holds,
            Some(Verdict::Vacuous) => &mut tally.vacuous,
            Some(Verdict::Inconclusive) => &mut tally.inconclusive,
            Some(Verdict::Violated) => &mut tally.violated,
            None => &mut tally.not_judged,
        } = 1;
        tally
    }

    /// The verdicts that occur, worst first, with their numbers of trials.
    pub fn parts(&self) -> Vec<(u32, &'static str)> {
        [
            (self.violated, Verdict::Violated.as_str()),
            (self.inconclusive, Verdict::Inconclusive.as_str()),
            (self.vacuous, Verdict::Vacuous.as_str()),
            (self.not_judged, "not judged"),
            (self.holds, Verdict::Holds.as_str()),
        ]
        .into_iter()
        .filter(|(trials, _)| *trials > 0)
        .collect()
    }
}

/// One trial of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repetition {
    /// Which one, from 1.
    pub repetition: u32,
    /// Folder of the trial within the run directory.
    pub folder: String,
    /// The verdict; absent where it was not judged.
    pub verdict: Option<Verdict>,
    /// The provider's three numbers; absent where it was not judged.
    pub counters: Option<Counters>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// The command that replays it.
    pub replay: String,
}

/// A boundary and a provider plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    /// The plan's name.
    pub plan: String,
    /// What its trials are for.
    pub role: TrialRole,
    /// The scenario that it comes from, where it comes from one.
    pub scenario: Option<String>,
    /// What is done where, such as `provider:committed#1` (a kill) or `stop at mark:claimed#1`.
    pub boundary: String,
    /// The provider plan's name.
    pub provider_plan: String,
    /// The worst verdict of its trials; absent where none was judged.
    pub verdict: Option<Verdict>,
    /// How many of its trials came to which verdict.
    pub tally: Tally,
    /// Wall time of all its trials in milliseconds.
    pub duration_ms: u64,
    /// Its trials.
    pub repetitions: Vec<Repetition>,
}

impl Row {
    fn new(trial: &TrialRecord) -> Self {
        Self {
            plan: trial.plan.name.clone(),
            role: trial.role,
            scenario: trial.plan.scenario.clone(),
            boundary: boundary_text(trial),
            provider_plan: provider_plan_text(&trial.plan),
            verdict: None,
            tally: Tally::default(),
            duration_ms: 0,
            repetitions: Vec::new(),
        }
    }

    fn add(&mut self, trial: &TrialRecord) {
        let verdict = trial.verdict.as_ref().map(|judgement| judgement.verdict);
        self.verdict = self.verdict.max(verdict);
        self.tally = self.tally.plus(Tally::of(verdict));
        self.duration_ms = self.duration_ms.saturating_add(trial.duration_ms);
        self.repetitions.push(Repetition {
            repetition: trial.repetition,
            folder: trial.folder.clone(),
            verdict,
            counters: trial.verdict.as_ref().map(|judgement| judgement.counters),
            duration_ms: trial.duration_ms,
            replay: trial.replay.clone(),
        });
    }

    /// One of the three numbers over all repetitions: `2`, or `1–2` where they differ, or `-`.
    pub fn spread(&self, number: impl Fn(Counters) -> u32) -> String {
        let numbers = || self.repetitions.iter().filter_map(|one| one.counters).map(&number);
        match (numbers().min(), numbers().max()) {
            (Some(min), Some(max)) if min == max => min.to_string(),
            (Some(min), Some(max)) => format!("{min}–{max}"),
            _ => "-".to_owned(),
        }
    }

    /// What a row of several trials has to say about them: `3 of 3`, or every verdict with its share
    /// where they differ. `None` for a single trial.
    pub fn agreement(&self) -> Option<String> {
        let of = self.tally.trials;
        match self.tally.parts().as_slice() {
            _ if of < 2 => None,
            [(trials, _)] => Some(format!("{trials} of {of}")),
            parts => {
                let shares: Vec<String> =
                    parts.iter().map(|(trials, word)| format!("{trials} of {of} {word}")).collect();
                Some(format!("repetitions differ: {}", shares.join(", ")))
            }
        }
    }
}

/// Folds the trials into rows, in the order of their first trials.
pub(super) fn fold(trials: &[&TrialRecord]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut index: BTreeMap<(&str, &str, Option<&str>), usize> = BTreeMap::new();
    for trial in trials {
        let same = (trial.role.as_str(), trial.plan.name.as_str(), trial.plan.scenario.as_deref());
        let known = *index.entry(same).or_insert_with(|| {
            rows.push(Row::new(trial));
            rows.len() - 1
        });
        rows[known].add(trial);
    }
    rows
}

/// What is done where, in the words of a row.
pub(super) fn boundary_text(trial: &TrialRecord) -> String {
    if trial.role != TrialRole::Faulted {
        return trial.role.to_string();
    }
    if trial.plan.faults.is_empty() {
        return "no boundary".to_owned();
    }
    let parts: Vec<String> = trial
        .plan
        .faults
        .iter()
        .map(|fault_at| match fault_at.fault.name.as_str() {
            "kill" if fault_at.fault.with.is_empty() => fault_at.at.to_string(),
            _ => format!("{} at {}", fault_text(&fault_at.fault), fault_at.at),
        })
        .collect();
    parts.join(" + ")
}

/// A fault with its parameters: `clock-step(by=25h)`.
pub(super) fn fault_text(fault: &Fault) -> String {
    if fault.with.is_empty() {
        return fault.name.clone();
    }
    let parameters: Vec<String> = fault
        .with
        .iter()
        .map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{name}={}", shorten(&value, PARAMETER_CHARS_MAX))
        })
        .collect();
    format!("{}({})", fault.name, parameters.join(", "))
}

/// The name of a trial's provider plan; `ok` where the plan has no name and no rule.
pub(super) fn provider_plan_text(plan: &Plan) -> String {
    if !plan.provider_plan.is_empty() {
        plan.provider_plan.clone()
    } else if plan.rules.is_empty() {
        "ok".to_owned()
    } else {
        let rules: Vec<&str> = plan.rules.iter().map(|rule| rule.id.as_str()).collect();
        format!("rules {}", rules.join(", "))
    }
}
