//! Judges a stored run again, offline: nothing is started.

use std::collections::BTreeMap;
use std::path::Path;

use killpoint_checks::{Case, judge};
use killpoint_model::event::EventKind;
use killpoint_model::run::TrialRole;
use killpoint_model::{History, RunRecord, TrialRecord, TrialVerdict, Verdict};

use crate::error::RunError;
use crate::folder::RunFolder;

/// A stored run with fresh verdicts.
#[derive(Debug)]
pub struct Checked {
    /// The record, its verdicts replaced.
    pub record: RunRecord,
    /// Histories by folder.
    pub histories: BTreeMap<String, History>,
    /// Trials whose verdict differs from the stored one.
    pub changed: Vec<String>,
}

/// Reads a run directory and judges every trial of it again.
///
/// # Errors
/// The run can't be read. A history that is cut short can: its trial is inconclusive.
pub fn check(path: &Path) -> Result<Checked, RunError> {
    let (folder, mut record) = RunFolder::open(path)?;
    let mut histories = BTreeMap::new();
    for trial in &record.trials {
        histories.insert(trial.folder.clone(), folder.history(&trial.folder)?);
    }
    let mut changed = Vec::new();
    let verdicts: Vec<Option<TrialVerdict>> = record
        .trials
        .iter()
        .map(|trial| {
            let history = histories.get(&trial.folder)?;
            if trial.role != TrialRole::Faulted && says_nothing(history) {
                return None;
            }
            let baselines = baselines_of(&record.trials, trial, &histories);
            Some(judge(&Case {
                settings: &record.settings,
                role: trial.role,
                history,
                baselines: &baselines,
            }))
        })
        .collect();
    for (trial, verdict) in record.trials.iter_mut().zip(verdicts) {
        if trial.verdict.as_ref().map(|stored| stored.verdict) != verdict.as_ref().map(|fresh| fresh.verdict)
        {
            changed.push(trial.folder.clone());
        }
        trial.verdict = verdict;
    }
    record.verdict = run_verdict(&record.trials, record.interrupted);
    Ok(Checked { record, histories, changed })
}

/// The baselines with the same actions as a trial; for a baseline those before it, as when it was run.
fn baselines_of(
    trials: &[TrialRecord],
    of: &TrialRecord,
    histories: &BTreeMap<String, History>,
) -> Vec<History> {
    trials
        .iter()
        .take_while(|trial| of.role == TrialRole::Faulted || trial.folder != of.folder)
        .filter(|trial| trial.role != TrialRole::Faulted && trial.plan.actions == of.plan.actions)
        .filter_map(|trial| histories.get(&trial.folder).cloned())
        .collect()
}

/// Whether a fault-free trial says nothing about the worker, so that it can't be judged: it was not carried
/// through, or nothing was sent and no row shows that something is owed.
pub(crate) fn says_nothing(history: &History) -> bool {
    let carried_through = history.events.iter().any(|event| matches!(event.event, EventKind::Final { .. }));
    let rows = history.final_rows().is_some_and(|(_, rows)| !rows.is_empty());
    !carried_through || (history.attempts().next().is_none() && !rows)
}

/// Merges the verdicts of a run: a trial without one is inconclusive, and so is an interrupted run that
/// has no violation.
pub(crate) fn run_verdict(trials: &[TrialRecord], interrupted: bool) -> Verdict {
    let each = trials
        .iter()
        .map(|trial| trial.verdict.as_ref().map_or(Verdict::Inconclusive, |judged| judged.verdict));
    let faulted = trials.iter().any(|trial| trial.role == TrialRole::Faulted);
    let whole = if interrupted { Verdict::Inconclusive } else { Verdict::Holds };
    // A run of baselines alone has killed nothing: it can't be green.
    let tried = if faulted { Verdict::Holds } else { Verdict::Vacuous };
    Verdict::worst(each.chain([whole, tried]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_tried_nothing_is_not_green() {
        assert_eq!(run_verdict(&[], false), Verdict::Vacuous);
        assert_eq!(run_verdict(&[], true), Verdict::Inconclusive);
    }
}
