//! What is done to the worker's store from outside, and what it is read for beside its rows.
//!
//! Nothing here opens a ledger through SQLite that the worker does not hold open itself: whoever opens a dead
//! one first repairs what the crash left. Locks are open-file-description locks, because the harness opens and
//! closes the same files for its copies, and a close drops every classic lock of its process.
//!
//! | file | holds |
//! |---|---|
//! | `database` | an SQLite database's files and what its headers say |
//! | `wal` | the write-ahead log: frames, commits, and cutting it |
//! | `synced` | which part of a file a power cut would take |
//! | `competitor` | another writer: the write lock, and commits under a reader's feet |
//! | `locks` | the bytes on which SQLite's connections meet |
//! | `read_only` | files that can't be written |
//! | `space` | a file system with a size, and no space left |
//! | `copy` | the state directory remembered and put back |
//! | `integrity` | whether a copy calls itself sound |

pub(crate) mod competitor;
pub(crate) mod copy;
mod database;
mod integrity;
mod locks;
pub(crate) mod read_only;
pub(crate) mod space;
pub(crate) mod synced;
pub(crate) mod target;
pub(crate) mod wal;

use std::io;

pub(crate) use database::Database;
pub(crate) use integrity::integrity;

use crate::error::TrialError;

/// Why a store fault did not take hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The store is not in a state in which this can be done: says why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// The file system failed.
    #[error("{doing}: {error}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the operating system says.
        error: io::Error,
    },
}

impl StoreError {
    fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }

    /// Wraps an operating system error.
    fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Io { doing, error }
    }

    /// A refusal is an answer; anything else is a failure of the machine.
    ///
    /// # Errors
    /// The machine's failure.
    pub(crate) fn into_refusal(self) -> Result<String, TrialError> {
        match self {
            Self::Refused(why) => Ok(why),
            Self::Io { doing, error } => Err(TrialError::from_io(&doing, &error)),
        }
    }
}

/// Runs work on files away from the event loop.
///
/// # Errors
/// The work's own error, or that the machine has no thread for it.
pub(crate) async fn on_files<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(StoreError::io("running a helper thread")(io::Error::other(error))))
}
