//! Going on with an exploration that was interrupted or whose budget was spent.

use std::path::Path;

use killpoint_model::run::TrialRole;
use killpoint_model::{History, RunRecord};

use super::Search;
use crate::error::RunError;
use crate::folder::RunFolder;
use crate::progress::Progress;
use crate::run::Runner;

/// A stored exploration.
pub(crate) struct Resumed {
    pub(crate) folder: RunFolder,
    pub(crate) record: RunRecord,
    /// The baselines of the worker's own actions.
    pub(crate) baselines: Vec<History>,
}

impl Resumed {
    /// Opens a stored exploration.
    ///
    /// # Errors
    /// It is no run, or no exploration, or its baselines are not there.
    pub(crate) fn open(path: &Path) -> Result<Self, RunError> {
        // Trials need absolute paths.
        let path =
            &std::fs::canonicalize(path).map_err(|error| RunError::File { path: path.to_owned(), error })?;
        let (folder, record) = RunFolder::open(path)?;
        let bad = |why: &str| RunError::BadRun { path: path.to_owned(), why: why.to_owned() };
        if record.exploration.is_none() {
            return Err(bad("this run is no exploration, so there is nothing to go on with"));
        }
        let own = record
            .trials
            .iter()
            .filter(|trial| trial.role != TrialRole::Faulted && trial.plan.actions.is_empty());
        let baselines = own.map(|trial| folder.history(&trial.folder)).collect::<Result<Vec<_>, _>>()?;
        if baselines.len() < 2 {
            return Err(bad("its two fault-free trials are not there; explore anew"));
        }
        Ok(Self { folder, record, baselines })
    }
}

impl<P: Progress> Runner<'_, P> {
    /// Takes note of what the earlier part of an exploration tried.
    pub(super) fn take_up(&mut self, search: &mut Search) -> Result<(), RunError> {
        let Some(before) = self.record.exploration.take() else { return Ok(()) };
        search.exploration.seed = before.seed;
        search.request.seed = before.seed;
        search.exploration.cases = before.cases;
        search.found_before = before.counterexamples.len();
        search.exploration.counterexamples = before.counterexamples;
        for trial in self.record.trials.iter().filter(|trial| trial.drawn) {
            search.tried.insert(trial.plan.content_id());
            search.coverage.note(&self.folder.history(&trial.folder)?);
        }
        // What was drawn twice is drawn again, and known.
        search.next_case = search.tried.len() as u32;
        Ok(())
    }
}
