//! What a plan is made of, with weights: what was never seen before what was, what comes before what does not.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::named_plan::PROVIDER_PLANS;
use killpoint_model::plan::{ActionSpec, Aftermath, Commit, CutAt, Reply, Visible};
use killpoint_model::{HitName, ProviderPlan, Source};

use super::coverage::{Coverage, Pair, outcome_of};
use super::family::Family;
use super::space::{LATER_HITS, PRODUCER_MARK, Space};
use super::stroke::{Place, Stroke, strokes};
use super::weighted::Weighted;

/// The last request that a rule names by its number.
pub(super) const NTH_MAX: u32 = 4;
/// How often a rule fires that is there to last: longer than any worker should go on trying.
pub(super) const LASTING: u32 = 30;
/// Hits that trials reached beyond the fault-free one, at most.
const LEARNT_HITS_MAX: usize = 200;

/// How a lookup can go wrong.
pub(super) const LOOKUP_REPLIES: &[Reply] =
    &[Reply::Status { code: 503 }, Reply::Fin, Reply::Rst, Reply::Cut { at: CutAt::Body }, Reply::Hang];

/// Operations by which a worker may look up; the first is tried most until its own is known.
const LOOKUPS: &[&str] = &["lookup", "get", "list"];

/// All that is chosen from.
#[derive(Debug)]
pub(super) struct Menu {
    pub(super) operation: String,
    pub(super) hits: Weighted<HitName>,
    /// The last hit of each series in the fault-free trial.
    pub(super) series: BTreeMap<String, HitName>,
    pub(super) marks: Weighted<HitName>,
    pub(super) strokes: Weighted<Stroke>,
    pub(super) plans: Weighted<ProviderPlan>,
    pub(super) lookups: Weighted<String>,
    /// The pairs that no fault struck yet.
    pub(super) targets: Weighted<Pair>,
    pub(super) shapes: Vec<Vec<ActionSpec>>,
    pub(super) workers_max: u32,
    pub(super) faults_max: usize,
}

impl Menu {
    /// The choices that `families` leave. A menu that could inject nothing gets the plain kill, or a dropped reply
    /// where there is no moment to kill at.
    pub(super) fn of(space: &Space, families: &BTreeSet<Family>, coverage: &Coverage) -> Self {
        let mut families: BTreeSet<Family> = families.intersection(&space.families).copied().collect();
        if !families.iter().any(|family| family.injects()) {
            families.insert(if space.hits.is_empty() { Family::ProviderPlan } else { Family::Kill });
        }
        let hits = hits(space, &families, coverage);
        let marks =
            hits.iter().filter(|(_, hit)| hit.source == Some(Source::Mark)).cloned().collect::<Vec<_>>();
        let workers_max =
            if families.contains(&Family::Workers) { space.workers_max.clamp(1, 16) } else { 1 };
        let possible = |(_, stroke): &(u32, Stroke)| {
            let enough = stroke.workers_min <= workers_max;
            let known = stroke.place != Place::Mark || !marks.is_empty();
            enough && known && stroke.faults.iter().all(|fault| !coverage.lacks(&fault.name))
        };
        let strokes = strokes(&families, &space.families).into_iter().filter(possible).collect::<Vec<_>>();
        let known = families.contains(&Family::Lookup);
        let lookups = if known { lookups(coverage) } else { Vec::new() };
        let plans = outcomes(&families);
        let nothing = strokes.is_empty() && plans.is_empty() && lookups.is_empty();
        let strokes = Weighted::new(if nothing { plain_kill(space) } else { strokes });
        Self {
            operation: space.operation.clone(),
            targets: targets(space, &families, coverage, &strokes),
            hits: Weighted::new(hits),
            series: space.series(),
            marks: Weighted::new(marks),
            strokes,
            plans: Weighted::new(plans.into_iter().map(|plan| (1, plan))),
            lookups: Weighted::new(lookups),
            shapes: if families.contains(&Family::Actions) { shapes(space) } else { vec![Vec::new()] },
            workers_max,
            faults_max: space.faults_max.max(1) as usize,
        }
    }
}

/// What is left where no stroke of the chosen families can be done here.
fn plain_kill(space: &Space) -> Vec<(u32, Stroke)> {
    let kill: BTreeSet<Family> = [Family::Kill].into();
    if space.hits.is_empty() { Vec::new() } else { strokes(&kill, &kill) }
}

/// The moments: those of the fault-free trial, later ones of the same kind, what only recovery makes, and what
/// other trials reached. One that was waited for in vain is tried less.
fn hits(space: &Space, families: &BTreeSet<Family>, coverage: &Coverage) -> Vec<(u32, HitName)> {
    let mut hits: Vec<(u32, HitName)> = space.hits.iter().map(|hit| (6, hit.clone())).collect();
    if hits.is_empty() {
        return hits;
    }
    let mut known: BTreeSet<HitName> = space.hits.iter().cloned().collect();
    let later = space.series().into_values().flat_map(|last| {
        (1..=LATER_HITS).map(move |by| HitName { ordinal: last.ordinal.saturating_add(by), ..last.clone() })
    });
    let recovery = (1..=LATER_HITS).map(|ordinal| HitName::new(Source::Provider, "lookup", ordinal));
    let dropped = families.contains(&Family::ProviderPlan).then_some(1..=LATER_HITS).into_iter().flatten();
    let dropped = dropped.map(|ordinal| HitName::new(Source::Provider, "dropped", ordinal));
    // A trial with more actions than the configuration's makes more than others can wait for.
    let series = space.series();
    let near = |hit: &&HitName| {
        let last = series.get(&hit.series()).map_or(0, |last| last.ordinal);
        hit.ordinal <= last.saturating_add(LATER_HITS) && hit.point != PRODUCER_MARK
    };
    let learnt = coverage.hits().filter(near).take(LEARNT_HITS_MAX).cloned();
    for hit in later.chain(dropped).chain(recovery).chain(learnt) {
        if known.insert(hit.clone()) {
            hits.push((1, hit));
        }
    }
    for (weight, hit) in &mut hits {
        let tally = coverage.hit(hit);
        let hope = |answered: u32, asked: u32| (16 * (answered + 1) / (asked + 1)).max(1);
        *weight *= hope(tally.answered.min(1 << 20), tally.asked.min(1 << 20));
    }
    hits
}

/// What the provider may do with a write, simplest first.
pub(super) fn outcomes(families: &BTreeSet<Family>) -> Vec<ProviderPlan> {
    let plan = |commit, reply| ProviderPlan { commit, reply, ..ProviderPlan::default() };
    let mut outcomes = Vec::new();
    if families.contains(&Family::ProviderPlan) {
        outcomes.extend(
            PROVIDER_PLANS.iter().map(|named| named.plan).filter(|plan| *plan != ProviderPlan::default()),
        );
        outcomes.push(plan(Commit::Never, Reply::Status { code: 429 }));
        outcomes.push(plan(Commit::Never, Reply::Status { code: 503 }));
        outcomes.push(plan(Commit::After { ms: 500 }, Reply::Fin));
    }
    if families.contains(&Family::Lookup) {
        let lags = |reply| ProviderPlan {
            visible: Visible::After { ms: 500 },
            aftermath: Aftermath::None,
            ..plan(Commit::Now, reply)
        };
        outcomes.extend([lags(Reply::Fin), lags(Reply::Status { code: 500 })]);
    }
    outcomes
}

/// Operations of lookups: the worker's own, where trials have shown them.
fn lookups(coverage: &Coverage) -> Vec<(u32, String)> {
    let own = coverage.lookups();
    if own.is_empty() {
        return LOOKUPS.iter().zip([4, 1, 1]).map(|(name, weight)| (weight, (*name).to_owned())).collect();
    }
    own.iter().map(|(name, count)| ((*count).clamp(1, 8) as u32, name.clone())).collect()
}

/// The pairs that are still to be struck and can be with these families.
fn targets(
    space: &Space,
    families: &BTreeSet<Family>,
    coverage: &Coverage,
    strokes: &Weighted<Stroke>,
) -> Weighted<Pair> {
    if !strokes.items().iter().any(|stroke| stroke.place == Place::Anywhere) {
        return Weighted::new([]);
    }
    let outcomes: BTreeSet<String> = outcomes(families).into_iter().map(outcome_of).collect();
    let can_come = |pair: &Pair| {
        let lookup = pair.boundary == "provider:lookup";
        let outcome = pair.outcome == "ok"
            || if lookup { families.contains(&Family::Lookup) } else { outcomes.contains(&pair.outcome) };
        outcome && (pair.generation == 1 || families.contains(&Family::Kill))
    };
    // How often the boundary was waited for in vain, over all of its ordinals.
    let mut in_vain: BTreeMap<String, u32> = BTreeMap::new();
    for (hit, tally) in coverage.tallies() {
        let count = in_vain.entry(hit.series()).or_default();
        *count = count.saturating_add(tally.asked - tally.answered.min(tally.asked));
    }
    let weight = |pair: &Pair| {
        let in_vain = in_vain.get(&pair.boundary).copied().unwrap_or(0);
        (240 / pair.generation.pow(2) / (1 + in_vain / 8)).max(1)
    };
    let pairs = coverage.unseen(space).into_iter().filter(can_come);
    Weighted::new(pairs.map(|pair| (weight(&pair), pair)))
}

/// Sets of actions that are worth trying: few, because each has fault-free trials of its own. The first is the
/// configuration's, the last ones are those of scenario files.
pub(super) fn shapes(space: &Space) -> Vec<Vec<ActionSpec>> {
    let mut shapes = vec![Vec::new()];
    if space.has(Family::Actions) {
        let (one, two) = (1, 2);
        let sized = [(1, one), (2, one), (1, two), (3, one), (2, two), (5, one), (8, one)];
        let sized = sized.into_iter().filter(|(count, _)| *count <= space.actions_max);
        shapes.extend(sized.map(|(count, each)| (1..=count).map(|number| action(number, each)).collect()));
        let equal = [2, 3].into_iter().filter(|count| *count <= space.actions_max);
        shapes.extend(equal.map(|count| (1..=count).map(equal_action).collect()));
        let known = space.action_sets.iter().filter(|set| !shapes.contains(set)).cloned().collect::<Vec<_>>();
        shapes.extend(known);
    }
    shapes
}

fn action(number: u32, destinations: u32) -> ActionSpec {
    let to = (1..=destinations).map(|destination| match destination {
        1 => format!("user{number}@example.com"),
        _ => format!("user{number}.{destination}@example.com"),
    });
    ActionSpec { id: format!("action-{number}"), to: to.collect(), body: format!("hello {number}") }
}

/// Actions that differ in nothing but their ids.
fn equal_action(number: u32) -> ActionSpec {
    ActionSpec { id: format!("action-{number}"), to: vec!["user@example.com".into()], body: "hello".into() }
}
