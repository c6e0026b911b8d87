//! Plans that do a single thing: they come first, because most of what is wrong shows under one of them, and because
//! their moments come.

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
    /// Anything else at a moment.
    Other,
}

/// One of the plans that do a single thing; `None` after the last one, and for one that can't be done here.
pub(super) fn single_plan(
    space: &Space,
    coverage: &Coverage,
    seed: u64,
    kind: SingleKind,
    number: u32,
) -> Option<Plan> {
    // What trials have shown must not change the order.
    let menu = Menu::of(space, &space.families, &Coverage::default());
    let singles = Singles::of(space, &menu);
    let place = |number: usize, count: usize, turn: usize| {
        let numbers = numbers(seed, turn as u32, b"singles");
        drawn(&Just((0..count).collect::<Vec<_>>()).prop_shuffle(), numbers)?.get(number).copied()
    };
    let number = number as usize;
    let Single { group, shape, workers } = match kind {
        SingleKind::Plain => singles.plain_one(place(number, singles.plain(), 0)?)?,
        SingleKind::Other => {
            let count = singles.strokes.len();
            let index = place(number.checked_rem(count)?, count, 1)?;
            let stroke = singles.strokes.get(index)?;
            let moments = singles.moments(stroke);
            let hit = moments.get(place(number / count, moments.len(), 2 + index)?)?;
            // What is kept for later is kept at the beginning.
            let first = if stroke.place == Place::Apart { moments.first()? } else { hit };
            struck(stroke, first, hit).into()
        }
    };
    let lacking = |part: &Part| matches!(part, Part::Fault { fault, .. } if coverage.lacks(&fault.name));
    let fits = |part: &Part| !lacking(part) && !is_out_of_place(&Plan::default(), part);
    group.iter().all(fits).then(|| assemble(&menu, &[group], shape, workers))
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
            kill: strokes.iter().find(|stroke| plain(stroke)),
            strokes: strokes.iter().filter(|stroke| !plain(stroke)).collect(),
        }
    }

    /// Kills; what the provider does with the first request, with all, and with the first one where two workers are;
    /// other actions.
    fn plain(&self) -> usize {
        self.kills() + self.rules() + 2 * self.shapes().len()
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
            self.kill_at(self.hits.iter().find(|hit| hit.point == "committed")?)?
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
        };
        let plan = |number| single_plan(space, &Coverage::default(), seed, kind, number);
        assert_eq!(plan(count as u32), None, "it is the last one");
        (0..count as u32).filter_map(plan).collect()
    }

    #[test]
    fn each_is_there_once_in_an_order_that_the_seed_gives() {
        let space = fixture::space();
        let ids = |seed| {
            let kinds = [SingleKind::Plain, SingleKind::Other];
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
    fn without_any_moment_there_are_the_providers_alone() {
        let mut space = fixture::space();
        space.hits.clear();
        let plans = singles(&space, 1, SingleKind::Plain);
        assert!(!plans.is_empty() && plans.iter().all(|plan| plan.rules.len() == 1));
    }
}
