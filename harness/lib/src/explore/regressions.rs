//! Counterexamples that are kept: scenario files in one folder, tried before anything else in every later run.

use std::fs;
use std::path::{Path, PathBuf};

use killpoint_model::exploration::{Counterexample, Regression, RegressionOutcome};
use killpoint_model::{Diagnostic, Plan, Severity, TrialRecord, Verdict};
use killpoint_scenarios::search::{Space, regression_toml, stale};
use killpoint_scenarios::{bind, load_scenario};

use super::{Search, first_violated};
use crate::code::Code;
use crate::error::RunError;
use crate::progress::Progress;
use crate::run::Runner;
use crate::text_file::read_text;

/// Files that are read at most.
const FILES_MAX: usize = 1000;

/// The stored counterexamples of a folder, by file, in the order of their names. An absent folder has none.
///
/// # Errors
/// A folder or a file that can't be read, or a file that is no scenario.
pub(crate) fn stored(folder: &Path) -> Result<Vec<(PathBuf, Plan)>, RunError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RunError::File { path: folder.to_owned(), error }),
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    if files.len() > FILES_MAX {
        let what =
            format!("{} holds more than {FILES_MAX} regressions; run them as scenarios", folder.display());
        return Err(RunError::Invalid(vec![Diagnostic::error(Code::TooManyRegressions, what)]));
    }
    files.into_iter().map(|file| read(&file).map(|plan| (file, plan))).collect()
}

fn read(file: &Path) -> Result<Plan, RunError> {
    let text = read_text(file).map_err(|unreadable| RunError::Invalid(vec![unreadable.problem]))?;
    let loaded = load_scenario(&text, &file.display().to_string(), &crate::catalog());
    let errors: Vec<Diagnostic> = loaded
        .diagnostics
        .into_iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| Diagnostic {
            message: format!("{}: {}", file.display(), diagnostic.message),
            ..diagnostic
        })
        .collect();
    match loaded.value {
        Some(scenario) if errors.is_empty() => Ok(scenario.plan),
        _ => Err(RunError::Invalid(errors)),
    }
}

impl<P: Progress> Runner<'_, P> {
    /// Tries every stored counterexample again, and says what became of it.
    pub(super) async fn try_regressions(&mut self, search: &mut Search) -> Result<(), RunError> {
        for (file, plan) in stored(&search.request.regressions)? {
            if self.record.interrupted {
                return Ok(());
            }
            let (bound, _) = bind(&plan, &self.settings, &self.reached(0));
            search.tried.insert(bound.content_id());
            let (confirmed, red) = self.confirm(&bound).await?;
            // A trial that holds reached each of its moments, also those that only recovery makes.
            let shown =
                self.record.trials.iter().rev().take(confirmed.of as usize).any(|trial| {
                    trial.verdict.as_ref().is_some_and(|judged| judged.verdict == Verdict::Holds)
                });
            let (outcome, note) = if confirmed.red > 0 {
                let invariant = red.as_ref().and_then(first_violated).unwrap_or_default();
                let outcome =
                    if confirmed.is_all() { RegressionOutcome::Fails } else { RegressionOutcome::Flaky };
                (outcome, format!("red by `{invariant}` in {confirmed} trials"))
            } else if shown {
                (RegressionOutcome::Fixed, "it holds now; the file is kept".to_owned())
            } else {
                (RegressionOutcome::Stale, stale_note(&stale(&bound, &search.space)))
            };
            let file = file.display().to_string();
            search.exploration.regressions.push(Regression { file, outcome, note });
        }
        Ok(())
    }

    /// Warns of stored counterexamples whose trials showed nothing because a moment of theirs does not exist any more.
    pub(crate) fn warn_of_stale_regressions(&mut self) {
        let Some(baseline) = self.baselines.first().and_then(|pair| pair.first()) else { return };
        let space = Space::of(&self.settings, baseline);
        let kept = |trial: &&TrialRecord| self.regressions.iter().any(|kept| kept.name == trial.plan.name);
        let vacuous = |trial: &&TrialRecord| {
            trial.verdict.as_ref().is_some_and(|judged| judged.verdict == Verdict::Vacuous)
        };
        let warnings: Vec<String> = self
            .record
            .trials
            .iter()
            .filter(|trial| trial.plan.scenario.is_some())
            .filter(kept)
            .filter(vacuous)
            .map(|trial| {
                let note = stale_note(&stale(&trial.plan, &space));
                format!("the regression `{}` is stale: {note}", trial.plan.name)
            })
            .collect();
        self.record.warnings.extend(warnings);
    }

    /// Writes a counterexample as a scenario file. One that can't be written is told, and stays in the record.
    pub(super) fn keep(&mut self, search: &Search, found: &mut Counterexample) {
        let folder = &search.request.regressions;
        let path = folder.join(format!("explored-{}.toml", found.smallest.content_id()));
        let finding = format!("{}: {}", found.invariant, found.message);
        let text = regression_toml(&found.smallest, &finding, &found.token);
        match fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)) {
            Ok(()) => found.file = Some(path.display().to_string()),
            Err(error) => {
                let what = format!("the counterexample could not be written to {}: {error}", path.display());
                self.record.warnings.push(what);
            }
        }
    }
}

fn stale_note(missing: &[(killpoint_model::HitName, Vec<String>)]) -> String {
    if missing.is_empty() {
        return "its trials showed nothing: the moment of a fault never came; look at their evidence"
            .to_owned();
    }
    let each = missing.iter().map(|(hit, near)| {
        let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
        if near.is_empty() {
            format!("`{hit}` does not exist any more")
        } else {
            format!("`{hit}` does not exist any more; the nearest: {}", near.join(", "))
        }
    });
    each.collect::<Vec<_>>().join("; ")
}
