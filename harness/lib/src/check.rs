//! Judges a stored run again, offline: nothing is started.

use std::collections::BTreeMap;
use std::path::Path;

use killpoint_checks::{Case, judge};
use killpoint_model::event::EventKind;
use killpoint_model::run::TrialRole;
use killpoint_model::{History, RunRecord, TrialRecord, TrialVerdict, Verdict};

use crate::error::RunError;
use crate::folder::RunFolder;
use crate::profile;

/// A stored run with fresh verdicts.
#[derive(Debug)]
pub struct Checked {
    /// The record, its verdicts replaced.
    pub record: RunRecord,
    /// Histories by folder.
    pub histories: BTreeMap<String, History>,
    /// Trials, and lines of the profile's checklist, whose verdict differs from the stored one.
    pub changed: Vec<String>,
}

/// Reads a run directory and judges every trial of it again.
///
/// # Errors
/// The run can't be read. A history that is cut short can: its trial is inconclusive.
pub fn check(path: &Path) -> Result<Checked, RunError> {
    let (folder, mut record) = RunFolder::open(path)?;
    let histories = folder.histories(&record)?;
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
    changed.extend(answer_again(&mut record, &histories));
    record.verdict = run_verdict(&record);
    Ok(Checked { record, histories, changed })
}

/// The baselines with the same actions as a trial, of the part that ran it; for a baseline those before it, as when
/// it was run.
fn baselines_of(
    trials: &[TrialRecord],
    of: &TrialRecord,
    histories: &BTreeMap<String, History>,
) -> Vec<History> {
    trials
        .iter()
        .take_while(|trial| of.role == TrialRole::Faulted || trial.folder != of.folder)
        .filter(|trial| trial.role != TrialRole::Faulted && trial.shard == of.shard)
        .filter(|trial| trial.plan.actions == of.plan.actions)
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

/// Answers the checklist of the profile again. Gives the lines whose answer differs from the stored one.
fn answer_again(record: &mut RunRecord, histories: &BTreeMap<String, History>) -> Vec<String> {
    let stored = record.profile.clone().map(|profile| profile.answers).unwrap_or_default();
    profile::answer(record, histories);
    let fresh = record.profile.iter().flat_map(|profile| &profile.answers);
    let differs = fresh.filter(|fresh| {
        stored.iter().find(|stored| stored.id == fresh.id).map(|stored| stored.answer) != Some(fresh.answer)
    });
    differs.map(|answered| format!("line {} of the checklist", answered.id)).collect()
}

/// The verdict on a run, of its trials' verdicts.
pub(crate) fn run_verdict(record: &RunRecord) -> Verdict {
    record.verdict_with(|trial| trial.verdict.as_ref().map(|judged| judged.verdict))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use killpoint_model::Settings;
    use killpoint_model::checklist::{ProfileName, RunProfile};
    use killpoint_model::shard::{LackingShard, MergedRecord, MissingTrial, PlannedTrial, ShardRecord};

    pub(crate) fn record() -> RunRecord {
        RunRecord::new(Settings::default())
    }

    #[test]
    fn a_run_that_tried_nothing_is_not_green() {
        assert_eq!(run_verdict(&record()), Verdict::Vacuous);
        assert_eq!(run_verdict(&RunRecord { interrupted: true, ..record() }), Verdict::Inconclusive);
    }

    #[test]
    fn a_merged_run_that_is_not_whole_is_not_green() {
        let lacking = vec![LackingShard { index: 2, why: "it was interrupted".into() }];
        let trial = PlannedTrial { content_id: "0".into(), name: "a".into(), repetition: 1 };
        let missing = vec![MissingTrial { shard: 1, trial }];
        let verdict = |lacking, missing| {
            run_verdict(&RunRecord { merged: Some(MergedRecord { count: 2, lacking, missing }), ..record() })
        };
        assert_eq!(verdict(lacking, Vec::new()), Verdict::Inconclusive);
        assert_eq!(verdict(Vec::new(), missing), Verdict::Inconclusive);
        assert_eq!(
            verdict(Vec::new(), Vec::new()),
            Verdict::Vacuous,
            "nothing is missing, and nothing was tried"
        );
    }

    #[test]
    fn a_shard_answers_no_checklist() {
        let mut record = record();
        record.profile = Some(RunProfile::new(ProfileName::PreHosting, Vec::new()));
        record.shard =
            Some(ShardRecord { index: 1, count: 2, planned: Vec::new(), settings_id: String::new() });
        assert_eq!(answer_again(&mut record, &BTreeMap::new()), Vec::<String>::new());
        assert_eq!(record.profile.map(|profile| profile.answers.len()), Some(0));
    }

    #[test]
    fn lines_are_answered_again_and_those_that_differ_are_named() {
        let mut record = record();
        assert_eq!(answer_again(&mut record, &BTreeMap::new()), Vec::<String>::new());
        record.profile = Some(RunProfile::new(ProfileName::RestartSafe, Vec::new()));
        assert_eq!(answer_again(&mut record, &BTreeMap::new()), Vec::<String>::new());
        record.profile = Some(RunProfile::new(ProfileName::PreHosting, Vec::new()));
        let changed = answer_again(&mut record, &BTreeMap::new());
        assert!(changed.contains(&"line a1-1 of the checklist".to_owned()), "{changed:?}");
        assert_eq!(answer_again(&mut record, &BTreeMap::new()), Vec::<String>::new());
        assert_eq!(run_verdict(&record), Verdict::Vacuous);
    }
}
