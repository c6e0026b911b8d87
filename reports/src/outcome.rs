//! What each row and the run as a whole come to, for media that know only passed, failed and broken.
//!
//! What was not proven is never `Passed`, whatever the reason: a medium that has no word for it shows it as broken.

use std::collections::BTreeMap;

use killpoint_model::checklist::AnswerWord;
use killpoint_model::exploration::RegressionOutcome;
use killpoint_model::{ExitCode, InvariantStatus, SourceLine, Verdict};

use crate::{Detail, Row, View};

/// What something came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds, with all the evidence.
    Passed,
    /// It is violated in at least one repetition.
    Failed,
    /// It is violated, and a file of known failures lists all that it shows.
    Known,
    /// An exploration drew its plan, and it showed nothing: whoever draws can't know what will come, so it says
    /// nothing of the worker and does not count.
    Aside,
    /// It was not proven: vacuous, inconclusive, not judged, or not there.
    Broken,
}

/// A row with its trials that do not hold, worst first.
#[derive(Debug)]
pub(crate) struct Told<'v> {
    pub(crate) row: &'v Row,
    pub(crate) outcome: Outcome,
    pub(crate) details: Vec<&'v Detail>,
}

impl<'v> Told<'v> {
    fn new(view: &View, row: &'v Row, details: Vec<&'v Detail>) -> Self {
        let outcome = match row.verdict {
            Some(Verdict::Violated) if details.iter().all(|detail| is_known(view, detail)) => Outcome::Known,
            Some(Verdict::Violated) => Outcome::Failed,
            Some(Verdict::Holds) if row.tally.not_judged == 0 => Outcome::Passed,
            Some(Verdict::Inconclusive | Verdict::Vacuous)
                if row.tally.not_judged == 0
                    && !details.is_empty()
                    && details.iter().all(|detail| !detail.counts) =>
            {
                Outcome::Aside
            }
            _ => Outcome::Broken,
        };
        Self { row, outcome, details }
    }

    /// What is done where, and how the provider behaves.
    pub(crate) fn name(&self) -> String {
        format!("{} × {}", self.row.boundary, self.row.provider_plan)
    }

    /// The word for what it came to.
    pub(crate) fn word(&self) -> &'static str {
        match self.row.verdict {
            Some(Verdict::Violated) if self.outcome == Outcome::Known => "known violation",
            Some(Verdict::Holds) | None if self.row.tally.not_judged > 0 => "not judged",
            Some(verdict) => verdict.as_str(),
            None => "not judged",
        }
    }

    /// The first thing that was seen or is missing, in one sentence, with the share of the repetitions.
    pub(crate) fn headline(&self) -> String {
        let said = self.details.first().map_or_else(|| "nothing was recorded".to_owned(), |one| said(one));
        match self.row.agreement() {
            Some(agreement) => format!("{said} ({agreement})"),
            None => said,
        }
    }

    /// Where the plan comes from.
    pub(crate) fn source(&self, view: &View) -> Option<SourceLine> {
        self.details.first().and_then(|detail| source(view, detail))
    }
}

fn said(detail: &Detail) -> String {
    for status in [InvariantStatus::Violated, InvariantStatus::Inconclusive] {
        if let Some(judged) = detail.judged.iter().find(|judged| judged.status == status) {
            return match judged.findings.first() {
                Some(finding) => format!("{}: {}", judged.invariant, finding.message),
                None => format!("{}: {status}", judged.invariant),
            };
        }
    }
    match (detail.missing.first(), detail.verdict) {
        (Some(sentence), _) => sentence.clone(),
        (None, None) => "it was not judged: the run ended before".to_owned(),
        (None, Some(verdict)) => format!("{verdict}, without a reason on record"),
    }
}

/// Whether a file of known failures lists all that a trial violates.
pub(crate) fn is_known(view: &View, detail: &Detail) -> bool {
    view.baseline.as_ref().is_some_and(|baseline| baseline.known_trials.contains(&detail.folder))
}

/// Where a trial's plan comes from; for a counterexample the file in which it is kept.
pub(crate) fn source(view: &View, detail: &Detail) -> Option<SourceLine> {
    let found = view.exploration.iter().flat_map(|exploration| &exploration.counterexamples);
    let kept = found.filter(|found| found.folder == detail.folder).find_map(|found| found.file.clone());
    kept.map(|file| SourceLine { file, line: 1 }).or_else(|| detail.source.clone())
}

/// Every row, in order.
pub(crate) fn rows(view: &View) -> Vec<Told<'_>> {
    let mut details: BTreeMap<_, Vec<&Detail>> = BTreeMap::new();
    for detail in &view.details {
        details.entry((detail.role, &detail.plan, &detail.scenario)).or_default().push(detail);
    }
    let mut rows = Vec::with_capacity(view.rows.len());
    for row in &view.rows {
        let details = details.remove(&(row.role, &row.plan, &row.scenario)).unwrap_or_default();
        rows.push(Told::new(view, row, details));
    }
    rows
}

/// Something that keeps the run from being green though no row shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunProblem {
    /// `Failed` or `Broken`.
    pub(crate) outcome: Outcome,
    /// What it is about.
    pub(crate) name: String,
    /// What there is to say.
    pub(crate) text: String,
    /// Whether it is a line of a checklist.
    pub(crate) is_answer: bool,
}

impl RunProblem {
    fn broken(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Broken, name: name.into(), text: text.into(), is_answer: false }
    }
}

/// What a file of known failures comes to, and how many trials were left out, in half a sentence each.
pub(crate) fn gate_words(view: &View) -> Vec<String> {
    let known = view.baseline.iter().map(|baseline| {
        let (known, new, stale) = (baseline.known.len(), baseline.new.len(), baseline.stale.len());
        format!("known failures of {}: {known} known, {new} new, {stale} stale", baseline.file)
    });
    let changed = view.changed.iter().filter(|changed| changed.skipped > 0).map(|changed| {
        format!(
            "{} of {} trials of the sweep left out: nothing changed where they act",
            changed.skipped, changed.of
        )
    });
    known.chain(changed).collect()
}

/// What keeps the run as a whole from being green. Where the exit code is not 0 this or a row says why.
pub(crate) fn of_the_run(view: &View, rows: &[Told]) -> Vec<RunProblem> {
    let mut problems = Vec::new();
    if view.interrupted {
        let text = "the run was interrupted: what was recorded is kept, and the rest was not tried";
        problems.push(RunProblem::broken("interrupted", text));
    }
    missing(view, &mut problems);
    for regression in view.exploration.iter().flat_map(|exploration| &exploration.regressions) {
        if regression.outcome == RegressionOutcome::Stale {
            problems.push(RunProblem::broken(format!("stale: {}", regression.file), &*regression.note));
        }
    }
    for stale in view.baseline.iter().flat_map(|baseline| &baseline.stale) {
        let text =
            format!("{}: {} is not violated any more: take it out of the file", stale.trial, stale.invariant);
        problems.push(RunProblem::broken("a known failure is none any more", text));
    }
    checklist(view, &mut problems);
    let all = || rows.iter().map(|told| told.outcome).chain(problems.iter().map(|problem| problem.outcome));
    let exit = view.exit_code();
    let unexplained = match exit {
        ExitCode::Holds => None,
        ExitCode::Violated => Some(Outcome::Failed).filter(|failed| !all().any(|one| one == *failed)),
        _ => Some(Outcome::Broken)
            .filter(|_| !all().any(|one| matches!(one, Outcome::Broken | Outcome::Failed))),
    };
    if let Some(outcome) = unexplained {
        let text = format!("{}; exit code {}: {}", view.verdict, exit.code(), view.exit_meaning());
        let name = "the run as a whole".to_owned();
        problems.push(RunProblem { outcome, name, text, is_answer: false });
    }
    problems
}

/// What of a merged run is not there. Then its warnings may tell why, and are problems too.
fn missing(view: &View, problems: &mut Vec<RunProblem>) {
    let Some(merged) = view.merged.as_ref().filter(|merged| !merged.is_complete()) else { return };
    for lacking in &merged.lacking {
        let name = format!("shard {}/{}", lacking.index, merged.count);
        problems.push(RunProblem::broken(name, &*lacking.why));
    }
    for missing in &merged.missing {
        let name = format!(
            "missing: {}, repetition {} (shard {})",
            missing.trial.name, missing.trial.repetition, missing.shard
        );
        problems.push(RunProblem::broken(name, "the trial was planned, and no shard has a record of it"));
    }
    problems.extend(view.warnings.iter().map(|warning| RunProblem::broken("warning", warning)));
}

fn checklist(view: &View, problems: &mut Vec<RunProblem>) {
    for answered in view.profile.iter().flat_map(|profile| &profile.answers) {
        let (outcome, word) = match answered.answer {
            AnswerWord::Yes => continue,
            AnswerWord::No => (Outcome::Failed, "no"),
            AnswerWord::NotShown => (Outcome::Broken, "not shown"),
        };
        let to_do = answered.to_do.as_ref().map(|to_do| format!("; to do: {to_do}")).unwrap_or_default();
        problems.push(RunProblem {
            outcome,
            name: format!("checklist {}: {}", answered.id, answered.question),
            text: format!("{word}: {}{to_do}", answered.because),
            is_answer: true,
        });
    }
}
