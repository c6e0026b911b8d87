//! A failing plan made small, for trials that are slow: as few of them as will do.
//!
//! The search is written as if a trial's outcome were at hand. Where it is not, the search ends with the plan that
//! must be tried, and begins anew when the outcome was told: everything that was told before is known then, so
//! it comes to the same place, and no plan is tried twice.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::plan::{Aftermath, Commit, Reply, Visible};
use killpoint_model::{Fault, HitName, Plan, ProviderPlan, Source};

use super::generate::named;
use super::space::Space;
use super::stroke::delays_acceptance;

/// Parameters that only say how long something takes.
const DURATIONS: &[&str] = &["by", "for", "grace", "limit", "quiet"];

/// Makes a failing plan small. Take a plan from [`Shrink::next`], try it, and [`Shrink::tell`] what came of it,
/// until there is none. Faults go first, then rules, actions and workers; then come lower ordinals, the earliest
/// boundary, and simpler parameters.
///
/// Where failing is monotone (what fails still fails with more in it), the smallest plan fails without none of its
/// faults, rules, actions or workers; and so it is in any case as far as the single ones are concerned.
#[derive(Debug, Clone)]
pub struct Shrink {
    start: Plan,
    hits: Vec<HitName>,
    told: BTreeMap<String, bool>,
    /// Plans that failed, in the order in which that was told.
    failed: Vec<Plan>,
    smallest: Plan,
    trials: u32,
}

impl Shrink {
    /// Begins with a plan that fails.
    pub fn new(failing: Plan, space: &Space) -> Self {
        let told = BTreeMap::from([(failing.content_id(), true)]);
        Self {
            hits: space.hits.clone(),
            told,
            failed: vec![failing.clone()],
            smallest: failing.clone(),
            start: failing,
            trials: 0,
        }
    }

    /// The plan to try next; the same one until its outcome is told, and `None` when it can't be made smaller.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is no iterator: each answer is needed before the next"
    )]
    pub fn next(&mut self) -> Option<Plan> {
        if self.told.get(&self.start.content_id()) != Some(&true) {
            return None;
        }
        let search = Search { told: &self.told, hits: &self.hits };
        search.run(self.start.clone()).err().map(|untried| *untried)
    }

    /// Takes note of a trial's outcome. The last word on a plan counts.
    pub fn tell(&mut self, plan: &Plan, fails: bool) {
        let id = plan.content_id();
        match self.told.insert(id.clone(), fails) {
            Some(before) if before == fails => return,
            Some(_) => {}
            None => self.trials += 1,
        }
        self.failed.retain(|failed| failed.content_id() != id);
        if fails {
            self.failed.push(plan.clone());
        }
        // Of those with as much in them, the last one: the search goes from each to a simpler one.
        let smallest = self.failed.iter().rev().min_by_key(|failed| weight(failed));
        self.smallest = smallest.unwrap_or(&self.start).clone();
    }

    /// The smallest plan that is known to fail; the first one where even that was told to pass since.
    pub fn smallest(&self) -> &Plan {
        &self.smallest
    }

    /// Plans whose outcome was told.
    pub fn trials(&self) -> u32 {
        self.trials
    }
}

/// How much there is in a plan.
fn weight(plan: &Plan) -> (usize, usize, usize, u32) {
    let destinations: usize = plan.actions.iter().map(|action| action.to.len()).sum();
    let parts = plan.faults.len() + plan.rules.len();
    (parts, plan.faults.len(), plan.actions.len() + destinations, plan.workers.max(1))
}

/// Ordinals of hits, numbers of requests, and how often rules fire.
fn numbers(plan: &Plan) -> impl Iterator<Item = u32> {
    let ordinals = plan.faults.iter().map(|fault| fault.at.ordinal);
    let counts = plan.rules.iter().flat_map(|rule| [rule.matches.nth, rule.times].into_iter().flatten());
    ordinals.chain(counts)
}

fn position(hit: &HitName, hits: &[HitName]) -> usize {
    hits.iter().position(|known| known == hit).unwrap_or(hits.len())
}

/// A plan that must be tried before the search can go on.
type Untried = Box<Plan>;

struct Search<'s> {
    told: &'s BTreeMap<String, bool>,
    hits: &'s [HitName],
}

impl Search<'_> {
    fn run(&self, start: Plan) -> Result<Plan, Untried> {
        let framed = self.or(Plan { actions: Vec::new(), workers: 0, ..start.clone() }, start)?;
        let mut plan = self.without_parts(framed)?;
        plan = self.fewer_actions(plan)?;
        plan = self.fewer_workers(plan)?;
        loop {
            plan = self.lower_numbers(plan)?;
            plan = self.earlier_moments(plan)?;
            plan = self.simpler_faults(plan)?;
            plan = self.simpler_rules(plan)?;
            // At last, because a plan that was changed since may do without one of its parts.
            let less = self.drop_singly(plan.clone())?;
            if less == plan {
                return Ok(plan);
            }
            plan = less;
        }
    }

    /// Whether a plan fails. One that does nothing, that no file can hold, or under which no worker could be right is
    /// not tried.
    fn fails(&self, plan: Plan) -> Result<bool, Untried> {
        let mut seen = BTreeSet::new();
        let twice = plan.faults.iter().any(|fault| !seen.insert((&fault.at, &fault.fault.name)));
        let unfair = plan.faults.iter().any(|fault| delays_acceptance(&fault.at, &fault.fault));
        if twice || unfair || plan.is_baseline() {
            return Ok(false);
        }
        let plan = renumbered(plan);
        match self.told.get(&plan.content_id()) {
            Some(fails) => Ok(*fails),
            None => Err(Box::new(named(plan))),
        }
    }

    /// The candidate if it fails, or else the plan.
    fn or(&self, candidate: Plan, plan: Plan) -> Result<Plan, Untried> {
        let smaller = candidate != plan && self.fails(candidate.clone())?;
        Ok(if smaller { renumbered(candidate) } else { plan })
    }

    /// Leaves out faults and rules by halves.
    fn without_parts(&self, plan: Plan) -> Result<Plan, Untried> {
        let parts = plan.rules.len() + plan.faults.len();
        let kept = smallest_part(parts, |kept| self.fails(with_parts(&plan, kept)))?;
        Ok(with_parts(&plan, &kept))
    }

    fn fewer_actions(&self, plan: Plan) -> Result<Plan, Untried> {
        let some = |kept: &[usize]| Plan {
            actions: kept.iter().map(|index| plan.actions[*index].clone()).collect(),
            ..plan.clone()
        };
        let kept = smallest_part(plan.actions.len(), |kept| self.fails(some(kept)))?;
        let mut plan = some(&kept);
        for index in 0..plan.actions.len() {
            let mut one = plan.clone();
            one.actions[index].to.truncate(1);
            plan = self.or(one, plan)?;
        }
        Ok(plan)
    }

    fn fewer_workers(&self, plan: Plan) -> Result<Plan, Untried> {
        let with = |workers: u32| Plan { workers: if workers > 1 { workers } else { 0 }, ..plan.clone() };
        let workers = lowest(plan.workers.max(1), |workers| self.fails(with(workers)))?;
        Ok(with(workers))
    }

    /// Leaves out single faults, rules, actions and workers until none can be left out.
    fn drop_singly(&self, mut plan: Plan) -> Result<Plan, Untried> {
        'smaller: loop {
            for candidate in one_less(&plan) {
                if self.fails(candidate.clone())? {
                    plan = candidate;
                    continue 'smaller;
                }
            }
            return Ok(plan);
        }
    }

    fn lower_numbers(&self, mut plan: Plan) -> Result<Plan, Untried> {
        // A rule for the second request and a kill in it belong together: they go down together or not at all.
        let values: BTreeSet<u32> = numbers(&plan).filter(|number| *number > 1).collect();
        let least = numbers(&plan).min().unwrap_or(1);
        plan = self.or(renumber(&plan, |number| number - (least - 1)), plan)?;
        for value in values {
            if numbers(&plan).filter(|number| *number == value).count() > 1 {
                let together = renumber(&plan, |number| if number == value { 1 } else { number });
                plan = self.or(together, plan)?;
            }
        }
        for index in 0..numbers(&plan).count() {
            let Some(number) = numbers(&plan).nth(index) else { break };
            let with = |value: u32| {
                let mut count = 0..;
                renumber(&plan, |number| if count.next() == Some(index) { value } else { number })
            };
            let least = lowest(number, |value| self.fails(with(value)))?;
            plan = with(least);
        }
        Ok(plan)
    }

    /// Moves each fault to the first moment of the fault-free trial from which on it fails: what goes wrong mostly
    /// does between two moments, so the search begins near by.
    fn earlier_moments(&self, mut plan: Plan) -> Result<Plan, Untried> {
        for index in 0..plan.faults.len() {
            let fault = &plan.faults[index];
            if fault.fault.name == "hold-producer" {
                continue;
            }
            let marks_only = fault.fault.name == "barrier";
            let earlier = &self.hits[..position(&fault.at, self.hits)];
            let possible = |hit: &&HitName| !marks_only || hit.source == Some(Source::Mark);
            let mut moments: Vec<HitName> = earlier.iter().filter(possible).rev().cloned().collect();
            moments.insert(0, fault.at.clone());
            let moved = |steps: usize| {
                let mut moved = plan.clone();
                moved.faults[index].at = moments[steps].clone();
                moved
            };
            let steps = farthest(moments.len() - 1, |steps| self.fails(moved(steps)))?;
            plan = moved(steps);
        }
        Ok(plan)
    }

    fn simpler_faults(&self, mut plan: Plan) -> Result<Plan, Untried> {
        for index in 0..plan.faults.len() {
            let fault = plan.faults[index].fault.clone();
            let mut plainer = fault.clone();
            plainer.with.retain(|name, _| DURATIONS.contains(&name.as_str()));
            // A producer that is not held is not there.
            let kill = (fault.name != "hold-producer").then(|| Fault::named("kill"));
            for simpler in kill.into_iter().chain([plainer]) {
                let mut candidate = plan.clone();
                candidate.faults[index].fault = simpler;
                let before = plan.clone();
                plan = self.or(candidate, plan)?;
                if plan != before {
                    break;
                }
            }
        }
        Ok(plan)
    }

    fn simpler_rules(&self, mut plan: Plan) -> Result<Plan, Untried> {
        for index in 0..plan.rules.len() {
            for simpler in simpler_plans(plan.rules[index].plan) {
                let mut candidate = plan.clone();
                candidate.rules[index].plan = simpler;
                let before = plan.clone();
                plan = self.or(candidate, plan)?;
                if plan != before {
                    break;
                }
            }
        }
        Ok(plan)
    }
}

/// The smallest part of so many things with which it fails, by halving: in about `log2` of all trials for each one
/// that is needed. It fails with all of them.
fn smallest_part<E>(
    count: usize,
    mut fails: impl FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Vec<usize>, E> {
    let mut needed: Vec<usize> = Vec::new();
    let mut rest = count;
    // Each round finds the last one that is needed beside those known to be.
    while rest > 0 {
        let with_first = |number: usize| (0..number).chain(needed.iter().copied()).collect::<Vec<_>>();
        if fails(&with_first(0))? {
            break;
        }
        let (mut passes, mut failing) = (0, rest);
        while failing - passes > 1 {
            let middle = usize::midpoint(passes, failing);
            if fails(&with_first(middle))? {
                failing = middle;
            } else {
                passes = middle;
            }
        }
        rest = failing - 1;
        needed.insert(0, rest);
    }
    Ok(needed)
}

/// The lowest number from 1 at which it fails; it fails at `most`. 1 is tried first.
fn lowest<E>(most: u32, mut fails: impl FnMut(u32) -> Result<bool, E>) -> Result<u32, E> {
    if most <= 1 || fails(1)? {
        return Ok(1);
    }
    Ok(1 + first(most - 1, |number| fails(number + 1))?)
}

/// The first number from 1 at which it fails, by halving; it fails at `most`.
fn first<E>(most: u32, mut fails: impl FnMut(u32) -> Result<bool, E>) -> Result<u32, E> {
    let (mut passes, mut failing) = (0, most);
    while failing - passes > 1 {
        let middle = u32::midpoint(passes, failing);
        if fails(middle)? {
            failing = middle;
        } else {
            passes = middle;
        }
    }
    Ok(failing)
}

/// How many steps back it still fails, at `most`; it fails without any. Steps are doubled until it passes.
fn farthest<E>(most: usize, mut fails: impl FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
    let (mut failing, mut step) = (0, 1);
    let mut passes = most + 1;
    while failing + step < passes {
        if fails(failing + step)? {
            failing += step;
            step *= 2;
        } else {
            passes = failing + step;
        }
    }
    while passes - failing > 1 {
        let middle = usize::midpoint(failing, passes);
        if fails(middle)? {
            failing = middle;
        } else {
            passes = middle;
        }
    }
    Ok(failing)
}

/// The plan with only some of its parts: rules come first, so that of two ways to fail the one with fewer faults is
/// found.
fn with_parts(plan: &Plan, kept: &[usize]) -> Plan {
    let rules = plan.rules.len();
    let kept_rules = kept.iter().filter_map(|index| plan.rules.get(*index).cloned());
    let kept_faults = kept.iter().filter_map(|index| plan.faults.get(index.checked_sub(rules)?).cloned());
    renumbered(Plan { rules: kept_rules.collect(), faults: kept_faults.collect(), ..plan.clone() })
}

/// The plans with one fault, rule, action or worker less.
fn one_less(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    for index in 0..plan.faults.len() {
        let mut less = plan.clone();
        less.faults.remove(index);
        plans.push(less);
    }
    for index in 0..plan.rules.len() {
        let mut less = plan.clone();
        less.rules.remove(index);
        plans.push(renumbered(less));
    }
    for index in 0..plan.actions.len() {
        let mut less = plan.clone();
        less.actions.remove(index);
        plans.push(less);
    }
    if plan.workers > 1 {
        let workers = if plan.workers > 2 { plan.workers - 1 } else { 0 };
        plans.push(Plan { workers, ..plan.clone() });
    }
    plans
}

/// The same plan with other ordinals, numbers of requests and counts, asked for in the order of [`numbers`].
fn renumber(plan: &Plan, mut change: impl FnMut(u32) -> u32) -> Plan {
    let mut plan = plan.clone();
    let ordinals = plan.faults.iter_mut().map(|fault| &mut fault.at.ordinal);
    let counts = plan
        .rules
        .iter_mut()
        .flat_map(|rule| [rule.matches.nth.as_mut(), rule.times.as_mut()].into_iter().flatten());
    for number in ordinals.chain(counts) {
        *number = change(*number).max(1);
    }
    plan
}

/// Rules are named by their places, so that plans that do the same are the same.
fn renumbered(mut plan: Plan) -> Plan {
    for (index, rule) in plan.rules.iter_mut().enumerate() {
        rule.id = format!("rule-{}", index + 1);
    }
    plan
}

/// Simpler behaviour of the provider, simplest first: lookups that show everything, a connection that is closed
/// where it was left hanging.
fn simpler_plans(plan: ProviderPlan) -> Vec<ProviderPlan> {
    let shown = ProviderPlan { visible: Visible::Now, aftermath: Aftermath::None, ..plan };
    let commit = if matches!(plan.commit, Commit::After { .. }) { Commit::Now } else { plan.commit };
    let reply = if plan.reply == Reply::Hang { Reply::Fin } else { plan.reply };
    let mut simpler = Vec::new();
    for candidate in [ProviderPlan { commit, reply, ..shown }, ProviderPlan { reply, ..shown }, shown] {
        if candidate != plan && !simpler.contains(&candidate) {
            simpler.push(candidate);
        }
    }
    simpler
}

#[cfg(test)]
mod tests {
    use super::super::family::FAMILIES;
    use super::super::{Coverage, fixture, plans};
    use super::*;
    use killpoint_model::plan::{ActionSpec, Match};
    use killpoint_model::{FaultAt, Rule, named_plan};
    use proptest::prelude::*;

    /// Shrinks under a predicate that stands for trials. No plan may be asked for twice.
    fn shrink(start: &Plan, fails: impl Fn(&Plan) -> bool) -> (Plan, u32) {
        let mut shrink = Shrink::new(start.clone(), &fixture::space());
        let mut asked = BTreeSet::from([start.content_id()]);
        while let Some(plan) = shrink.next() {
            assert!(asked.insert(plan.content_id()), "asked for twice: {plan:?}");
            assert!(!plan.is_baseline());
            assert_eq!(shrink.next().as_ref(), Some(&plan), "the same until it is told");
            shrink.tell(&plan, fails(&plan));
            assert!(fails(shrink.smallest()));
            assert!(asked.len() < 200, "no end");
        }
        (shrink.smallest().clone(), shrink.trials())
    }

    fn rule(name: &str, nth: u32) -> Rule {
        let matches = Match { operation: Some("create".into()), nth: Some(nth), ..Match::default() };
        let plan = named_plan::find(name).unwrap().plan;
        Rule { id: "rule-1".into(), matches, plan, times: Some(1) }
    }

    /// Four faults, two rules, three actions, two workers.
    fn large() -> Plan {
        let action = |number: u32| ActionSpec {
            id: format!("action-{number}"),
            to: vec![format!("a{number}"), "b".into()],
            body: "hello".into(),
        };
        let mut busy = fixture::fault("store-busy", "ledger:confirmed#1");
        busy.fault.with.insert("for".into(), "2s".into());
        let plan = Plan {
            faults: vec![
                fixture::fault("kill", "provider:received#1"),
                fixture::fault("stop", "mark:before-claim#2"),
                busy,
                fixture::fault("kill", "provider:committed#2"),
            ],
            rules: vec![rule("drop-before-accept", 1), rule("timeout-after-accept", 2)],
            actions: (1..=3).map(action).collect(),
            workers: 2,
            ..Plan::default()
        };
        named(renumbered(plan))
    }

    fn struck(plan: &Plan, name: &str, at: &str) -> bool {
        plan.faults.iter().any(|fault| fault.fault.name == name && fault.at.to_string() == at)
    }

    fn ruled(plan: &Plan, name: &str) -> bool {
        let wanted = named_plan::find(name).unwrap().plan;
        plan.rules.iter().any(|rule| rule.plan == wanted)
    }

    fn size(plan: &Plan) -> (usize, usize, usize, u32) {
        (plan.faults.len(), plan.rules.len(), plan.actions.len(), plan.workers)
    }

    #[test]
    fn one_kill_that_is_to_blame_is_found_in_a_few_trials() {
        let (smallest, trials) = shrink(&large(), |plan| struck(plan, "kill", "provider:received#1"));
        assert_eq!(size(&smallest), (1, 0, 0, 0));
        assert!(trials <= 9, "{trials}");
        assert_eq!(smallest.name, format!("explored {}", smallest.content_id()));
        assert_eq!(smallest.provider_plan, "ok");
    }

    #[test]
    fn a_kill_and_a_rule_are_left_where_both_are_needed() {
        let both =
            |plan: &Plan| ruled(plan, "timeout-after-accept") && struck(plan, "kill", "provider:committed#2");
        let (smallest, trials) = shrink(&large(), both);
        assert_eq!(size(&smallest), (1, 1, 0, 0));
        assert!(trials <= 20, "{trials}");
    }

    #[test]
    fn a_rule_and_a_kill_in_the_same_request_go_down_together() {
        let together = |plan: &Plan| {
            plan.rules.iter().any(|rule| {
                let nth = rule.matches.nth.unwrap();
                rule.plan.commit == Commit::Now && struck(plan, "kill", &format!("provider:committed#{nth}"))
            })
        };
        let (smallest, trials) = shrink(&large(), together);
        assert_eq!(size(&smallest), (1, 1, 0, 0));
        assert_eq!(smallest.faults[0].at.to_string(), "provider:committed#1");
        let rule = &smallest.rules[0];
        assert_eq!(
            (rule.matches.nth, rule.plan.reply),
            (Some(1), Reply::Fin),
            "and the rule needs no time-out"
        );
        assert!(trials <= 20, "{trials}");
    }

    #[test]
    fn actions_and_workers_that_are_needed_stay() {
        let needs = |plan: &Plan| {
            plan.workers >= 2
                && plan.actions.iter().any(|action| action.id == "action-2")
                && struck(plan, "stop", "mark:before-claim#2")
        };
        let (smallest, trials) = shrink(&large(), needs);
        assert_eq!(size(&smallest), (1, 0, 1, 2));
        assert_eq!((smallest.actions[0].id.as_str(), smallest.actions[0].to.len()), ("action-2", 1));
        assert!(trials <= 25, "{trials}");
    }

    #[test]
    fn the_earliest_boundary_and_a_plain_kill_are_found() {
        // Whatever ends the process after the provider has accepted, and before the row says so.
        let space = fixture::space();
        let window = 4..=7;
        let fails = |plan: &Plan| {
            plan.faults.iter().any(|fault| {
                let ends = ["kill", "terminate", "store-read-only"].contains(&fault.fault.name.as_str());
                ends && window.contains(&position(&fault.at, &space.hits))
            })
        };
        let mut start = large();
        start.faults[2] = fixture::fault("store-read-only", "ledger:confirmed#1");
        start.faults[2].fault.with.insert("for".into(), "250ms".into());
        start.faults.truncate(3);
        let (smallest, trials) = shrink(&start, fails);
        assert_eq!(smallest.faults, [fixture::fault("kill", "provider:committed#1")]);
        assert!(trials <= 14, "{trials}");
    }

    #[test]
    fn a_second_kill_in_recovery_stays_where_it_came() {
        let depth_two = |plan: &Plan| {
            struck(plan, "kill", "provider:received#1") && struck(plan, "kill", "provider:lookup#1")
        };
        let mut start = large();
        start.faults.push(fixture::fault("kill", "provider:lookup#1"));
        let (smallest, trials) = shrink(&start, depth_two);
        assert_eq!(smallest.faults, fixture::kills(&["provider:received#1", "provider:lookup#1"]).faults);
        assert!(trials <= 20, "{trials}");
    }

    #[test]
    fn a_plan_that_can_get_no_smaller_asks_for_nothing_more_than_it_must() {
        let start = fixture::kills(&["mark:before-claim#1"]);
        assert_eq!(shrink(&start, |_| true), (start, 0));
    }

    #[test]
    fn what_is_told_to_pass_after_all_is_never_the_smallest() {
        let start = large();
        let mut shrink = Shrink::new(start.clone(), &fixture::space());
        let first = shrink.next().unwrap();
        shrink.tell(&first, true);
        assert_eq!(shrink.smallest(), &first);
        shrink.tell(&first, false);
        assert_eq!((shrink.smallest(), shrink.trials()), (&start, 1));
        assert_ne!(shrink.next().unwrap().content_id(), first.content_id());
        shrink.tell(&start, false);
        assert_eq!((shrink.next(), shrink.smallest()), (None, &start), "there is nothing left to make small");
    }

    #[test]
    fn the_search_for_a_part_halves() {
        for count in 1..40_usize {
            for needed in [vec![0], vec![count - 1], vec![count / 2], vec![count / 3, count - 1]] {
                let mut trials = 0;
                let found = smallest_part(count, |kept| {
                    trials += usize::from(!kept.is_empty());
                    Ok::<bool, ()>(needed.iter().all(|index| kept.contains(index)))
                });
                let wanted: BTreeSet<usize> = needed.iter().copied().collect();
                assert_eq!(found, Ok(wanted.iter().copied().collect()));
                let log = count.ilog2() as usize + 1;
                assert!(trials <= wanted.len() * (log + 1), "{trials} for {needed:?} of {count}");
            }
        }
    }

    #[test]
    fn the_search_backwards_ends_where_it_passes() {
        for most in 0..40 {
            for end in 0..=most {
                let mut trials = 0;
                let found = farthest(most, |steps| {
                    trials += 1;
                    assert!((1..=most).contains(&steps));
                    Ok::<bool, ()>(steps <= end)
                });
                assert_eq!(found, Ok(end));
                assert!(trials <= 2 * (end + 1).ilog2() as usize + 2, "{trials} for {end} of {most}");
            }
        }
    }

    /// Things that a plan must have to fail.
    fn requirement(plan: &Plan, seed: u64) -> (Vec<FaultAt>, Vec<Rule>, Vec<ActionSpec>) {
        fn some<T: Clone>(items: &[T], bits: u64) -> Vec<T> {
            let chosen = items.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
            chosen.map(|(_, item)| item.clone()).take(2).collect()
        }
        let faults = some(&plan.faults, seed);
        let rules = some(&plan.rules, seed >> 8);
        let one = usize::from(faults.is_empty() && rules.is_empty());
        let faults = if faults.is_empty() { plan.faults.iter().take(one).cloned().collect() } else { faults };
        (faults, rules, some(&plan.actions, seed >> 16 & seed >> 24))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_left_is_what_is_needed(
            start in plans(
                &fixture::space(),
                &FAMILIES.iter().map(|entry| entry.family).collect(),
                &Coverage::default(),
            ),
            seed in any::<u64>(),
        ) {
            let (faults, rules, actions) = requirement(&start, seed);
            // As it would be without anything that could be left out but is needed exactly as it is.
            let has_rule = |plan: &Plan, wanted: &Rule| {
                plan.rules.iter().any(|rule| rule.plan == wanted.plan && rule.matches == wanted.matches)
            };
            let fails = |plan: &Plan| {
                faults.iter().all(|fault| plan.faults.contains(fault))
                    && rules.iter().all(|rule| has_rule(plan, rule))
                    && actions.iter().all(|action| plan.actions.contains(action))
            };
            let (smallest, trials) = shrink(&start, fails);
            if !(faults.is_empty() && rules.is_empty()) {
                prop_assert_eq!(&smallest.faults, &faults);
                prop_assert_eq!(smallest.rules.len(), rules.len());
            }
            prop_assert_eq!(&smallest.actions, &actions);
            prop_assert!(one_less(&smallest).into_iter().all(|less| less.is_baseline() || !fails(&less)));
            prop_assert!(trials <= 60, "{}", trials);
        }

        #[test]
        fn the_end_is_minimal_whatever_the_predicate(
            start in plans(
                &fixture::space(),
                &FAMILIES.iter().map(|entry| entry.family).collect(),
                &Coverage::default(),
            ),
            salt in any::<u8>(),
        ) {
            // A predicate without any order in it.
            let fails = |plan: &Plan| {
                let id = plan.content_id();
                id == start.content_id()
                    || u8::from_str_radix(&id[..2], 16).unwrap().wrapping_add(salt) < 100
            };
            let (smallest, _) = shrink(&start, fails);
            prop_assert!(fails(&smallest));
        }
    }
}
