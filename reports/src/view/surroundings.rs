//! What holds for the run as a whole: boundaries, invariants without a subject, containment.

use std::collections::BTreeMap;

use killpoint_model::event::{Containment, ProcessLimit};
use killpoint_model::run::TrialRole;
use killpoint_model::{EventKind, History, InvariantStatus, Source, TrialRecord};
use schemars::JsonSchema;
use serde::Serialize;

/// How sharply a moment is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// The worker waits or its tree stands still at that moment.
    Exact,
    /// Found by looking again and again: the worker may have gone on since.
    Sampled,
    /// Exact in some trials, sampled in others.
    Mixed,
}

impl Precision {
    const fn of(exact: bool) -> Self {
        if exact { Self::Exact } else { Self::Sampled }
    }

    /// The word of reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Sampled => "sampled",
            Self::Mixed => "mixed",
        }
    }
}

/// A boundary hit that some trial reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Boundary {
    /// The hit, `source:point[selector]#ordinal`.
    pub hit: String,
    /// The hit without its ordinal.
    pub series: String,
    /// Which occurrence, from 1.
    pub ordinal: u32,
    /// Where it comes from; absent for a canonical name that was not bound.
    pub source: Option<Source>,
    /// How sharply the moment is known, over all trials.
    pub precision: Precision,
    /// Whether a fault-free trial reached it; otherwise it belongs to recovery.
    pub in_baseline: bool,
    /// In how many trials it was reached.
    pub trials: u32,
}

/// An invariant that had nothing to look at in some trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotShown {
    /// The invariant's name.
    pub invariant: String,
    /// Why, and what to configure.
    pub reason: String,
    /// In how many trials, for this reason.
    pub trials: u32,
    /// Of how many that were judged.
    pub of: u32,
}

/// How the workers of some trials were held together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContainmentUse {
    /// What proves that a whole tree is dead.
    pub containment: Containment,
    /// Why nothing stronger was used, where it was not.
    pub reason: Option<String>,
    /// Which limit on the number of processes held.
    pub process_limit: ProcessLimit,
    /// In how many trials.
    pub trials: u32,
}

/// The boundaries that the trials reached, those of the fault-free trials first.
pub(super) fn boundaries(trials: &[TrialRecord], histories: &BTreeMap<String, History>) -> Vec<Boundary> {
    let mut found: Vec<Boundary> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let (plain, faulted): (Vec<_>, Vec<_>) =
        trials.iter().partition(|trial| trial.role != TrialRole::Faulted);
    for trial in plain.into_iter().chain(faulted) {
        let events = histories.get(&trial.folder).map_or(&[][..], |history| &history.events);
        for event in events {
            let EventKind::Hit { hit, exact, .. } = &event.event else { continue };
            let precision = Precision::of(*exact);
            let known = *index.entry(hit.to_string()).or_insert(found.len());
            match found.get_mut(known) {
                Some(boundary) => {
                    boundary.trials += 1;
                    if boundary.precision != precision {
                        boundary.precision = Precision::Mixed;
                    }
                }
                None => found.push(Boundary {
                    hit: hit.to_string(),
                    series: hit.series(),
                    ordinal: hit.ordinal,
                    source: hit.source,
                    precision,
                    in_baseline: trial.role != TrialRole::Faulted,
                    trials: 1,
                }),
            }
        }
    }
    found
}

/// Invariants that were not shown, once per invariant and reason.
pub(super) fn not_shown(trials: &[TrialRecord]) -> Vec<NotShown> {
    let mut found: Vec<NotShown> = Vec::new();
    let judgements: Vec<_> = trials.iter().filter_map(|trial| trial.verdict.as_ref()).collect();
    for outcome in judgements.iter().flat_map(|judgement| &judgement.outcomes) {
        if outcome.status != InvariantStatus::NotShown {
            continue;
        }
        let reason = outcome.reason.as_deref().unwrap_or("no reason given");
        let same = |one: &&mut NotShown| one.invariant == outcome.invariant && one.reason == reason;
        match found.iter_mut().find(same) {
            Some(one) => one.trials += 1,
            None => found.push(NotShown {
                invariant: outcome.invariant.clone(),
                reason: reason.to_owned(),
                trials: 1,
                of: judgements.len() as u32,
            }),
        }
    }
    found
}

/// The containments that held, with the limits on the number of processes.
pub(super) fn containments(
    trials: &[TrialRecord],
    histories: &BTreeMap<String, History>,
) -> Vec<ContainmentUse> {
    let mut found: Vec<ContainmentUse> = Vec::new();
    let events = trials.iter().filter_map(|trial| histories.get(&trial.folder)).flat_map(|h| &h.events);
    for event in events {
        let EventKind::TrialStarted { containment, containment_reason, process_limit, .. } = &event.event
        else {
            continue;
        };
        let same = |one: &&mut ContainmentUse| {
            one.containment == *containment
                && one.process_limit == *process_limit
                && one.reason == *containment_reason
        };
        match found.iter_mut().find(same) {
            Some(one) => one.trials += 1,
            None => found.push(ContainmentUse {
                containment: *containment,
                reason: containment_reason.clone(),
                process_limit: *process_limit,
                trials: 1,
            }),
        }
    }
    found
}
