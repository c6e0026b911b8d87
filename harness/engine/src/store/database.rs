//! An SQLite database as files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Where the header says how it is written and read: 2 and 2 for a write-ahead log, 1 and 1 without.
const VERSIONS_AT: usize = 18;

/// A database file with its companions. Only the files are looked at; nothing is opened through SQLite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Database {
    path: PathBuf,
}

impl Database {
    /// The database at this path; it need not be there.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The database file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The write-ahead log.
    pub(crate) fn wal(&self) -> PathBuf {
        self.companion("-wal")
    }

    /// The index over the write-ahead log, in memory shared by the connections.
    pub(crate) fn shm(&self) -> PathBuf {
        self.companion("-shm")
    }

    /// What a copy needs: the file, its log and its rollback journal. The index is left out: whoever opens
    /// first makes it anew.
    pub(crate) fn durable_files(&self) -> [PathBuf; 3] {
        [self.path.clone(), self.wal(), self.companion("-journal")]
    }

    /// The files of the database that are there, the index included.
    pub(crate) fn existing_files(&self) -> Vec<PathBuf> {
        let files = self.durable_files().into_iter().chain([self.shm()]);
        files.filter(|path| path.exists()).collect()
    }

    /// Whether its header says that it is written through a write-ahead log.
    ///
    /// # Errors
    /// What the file system says; an unfinished header is no error.
    pub(crate) fn uses_wal(&self) -> io::Result<bool> {
        let mut header = Vec::new();
        File::open(&self.path)?.take(VERSIONS_AT as u64 + 2).read_to_end(&mut header)?;
        Ok(header.get(VERSIONS_AT..) == Some(&[2, 2]))
    }

    fn companion(&self, end: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(end);
        PathBuf::from(name)
    }
}
