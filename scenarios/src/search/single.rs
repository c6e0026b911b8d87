//! Plans that do a single thing, or a thing and what its recovery is tried by: they come first, because most of what is
//! wrong shows under one of them, and because their moments come.

use std::collections::BTreeMap;

use killpoint_model::plan::{ActionSpec, Commit, Match, Reply};
use killpoint_model::{Fault, HitName, Plan, ProviderPlan, Source};
use proptest::strategy::{Just, Strategy};

use super::coverage::Coverage;
use super::generate::{Group, Part, assemble, drawn, is_out_of_place, numbers, struck};
use super::menu::{LASTING, Menu};
use super::space::{PRODUCER_MARK, Space};
use super::stroke::{Place, Stroke};

/// Which of the plans that do a single thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SingleKind {
    /// A kill, or what the provider does.
    Plain,
    /// Anything else at a moment: first where an effect is there and the worker has not heard of it.
    Other,
    /// A kill while an effect is unheard of, and something else in the recovery from it.
    Recovery,
    /// What the provider does with the first request, and a kill afterwards.
    Outcome,
}

/// One of the plans that do a single thing; `None` after the last one, and for one that can't be done here.
pub(super) fn single_plan(
    space: &Space,
    coverage: &Coverage,
    seed: u64,
    kind: SingleKind,
    number: u32,
) -> Option<Plan> {
    // What trials have shown must not change the order of those that can be counted.
    let menu = Menu::of(space, &space.families, &Coverage::default());
    let singles = Singles::of(space, &menu);
    let number = number as usize;
    let Single { group, shape, workers } = match kind {
        SingleKind::Plain => {
            let (first, rest): (Vec<usize>, Vec<usize>) =
                (0..singles.plain()).partition(|index| singles.comes_first(*index));
            let order = [shuffled(first, seed, 0), shuffled(rest, seed, 1)].concat();
            singles.plain_one(*order.get(number)?)?
        }
        SingleKind::Other => {
            let count = singles.strokes.len();
            let index = *shuffled((0..count).collect(), seed, 1).get(number.checked_rem(count)?)?;
            singles.other(index, number / count, seed)?.into()
        }
        SingleKind::Recovery => singles.in_recovery(coverage, seed, number)?.into(),
        SingleKind::Outcome => singles.after_an_outcome(number, seed)?.into(),
    };
    let lacking = |part: &Part| matches!(part, Part::Fault { fault, .. } if coverage.lacks(&fault.name));
    let fits = |part: &Part| !lacking(part) && !is_out_of_place(&Plan::default(), part);
    group.iter().all(fits).then(|| assemble(&menu, &[group], shape, workers))
}

/// Things in an order that the seed gives.
fn shuffled<T: Clone + std::fmt::Debug + 'static>(things: Vec<T>, seed: u64, turn: usize) -> Vec<T> {
    drawn(&Just(things).prop_shuffle(), numbers(seed, turn as u32, b"singles")).unwrap_or_default()
}

/// One thing, and the frame in which it is done.
struct Single {
    group: Group,
    shape: usize,
    workers: u32,
}

impl From<Group> for Single {
    fn from(group: Group) -> Self {
        Self { group, shape: 0, workers: 1 }
    }
}

/// Everything that can be done alone.
struct Singles<'m> {
    menu: &'m Menu,
    hits: &'m [HitName],
    /// Sets of actions that scenario files have.
    action_sets: &'m [Vec<ActionSpec>],
    kill: Option<&'m Stroke>,
    /// All strokes but the kill.
    strokes: Vec<&'m Stroke>,
}

impl<'m> Singles<'m> {
    fn of(space: &'m Space, menu: &'m Menu) -> Self {
        let plain = |stroke: &Stroke| stroke.faults == [Fault::named("kill")];
        let strokes = menu.strokes.items();
        Self {
            menu,
            hits: &space.hits,
            action_sets: &space.action_sets,
            kill: strokes.iter().find(|stroke| plain(stroke)),
            strokes: strokes.iter().filter(|stroke| !plain(stroke)).collect(),
        }
    }

    /// Kills; what the provider does with the first request, with all, and with the first one where two workers are;
    /// other actions.
    fn plain(&self) -> usize {
        self.kills() + self.rules() + 2 * self.shapes().len()
    }

    /// Whether a plain one is tried before the others: the first hit of each series, what the provider does with the
    /// first request, and a kill with the actions of each scenario file. The others are mostly the same once more.
    fn comes_first(&self, index: usize) -> bool {
        let Some(index) = index.checked_sub(self.kills()) else {
            return self.hits.get(index).is_some_and(|hit| hit.ordinal == 1);
        };
        match index.checked_sub(self.rules()) {
            None => index < self.menu.plans.items().len(),
            Some(index) => index % 2 == 0 && self.action_sets.contains(&self.shapes()[index / 2]),
        }
    }

    fn kills(&self) -> usize {
        if self.kill.is_some() { self.hits.len() } else { 0 }
    }

    fn rules(&self) -> usize {
        let forms = if self.menu.workers_max > 1 { 3 } else { 2 };
        forms * self.menu.plans.items().len()
    }

    /// The actions that are not the configuration's.
    fn shapes(&self) -> &[Vec<ActionSpec>] {
        self.menu.shapes.get(1..).unwrap_or_default()
    }

    fn plain_one(&self, index: usize) -> Option<Single> {
        let Some(index) = index.checked_sub(self.kills()) else {
            return self.kill_at(self.hits.get(index)?);
        };
        let Some(index) = index.checked_sub(self.rules()) else {
            let plans = self.menu.plans.items();
            let (nth, times, workers) = match index / plans.len() {
                0 => (Some(1), 1, 1),
                1 => (None, LASTING, 1),
                _ => (Some(1), 1, 2),
            };
            let plan = *plans.get(index % plans.len())?;
            // The worker would wait for each of them as long as it ever does.
            if times == LASTING && plan.reply == Reply::Hang {
                return None;
            }
            let group = self.rule(nth, times, plan);
            return Some(Single { workers, ..group.into() });
        };
        let shape = 1 + index / 2;
        let single = if index % 2 == 0 {
            self.kill_at(self.unheard_of()?)?
        } else {
            // Parts of an action may fare differently, where the provider has a say.
            self.menu.plans.items().first()?;
            let refused = ProviderPlan {
                commit: Commit::Never,
                reply: Reply::Status { code: 400 },
                ..ProviderPlan::default()
            };
            self.rule(Some(2), 1, refused).into()
        };
        Some(Single { shape, ..single })
    }

    fn kill_at(&self, hit: &HitName) -> Option<Single> {
        Some(struck(self.kill?, hit, hit).into())
    }

    fn rule(&self, nth: Option<u32>, times: u32, plan: ProviderPlan) -> Group {
        let matches = Match { operation: Some(self.menu.operation.clone()), nth, ..Match::default() };
        vec![Part::Rule { matches, plan, times }]
    }

    /// A stroke at one of its moments: first at the one where an effect is unheard of.
    fn other(&self, stroke: usize, number: usize, seed: u64) -> Option<Group> {
        let (stroke, turn) = (self.strokes.get(stroke)?, 2 + stroke);
        let mut moments = shuffled(self.moments(stroke), seed, turn);
        if let Some(at) = moments.iter().position(|moment| Some(moment) == self.unheard_of()) {
            moments[..=at].rotate_right(1);
        }
        let hit = moments.get(number)?;
        // What is kept for later is kept at the beginning.
        let first = if stroke.place == Place::Apart { self.hits.first()? } else { hit };
        Some(struck(stroke, first, hit))
    }

    /// What the provider does with the first request, and a kill in the last third of the fault-free trial, when the
    /// worker has most likely decided what became of it. The worker decides by what it sees, so outcomes that look alike to
    /// it take turns with those that don't.
    fn after_an_outcome(&self, number: usize, seed: u64) -> Option<Group> {
        let late = &self.hits[self.hits.len() - self.hits.len().div_ceil(3)..];
        let mut alike: BTreeMap<(bool, &str), Vec<(ProviderPlan, &HitName)>> = BTreeMap::new();
        for plan in self.menu.plans.items() {
            let pairs = alike.entry((plan.commit == Commit::Never, looks_like(plan.reply))).or_default();
            pairs.extend(late.iter().map(|hit| (*plan, hit)));
        }
        let mut order = Vec::new();
        for (turn, pairs) in alike.into_values().enumerate() {
            let pairs =
                shuffled((0..pairs.len()).collect(), seed, turn).into_iter().map(|index| pairs[index]);
            order.extend(pairs.enumerate());
        }
        // Stable: of each sort the first, then of each the second.
        order.sort_by_key(|(place, _)| *place);
        let (_, (plan, hit)) = order.get(number)?;
        let mut group = self.rule(Some(1), 1, *plan);
        group.extend(struck(self.kill?, hit, hit));
        Some(group)
    }

    /// The first moment at which an effect is there and the worker has not heard of it.
    fn unheard_of(&self) -> Option<&'m HitName> {
        self.hits.iter().find(|hit| hit.source == Some(Source::Provider) && hit.point == "committed")
    }

    /// A kill while an effect is unheard of, and anything but a plain kill at a moment that only recovery makes, or that the
    /// first life was not to see. Every other one is a second worker at what only recovery makes: that two of them recover
    /// the same at once is what recovery is seldom tried with. What recovery makes is known from other trials only, so these
    /// have no order and no end; one that comes twice is left out by whoever tries them.
    fn in_recovery(&self, coverage: &Coverage, seed: u64, number: usize) -> Option<Group> {
        let (kill, unheard_of) = (self.kill?, self.unheard_of()?);
        let new = coverage.hits().filter(|hit| hit.ordinal == 1 && !self.hits.contains(hit)).cloned();
        let new: Vec<HitName> = new.filter(|hit| hit.point != PRODUCER_MARK).collect();
        let anywhere = |stroke: &&Stroke| stroke.place == Place::Anywhere;
        let strokes: Vec<&Stroke> = self.strokes.iter().copied().filter(anywhere).collect();
        let second =
            |stroke: &&Stroke| stroke.faults.first().is_some_and(|fault| fault.name == "second-worker");
        let seconds: Vec<&Stroke> = strokes.iter().copied().filter(second).collect();
        let (strokes, moments) = if number.is_multiple_of(2) && !new.is_empty() && !seconds.is_empty() {
            (seconds, new)
        } else {
            let once = self.menu.series.values().filter(|last| last.ordinal == 1).cloned();
            let lookup = HitName::new(Source::Provider, "lookup", 1);
            (strokes, std::iter::once(lookup).chain(new).chain(once).collect())
        };
        let stroke = *shuffled((0..strokes.len()).collect(), seed, number).first()?;
        let at = shuffled(moments, seed, number).into_iter().next()?;
        Some([struck(kill, unheard_of, unheard_of), struck(strokes[stroke], &at, &at)].concat())
    }

    /// Where something can be done.
    fn moments(&self, stroke: &Stroke) -> Vec<HitName> {
        let marks = self.hits.iter().filter(|hit| hit.source == Some(Source::Mark));
        match stroke.place {
            Place::Producer => vec![HitName::new(Source::Mark, PRODUCER_MARK, 1)],
            Place::Mark => marks.cloned().collect(),
            Place::Anywhere | Place::Apart => self.hits.to_vec(),
        }
    }
}

/// What a worker can tell about an answer, roughly.
fn looks_like(reply: Reply) -> &'static str {
    match reply {
        Reply::Ok => "success",
        Reply::Status { code: 429 } => "not yet",
        Reply::Status { code: 400..500 } => "refusal",
        Reply::Status { .. } => "error",
        Reply::Fin | Reply::Rst | Reply::Cut { .. } | Reply::Hang | Reply::Hold => "nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use std::collections::BTreeSet;

    fn singles(space: &Space, seed: u64, kind: SingleKind) -> Vec<Plan> {
        let menu = Menu::of(space, &space.families, &Coverage::default());
        let all = Singles::of(space, &menu);
        let count = match kind {
            SingleKind::Plain => all.plain(),
            SingleKind::Other => all.strokes.len() * space.hits.len(),
            SingleKind::Outcome => menu.plans.items().len() * space.hits.len().div_ceil(3),
            SingleKind::Recovery => 40,
        };
        let plan = |number| single_plan(space, &Coverage::default(), seed, kind, number);
        assert_eq!(plan(count as u32).is_some(), kind == SingleKind::Recovery, "it is the last one");
        (0..count as u32).filter_map(plan).collect()
    }

    #[test]
    fn each_is_there_once_in_an_order_that_the_seed_gives() {
        let space = fixture::space();
        let ids = |seed| {
            let kinds = [SingleKind::Plain, SingleKind::Other, SingleKind::Outcome];
            let plans = kinds.into_iter().flat_map(|kind| singles(&space, seed, kind));
            plans.map(|plan| plan.content_id()).collect::<Vec<_>>()
        };
        let (one, other) = (ids(1), ids(2));
        assert!(one != other && one == ids(1));
        let (one_set, other_set): (BTreeSet<_>, BTreeSet<_>) = (one.iter().collect(), other.iter().collect());
        assert_eq!((one_set.len(), &one_set), (one.len(), &other_set));
    }

    #[test]
    fn every_moment_is_killed_and_every_outcome_made() {
        let space = fixture::space();
        let menu = Menu::of(&space, &space.families, &Coverage::default());
        let plans = singles(&space, 3, SingleKind::Plain);
        let kill = |hit: &HitName| {
            plans.iter().any(|plan| {
                plan.rules.is_empty()
                    && plan.actions.is_empty()
                    && matches!(&plan.faults[..], [only] if only.at == *hit && only.fault == Fault::named("kill"))
            })
        };
        assert!(space.hits.iter().all(kill));
        let made = |wanted: &ProviderPlan| {
            plans.iter().any(|plan| plan.faults.is_empty() && plan.rules[0].plan == *wanted)
        };
        assert!(menu.plans.items().iter().all(made));
        assert!(menu.shapes.iter().all(|shape| plans.iter().any(|plan| plan.actions == *shape)));
        assert!(plans.iter().all(|plan| plan.faults.len() + plan.rules.len() == 1));
    }

    #[test]
    fn each_kind_of_thing_comes_once_before_any_comes_twice() {
        let space = fixture::space();
        let names = |plans: &[Plan]| -> BTreeSet<String> {
            plans.iter().flat_map(|plan| &plan.faults).map(|fault| fault.fault.name.clone()).collect()
        };
        let plans = singles(&space, 5, SingleKind::Other);
        let menu = Menu::of(&space, &space.families, &Coverage::default());
        let strokes = Singles::of(&space, &menu).strokes.len();
        assert!(names(&plans[..strokes]).len() + 1 >= names(&plans).len(), "one of them may not fit");
    }

    #[test]
    fn everything_is_first_done_while_an_effect_is_unheard_of() {
        let space = fixture::space();
        let menu = Menu::of(&space, &space.families, &Coverage::default());
        let all = Singles::of(&space, &menu);
        let anywhere =
            all.strokes.iter().filter(|stroke| matches!(stroke.place, Place::Anywhere | Place::Apart));
        let wanted: BTreeSet<String> = anywhere.map(|stroke| format!("{:?}", stroke.faults)).collect();
        let plans = singles(&space, 5, SingleKind::Other);
        let first = plans.iter().take(all.strokes.len());
        let there = first.filter(|plan| plan.faults.last().unwrap().at.to_string() == "provider:committed#1");
        let done =
            |plan: &Plan| format!("{:?}", plan.faults.iter().map(|at| at.fault.clone()).collect::<Vec<_>>());
        assert_eq!(there.map(done).collect::<BTreeSet<_>>(), wanted);
    }

    #[test]
    fn what_recovery_makes_is_struck_after_a_kill() {
        let space = fixture::space();
        let mut coverage = Coverage::default();
        coverage.note(&fixture::history(vec![(2, fixture::hit("mark:recovered#1", None, true))]));
        let plans: Vec<Plan> =
            (0..60).filter_map(|n| single_plan(&space, &coverage, 5, SingleKind::Recovery, n)).collect();
        assert!(plans.len() > 40, "{}", plans.len());
        for plan in &plans {
            assert_eq!(plan.faults[0].at.to_string(), "provider:committed#1", "{plan:?}");
            assert!(plan.faults[0].fault == Fault::named("kill") && plan.faults.len() > 1, "{plan:?}");
        }
        let struck: BTreeSet<String> = plans.iter().map(|plan| plan.faults[1].at.to_string()).collect();
        assert!(struck.contains("mark:recovered#1") && struck.contains("provider:lookup#1"), "{struck:?}");
        let second = |plan: &&Plan| {
            plan.faults[1].fault.name == "second-worker"
                && plan.faults[1].at.to_string() == "mark:recovered#1"
        };
        assert!(plans.iter().filter(second).count() >= 20, "{plans:?}");
    }

    #[test]
    fn each_sort_of_outcome_is_followed_by_a_late_kill_once_before_any_comes_twice() {
        let space = fixture::space();
        let menu = Menu::of(&space, &space.families, &Coverage::default());
        let sort = |plan: &ProviderPlan| (plan.commit == Commit::Never, looks_like(plan.reply));
        let sorts: BTreeSet<_> = menu.plans.items().iter().map(sort).collect();
        let plans = singles(&space, 5, SingleKind::Outcome);
        let first: BTreeSet<_> = plans[..sorts.len()].iter().map(|plan| sort(&plan.rules[0].plan)).collect();
        assert_eq!(first, sorts);
        let made: BTreeSet<String> = plans.iter().map(|plan| format!("{:?}", plan.rules[0].plan)).collect();
        assert_eq!(made.len(), menu.plans.items().len());
        let late = &space.hits[space.hits.len() - space.hits.len().div_ceil(3)..];
        let kill =
            |plan: &Plan| plan.faults[0].fault == Fault::named("kill") && late.contains(&plan.faults[0].at);
        assert!(plans.iter().all(|plan| plan.faults.len() == 1 && kill(plan)));
    }

    #[test]
    fn first_hits_first_requests_and_known_actions_come_before_the_others() {
        let known = Plan {
            actions: vec![ActionSpec { id: "a".into(), to: vec!["b".into()], body: "c".into() }],
            ..Plan::default()
        };
        let space = fixture::space().with_actions_of([&known, &known, &Plan::default()]);
        assert_eq!(space.action_sets, [known.actions]);
        let menu = Menu::of(&space, &space.families, &Coverage::default());
        let sets = space.action_sets.len();
        let first =
            space.hits.iter().filter(|hit| hit.ordinal == 1).count() + menu.plans.items().len() + sets;
        let plans = singles(&space, 5, SingleKind::Plain);
        assert_eq!(plans[..first].iter().filter(|plan| !plan.actions.is_empty()).count(), sets);
        for plan in &plans[..first] {
            assert!(plan.faults.iter().all(|fault| fault.at.ordinal == 1), "{plan:?}");
            assert!(
                plan.rules.iter().all(|rule| rule.matches.nth == Some(1)) && plan.workers == 0,
                "{plan:?}"
            );
        }
    }

    #[test]
    fn without_any_moment_there_are_the_providers_alone() {
        let mut space = fixture::space();
        space.hits.clear();
        let plans = singles(&space, 1, SingleKind::Plain);
        assert!(!plans.is_empty() && plans.iter().all(|plan| plan.rules.len() == 1));
    }
}
