//! Why a trial could not be carried through. A worker's failure is an event, not one of these.

use crate::os::OsError;

/// The harness could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The worker, or a command that makes its state, could not be run: the user's to mend.
    #[error("{what}: {why}")]
    Setup {
        /// What was being done.
        what: String,
        /// What went wrong, with the last lines of output where there are some.
        why: String,
    },
    /// The machine is short of something (EAGAIN, ENOSPC, …): never a verdict.
    #[error("infrastructure: {doing}: {error}")]
    Infrastructure {
        /// What was being done.
        doing: String,
        /// The operating system's words.
        error: String,
    },
}

impl TrialError {
    /// Sorts an operating system error: shortage of the machine, or the user's set-up.
    pub fn from_io(doing: &str, error: &std::io::Error) -> Self {
        Self::Infrastructure { doing: doing.to_owned(), error: error.to_string() }
    }

    /// Sorts an error of a slot.
    pub fn from_os(doing: &str, error: &OsError) -> Self {
        match error {
            OsError::CommandNotFound { .. } | OsError::NotExecutable { .. } => {
                Self::Setup { what: doing.to_owned(), why: error.to_string() }
            }
            _ => Self::Infrastructure { doing: doing.to_owned(), error: error.to_string() },
        }
    }
}
