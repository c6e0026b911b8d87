//! From a red trial to a counterexample: confirmed, made small, confirmed again, and kept.

use std::time::Instant;

use killpoint_model::exploration::{Counterexample, KOfN};
use killpoint_model::{Plan, TrialRecord};
use killpoint_scenarios::search::token::{Target, Token};
use killpoint_scenarios::search::{Shrink, describe};

use super::{Search, first_violated, worker_id};
use crate::error::RunError;
use crate::progress::Progress;
use crate::run::Runner;

/// Repetitions by which a red trial is confirmed.
const CONFIRMATIONS: u32 = 3;
/// The same where nothing in the plan but luck makes workers meet.
const RACE_CONFIRMATIONS: u32 = 10;
/// Trials that shrinking may take. What is left by then is red all the same, only not the smallest.
const SHRINK_TRIALS_MAX: u32 = 60;

impl<P: Progress> Runner<'_, P> {
    /// Makes a counterexample of a red trial.
    pub(super) async fn hunt(
        &mut self,
        search: &mut Search,
        case: u32,
        found: TrialRecord,
    ) -> Result<(), RunError> {
        let Some(invariant) = first_violated(&found).map(str::to_owned) else { return Ok(()) };
        self.progress.note(&format!("red by `{invariant}`: {}", found.plan.name));
        let before = self.confirm(&found.plan).await?;
        let mut last = before.1.unwrap_or(found.clone());
        let (mut smallest, mut after, mut trials, mut shrink_ms) = (found.plan.clone(), before.0, 0, 0);
        // A flaky failure would be shrunk to what luck says; it is told as it is.
        if before.0.is_all() && !self.record.interrupted {
            let mut shrink = Shrink::new(found.plan.clone(), &search.space);
            let confirmed = loop {
                let begun = Instant::now();
                self.shrink(&mut shrink, &invariant).await?;
                shrink_ms += begun.elapsed().as_millis() as u64;
                let confirmed = self.confirm(shrink.smallest()).await?;
                let at_its_end = shrink.smallest().content_id() == found.plan.content_id()
                    || shrink.trials() >= SHRINK_TRIALS_MAX;
                if confirmed.0.is_all() || at_its_end || self.record.interrupted {
                    break confirmed;
                }
                // It was red by luck: a part that was taken away had made it certain.
                let lucky = shrink.smallest().clone();
                shrink.tell(&lucky, false);
            };
            trials = shrink.trials();
            smallest = shrink.smallest().clone();
            after = confirmed.0;
            last = confirmed.1.unwrap_or(last);
        }
        let token = Token {
            plan: smallest.clone(),
            target: search.request.target.clone(),
            settings_id: self.noted_id(search),
        };
        let mut counterexample = Counterexample {
            message: message(&last, &invariant),
            invariant,
            found: found.plan,
            case,
            confirmed_before: before.0,
            summary: describe(&smallest),
            smallest,
            confirmed_after: after,
            shrink_trials: trials,
            shrink_ms,
            token: token.encode(),
            file: None,
            folder: last.folder,
        };
        self.keep(search, &mut counterexample);
        search.exploration.counterexamples.push(counterexample);
        Ok(())
    }

    /// Tries smaller plans until there is none, or too many were tried.
    async fn shrink(&mut self, shrink: &mut Shrink, invariant: &str) -> Result<(), RunError> {
        while shrink.trials() < SHRINK_TRIALS_MAX
            && let Some(plan) = shrink.next()
        {
            let Some(trial) = self.try_one(&plan).await? else { break };
            // Shrinking must not slip from one bug to another.
            shrink.tell(&plan, violates(&trial, invariant));
        }
        Ok(())
    }

    /// What the token says of the worker. The built-in one is part of the program, whose path differs.
    fn noted_id(&self, search: &Search) -> Option<String> {
        (search.request.target == Target::Config).then(|| worker_id(&self.settings))
    }

    /// Repeats a plan. Gives how often it was red, and the last red trial.
    pub(super) async fn confirm(&mut self, plan: &Plan) -> Result<(KOfN, Option<TrialRecord>), RunError> {
        let begun = self.record.trials.len();
        self.try_drawn(std::slice::from_ref(plan), confirmations(plan)).await?;
        let ended = &self.record.trials[begun..];
        let ended: Vec<&TrialRecord> = ended.iter().filter(|trial| trial.drawn).collect();
        let red: Vec<&TrialRecord> =
            ended.iter().copied().filter(|trial| first_violated(trial).is_some()).collect();
        let count = KOfN { red: red.len() as u32, of: ended.len() as u32 };
        Ok((count, red.last().map(|trial| (*trial).clone())))
    }

    /// One trial of a plan; `None` where the run was interrupted.
    async fn try_one(&mut self, plan: &Plan) -> Result<Option<TrialRecord>, RunError> {
        let begun = self.record.trials.len();
        self.try_drawn(std::slice::from_ref(plan), 1).await?;
        if self.record.interrupted {
            return Ok(None);
        }
        Ok(self.record.trials[begun..].iter().find(|trial| trial.drawn).cloned())
    }
}

/// How often a plan is repeated. Workers that run beside each other from the beginning meet by luck, where no fault sees
/// to it.
fn confirmations(plan: &Plan) -> u32 {
    let races = plan.workers > 1 && plan.faults.is_empty();
    if races { RACE_CONFIRMATIONS } else { CONFIRMATIONS }
}

/// Whether a trial violates this invariant, be it first or not.
fn violates(trial: &TrialRecord, invariant: &str) -> bool {
    let Some(judged) = &trial.verdict else { return false };
    first_violated(trial) == Some(invariant)
        || judged.violated().any(|outcome| outcome.invariant == invariant)
}

/// What a trial's first finding of an invariant says.
fn message(trial: &TrialRecord, invariant: &str) -> String {
    let judged = trial.verdict.iter().flat_map(|judged| &judged.outcomes);
    let findings =
        judged.filter(|outcome| outcome.invariant == invariant).flat_map(|outcome| &outcome.findings);
    findings
        .map(|finding| finding.message.clone())
        .next()
        .unwrap_or_else(|| format!("`{invariant}` is violated"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::plan::FaultAt;
    use killpoint_model::{Fault, HitName};

    #[test]
    fn a_race_is_repeated_more_often_than_what_a_fault_makes_certain() {
        let at: HitName = "mark:before-claim#1".parse().unwrap();
        let barrier = FaultAt { at, fault: Fault::named("barrier") };
        let race = Plan { workers: 2, ..Plan::default() };
        assert_eq!(confirmations(&race), RACE_CONFIRMATIONS);
        assert_eq!(confirmations(&Plan { faults: vec![barrier], ..race }), CONFIRMATIONS);
        assert_eq!(confirmations(&Plan::default()), CONFIRMATIONS);
    }
}
