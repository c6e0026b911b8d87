//! Why the worker stops.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// Why a command of the worker ended without success. It stops rather than guesses: the ledger is intact,
/// and the next life goes on from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The ledger could not be read or written.
    #[error("the ledger failed: {0}")]
    Ledger(#[from] rusqlite::Error),
    /// There is no ledger to look at.
    #[error("there is no ledger at {}; enqueue something first", .0.display())]
    NoLedger(PathBuf),
    /// The ledger was made by another version of the worker.
    #[error("{} has schema version {version}, not {expected}; use the worker that made it", .path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// What it has.
        version: i64,
        /// What this worker reads.
        expected: i64,
    },
    /// The harness did not let the worker go on.
    #[error(transparent)]
    Mark(#[from] killpoint_mark::MarkError),
    /// The file of actions could not be read.
    #[error("can't read {}: {cause}", .path.display())]
    Actions {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// A line of the file of actions is no action.
    #[error("{}, line {line}: {why}", .path.display())]
    BadAction {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The inbound feed did not answer.
    #[error("the feed failed {times} times, the last time: {why}")]
    Feed {
        /// How often in a row.
        times: u32,
        /// What came instead.
        why: String,
    },
    /// SIGTERM could not be caught.
    #[error("can't catch SIGTERM: {0}")]
    Signal(std::io::Error),
    /// The output could not be written.
    #[error("can't write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl WorkerError {
    /// Whether the ledger is there but can't be written now: locked, full, read-only, or its disk fails. Going on
    /// would mean to act without a record.
    pub(crate) fn is_ledger_unwritable(&self) -> bool {
        let Self::Ledger(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::ReadOnly
                    | ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure
            )
        )
    }
}
