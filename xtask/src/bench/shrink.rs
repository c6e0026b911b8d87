//! What it takes to make a counterexample small: real trials and seconds of ours, and how many plans proptest's own
//! shrinking would try.
//!
//! The value from which an explored plan was drawn is gone when the plan is red, so both start from plans that
//! `plans` draws anew, and ask no worker: a plan fails when it holds all that is in the counterexample that ours
//! left. Each distinct plan that is asked for would be a trial.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use killpoint::model::Plan;
use killpoint::model::run::TrialRole;
use killpoint::scenarios::search::{Coverage, Shrink, Space, plans};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::explored::{Bench, Explored, Options, load, size};

/// Failing plans from which both start, for each bug.
const STARTS: usize = 10;
/// Plans that are drawn to find those, at most.
const DRAWS_MAX: u32 = 20_000;
/// Plans that a shrinking asks for, at most.
const ASKED_MAX: usize = 5000;
/// What a shrinking should take at most.
const TRIALS_AIM: u32 = 20;
const MS_AIM: u64 = 5000;

/// Prints the tables.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let options = Options::of(words)?;
    let bench = Bench::new(root, options.runs.as_deref())?;
    println!("each bug up to {}, {}", options.time, load());
    println!(
        "ours in real trials; then both on redrawn plans that fail when they hold the same as what ours left"
    );
    println!(
        "| bug | found | left | trials | seconds | starts | ours, mean and max | proptest's, mean and max | left larger, ours and proptest's |"
    );
    println!("| :-- | :-- | :-- | --: | --: | --: | --: | --: | --: |");
    let mut real = Vec::new();
    let mut pure = Tally::default();
    for bug in options.bugs() {
        let explored = bench.explore(Some(bug), &options.time)?;
        let Some(found) = explored.counterexample() else { continue };
        let starts = Compared::of(&explored, &found.smallest)?;
        println!(
            "| {bug} | {} | {} | {} | {}.{} | {} | {} | {} | {} and {} |",
            size(&found.found),
            size(&found.smallest),
            found.shrink_trials,
            found.shrink_ms / 1000,
            found.shrink_ms % 1000 / 100,
            starts.ours.asked.len(),
            starts.ours,
            starts.proptests,
            starts.ours.larger,
            starts.proptests.larger
        );
        real.push((found.shrink_trials, found.shrink_ms));
        pure.absorb(starts);
    }
    if real.is_empty() {
        println!("nothing was found, so nothing was made small");
        return Ok(());
    }
    let count = real.len() as u64;
    let trials: u64 = real.iter().map(|(trials, _)| u64::from(*trials)).sum();
    let ms: u64 = real.iter().map(|(_, ms)| ms).sum();
    let most = real.iter().map(|(trials, _)| *trials).max().unwrap_or(0);
    let longest = real.iter().map(|(_, ms)| *ms).max().unwrap_or(0);
    println!(
        "\nours on {count} bugs: mean {} trials, at most {most}; mean {} ms, at most {longest} ms",
        trials / count,
        ms / count
    );
    println!(
        "over {TRIALS_AIM} trials: {} of {count}; over {} s: {} of {count}; {}",
        real.iter().filter(|(trials, _)| *trials > TRIALS_AIM).count(),
        MS_AIM / 1000,
        real.iter().filter(|(_, ms)| *ms > MS_AIM).count(),
        load()
    );
    println!(
        "on {} redrawn plans: ours {}, proptest's {} plans",
        pure.ours.asked.len(),
        pure.ours,
        pure.proptests
    );
    Ok(())
}

/// How many plans shrinkings asked for.
#[derive(Debug, Default)]
struct Asked {
    asked: Vec<usize>,
    /// Those that left more than the smallest plan has.
    larger: usize,
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mean = self.asked.iter().sum::<usize>() / self.asked.len().max(1);
        write!(f, "{mean} and {}", self.asked.iter().max().unwrap_or(&0))
    }
}

/// Both shrinkings from the same plans.
#[derive(Debug, Default)]
struct Compared {
    ours: Asked,
    proptests: Asked,
}

type Tally = Compared;

impl Compared {
    /// From plans of the explored worker that hold a smallest one.
    fn of(explored: &Explored, smallest: &Plan) -> Result<Self> {
        let mut trials = explored.record.trials.iter();
        let first =
            trials.find(|trial| trial.role == TrialRole::Baseline).context("a run without a baseline")?;
        let baseline = explored.folder.history(&first.folder)?;
        let space = Space::of(&explored.record.settings, &baseline);
        let mut coverage = Coverage::default();
        coverage.note(&baseline);
        let strategy = plans(&space, &space.families, &coverage);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[1; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let mut compared = Self::default();
        for _ in 0..DRAWS_MAX {
            let Ok(mut tree) = strategy.new_tree(&mut runner) else { continue };
            let start = tree.current();
            if !holds(&start, smallest) {
                continue;
            }
            compared.ours.note(by_ours(start, &space, smallest), smallest);
            compared.proptests.note(by_proptest(&mut tree, smallest), smallest);
            if compared.ours.asked.len() == STARTS {
                break;
            }
        }
        Ok(compared)
    }

    fn absorb(&mut self, other: Self) {
        for (own, other) in [(&mut self.ours, other.ours), (&mut self.proptests, other.proptests)] {
            own.asked.extend(other.asked);
            own.larger += other.larger;
        }
    }
}

impl Asked {
    fn note(&mut self, (asked, left): (usize, Plan), smallest: &Plan) {
        let parts =
            |plan: &Plan| (plan.faults.len() + plan.rules.len(), plan.actions.len(), plan.workers.max(1));
        self.asked.push(asked);
        self.larger += usize::from(parts(&left) != parts(smallest));
    }
}

/// Whether a plan has everything that another one has.
fn holds(plan: &Plan, part: &Plan) -> bool {
    let rule = |wanted: &killpoint::model::Rule| {
        plan.rules.iter().any(|rule| {
            rule.matches == wanted.matches && rule.plan == wanted.plan && rule.times >= wanted.times
        })
    };
    part.faults.iter().all(|fault| plan.faults.contains(fault))
        && part.rules.iter().all(rule)
        && part.actions.iter().all(|action| plan.actions.contains(action))
        && plan.workers.max(1) >= part.workers.max(1)
}

fn by_ours(start: Plan, space: &Space, smallest: &Plan) -> (usize, Plan) {
    let mut shrink = Shrink::new(start, space);
    while (shrink.trials() as usize) < ASKED_MAX
        && let Some(plan) = shrink.next()
    {
        shrink.tell(&plan, holds(&plan, smallest));
    }
    (shrink.trials() as usize, shrink.smallest().clone())
}

fn by_proptest(tree: &mut impl ValueTree<Value = Plan>, smallest: &Plan) -> (usize, Plan) {
    let mut left = tree.current();
    let start = left.content_id();
    let mut asked = BTreeSet::new();
    let mut moved = tree.simplify();
    while moved && asked.len() < ASKED_MAX {
        let plan = tree.current();
        let id = plan.content_id();
        if id != start {
            asked.insert(id);
        }
        moved = if holds(&plan, smallest) {
            left = plan;
            tree.simplify()
        } else {
            tree.complicate()
        };
    }
    (asked.len(), left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint::model::{Fault, FaultAt};

    fn kill(at: &str) -> FaultAt {
        FaultAt { at: at.parse().unwrap(), fault: Fault::named("kill") }
    }

    #[test]
    fn a_plan_holds_what_is_in_it_and_no_more() {
        let one = Plan { faults: vec![kill("provider:committed#1")], ..Plan::default() };
        let two = Plan {
            faults: vec![kill("provider:received#1"), kill("provider:committed#1")],
            workers: 2,
            ..Plan::default()
        };
        assert!(holds(&two, &one) && holds(&one, &one) && !holds(&one, &two));
        assert!(!holds(&one, &Plan { workers: 2, ..one.clone() }));
    }
}
