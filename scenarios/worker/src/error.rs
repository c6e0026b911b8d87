//! Why the worker stops.

use std::path::PathBuf;

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
    /// The output could not be written.
    #[error("can't write the output: {0}")]
    Output(#[from] std::io::Error),
}
