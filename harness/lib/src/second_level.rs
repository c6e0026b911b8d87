//! The second level of a sweep: what its kill trials left behind is killed at once more while it recovers.

use std::time::{Duration, Instant};

use killpoint_checks::volatile_pointers;
use killpoint_model::run::TrialRole;
use killpoint_model::{History, HitName, TrialRecord, Verdict};
use killpoint_scenarios::{DepthPlan, kill_plan, second_level};

use crate::error::RunError;
use crate::folder::RunFolder;
use crate::job::{Job, SecondLevel};
use crate::progress::Progress;
use crate::run::Runner;

impl<P: Progress> Runner<'_, P> {
    /// Runs the trials of the second level, until its time is over.
    pub(crate) async fn second_level(&mut self, asked: SecondLevel) -> Result<(), RunError> {
        let (plan, red) = self.plan_second_level();
        self.record.warnings.extend(told(&plan, red, self.settings.sweep.hits_per_series_max));
        let begun = self.next_index();
        let mut jobs = Vec::new();
        for repetition in 1..=self.request.repeat {
            for trial in &plan.trials {
                let known = trial.faults.iter().map(|fault| fault.at.clone()).collect();
                let index = begun + jobs.len();
                jobs.push(Job { index, repetition, plan: trial.clone(), group: 0, known });
            }
        }
        self.progress.planned(self.record.trials.len() + jobs.len());
        let names: Vec<String> = jobs.iter().map(|job| job.plan.name.clone()).collect();
        self.until = asked.time.map(|time| Instant::now() + time);
        let outcome = self.run_jobs(jobs, TrialRole::Faulted).await;
        self.until = None;
        outcome?;
        // They are begun in order, and what was begun was carried through.
        let places = self.record.trials.iter().filter_map(|trial| RunFolder::place(&trial.folder));
        let done = places.filter(|place| *place >= begun).count();
        if let (Some(first), Some(time), false) = (names.get(done), asked.time, self.record.interrupted) {
            self.record.warnings.push(format!(
                "depth 2: {done} of {} second-level trials were done in {}; left out from `{first}` on",
                names.len(),
                spelt(time),
            ));
        }
        Ok(())
    }

    /// The trials of the second level, and how many kill trials are not followed because they do not hold.
    fn plan_second_level(&self) -> (DepthPlan, usize) {
        // Trials end in any order; folders are in the order of the plan.
        let mut trials: Vec<&TrialRecord> = self.record.trials.iter().collect();
        trials.sort_by(|a, b| a.folder.cmp(&b.folder));
        let mut firsts: Vec<(&HitName, &History)> = Vec::new();
        let mut red = 0;
        for trial in trials {
            let Some(at) = only_kill(trial) else { continue };
            let holds = trial.verdict.as_ref().is_some_and(|judged| judged.verdict == Verdict::Holds);
            match self.histories.get(&trial.folder).filter(|_| holds) {
                Some(history) => firsts.push((at, history)),
                None => red += 1,
            }
        }
        let volatile = match self.baselines.first().map(Vec::as_slice) {
            Some([one, other, ..]) => volatile_pointers(one, other).ok(),
            _ => None,
        };
        (second_level(&self.settings, &firsts, volatile.as_ref()), red)
    }
}

/// Where a trial kills, if that is all it does. Repetitions are not followed: they have the same plan.
fn only_kill(trial: &TrialRecord) -> Option<&HitName> {
    let at = &trial.plan.faults.first()?.at;
    (trial.repetition == 1 && trial.plan == kill_plan(at.clone())).then_some(at)
}

/// What is said of the second level before it begins.
fn told(plan: &DepthPlan, red: usize, max: u32) -> Vec<String> {
    let DepthPlan { crashes, merged, silent, hits_left_out, trials } = plan;
    let mut told = vec![format!(
        "depth 2: {} second-level trials follow from {crashes} first crashes, {merged} of them merged as equal to \
         an earlier one (same ledger rows, writes and effects at the death)",
        trials.len()
    )];
    if red > 0 {
        told.push(format!("depth 2: {red} kill trials that do not hold by themselves were not followed"));
    }
    if *silent > 0 {
        told.push(format!(
            "depth 2: after {silent} of the first crashes no boundary was reached by a live worker; nothing was \
             killed in their recovery"
        ));
    }
    if *hits_left_out > 0 {
        told.push(format!(
            "depth 2: {hits_left_out} boundaries in recoveries are beyond the first {max} of their series and were \
             left out; write a larger `hits-per-series` under `[sweep]` to try them"
        ));
    }
    told
}

fn spelt(time: Duration) -> String {
    let ms = time.as_millis();
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::Plan;

    fn trial(plan: Plan, repetition: u32) -> TrialRecord {
        TrialRecord {
            folder: "0002-t".into(),
            role: TrialRole::Faulted,
            plan,
            repetition,
            verdict: None,
            replay: String::new(),
            duration_ms: 0,
            drawn: false,
            shard: None,
            source: None,
        }
    }

    #[test]
    fn only_a_single_kill_that_no_scenario_asked_for_is_followed() {
        let at: HitName = "provider:committed#1".parse().unwrap();
        let kill = kill_plan(at.clone());
        assert_eq!(only_kill(&trial(kill.clone(), 1)), Some(&at));
        assert_eq!(only_kill(&trial(kill.clone(), 2)), None);
        let named = Plan { scenario: Some("kept".into()), ..kill.clone() };
        assert_eq!(only_kill(&trial(named, 1)), None);
        let twice = Plan { faults: [kill.faults.clone(), kill.faults.clone()].concat(), ..kill };
        assert_eq!(only_kill(&trial(twice, 1)), None);
    }

    #[test]
    fn whatever_is_not_tried_is_told() {
        let plan = DepthPlan { trials: Vec::new(), crashes: 9, merged: 4, silent: 2, hits_left_out: 3 };
        let said = told(&plan, 5, 8);
        assert_eq!(said.len(), 4);
        for (line, part) in said.iter().zip([
            "9 first crashes, 4 of them merged",
            "5 kill trials",
            "after 2 of",
            "3 boundaries",
        ]) {
            assert!(line.starts_with("depth 2: ") && line.contains(part), "{line}");
        }
        assert_eq!(told(&DepthPlan::default(), 0, 8).len(), 1);
    }

    #[test]
    fn times_are_spelt_in_the_unit_that_is_exact() {
        assert_eq!(spelt(Duration::from_secs(60)), "60 s");
        assert_eq!(spelt(Duration::from_millis(1500)), "1500 ms");
    }
}
