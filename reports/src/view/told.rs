//! The histories of the trials that are shown, taken in one after the other.

use std::collections::BTreeSet;

use killpoint_model::run::TrialRole;
use killpoint_model::{Event, TrialRecord, Verdict};

use super::detail::{Detail, Marked};
use super::rows::Row;
use super::sketch::{Reading, Sketcher};
use super::surroundings::Surroundings;

/// Most trials that hold and are kept in full.
const HOLDING_MAX: usize = 300;

/// What the histories say.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Trials that do not hold, worst first; in order of the plan among equals.
    pub(super) details: Vec<Detail>,
    /// Some of those that hold, in order of the plan.
    pub(super) holding: Vec<Detail>,
    pub(super) surroundings: Surroundings,
    pub(super) warnings: Vec<String>,
    /// Whether the history of a trial that is not red is not all there any more: then nobody can look it up.
    pub(super) is_cut: bool,
}

/// Reads every history once, those of the fault-free trials first.
pub(super) fn tell<E>(
    trials: &[&TrialRecord],
    rows: &[Row],
    mut read: impl FnMut(&TrialRecord, &mut dyn FnMut(&Event)) -> Result<Reading, E>,
) -> Result<Told, E> {
    let examples = examples(rows);
    let mut told = Told::default();
    let (mut details, mut holding, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    let (plain, faulted): (Vec<_>, Vec<_>) =
        trials.iter().enumerate().partition(|(_, trial)| trial.role != TrialRole::Faulted);
    for (place, trial) in plain.into_iter().chain(faulted) {
        let is_example = examples.contains(&*trial.folder);
        let marked = (!holds(trial) || is_example).then(|| Marked::of(trial));
        let mut sketcher = Sketcher::new(trial, marked);
        let reading = read(trial, &mut |event| sketcher.take(event))?;
        let sketch = sketcher.finish();
        warnings.extend(warning(trial, reading).map(|warning| (place, warning)));
        if sketch.hits_left_out > 0 {
            let warning = format!(
                "trial `{}` reached {} more boundaries than are listed",
                trial.folder, sketch.hits_left_out
            );
            warnings.push((place, warning));
        }
        let sketch = (reading != Reading::Missing).then_some(sketch);
        if let Some(sketch) = &sketch {
            told.surroundings.add(trial.role, sketch);
        }
        let is_bad =
            trial.verdict.as_ref().is_some_and(|judgement| judgement.verdict >= Verdict::Inconclusive);
        told.is_cut |= reading == Reading::Truncated && !is_bad;
        if !holds(trial) {
            details.push((place, Detail::new(trial, sketch)));
        } else if is_example {
            holding.push((place, Detail::new(trial, sketch)));
        }
    }
    details.sort_by_key(|(place, detail)| (std::cmp::Reverse(detail.verdict), *place));
    told.details = in_order(details);
    holding.sort_by_key(|(place, _)| *place);
    told.holding = in_order(holding);
    warnings.sort_by_key(|(place, _)| *place);
    told.warnings = in_order(warnings);
    Ok(told)
}

fn in_order<T>(placed: Vec<(usize, T)>) -> Vec<T> {
    placed.into_iter().map(|(_, one)| one).collect()
}

fn holds(trial: &TrialRecord) -> bool {
    trial.verdict.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Holds)
}

/// The folders of the trials that hold and are kept in full: the first of each row.
fn examples(rows: &[Row]) -> BTreeSet<&str> {
    let first =
        rows.iter().filter_map(|row| row.repetitions.iter().find(|one| one.verdict == Some(Verdict::Holds)));
    first.map(|one| one.folder.as_str()).take(HOLDING_MAX).collect()
}

fn warning(trial: &TrialRecord, reading: Reading) -> Option<String> {
    match reading {
        Reading::Missing if trial.verdict.is_some() => {
            Some(format!("no history of trial `{}`: its boundaries and timeline are not shown", trial.folder))
        }
        Reading::Truncated => {
            Some(format!("the history of trial `{}` ends before the trial does", trial.folder))
        }
        Reading::Missing | Reading::Whole => None,
    }
}
