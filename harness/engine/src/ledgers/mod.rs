//! How the worker's own record is read: always from a copy.
//!
//! Opening a WAL database in another process can checkpoint it and so repair what the crash left.
//! Therefore nothing here ever opens the live ledger: its bytes are copied while the worker's tree is
//! stopped, and the copy is read.
//!
//! A ledger is one file in this folder plus one line in [`LEDGERS`].

mod command;
pub mod sqlite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use killpoint_model::Entry;
use killpoint_model::ledger::{LedgerRow, LedgerView};
use killpoint_model::settings::LedgerSettings;

use crate::state;
use crate::template::Templates;

/// Every kind of ledger that can be read.
pub static LEDGERS: &[&dyn Ledger] = &[&sqlite::Sqlite, &command::Command];

/// What a ledger is asked to read.
#[derive(Debug)]
pub struct Reading<'a> {
    /// The configuration.
    pub settings: &'a LedgerSettings,
    /// The folder that holds the copy.
    pub copy: &'a Path,
    /// Values for the templates of commands.
    pub templates: &'a Templates,
    /// A query beside the mapping whose first value is wanted.
    pub settle_query: Option<&'a str>,
    /// Whether a store that is not there yet is an error: it is at the end, not before.
    pub must_exist: bool,
}

/// What a reading gave.
#[derive(Debug, Default)]
pub struct Read {
    /// Canonical rows, where a mapping is configured.
    pub rows: Option<Vec<LedgerRow>>,
    /// Values of the boundary queries.
    pub values: BTreeMap<String, String>,
    /// Value of the settle query.
    pub settle_value: Option<String>,
}

/// One kind of store.
pub trait Ledger: Sync + std::fmt::Debug {
    /// Name and texts.
    fn entry(&self) -> &'static Entry;

    /// Whether a reading takes so long that it should not be repeated over unchanged files.
    fn is_slow(&self) -> bool {
        false
    }

    /// What must be copied, as absolute paths: files, or directories with all that is in them.
    fn sources(&self, settings: &LedgerSettings, templates: &Templates) -> Vec<PathBuf>;

    /// Takes out of the copy what no living process can see yet, such as a transaction whose commit is half done: the
    /// worker may die before it is done, and the others go on without it. Gives whether there was nothing such.
    ///
    /// # Errors
    /// What the file system says.
    fn trim_to_the_living(&self, _sources: &[PathBuf], _copy: &Path) -> std::io::Result<bool> {
        Ok(true)
    }

    /// Reads the copy.
    ///
    /// # Errors
    /// The store's own words, in one line.
    fn read(&self, reading: &Reading<'_>) -> Result<Read, String>;
}

/// Finds a ledger by name.
pub fn find(name: &str) -> Option<&'static dyn Ledger> {
    LEDGERS.iter().copied().find(|ledger| ledger.entry().name == name)
}

/// A configured ledger of one trial.
#[derive(Debug)]
pub struct LedgerReader {
    settings: LedgerSettings,
    settle_query: Option<String>,
    ledger: &'static dyn Ledger,
    templates: Templates,
    scratch: PathBuf,
    sources: Vec<PathBuf>,
}

/// A copy that was taken and not yet read.
#[derive(Debug)]
pub struct Copy {
    folder: PathBuf,
    /// Whether nothing was being written that the living could not see yet: it can come to be seen without a change of
    /// the files that a signature is made of.
    pub is_quiet: bool,
}

impl LedgerReader {
    /// Prepares to read the configured ledger; copies go below `scratch`. `None` for an unknown kind, which
    /// the configuration has already refused.
    pub fn new(
        settings: &LedgerSettings,
        settle_query: Option<&str>,
        templates: &Templates,
        scratch: &Path,
    ) -> Option<Self> {
        let ledger = find(&settings.kind)?;
        Some(Self {
            sources: ledger.sources(settings, templates),
            settings: settings.clone(),
            settle_query: settle_query.map(str::to_owned),
            ledger,
            templates: templates.clone(),
            scratch: scratch.to_owned(),
        })
    }

    /// Whether a reading should not be repeated over unchanged files.
    pub fn is_slow(&self) -> bool {
        self.ledger.is_slow()
    }

    /// What the sources look like from outside, without opening them.
    pub fn signature(&self) -> state::Signature {
        match self.sources.as_slice() {
            [one] if one.is_dir() => state::Signature::of_tree(one),
            files => state::Signature::of_files(files),
        }
    }

    /// Copies the sources. The worker's tree must stand still, in which case the copy is what the `living` see of it, or
    /// be dead: then it is what the next life will find.
    ///
    /// # Errors
    /// What the file system says.
    pub fn copy(&self, living: bool) -> std::io::Result<Copy> {
        if self.scratch.exists() {
            std::fs::remove_dir_all(&self.scratch)?;
        }
        std::fs::create_dir_all(&self.scratch)?;
        for source in &self.sources {
            let target = self.scratch.join(source.file_name().unwrap_or_default());
            if source.is_dir() {
                state::copy_tree(source, &target)?;
            } else if source.exists() {
                state::copy_file(source, &target)?;
            }
        }
        let is_quiet = !living || self.ledger.trim_to_the_living(&self.sources, &self.scratch)?;
        Ok(Copy { folder: self.scratch.clone(), is_quiet })
    }

    /// Names and values by a query on a fresh copy; the tree may run, because single values are read.
    ///
    /// # Errors
    /// The store's own words.
    pub fn named_values(&self, query: &str) -> Result<BTreeMap<String, f64>, String> {
        let copy = self.copy(false).map_err(|error| error.to_string())?;
        let name = self.sources.first().and_then(|path| path.file_name()).unwrap_or_default();
        sqlite::named_values(&copy.folder.join(name), query)
    }

    /// Reads a copy into a view and the settle query's value. An unreadable store is a view with its error.
    pub fn read(&self, copy: &Copy, must_exist: bool) -> (LedgerView, Option<String>) {
        let reading = Reading {
            settings: &self.settings,
            copy: &copy.folder,
            templates: &self.templates,
            settle_query: self.settle_query.as_deref(),
            must_exist,
        };
        let view = |rows, values, error| LedgerView { exact: true, rows, values, error };
        match self.ledger.read(&reading) {
            Ok(mut read) => {
                if let Some(rows) = &mut read.rows {
                    rows.sort();
                }
                (view(read.rows, read.values, None), read.settle_value)
            }
            Err(error) => (view(None, BTreeMap::new(), Some(error)), None),
        }
    }
}

/// Maps the worker's own word to a canonical state; shared by all ledgers.
fn canonical<T: std::str::FromStr + Clone>(
    word: &str,
    map: &BTreeMap<String, T>,
    column: &str,
) -> Result<T, String> {
    map.get(word).cloned().or_else(|| word.parse().ok()).ok_or_else(|| {
        format!("{column} `{word}` is not mapped; add it to `[ledger]`, such as `{column}s = {{ \"{word}\" = \"…\" }}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_is_well_formed() {
        let entries: Vec<Entry> = LEDGERS.iter().map(|ledger| *ledger.entry()).collect();
        assert_eq!(killpoint_model::catalog::slice_problems(&entries), Vec::<String>::new());
    }
}
