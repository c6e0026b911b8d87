//! Very many plans out of a space, as a check of the checks needs them.

use std::collections::BTreeSet;

use killpoint_model::Plan;
use proptest::strategy::BoxedStrategy;

use super::coverage::Coverage;
use super::family::Family;
use super::generate::{drawn, numbers, plans, swarm};
use super::space::Space;

/// What the subsets of the families are drawn with: they are the same for every seed.
const SUBSETS_SEED: u64 = 1;

/// A space with a strategy for each of some random subsets of its families. What has been seen already has no say:
/// the plan of a case depends on the seed and the case alone.
#[derive(Debug)]
pub struct Swarm {
    strategies: Vec<BoxedStrategy<Plan>>,
}

impl Swarm {
    /// Weighs everything once. The first subset is the whole space.
    pub fn new(space: &Space, subsets: u32) -> Self {
        let subset = |case: u32| -> BTreeSet<Family> {
            if case == 0 {
                space.families.clone()
            } else {
                swarm(space, &numbers(SUBSETS_SEED, case, b"families"))
            }
        };
        let strategy = |case| plans(space, &subset(case), &Coverage::default());
        Self { strategies: (0..subsets.max(1)).map(strategy).collect() }
    }

    /// The plan of one case.
    pub fn plan(&self, seed: u64, case: u32) -> Plan {
        let strategy = &self.strategies[case as usize % self.strategies.len()];
        drawn(strategy, numbers(seed, case, b"plan")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn every_case_has_a_plan_of_the_generator_and_always_the_same() {
        let space = fixture::space();
        let (swarm, again) = (Swarm::new(&space, 4), Swarm::new(&space, 4));
        let plans: Vec<Plan> = (0..200).map(|case| swarm.plan(7, case)).collect();
        assert!(plans.iter().all(|plan| !plan.is_baseline()));
        assert_eq!(plans, (0..200).map(|case| again.plan(7, case)).collect::<Vec<_>>());
        let distinct: BTreeSet<String> = plans.iter().map(Plan::content_id).collect();
        assert!(distinct.len() > 150, "{}", distinct.len());
        assert_ne!(swarm.plan(8, 0), plans[0]);
    }

    #[test]
    fn a_space_without_families_still_injects() {
        let mut space = fixture::space();
        space.families.clear();
        assert!(!Swarm::new(&space, 0).plan(1, 5).is_baseline());
    }
}
