//! A run held against a list of known failures, and the update of that list.

use std::fs;
use std::path::{Path, PathBuf};

use killpoint_model::known::{Baseline, BaselineRecord, KnownFailure};
use killpoint_model::{Diagnostic, RunRecord};

use crate::agree::Part;
use crate::code::Code;
use crate::error::RunError;

/// What is done to the list after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineUpdate {
    /// Entries that are not violated any more are taken out; nothing is put in.
    Shrink,
    /// New violations are put in as well.
    AcceptNew,
}

/// Known failures, as a run is given them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFailures {
    /// The file.
    pub file: PathBuf,
    /// What it holds.
    pub entries: Vec<KnownFailure>,
    /// Whether and how the file is written after the run.
    pub update: Option<BaselineUpdate>,
}

impl KnownFailures {
    /// What is on record before the first trial.
    pub(crate) fn record(&self) -> BaselineRecord {
        let file = self.file.display().to_string();
        BaselineRecord { file, entries: self.entries.clone(), update: None }
    }

    /// What excludes an update.
    pub(crate) fn problem(&self, in_parts: bool) -> Option<Diagnostic> {
        let what = "a shard sees only a part of the violations, so that it can't write the file of known failures; leave \
                    --update-baseline out, or run the whole";
        (in_parts && self.update.is_some()).then(|| Diagnostic::error(Code::BadBaseline, what))
    }

    /// Puts the list of after the run on record, and writes it where that was asked for and the run was carried through.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn settle(&self, record: &mut RunRecord, carried_through: bool) -> Result<(), RunError> {
        let (Some(asked), Some(compared)) = (self.update, Baseline::of(record)) else { return Ok(()) };
        let (entries, mut update) = compared.updated(&self.entries, asked == BaselineUpdate::AcceptNew);
        let Some(list) = record.baseline.as_mut() else { return Ok(()) };
        if carried_through {
            write(&self.file, &killpoint_scenarios::known_toml(&entries))?;
            update.written = true;
            list.entries = entries;
        }
        list.update = Some(update);
        Ok(())
    }
}

/// Writes a file in one step, with the folder that it lies in.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), RunError> {
    let fail = |error| RunError::File { path: file.to_owned(), error };
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = file.with_file_name(name);
    fs::write(&new, text).and_then(|()| fs::rename(&new, file)).map_err(fail)
}

/// The list of a run that is put together from parts: that of the parts, where all were held against the same one.
/// Otherwise none, so that no violation passes.
pub(crate) fn merged(parts: &[Part]) -> Option<BaselineRecord> {
    let mut lists = parts.iter().map(|part| part.record.baseline.as_ref());
    let first = lists.next().flatten()?;
    lists.all(|other| other == Some(first)).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_with_its_folder_and_nothing_else_is_left() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("deep/known.toml");
        for text in ["one", "two"] {
            write(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(place.path().join("deep")).unwrap().count(), 1);
        let error = write(&file.join("below"), "x").unwrap_err().to_string();
        assert!(error.contains("known.toml/below"), "{error}");
    }

    #[test]
    fn a_shard_never_updates_the_list() {
        let mut known = KnownFailures { file: "k".into(), entries: Vec::new(), update: None };
        assert!(known.problem(true).is_none());
        known.update = Some(BaselineUpdate::Shrink);
        assert!(known.problem(true).is_some() && known.problem(false).is_none());
    }
}
