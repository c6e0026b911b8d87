//! Exploring: baselines, stored counterexamples, then plans that nobody wrote down, until one is red or the budget is
//! spent. What is red is confirmed, made small, confirmed again and written as a scenario file.

mod hunt;
mod regressions;
mod resume;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use killpoint_model::event::EventKind;
use killpoint_model::exploration::{Counterexample, CoveredPair, Exploration, ExplorationEnd};
use killpoint_model::plan::ActionSpec;
use killpoint_model::run::TrialRole;
use killpoint_model::{History, Plan, Settings, TrialRecord, Verdict};
use killpoint_scenarios::search::token::Target;
use killpoint_scenarios::search::{Coverage, Space, next_plan};

use crate::catalog::library;
use crate::error::RunError;
use crate::job::Job;
use crate::progress::Progress;
use crate::run::Runner;
use crate::shard::settings_id;

pub(crate) use regressions::stored;
pub(crate) use resume::Resumed;

/// Plans that were tried already are drawn again now and then; after so many in a row there is nothing left.
const REDRAWS_MAX: u32 = 500;
/// Plans for each trial at the same time that are drawn at once: the slow ones among them don't keep others waiting.
const ROUNDS: usize = 3;
/// Flaky counterexamples after which a search is over, though it found nothing certain.
const FLAKY_MAX: usize = 3;
/// Sets of actions that get baselines of their own, at most.
const GROUPS_MAX: usize = 200;

/// What an exploration is given.
#[derive(Debug, Clone)]
pub struct ExploreRequest {
    /// The seed of the plans that are drawn.
    pub seed: u64,
    /// How long new plans are drawn; no limit where absent.
    pub time: Option<Duration>,
    /// How many plans are drawn; no limit where absent.
    pub cases: Option<u32>,
    /// Where counterexamples are kept as scenario files, and read from.
    pub regressions: PathBuf,
    /// The worker, for replay tokens.
    pub target: Target,
    /// Whether the run's folder holds an exploration that is to go on.
    pub resume: bool,
}

/// What a replay token says of the settings of the worker that it is for: the same in another folder.
pub fn worker_id(settings: &Settings) -> String {
    let mut settings = settings.clone().masked();
    settings.worker.command.cwd = PathBuf::new();
    settings_id(&settings)
}

/// An exploration under way.
pub(crate) struct Search {
    request: ExploreRequest,
    space: Space,
    coverage: Coverage,
    /// What was tried, by its contents.
    tried: BTreeSet<String>,
    /// The number of the case to draw next. Each one that was drawn moves the sequence on, so that a seed gives one.
    next_case: u32,
    exploration: Exploration,
    /// Counterexamples of the part that went before, where it is gone on with.
    found_before: usize,
    until: Option<Instant>,
}

impl<P: Progress> Runner<'_, P> {
    /// Explores until something is found or the budget is spent.
    pub(crate) async fn explore(&mut self, request: ExploreRequest) -> Result<(), RunError> {
        let Some(baseline) = self.baselines.first().and_then(|pair| pair.first()) else { return Ok(()) };
        let kept = stored(&request.regressions)?.into_iter().map(|(_, plan)| plan);
        let known: Vec<Plan> = library()?.into_iter().map(|scenario| scenario.plan).chain(kept).collect();
        let space = Space::of(&self.settings, baseline).with_actions_of(&known);
        let mut search = Search {
            coverage: Coverage::default(),
            tried: BTreeSet::new(),
            next_case: 0,
            exploration: Exploration {
                seed: request.seed,
                cases: 0,
                plans_about: space.size(),
                ended: ExplorationEnd::Interrupted,
                covered: Vec::new(),
                unseen: Vec::new(),
                differs: self.baselines.first().and_then(|pair| first_difference(pair)),
                counterexamples: Vec::new(),
                regressions: Vec::new(),
            },
            found_before: 0,
            until: request.time.map(|time| Instant::now() + time),
            request,
            space,
        };
        for history in self.baselines.iter().flatten() {
            search.coverage.note(history);
        }
        self.take_up(&mut search)?;
        let outcome = self.carry_on(&mut search).await;
        search.close(self.record.interrupted);
        self.record.exploration = Some(search.exploration);
        outcome
    }

    async fn carry_on(&mut self, search: &mut Search) -> Result<(), RunError> {
        self.try_regressions(search).await?;
        while !self.record.interrupted && !search.is_over() {
            let begun = self.record.trials.len();
            let plans = search.draw(ROUNDS * self.request.jobs.max(1));
            if plans.is_empty() {
                search.exploration.ended = ExplorationEnd::Exhausted;
                break;
            }
            self.try_drawn(&plans, 1).await?;
            let red = self.learn(search, begun);
            for (case, found) in red {
                self.hunt(search, case, found).await?;
            }
        }
        Ok(())
    }

    /// Runs plans that were drawn, so many times each. Returns nothing where the run was interrupted.
    async fn try_drawn(&mut self, plans: &[Plan], repeat: u32) -> Result<(), RunError> {
        let mut jobs = Vec::new();
        let begun = self.next_index();
        for repetition in 1..=repeat {
            for plan in plans {
                let group = self.group_of(&plan.actions).await?;
                jobs.push(Job { index: begun, repetition, plan: plan.clone(), group, known: Vec::new() });
            }
        }
        // Baselines may have come in between.
        let begun = self.next_index();
        for (number, job) in jobs.iter_mut().enumerate() {
            job.index = begun + number;
        }
        self.progress.planned(begun + jobs.len());
        self.drawing = true;
        let outcome = self.run_jobs(jobs, TrialRole::Faulted).await;
        self.drawing = false;
        outcome
    }

    /// The baselines of a set of actions, made where there are none.
    async fn group_of(&mut self, actions: &[ActionSpec]) -> Result<usize, RunError> {
        let known = self.groups.iter().position(|group| group == actions);
        if let Some(group) = known {
            return Ok(group);
        }
        if self.groups.len() >= GROUPS_MAX {
            return Err(RunError::SetupFailed(format!(
                "an exploration has at most {GROUPS_MAX} sets of actions"
            )));
        }
        let group = self.groups.len();
        self.groups.push(actions.to_vec());
        self.run_baselines(group, actions).await?;
        Ok(group)
    }

    /// Takes note of what the trials from `begun` on showed. Returns those that are red, each with its case, the
    /// first one for each invariant.
    fn learn(&mut self, search: &mut Search, begun: usize) -> Vec<(u32, TrialRecord)> {
        let mut ended: Vec<TrialRecord> =
            self.record.trials[begun..].iter().filter(|trial| trial.drawn).cloned().collect();
        ended.sort_by(|a, b| a.folder.cmp(&b.folder));
        for history in std::mem::take(&mut self.drawn) {
            search.coverage.note(&history);
        }
        let mut red: Vec<(u32, TrialRecord)> = Vec::new();
        for trial in ended {
            search.exploration.cases += 1;
            let Some(invariant) = first_violated(&trial) else { continue };
            if red.iter().all(|(_, other)| first_violated(other) != Some(invariant)) {
                red.push((search.exploration.cases, trial));
            }
        }
        red
    }
}

impl Search {
    /// Plans that were not tried yet; none where there is nothing left.
    fn draw(&mut self, count: usize) -> Vec<Plan> {
        let wanted = self
            .request
            .cases
            .map_or(count, |cases| count.min(cases.saturating_sub(self.exploration.cases) as usize));
        let mut plans = Vec::new();
        let mut redraws = 0;
        while plans.len() < wanted && redraws < REDRAWS_MAX {
            let plan = next_plan(&self.space, &self.coverage, self.request.seed, self.next_case);
            self.next_case = self.next_case.wrapping_add(1);
            if self.tried.insert(plan.content_id()) {
                plans.push(plan);
            } else {
                redraws += 1;
            }
        }
        plans
    }

    fn is_over(&mut self) -> bool {
        let over = if is_enough(&self.exploration.counterexamples[self.found_before..]) {
            Some(ExplorationEnd::Counterexample)
        } else if self.until.is_some_and(|until| Instant::now() >= until) {
            Some(ExplorationEnd::Time)
        } else if self.request.cases.is_some_and(|cases| self.exploration.cases >= cases) {
            Some(ExplorationEnd::Cases)
        } else {
            None
        };
        over.inspect(|end| self.exploration.ended = *end).is_some()
    }

    /// Puts the coverage on record.
    fn close(&mut self, interrupted: bool) {
        if interrupted {
            self.exploration.ended = ExplorationEnd::Interrupted;
        }
        for (boundary, outcomes) in self.coverage.matrix() {
            for (outcome, generations) in outcomes {
                self.exploration.covered.extend(generations.iter().map(|(generation, seen)| CoveredPair {
                    boundary: boundary.clone(),
                    outcome: outcome.clone(),
                    generation: *generation,
                    reached: seen.reached,
                    struck: seen.struck,
                }));
            }
        }
        let unseen = self.coverage.unseen(&self.space).into_iter();
        self.exploration.unseen = unseen
            .map(|pair| CoveredPair {
                boundary: pair.boundary,
                outcome: pair.outcome,
                generation: pair.generation,
                reached: 0,
                struck: 0,
            })
            .collect();
    }
}

/// Whether nothing more is searched for: a flaky finding may be luck, and there may be a certain one.
fn is_enough(found: &[Counterexample]) -> bool {
    found.iter().any(Counterexample::is_certain) || found.len() >= FLAKY_MAX
}

/// The invariant that a red trial violates first.
fn first_violated(trial: &TrialRecord) -> Option<&str> {
    let judged = trial.verdict.as_ref().filter(|judged| judged.verdict == Verdict::Violated)?;
    // A trial can be red by what became of an action alone.
    Some(judged.violated().next().map_or("the verdict on an action", |outcome| outcome.invariant.as_str()))
}

/// Where two fault-free trials differ in the moments that they reached, if they do. Their order is left out: who
/// is first, the worker that has read an answer or the provider that has written it, is luck.
fn first_difference(pair: &[History]) -> Option<String> {
    let [one, other] = pair else { return None };
    let hits = |history: &History| -> BTreeSet<String> {
        let hits = history.events.iter().filter_map(|event| match &event.event {
            // What sampling shows comes sooner or later by luck.
            EventKind::Hit { hit, exact: true, .. } => Some(hit.to_string()),
            _ => None,
        });
        hits.collect()
    };
    let (one, other) = (hits(one), hits(other));
    let differing: Vec<&String> = one.symmetric_difference(&other).collect();
    let first = differing.first()?;
    let which = if one.contains(*first) { "first" } else { "second" };
    let more = differing.len() - 1;
    let others = if more == 0 { String::new() } else { format!(", and {more} more differ") };
    Some(format!("`{first}` was reached in the {which} one only{others}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_engine::faults::Parameters;
    use killpoint_model::Fault;
    use killpoint_model::exploration::KOfN;
    use killpoint_scenarios::search::delays_acceptance;

    #[test]
    fn what_holds_a_request_for_long_is_never_drawn_before_its_acceptance() {
        let at = "provider:received#1".parse().unwrap();
        for fault in killpoint_engine::faults::FAULTS {
            for with in [Parameters::new(), [("answer-after".to_owned(), "300ms".into())].into()] {
                let drawn = Fault { name: fault.entry().name.to_owned(), with };
                if fault.check(&drawn.with).is_ok() {
                    assert_eq!(delays_acceptance(&at, &drawn), fault.holds_long(&drawn.with), "{drawn:?}");
                }
            }
        }
    }

    #[test]
    fn a_certain_finding_ends_the_search_and_a_flaky_one_does_not() {
        let found = |red| Counterexample {
            invariant: "no-blind-resend".into(),
            message: String::new(),
            found: Plan::default(),
            case: 1,
            confirmed_before: KOfN { red, of: 3 },
            smallest: Plan::default(),
            summary: String::new(),
            confirmed_after: KOfN { red, of: 3 },
            shrink_trials: 0,
            shrink_ms: 0,
            token: String::new(),
            file: None,
            folder: String::new(),
        };
        assert!(!is_enough(&[]));
        assert!(!is_enough(&[found(1)]) && !is_enough(&[found(0), found(2)]));
        assert!(is_enough(&[found(1), found(3)]));
        assert!(is_enough(&[found(1), found(2), found(0)]), "a worker that is flaky everywhere");
    }
}
