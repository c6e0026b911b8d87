//! A run on disk: `run.json`, and a folder per trial with its history, captured output and, where the
//! trial is not green, its state and ledger copy.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use killpoint_model::history::{History, HistoryError, HistoryReader};
use killpoint_model::run::RUN_VERSION;
use killpoint_model::{RunRecord, TrialRecord, json_words};
use killpoint_reports::{Reading, View};

use crate::error::RunError;
use crate::text_file::os_words;

/// The directory of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes a new directory; one that has something in it is refused.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(path: &Path) -> Result<Self, RunError> {
        let fail = |error| RunError::File { path: path.to_owned(), error };
        fs::create_dir_all(path).map_err(fail)?;
        let path = fs::canonicalize(path).map_err(fail)?;
        if fs::read_dir(&path).map_err(fail)?.next().is_some() {
            return Err(fail(io::Error::other("the run's folder is not empty; name another one")));
        }
        Ok(Self { path })
    }

    /// Opens a stored run.
    ///
    /// # Errors
    /// It is no run, or one that this program can't read.
    pub fn open(path: &Path) -> Result<(Self, RunRecord), RunError> {
        let file = path.join("run.json");
        let bad = |why: String| RunError::BadRun { path: file.clone(), why };
        let text = fs::read_to_string(&file).map_err(|error| bad(os_words(&error)))?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
            let copied = if error.is_eof() { "; it is cut short: was it copied whole?" } else { "" };
            bad(format!("{}{copied}", json_words(&error)))
        })?;
        if value.get("format").and_then(|format| format.as_str()) != Some("killpoint-run") {
            return Err(bad("this is no killpoint run".into()));
        }
        let version: (u32, u32) = value
            .get("version")
            .and_then(|version| serde_json::from_value(version.clone()).ok())
            .ok_or_else(|| bad("it has no version".into()))?;
        if version.0 != RUN_VERSION.0 || version.1 > RUN_VERSION.1 {
            let (major, minor) = version;
            return Err(bad(format!(
                "run format {major}.{minor} is newer than this killpoint reads; use the killpoint that wrote it"
            )));
        }
        let record = serde_json::from_str(&text).map_err(|error| bad(json_words(&error)))?;
        Ok((Self { path: path.to_owned() }, record))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A trial's folder.
    pub fn trial(&self, folder: &str) -> PathBuf {
        self.path.join(folder)
    }

    /// The place of a trial in the run, by the name of its folder.
    pub(crate) fn place(trial: &str) -> Option<usize> {
        trial.split_once('-')?.0.parse().ok()
    }

    /// The first place after all those of which something is on disk.
    pub(crate) fn first_free(&self) -> usize {
        let entries = fs::read_dir(&self.path).into_iter().flatten().filter_map(Result::ok);
        let places = entries.filter_map(|entry| Self::place(entry.file_name().to_str()?));
        places.max().map_or(0, |last| last + 1)
    }

    /// Writes `run.json` in one step: a reader sees the old one or the new one.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, record: &RunRecord) -> Result<(), RunError> {
        let (file, new) = (self.path.join("run.json"), self.path.join("run.json.new"));
        let fail = |error| RunError::File { path: file.clone(), error };
        let text = serde_json::to_string_pretty(record).map_err(|error| fail(io::Error::other(error)))?;
        fs::File::create(&new)
            .and_then(|mut out| out.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, &file))
            .map_err(fail)
    }

    /// Reads a trial's history.
    ///
    /// # Errors
    /// It is not there, or can't be understood.
    pub fn history(&self, folder: &str) -> Result<History, RunError> {
        let (path, input) = self.open_history(folder)?;
        History::read(input).map_err(|error| RunError::BadRun { path, why: error.to_string() })
    }

    /// Computes what a report shows of the run. One history after the other is read, event by event, so that
    /// their size does not matter.
    ///
    /// # Errors
    /// One is not there, or can't be understood.
    pub fn view(&self, record: &RunRecord) -> Result<View, RunError> {
        View::read(record, |trial, sink| {
            let (path, input) = self.open_history(&trial.folder)?;
            let bad = |error: HistoryError| RunError::BadRun { path: path.clone(), why: error.to_string() };
            let mut reader = HistoryReader::new(input).map_err(bad)?;
            while let Some(event) = reader.next_event().map_err(bad)? {
                sink(&event);
            }
            Ok(if reader.truncated() { Reading::Truncated } else { Reading::Whole })
        })
    }

    fn open_history(&self, folder: &str) -> Result<(PathBuf, BufReader<fs::File>), RunError> {
        let path = self.trial(folder).join("history.jsonl");
        match fs::File::open(&path) {
            Ok(file) => Ok((path, BufReader::new(file))),
            Err(error) => Err(RunError::BadRun { path, why: os_words(&error) }),
        }
    }

    /// Reads the histories of all trials of the run, by trial folder.
    ///
    /// # Errors
    /// One is not there, or can't be understood.
    pub fn histories(&self, record: &RunRecord) -> Result<BTreeMap<String, History>, RunError> {
        let one = |trial: &TrialRecord| Ok((trial.folder.clone(), self.history(&trial.folder)?));
        record.trials.iter().map(one).collect()
    }

    /// Removes what only a trial that does not hold needs. Failing to remove is no failure of the run.
    pub fn tidy(&self, folder: &str) {
        for name in ["state", "ledger-copy"] {
            let _ = fs::remove_dir_all(self.trial(folder).join(name));
        }
    }
}
