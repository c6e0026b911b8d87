//! What came out of a gate.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use killpoint_model::verdict::{ActionOutcome, TrialEvidence};
use killpoint_model::{Finding, History, InvariantStatus, TrialRecord, Verdict};
use killpoint_reports::{Detail, View};

use super::text;
use crate::run::Finished;

/// A finished run of a [`Gate`](crate::Gate). Shown with `{}` it is the text with which
/// [`assert_holds`](Self::assert_holds) fails.
#[derive(Debug)]
pub struct GateRun {
    finished: Finished,
    view: View,
    /// Name and folder of each trial, in the order of a report.
    names: Vec<(String, String)>,
    /// Those of the configuration, then those of the run.
    warnings: Vec<String>,
}

impl GateRun {
    pub(super) fn new(finished: Finished, mut warnings: Vec<String>) -> Self {
        let view = View::new(&finished.record, &finished.histories);
        let names = names(&view);
        warnings.extend(view.warnings.iter().cloned());
        Self { finished, view, names, warnings }
    }

    /// The verdict of the whole run; the worst wins.
    pub fn verdict(&self) -> Verdict {
        self.view.verdict
    }

    /// Every trial with its name, the fault-free ones first. A name that occurs again has its number behind it.
    pub fn trials(&self) -> impl Iterator<Item = GateTrial<'_>> {
        self.names.iter().filter_map(|(name, folder)| {
            let record = self.finished.record.trials.iter().find(|trial| trial.folder == *folder)?;
            Some(GateTrial { name, record, run: self })
        })
    }

    /// The trial of a name, such as `kill at provider:committed#1`.
    pub fn trial(&self, name: &str) -> Option<GateTrial<'_>> {
        self.trials().find(|trial| trial.name == name)
    }

    /// What the run warns of, such as a boundary that was never reached.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The folder in which the run is recorded.
    pub fn folder(&self) -> &Path {
        self.finished.folder.path()
    }

    /// The record and the histories, for reports and for checks of one's own.
    pub fn finished(&self) -> &Finished {
        &self.finished
    }

    /// Nothing, where every trial holds with all of its evidence.
    ///
    /// # Panics
    /// Otherwise, and so for a trial that is vacuous or inconclusive as well: with the first trial that does not
    /// hold in full (invariants, the numbers of the events that show it, the line that replays it, its folder), and
    /// the names of the others.
    #[track_caller]
    pub fn assert_holds(&self) {
        assert!(self.verdict() == Verdict::Holds, "{self}");
    }

    /// The trials that do not hold, worst first.
    pub(super) fn not_holding(&self) -> Vec<GateTrial<'_>> {
        let trials: Vec<GateTrial<'_>> = self.trials().collect();
        let details = self.view.details.iter();
        details
            .filter_map(|detail| trials.iter().find(|trial| trial.record.folder == detail.folder).copied())
            .collect()
    }
}

impl fmt::Display for GateRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write_run(self, f)
    }
}

/// One trial of a [`GateRun`]. Shown with `{}` it is everything that a person needs of it.
#[derive(Debug, Clone, Copy)]
pub struct GateTrial<'r> {
    name: &'r str,
    record: &'r TrialRecord,
    run: &'r GateRun,
}

impl<'r> GateTrial<'r> {
    /// Its name in the run, such as `kill at provider:committed#1`.
    pub fn name(&self) -> &'r str {
        self.name
    }

    /// Its verdict; `inconclusive` where it was not judged.
    pub fn verdict(&self) -> Verdict {
        self.record.verdict.as_ref().map_or(Verdict::Inconclusive, |judged| judged.verdict)
    }

    /// The names of the invariants that are violated.
    pub fn violated(&self) -> impl Iterator<Item = &'r str> {
        let outcomes = self.record.verdict.iter().flat_map(|judged| &judged.outcomes);
        outcomes
            .filter(|outcome| outcome.status == InvariantStatus::Violated)
            .map(|outcome| outcome.invariant.as_str())
    }

    /// Violations and doubts, each with the numbers of the events that show it.
    pub fn findings(&self) -> impl Iterator<Item = &'r Finding> {
        self.record.verdict.iter().flat_map(|judged| &judged.outcomes).flat_map(|outcome| &outcome.findings)
    }

    /// What became of each action at each destination.
    pub fn actions(&self) -> &'r [ActionOutcome] {
        self.record.verdict.as_ref().map_or(&[], |judged| &judged.actions)
    }

    /// The evidence without which a trial is vacuous; absent where it was not judged.
    pub fn evidence(&self) -> Option<&'r TrialEvidence> {
        self.record.verdict.as_ref().map(|judged| &judged.evidence)
    }

    /// All that happened in it: the events to which the numbers belong.
    pub fn history(&self) -> Option<&'r History> {
        self.run.finished.histories.get(&self.record.folder)
    }

    /// The plan, the role and the rest of the record.
    pub fn record(&self) -> &'r TrialRecord {
        self.record
    }

    /// The command that replays it alone.
    pub fn replay(&self) -> &'r str {
        &self.record.replay
    }

    /// Its folder, with the history and the worker's output; of a trial that does not hold, the state as well.
    pub fn folder(&self) -> PathBuf {
        self.run.finished.folder.trial(&self.record.folder)
    }

    pub(super) fn detail(&self) -> Option<&'r Detail> {
        self.run.view.details.iter().find(|detail| detail.folder == self.record.folder)
    }
}

impl fmt::Display for GateTrial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write_trial(self, f)
    }
}

/// Names for the trials of a view with their folders; each is there once.
fn names(view: &View) -> Vec<(String, String)> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let trials = view.rows.iter().flat_map(|row| row.repetitions.iter().map(move |one| (row, one)));
    trials
        .map(|(row, one)| {
            let count = counts.entry(&row.plan).or_default();
            *count += 1;
            let name = if *count == 1 { row.plan.clone() } else { format!("{} ({count})", row.plan) };
            (name, one.folder.clone())
        })
        .collect()
}
