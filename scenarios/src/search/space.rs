//! What can be done to one worker.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::hit::PROVIDER_POINTS;
use killpoint_model::plan::{ActionSpec, Commit, CutAt, Reply};
use killpoint_model::{History, HitName, Plan, ProviderPlan, Settings, Source};
use serde::{Deserialize, Serialize};

use super::coverage::{Coverage, Pair, outcome_of};
use super::family::{FAMILIES, Family};
use super::menu::{self, LOOKUP_REPLIES, NTH_MAX};
use super::stroke::strokes;
use crate::boundary::ledger_points;
use crate::sweep::Reached;

/// Lives of the worker that are told apart; the last one stands for all from that one on.
pub const GENERATIONS_MAX: u32 = 3;
/// Actions of one plan at most.
const ACTIONS_MAX: u32 = 8;
/// Sets of actions out of scenario files at most.
const ACTION_SETS_MAX: usize = 20;
/// Workers of one plan at most.
const WORKERS_MAX: u32 = 3;
/// Faults and provider rules of one plan at most.
const FAULTS_MAX: u32 = 6;
/// The mark inside the producer's transaction: nothing but the producer is held there.
pub(super) const PRODUCER_MARK: &str = "producer-open";
/// Hits of a series, after its last one in the fault-free trial, that recovery may make.
pub(super) const LATER_HITS: u32 = 2;

/// What can be done to one worker, by its settings and its fault-free trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// The moments that a live worker reached in the fault-free trial, in order.
    pub hits: Vec<HitName>,
    /// The operation that makes effects, such as `create`.
    pub operation: String,
    /// What plans are made of; leave a family out to do without it.
    pub families: BTreeSet<Family>,
    /// Points that the ledger has, reached or not; empty where none is configured.
    pub ledger_points: Vec<String>,
    /// Sets of actions that scenario files have: somebody knew that they are worth trying.
    #[serde(default)]
    pub action_sets: Vec<Vec<ActionSpec>>,
    /// Actions of one plan at most.
    pub actions_max: u32,
    /// Workers of one plan at most.
    pub workers_max: u32,
    /// Faults and provider rules of one plan at most.
    pub faults_max: u32,
}

impl Space {
    /// The space of a worker. A family is in it only where the settings have what it needs.
    pub fn of(settings: &Settings, baseline: &History) -> Self {
        let hits: Vec<HitName> = Reached::of(baseline)
            .live
            .into_iter()
            .filter(|hit| hit.source.is_some() && hit.point != PRODUCER_MARK)
            .collect();
        let families = FAMILIES.iter().map(|entry| entry.family);
        let families = families.filter(|family| family.is_available(settings, &hits)).collect();
        let operation =
            baseline.attempts().next().map_or("create", |(_, attempt)| attempt.operation.as_str());
        let ledger_points = settings.ledger.as_ref().map_or_else(Vec::new, |ledger| {
            let own = ledger.boundaries.iter().map(|boundary| boundary.name.clone());
            ledger_points().into_iter().chain(own).collect()
        });
        Self {
            operation: operation.to_owned(),
            hits,
            families,
            ledger_points,
            action_sets: Vec::new(),
            actions_max: ACTIONS_MAX,
            workers_max: WORKERS_MAX,
            faults_max: FAULTS_MAX,
        }
    }

    /// The same space with the actions of these plans, each set once. What is beyond [`Space::actions_max`] or the 20th
    /// set is left out.
    #[must_use]
    pub fn with_actions_of<'p>(mut self, plans: impl IntoIterator<Item = &'p Plan>) -> Self {
        for plan in plans {
            let fits = (1..=self.actions_max as usize).contains(&plan.actions.len());
            if fits && self.action_sets.len() < ACTION_SETS_MAX && !self.action_sets.contains(&plan.actions) {
                self.action_sets.push(plan.actions.clone());
            }
        }
        self
    }

    /// About how many plans there are: choices of up to `faults_max` things that are done, times the actions, times
    /// the workers. Most workers have far more than can ever be tried.
    pub fn size(&self) -> u64 {
        self.size_within(self.faults_max)
    }

    /// About how many plans there are with at most so many faults and rules.
    pub fn size_within(&self, faults_max: u32) -> u64 {
        let strokes = strokes(&self.families, &self.families).len() as u128;
        let moments = self.hits.len() as u128 + u128::from(LATER_HITS) * self.series().len() as u128;
        let rules = u128::from(NTH_MAX) * menu::outcomes(&self.families).len() as u128;
        let lookups =
            if self.has(Family::Lookup) { u128::from(NTH_MAX) * LOOKUP_REPLIES.len() as u128 } else { 0 };
        let choices = strokes * moments + rules + lookups;
        let mut sum: u128 = 0;
        let mut combinations: u128 = 1;
        for count in 0..u128::from(faults_max).min(choices) {
            combinations = combinations.saturating_mul(choices - count) / (count + 1);
            sum = sum.saturating_add(combinations);
        }
        let shapes = menu::shapes(self).len() as u128;
        let workers = if self.has(Family::Workers) { u128::from(self.workers_max.max(1)) } else { 1 };
        u64::try_from(sum.saturating_mul(shapes).saturating_mul(workers)).unwrap_or(u64::MAX)
    }

    pub(super) fn has(&self, family: Family) -> bool {
        self.families.contains(&family)
    }

    /// The series of the hits, each with the last ordinal that the fault-free trial made.
    pub(super) fn series(&self) -> BTreeMap<String, HitName> {
        let mut series: BTreeMap<String, HitName> = BTreeMap::new();
        for hit in &self.hits {
            let last = series.entry(hit.series()).or_insert_with(|| hit.clone());
            last.ordinal = last.ordinal.max(hit.ordinal);
        }
        series
    }

    /// Every pair that a fault may strike: those of the first life first. What trials reached beyond the fault-free
    /// one belongs to it.
    pub(super) fn pairs(&self, coverage: &Coverage) -> Vec<Pair> {
        let mut boundaries: BTreeSet<String> = self.hits.iter().map(HitName::series).collect();
        boundaries.extend(coverage.boundaries().map(str::to_owned));
        boundaries.remove(&format!("mark:{PRODUCER_MARK}"));
        if self.has(Family::ProviderPlan) {
            boundaries.insert("provider:dropped".to_owned());
        }
        let plans = menu::outcomes(&self.families);
        let plans: Vec<(String, ProviderPlan)> =
            plans.into_iter().map(|plan| (outcome_of(plan), plan)).collect();
        let rows: Vec<(String, BTreeSet<String>)> = boundaries
            .into_iter()
            .map(|boundary| {
                let outcomes = self.outcomes_at(&boundary, &plans);
                (boundary, outcomes)
            })
            .collect();
        let lives = if self.has(Family::Kill) { GENERATIONS_MAX } else { 1 };
        let mut pairs = Vec::new();
        for generation in 1..=lives {
            for (boundary, outcomes) in &rows {
                pairs.extend(outcomes.iter().map(|outcome| Pair {
                    boundary: boundary.clone(),
                    outcome: outcome.clone(),
                    generation,
                }));
            }
        }
        pairs
    }

    fn outcomes_at(&self, boundary: &str, plans: &[(String, ProviderPlan)]) -> BTreeSet<String> {
        let point = boundary.strip_prefix("provider:").filter(|point| PROVIDER_POINTS.contains(point));
        let mut outcomes = BTreeSet::new();
        if point != Some("dropped") {
            outcomes.insert("ok".to_owned());
        }
        match point {
            Some("connected") => {}
            Some("lookup") if !self.has(Family::Lookup) => {}
            Some("lookup") => outcomes.extend(LOOKUP_REPLIES.iter().map(ToString::to_string)),
            _ => {
                let reaching =
                    plans.iter().filter(|(_, plan)| point.is_none_or(|point| reaches(point, *plan)));
                outcomes.extend(reaching.map(|(name, _)| name.clone()));
            }
        }
        outcomes
    }

    /// Whether a boundary can be reached here as far as can be told: the fault-free trial made it, the provider or
    /// the ledger has it, or it has a meaning everywhere.
    pub(super) fn knows(&self, hit: &HitName) -> bool {
        match hit.source {
            None | Some(Source::Provider) => true,
            Some(Source::Ledger) if self.ledger_points.contains(&hit.point) => true,
            Some(Source::Mark) if hit.point == PRODUCER_MARK && self.has(Family::Producer) => true,
            Some(_) => self.hits.iter().any(|known| known.source == hit.source && known.point == hit.point),
        }
    }
}

/// Whether an exchange under `plan` comes to a point.
fn reaches(point: &str, plan: ProviderPlan) -> bool {
    match point {
        "committed" => matches!(plan.commit, Commit::Now | Commit::Twice),
        "replying" => matches!(
            plan.reply,
            Reply::Ok | Reply::Status { .. } | Reply::Cut { at: CutAt::Headers | CutAt::Body }
        ),
        "replied" => matches!(plan.reply, Reply::Ok | Reply::Status { .. }),
        "dropped" => !matches!(plan.reply, Reply::Ok | Reply::Status { .. } | Reply::Hold),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn a_space_has_the_live_moments_and_what_the_settings_allow() {
        let space = fixture::space();
        assert_eq!(space.hits.first().map(ToString::to_string).as_deref(), Some("mark:before-claim#1"));
        assert_eq!(space.families.len(), FAMILIES.len());
        assert!(space.hits.iter().all(|hit| hit.to_string() != "ledger:removed#1"), "nobody lived there");
        assert_eq!(space.operation, "create");
        let text = serde_json::to_string(&space).unwrap();
        assert_eq!(serde_json::from_str::<Space>(&text).unwrap(), space);
    }

    #[test]
    fn the_size_grows_with_what_may_be_combined_and_never_overflows() {
        let mut space = fixture::space();
        space.families = [Family::Kill].into();
        space.hits.truncate(4);
        // Four moments, and two later ones of each of their series, with one kill each.
        let moments = 4 + 2 * space.series().len() as u64;
        assert_eq!(space.size_within(1), moments);
        assert_eq!(space.size_within(2), moments + moments * (moments - 1) / 2);
        assert_eq!(space.size_within(0), 0);
        assert!(fixture::space().size() > 1_000_000_000_000);
        space = fixture::space();
        space.faults_max = u32::MAX;
        assert_eq!(space.size(), u64::MAX);
    }

    #[test]
    fn pairs_are_only_those_that_can_come_together() {
        let pairs = fixture::space().pairs(&Coverage::default());
        let has = |boundary: &str, outcome: &str, generation| {
            pairs.contains(&Pair { boundary: boundary.into(), outcome: outcome.into(), generation })
        };
        assert!(has("provider:committed", "drop-after-accept", 1));
        assert!(has("provider:dropped", "drop-before-accept", 3));
        assert!(has("mark:before-claim", "drop-before-accept", 2));
        assert!(!has("provider:committed", "drop-before-accept", 1), "it is not committed");
        assert!(!has("provider:replied", "drop-after-accept", 1), "it has no reply");
        assert!(!has("provider:dropped", "ok", 1) && !has("provider:connected", "rejected", 1));
        assert!(!has("provider:committed", "ok", GENERATIONS_MAX + 1));
        assert_eq!(pairs.iter().map(|pair| pair.generation).max(), Some(GENERATIONS_MAX));
        assert!(pairs.is_sorted_by_key(|pair| pair.generation));
    }
}
