//! Plans out of a space.

use std::collections::BTreeSet;
use std::sync::Arc;

use killpoint_model::plan::{Commit, Match, Reply};
use killpoint_model::{Fault, FaultAt, HitName, Plan, ProviderPlan, Rule, Source};
use proptest::collection::vec;
use proptest::strategy::{BoxedStrategy, Just, Strategy, Union, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sha2::{Digest, Sha256};

use super::coverage::{Coverage, Pair, outcome_of};
use super::family::Family;
use super::menu::{LASTING, LOOKUP_REPLIES, Menu, NTH_MAX};
use super::single::{SingleKind, single_plan};
use super::space::{GENERATIONS_MAX, PRODUCER_MARK, Space};
use super::stroke::{Place, Stroke, delays_acceptance};
use crate::rule::plans_name;

/// Part of what the numbers of a case come from; another text gives other plans for the same seeds.
const GENERATOR: &[u8] = b"killpoint explore 3";

/// One thing in a plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Fault { at: HitName, fault: Fault, workers_min: u32 },
    Rule { matches: Match, plan: ProviderPlan, times: u32 },
}

/// Parts that make sense together only.
pub(super) type Group = Vec<Part>;

/// Whole plans of these families. Everything in them is part of the value, so that it shrinks: groups of faults and
/// rules go away, moments become earlier, what is done becomes a plain kill, actions become the configuration's,
/// workers become one. Families that the space does not have are ignored. What is chosen from is weighed here, once:
/// who wants very many plans keeps the strategy.
pub fn plans(space: &Space, families: &BTreeSet<Family>, coverage: &Coverage) -> BoxedStrategy<Plan> {
    let menu = Arc::new(Menu::of(space, families, coverage));
    let group = group(&menu);
    // Most plans are small: what takes few faults is found sooner, and every moment of it comes.
    let sizes = [(2, 1), (3, 2), (2, 3), (1, menu.faults_max)];
    let by_size = sizes.map(|(weight, most)| (weight, vec(group.clone(), 1..=most.min(menu.faults_max))));
    let groups = Union::new_weighted(by_size.into());
    // Most plans have the configuration's actions, because others have fault-free trials of their own; half have one
    // worker.
    let shape = Union::new_weighted(vec![(3, Just(0_usize).boxed()), (1, (0..menu.shapes.len()).boxed())]);
    let workers = Union::new_weighted(vec![(1, Just(1_u32).boxed()), (1, (1..=menu.workers_max).boxed())]);
    (groups, shape, workers)
        .prop_map(move |(groups, shape, workers)| assemble(&menu, &groups, shape, workers))
        .boxed()
}

/// The plan of one case. Of seven in a row, two are a kill or a thing that the provider does, alone; two are something
/// else alone, each kind of it once before any comes twice; two are two things of which the second tries the recovery from
/// the first; each kind in an order that the seed gives. The last one, and each for which no such plan is left, is
/// made of a random few of the space's families, and more often of what no trial has shown yet. The same arguments give
/// the same plan.
pub fn next_plan(space: &Space, coverage: &Coverage, seed: u64, case: u32) -> Plan {
    let (round, place) = (case / 7, case % 7);
    let twice = round.saturating_mul(2) + place / 2;
    let single = match place {
        0 | 2 => single_plan(space, coverage, seed, SingleKind::Plain, twice),
        1 | 3 => single_plan(space, coverage, seed, SingleKind::Other, twice),
        4 => single_plan(space, coverage, seed, SingleKind::Recovery, round),
        5 => single_plan(space, coverage, seed, SingleKind::Outcome, round),
        _ => None,
    };
    single.unwrap_or_else(|| {
        let families = swarm(space, &numbers(seed, case, b"families"));
        drawn(&plans(space, &families, coverage), numbers(seed, case, b"plan")).unwrap_or_default()
    })
}

/// What a strategy gives for these numbers.
pub(super) fn drawn<T: std::fmt::Debug>(strategy: &impl Strategy<Value = T>, numbers: [u8; 32]) -> Option<T> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &numbers);
    // Nothing of the configuration, which the environment can change, has a say in what is drawn.
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    // Nothing is filtered, so nothing is refused.
    strategy.new_tree(&mut runner).ok().map(|tree| tree.current())
}

pub(super) fn numbers(seed: u64, case: u32, what: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for bytes in [GENERATOR, &seed.to_le_bytes(), &case.to_le_bytes(), what] {
        digest.update(bytes);
    }
    digest.finalize().into()
}

/// Each family is in with one half; kills, without which little is shown, with three quarters.
pub(super) fn swarm(space: &Space, numbers: &[u8; 32]) -> BTreeSet<Family> {
    let bytes = numbers.iter().cycle();
    let drawn = space.families.iter().zip(bytes);
    let limit = |family: Family| if family == Family::Kill { 192 } else { 128 };
    drawn.filter(|(family, byte)| **byte < limit(**family)).map(|(family, _)| *family).collect()
}

fn group(menu: &Arc<Menu>) -> Union<BoxedStrategy<Group>> {
    let mut groups: Vec<(u32, BoxedStrategy<Group>)> = Vec::new();
    if !menu.strokes.is_empty() {
        groups.push((4, stroke(menu)));
    }
    if !menu.plans.is_empty() {
        groups.push((3, rule(menu)));
    }
    if !menu.lookups.is_empty() {
        groups.push((1, lookup_rule(menu)));
    }
    if !menu.targets.is_empty() {
        groups.push((4, aimed(menu)));
    }
    if groups.is_empty() {
        groups.push((1, Just(Vec::new()).boxed()));
    }
    Union::new_weighted(groups)
}

/// Something done at any moment.
fn stroke(menu: &Arc<Menu>) -> BoxedStrategy<Group> {
    let menu = Arc::clone(menu);
    let draws = (menu.strokes.draws(), menu.hits.draws(), menu.hits.draws(), menu.marks.draws());
    draws
        .prop_map(move |(stroke, hit, other, mark)| {
            let (Some(stroke), Some(hit)) = (menu.strokes.pick(stroke), menu.hits.pick(hit)) else {
                return Vec::new();
            };
            let (first, rest) = match stroke.place {
                Place::Anywhere => (hit.clone(), hit.clone()),
                Place::Apart => (hit.clone(), menu.hits.pick(other).unwrap_or(hit).clone()),
                Place::Mark => {
                    let mark = menu.marks.pick(mark).unwrap_or(hit);
                    (mark.clone(), mark.clone())
                }
                Place::Producer => {
                    let mark = HitName::new(Source::Mark, PRODUCER_MARK, 1);
                    (mark.clone(), mark)
                }
            };
            struck(stroke, &first, &rest)
        })
        .boxed()
}

pub(super) fn struck(stroke: &Stroke, first: &HitName, rest: &HitName) -> Group {
    let part = |(index, fault): (usize, &Fault)| Part::Fault {
        at: if index == 0 { first.clone() } else { rest.clone() },
        fault: fault.clone(),
        workers_min: stroke.workers_min,
    };
    stroke.faults.iter().enumerate().map(part).collect()
}

/// Which requests a rule is for: one by its number, the first few, or more than any worker should make.
fn span() -> impl Strategy<Value = (Option<u32>, u32)> {
    let nth = Union::new_weighted(vec![(2, Just(1).boxed()), (1, (1..=NTH_MAX).boxed())]);
    (nth, 0..5u32).prop_map(|(nth, form)| match form {
        0..4 => (Some(nth), 1),
        _ if nth == NTH_MAX => (None, LASTING),
        _ => (None, nth),
    })
}

fn rule(menu: &Arc<Menu>) -> BoxedStrategy<Group> {
    let menu = Arc::clone(menu);
    (span(), menu.plans.draws())
        .prop_map(move |((nth, times), plan)| {
            let plan = menu.plans.pick(plan).copied().unwrap_or_default();
            let matches = Match { operation: Some(menu.operation.clone()), nth, ..Match::default() };
            vec![Part::Rule { matches, plan, times }]
        })
        .boxed()
}

fn lookup_rule(menu: &Arc<Menu>) -> BoxedStrategy<Group> {
    let menu = Arc::clone(menu);
    (span(), menu.lookups.draws(), 0..LOOKUP_REPLIES.len())
        .prop_map(move |((nth, times), operation, reply)| {
            vec![failing_lookup(&menu, operation, reply, nth, times)]
        })
        .boxed()
}

fn failing_lookup(menu: &Menu, operation: u32, reply: usize, nth: Option<u32>, times: u32) -> Part {
    let matches = Match { operation: menu.lookups.pick(operation).cloned(), nth, ..Match::default() };
    let reply = LOOKUP_REPLIES.get(reply).copied().unwrap_or(Reply::Fin);
    // A read commits nothing.
    Part::Rule {
        matches,
        plan: ProviderPlan { commit: Commit::Never, reply, ..ProviderPlan::default() },
        times,
    }
}

/// What strikes a pair that no fault struck yet: kills that bring the worker to that life, a rule that makes the
/// outcome, and something done at the boundary.
fn aimed(menu: &Arc<Menu>) -> BoxedStrategy<Group> {
    let menu = Arc::clone(menu);
    let kills = vec((0..3u32, menu.hits.draws()), GENERATIONS_MAX as usize - 1);
    // The first choice leaves a part out: what shrinks goes there.
    let parts = vec(0..16u32, GENERATIONS_MAX as usize + 1);
    let draws =
        (menu.targets.draws(), 0..8u32, span(), kills, parts, menu.strokes.draws(), menu.lookups.draws());
    draws
        .prop_map(move |(target, ordinal, span, kills, parts, stroke, operation)| {
            let Some(pair) = menu.targets.pick(target) else { return Vec::new() };
            // Each life that was ended before may have made one more.
            let last = menu.series.get(&pair.boundary).map_or(1, |last| last.ordinal);
            let ordinal = 1 + ordinal % last.saturating_add(pair.generation - 1);
            let aim = Aim { pair, span, ordinal, operation };
            let mut parts = parts.into_iter().map(|draw| draw > 0);
            let mut group = Vec::new();
            for (number, (kind, hit)) in (1..pair.generation).zip(kills) {
                if parts.next() == Some(true) {
                    group.extend(earlier_kill(&menu, number, kind, hit));
                }
            }
            if pair.outcome != "ok" && parts.next() == Some(true) {
                group.extend(aim.rule(&menu));
            }
            if parts.next() == Some(true) {
                group.extend(aim.stroke(&menu, stroke));
            }
            group
        })
        .boxed()
}

/// A kill that ends one of the lives before the one that is aimed at.
fn earlier_kill(menu: &Menu, number: u32, kind: u32, hit: u32) -> Option<Part> {
    let at = match kind {
        0 => HitName::new(Source::Provider, "received", number),
        1 => HitName::new(Source::Provider, "committed", number),
        _ => menu.hits.pick(hit)?.clone(),
    };
    Some(Part::Fault { at, fault: Fault::named("kill"), workers_min: 1 })
}

struct Aim<'m> {
    pair: &'m Pair,
    span: (Option<u32>, u32),
    ordinal: u32,
    operation: u32,
}

impl Aim<'_> {
    fn rule(&self, menu: &Menu) -> Option<Part> {
        let (nth, times) = match self.span {
            // The request of the same number, often; or all up to it.
            (Some(_), _) => (Some(self.ordinal), 1),
            (None, times) => (None, times.max(self.ordinal)),
        };
        if self.pair.boundary == "provider:lookup" {
            let reply = LOOKUP_REPLIES.iter().position(|reply| reply.to_string() == self.pair.outcome)?;
            return Some(failing_lookup(menu, self.operation, reply, nth, times));
        }
        let plan = menu.plans.items().iter().find(|plan| outcome_of(**plan) == self.pair.outcome)?;
        let matches = Match { operation: Some(menu.operation.clone()), nth, ..Match::default() };
        Some(Part::Rule { matches, plan: *plan, times })
    }

    fn stroke(&self, menu: &Menu, draw: u32) -> Group {
        let Ok(at) = format!("{}#{}", self.pair.boundary, self.ordinal).parse::<HitName>() else {
            return Vec::new();
        };
        let chosen = menu.strokes.pick(draw).filter(|stroke| stroke.place == Place::Anywhere);
        let first = || menu.strokes.items().iter().find(|stroke| stroke.place == Place::Anywhere);
        chosen.or_else(first).map(|stroke| struck(stroke, &at, &at)).unwrap_or_default()
    }
}

/// Puts groups together as far as they fit: no fault twice at one hit, no more parts than the space allows.
pub(super) fn assemble(menu: &Menu, groups: &[Group], shape: usize, workers: u32) -> Plan {
    let mut plan = Plan { actions: menu.shapes.get(shape).cloned().unwrap_or_default(), ..Plan::default() };
    let mut workers = workers;
    let mut room = menu.faults_max;
    for group in groups {
        // The end of a group is what it is about; where not even the first group fits, its end must do.
        let group = if plan.is_baseline() { &group[group.len().saturating_sub(room)..] } else { group };
        if group.len() > room || group.iter().any(|part| is_out_of_place(&plan, part)) {
            continue;
        }
        room -= group.len();
        for part in group {
            // An earlier kill may have met the moment that is aimed at.
            if !is_out_of_place(&plan, part) {
                workers = workers.max(put(&mut plan, part));
            }
        }
    }
    // One worker is what none means; two texts for one plan would be two plans.
    plan.workers = if workers > 1 { workers } else { 0 };
    begin(menu, &mut plan);
    named(plan)
}

/// Sees to it that something of a plan comes in a trial that goes well so far: what only recovery makes needs
/// something to recover from.
fn begin(menu: &Menu, plan: &mut Plan) {
    let requests = match plan.actions.iter().map(|action| action.to.len()).sum::<usize>() {
        0 => menu.series.get("provider:received").map_or(1, |last| last.ordinal),
        sum => sum as u32,
    };
    let writes = |rule: &Rule| rule.matches.operation.as_ref() == Some(&menu.operation);
    let last = |hit: &HitName| menu.series.get(&hit.series());
    let comes = |hit: &HitName| {
        hit.point == PRODUCER_MARK || last(hit).is_some_and(|last| hit.ordinal <= last.ordinal)
    };
    let fires = |rule: &Rule| writes(rule) && rule.matches.nth.is_none_or(|nth| nth <= requests);
    if plan.faults.iter().any(|fault| comes(&fault.at)) || plan.rules.iter().any(fires) {
        return;
    }
    let first = plan.faults.first().map(|fault| fault.at.clone());
    if let Some((at, last)) = first.as_ref().and_then(|at| Some((at, last(at)?))) {
        for fault in plan.faults.iter_mut().filter(|fault| fault.at == *at) {
            fault.at = last.clone();
        }
    } else if let Some(rule) = plan.rules.iter_mut().find(|rule| writes(rule)) {
        rule.matches.nth = Some(requests);
    } else if let Some(group) = plan.is_baseline().then(|| anything(menu)).flatten() {
        for part in &group {
            put(plan, part);
        }
    } else if plan.is_baseline()
        || (!menu.plans.is_empty() && plan.rules.len() + plan.faults.len() < menu.faults_max)
    {
        plan.rules.push(lost_reply(menu, plan.rules.len() + 1));
    }
}

/// The simplest thing that can be done at any moment, where the provider has no say.
fn anything(menu: &Menu) -> Option<Group> {
    let stroke = menu
        .strokes
        .items()
        .iter()
        .find(|stroke| stroke.place == Place::Anywhere && stroke.workers_min < 2)?;
    let groups = menu.hits.items().iter().map(|hit| struck(stroke, hit, hit));
    let fits = |group: &Group| !group.iter().any(|part| is_out_of_place(&Plan::default(), part));
    groups.filter(|_| menu.plans.is_empty()).find(fits)
}

/// Gives an explored plan its names.
pub(super) fn named(mut plan: Plan) -> Plan {
    plan.scenario = None;
    plan.provider_plan = plans_name(&plan.rules);
    plan.name = format!("explored {}", plan.content_id());
    plan
}

/// Whether a part has no place in a plan: it is there already, or no worker could be right under it.
pub(super) fn is_out_of_place(plan: &Plan, part: &Part) -> bool {
    match part {
        Part::Fault { at, fault, .. } => {
            delays_acceptance(at, fault)
                || plan.faults.iter().any(|other| other.at == *at && other.fault.name == fault.name)
        }
        Part::Rule { matches, .. } => plan.rules.iter().any(|other| other.matches == *matches),
    }
}

/// Adds a part; gives how many workers it needs.
fn put(plan: &mut Plan, part: &Part) -> u32 {
    match part {
        Part::Fault { at, fault, workers_min } => {
            plan.faults.push(FaultAt { at: at.clone(), fault: fault.clone() });
            *workers_min
        }
        Part::Rule { matches, plan: what, times } => {
            let id = format!("rule-{}", plan.rules.len() + 1);
            plan.rules.push(Rule { id, matches: matches.clone(), plan: *what, times: Some(*times) });
            1
        }
    }
}

/// What begins a plan of which nothing else would come.
fn lost_reply(menu: &Menu, number: usize) -> Rule {
    let matches = Match { operation: Some(menu.operation.clone()), nth: Some(1), ..Match::default() };
    let plan = ProviderPlan { reply: Reply::Fin, ..ProviderPlan::default() };
    Rule { id: format!("rule-{number}"), matches, plan, times: Some(1) }
}

#[cfg(test)]
mod tests {
    use super::super::family::FAMILIES;
    use super::super::fixture::{self, history, hit};
    use super::*;
    use crate::{load_scenario, to_toml};
    use killpoint_model::event::EventKind;
    use killpoint_model::plan::duration_ms;
    use proptest::prelude::*;
    use proptest::test_runner::TestError;
    use serde_json::Value;

    fn all() -> BTreeSet<Family> {
        FAMILIES.iter().map(|entry| entry.family).collect()
    }

    /// What is wrong with a fault's parameters, by the faults' own rules.
    fn wrong(fault: &Fault) -> Option<String> {
        let known: &[(&str, &str)] = match fault.name.as_str() {
            "kill" => &[("worker", "number"), ("new-identity", "flag")],
            "terminate" => &[("grace", "time"), ("answer-after", "time")],
            "second-worker" => &[
                ("quiet", "time"),
                ("then", "word"),
                ("stop", "flag"),
                ("same-identity", "flag"),
                ("count", "number"),
            ],
            "stop" | "store-busy" | "store-busy-snapshot" | "store-read-only" | "store-no-space" => {
                &[("for", "time")]
            }
            "barrier" => &[("workers", "number"), ("limit", "time")],
            "provider-clock" => &[("by", "time")],
            "worker-clock" => &[("by", "offset"), ("worker", "number")],
            "hold-producer" => &[("end", "word"), ("quiet", "time")],
            "store-lock" => &[("file", "word")],
            "store-rollback" => &[("commits", "number")],
            "store-second" => &[("quiet", "time")],
            "cleanup" | "store-copy" | "store-restore" | "power-cut" => &[],
            _ => return Some(format!("nobody knows {}", fault.name)),
        };
        let time = |value: &Value| value.as_str().and_then(duration_ms);
        let right = |value: &Value, kind: &str| match kind {
            "number" => value.as_u64().is_some_and(|number| (1..=16).contains(&number)),
            "flag" => value.is_boolean(),
            "time" => time(value).is_some(),
            "offset" => {
                value.as_str().is_some_and(|text| duration_ms(text.trim_start_matches('-')).is_some())
            }
            _ => ["kill", "rollback", "commit", "worker.pid"].contains(&value.as_str().unwrap_or_default()),
        };
        if let (Some(grace), Some(after)) = (fault.with.get("grace"), fault.with.get("answer-after"))
            && time(after) >= time(grace)
        {
            return Some("nobody is left to be answered".into());
        }
        let bad = fault
            .with
            .iter()
            .find(|(name, value)| !known.iter().any(|(known, kind)| known == name && right(value, kind)));
        bad.map(|(name, value)| format!("{}: {name} = {value}", fault.name))
    }

    fn check(plan: &Plan, space: &Space) -> Result<(), TestCaseError> {
        prop_assert!(!plan.is_baseline());
        let parts = plan.faults.len() + plan.rules.len();
        prop_assert!(parts <= space.faults_max as usize, "{parts}: {plan:?}");
        for fault in &plan.faults {
            prop_assert_eq!(wrong(&fault.fault), None);
            let named = fault.fault.with.get("worker").and_then(Value::as_u64).unwrap_or(1);
            let beside = plan.faults.iter().any(|other| other.fault.name == "second-worker");
            prop_assert!(beside || named <= u64::from(plan.workers.max(1)), "{plan:?}");
        }
        for rule in &plan.rules {
            prop_assert!(rule.times.is_some_and(|times| times > 0) && rule.matches.nth != Some(0));
            prop_assert!(rule.matches.operation.is_some());
        }
        prop_assert!(plan.workers != 1 && plan.workers <= space.workers_max);
        prop_assert!(plan.actions.len() <= space.actions_max as usize);
        let ids: BTreeSet<&str> = plan.actions.iter().map(|action| action.id.as_str()).collect();
        prop_assert_eq!(ids.len(), plan.actions.len());
        prop_assert_eq!(&plan.name, &format!("explored {}", plan.content_id()));
        let text = to_toml(plan);
        let loaded = load_scenario(&text, "a.toml", &fixture::catalog());
        prop_assert!(loaded.diagnostics.is_empty(), "{:?}\n{text}", loaded.diagnostics);
        let read = loaded.value.unwrap().plan;
        prop_assert_eq!(read.content_id(), plan.content_id());
        prop_assert_eq!(read.provider_plan, plan.provider_plan.clone());
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_plan_is_one_that_a_file_can_hold(
            plan in plans(&fixture::space(), &all(), &Coverage::default()),
        ) {
            check(&plan, &fixture::space())?;
        }

        #[test]
        fn so_is_every_plan_of_a_case(seed: u64, case: u32, bits: u32, faults_max in 1..7u32, empty: bool) {
            let mut space = fixture::space();
            let mut bit = 0;
            space.families.retain(|_| { bit += 1; bits >> bit & 1 == 1 });
            space.faults_max = faults_max;
            if empty {
                space.hits.clear();
            }
            check(&next_plan(&space, &Coverage::default(), seed, case), &space)?;
        }
    }

    fn cases(space: &Space, coverage: &Coverage, count: u32) -> Vec<Plan> {
        (0..count).map(|case| next_plan(space, coverage, 7, case)).collect()
    }

    #[test]
    fn a_seed_and_a_case_give_the_same_plan_and_others_another() {
        let space = fixture::space();
        let first = cases(&space, &Coverage::default(), 300);
        assert_eq!(first, cases(&space, &Coverage::default(), 300));
        let distinct: BTreeSet<String> = first.iter().map(Plan::content_id).collect();
        assert!(distinct.len() > 250, "{}", distinct.len());
        assert_ne!(first[0], next_plan(&space, &Coverage::default(), 8, 0));
    }

    #[test]
    fn everything_in_the_space_comes_up() {
        let space = fixture::space();
        let plans = cases(&space, &Coverage::default(), 1600);
        let faults: BTreeSet<&str> =
            plans.iter().flat_map(|plan| &plan.faults).map(|fault| fault.fault.name.as_str()).collect();
        let catalog = fixture::catalog();
        // No worker could be right where a commit that reached the disk is taken back.
        let fair = catalog.faults.iter().filter(|entry| entry.name != "store-rollback");
        assert_eq!(faults, fair.map(|entry| entry.name).collect());
        let rules = || plans.iter().flat_map(|plan| &plan.rules);
        let outcomes: BTreeSet<String> = rules().map(|rule| outcome_of(rule.plan)).collect();
        assert!(outcomes.len() > 14, "{outcomes:?}");
        assert!(rules().any(|rule| rule.matches.operation.as_deref() == Some("lookup")));
        assert!(rules().any(|rule| rule.plan.visible != killpoint_model::plan::Visible::Now));
        let hits: BTreeSet<String> =
            plans.iter().flat_map(|plan| &plan.faults).map(|fault| fault.at.to_string()).collect();
        for name in ["provider:committed#4", "provider:lookup#1", "provider:dropped#1", "ledger:confirmed#2"]
        {
            assert!(hits.contains(name), "{name}: {hits:?}");
        }
        let sizes: BTreeSet<usize> = plans.iter().map(|plan| plan.actions.len()).collect();
        assert_eq!(sizes, [0, 1, 2, 3, 5, 8].into());
        let workers: BTreeSet<u32> = plans.iter().map(|plan| plan.workers).collect();
        assert_eq!(workers, [0, 2, 3].into());
        assert!(plans.iter().any(|plan| plan.faults.len() + plan.rules.len() == 1), "and a single thing too");
        assert!(plans.iter().any(|plan| plan.actions.iter().any(|action| action.to.len() > 1)));
        let equal = |plan: &Plan| matches!(&plan.actions[..], [a, b, ..] if a.body == b.body && a.to == b.to);
        assert!(plans.iter().any(equal));
    }

    #[test]
    fn a_plan_holds_nothing_of_families_that_are_left_out() {
        let mut space = fixture::space();
        space.families = [Family::Stop, Family::ProviderPlan].into();
        for plan in cases(&space, &Coverage::default(), 200) {
            // Kills stand in where no family that injects was drawn.
            let alone = plan.rules.is_empty() && plan.faults.iter().all(|fault| fault.fault.name == "kill");
            assert!(alone || plan.faults.iter().all(|fault| fault.fault.name == "stop"), "{plan:?}");
            assert!(plan.rules.iter().all(|rule| rule.matches.operation.as_deref() == Some("create")));
            assert!(plan.actions.is_empty() && plan.workers == 0);
        }
        space.families = [Family::Actions].into();
        assert!(
            cases(&space, &Coverage::default(), 20).iter().all(|plan| plan.faults[0].fault.name == "kill")
        );
    }

    #[test]
    fn what_a_trial_showed_to_be_lacking_is_not_tried_again() {
        let mut coverage = Coverage::default();
        let lacks = |what: &str| (1, EventKind::Limitation { what: what.into(), why: "no".into() });
        coverage.note(&history(vec![lacks("store-no-space"), lacks("producer")]));
        for plan in cases(&fixture::space(), &coverage, 400) {
            let lacking = ["store-no-space", "hold-producer"];
            assert!(
                plan.faults.iter().all(|fault| !lacking.contains(&fault.fault.name.as_str())),
                "{plan:?}"
            );
        }
    }

    /// How many of 1600 plans do something at the boundary under that provider plan.
    fn aimed_at(coverage: &Coverage, boundary: &str, outcome: &str) -> usize {
        let space = fixture::space();
        let aims = |plan: &&Plan| {
            plan.faults.iter().any(|fault| fault.at.series() == boundary)
                && plan.rules.iter().any(|rule| outcome_of(rule.plan) == outcome)
        };
        cases(&space, coverage, 1600).iter().filter(aims).count()
    }

    #[test]
    fn what_was_not_seen_is_tried_more() {
        let space = fixture::space();
        let mut coverage = Coverage::default();
        let before = aimed_at(&coverage, "mark:before-claim", "rejected");
        // Everything but one moment under one plan was struck.
        for pair in coverage.unseen(&space) {
            if (pair.boundary.as_str(), pair.outcome.as_str()) != ("mark:before-claim", "rejected") {
                coverage.strike(&pair);
            }
        }
        assert_eq!(coverage.unseen(&space).len(), 3);
        let after = aimed_at(&coverage, "mark:before-claim", "rejected");
        assert!(after > 40 && after > 3 * before, "{before}, then {after}");
    }

    #[test]
    fn what_never_comes_is_tried_less_and_what_recovery_showed_more() {
        let space = fixture::space();
        let count = |coverage: &Coverage, name: &str| {
            let plans = cases(&space, coverage, 1600);
            let at = |plan: &&Plan| plan.faults.iter().any(|fault| fault.at.to_string() == name);
            plans.iter().filter(at).count()
        };
        let mut coverage = Coverage::default();
        let before = count(&coverage, "provider:connected#4");
        assert_eq!(count(&coverage, "mark:recovered#1"), 0);
        let plan = fixture::kills(&["provider:connected#4"]);
        for _ in 0..40 {
            let started = EventKind::TrialStarted {
                plan: plan.clone(),
                containment: killpoint_model::event::Containment::PidNamespace,
                containment_reason: None,
                process_limit: killpoint_model::event::ProcessLimit::Rlimit,
            };
            coverage.note(&history(vec![(0, started), (2, hit("mark:recovered#1", None, true))]));
        }
        let after = count(&coverage, "provider:connected#4");
        assert!(after < before, "{before}, then {after}");
        assert!(count(&coverage, "mark:recovered#1") > 10);
    }

    #[test]
    fn the_library_shrinks_it_by_itself_too() {
        let strategy = plans(&fixture::space(), &all(), &Coverage::default());
        let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let found = runner.run(&strategy, |plan| {
            let kill = |fault: &FaultAt| fault.fault.name == "kill" && fault.at.point == "committed";
            prop_assert!(!plan.faults.iter().any(kill));
            Ok(())
        });
        let Err(TestError::Fail(_, smallest)) = found else { panic!("{found:?}") };
        // What belongs together it can't take apart: that is why there is another way.
        assert!(smallest.faults.len() <= 3 && smallest.rules.is_empty(), "{smallest:?}");
        assert_eq!((smallest.actions.len(), smallest.workers), (0, 0));
    }
}
