//! What holds for the run as a whole: boundaries, invariants without a subject, containment.

use std::collections::BTreeMap;

use killpoint_model::event::{Containment, ProcessLimit};
use killpoint_model::run::TrialRole;
use killpoint_model::{HitName, InvariantStatus, Source, TrialRecord};
use schemars::JsonSchema;
use serde::Serialize;

use super::sketch::{Held, Sketch};

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

/// Boundaries and containments, collected from one trial after the other: the fault-free ones first.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) boundaries: Vec<Boundary>,
    pub(super) containments: Vec<ContainmentUse>,
    index: BTreeMap<HitName, usize>,
}

impl Surroundings {
    /// Adds what the history of a trial says.
    pub(super) fn add(&mut self, role: TrialRole, sketch: &Sketch) {
        for (hit, exact) in &sketch.hits {
            self.boundary(role, hit, Precision::of(*exact));
        }
        if let Some(held) = &sketch.held {
            self.containment(held);
        }
    }

    fn boundary(&mut self, role: TrialRole, hit: &HitName, precision: Precision) {
        let known = self.index.get(hit).and_then(|index| self.boundaries.get_mut(*index));
        if let Some(boundary) = known {
            boundary.trials += 1;
            if boundary.precision != precision {
                boundary.precision = Precision::Mixed;
            }
            return;
        }
        self.index.insert(hit.clone(), self.boundaries.len());
        self.boundaries.push(Boundary {
            hit: hit.to_string(),
            series: hit.series(),
            ordinal: hit.ordinal,
            source: hit.source,
            precision,
            in_baseline: role != TrialRole::Faulted,
            trials: 1,
        });
    }

    fn containment(&mut self, held: &Held) {
        let same = |one: &&mut ContainmentUse| {
            one.containment == held.containment
                && one.process_limit == held.process_limit
                && one.reason == held.reason
        };
        match self.containments.iter_mut().find(same) {
            Some(one) => one.trials += 1,
            None => self.containments.push(ContainmentUse {
                containment: held.containment,
                reason: held.reason.clone(),
                process_limit: held.process_limit,
                trials: 1,
            }),
        }
    }
}

/// Invariants that were not shown, once per invariant and reason.
pub(super) fn not_shown(trials: &[&TrialRecord]) -> Vec<NotShown> {
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
