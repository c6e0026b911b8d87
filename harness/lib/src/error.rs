//! Why a run gave no verdict.

use std::path::PathBuf;

use killpoint_model::{Diagnostic, ExitCode};

use crate::code::Code;
use crate::text_file::os_words;

/// A run, or a check of one, that could not be carried through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// What was asked for is invalid.
    #[error("invalid configuration")]
    Invalid(Vec<Diagnostic>),
    /// The worker could not be started, or does not work without faults either.
    #[error("set-up failed: {0}")]
    SetupFailed(String),
    /// A file of the run can't be written or read.
    #[error("{}: {}", .path.display(), os_words(.error))]
    File {
        /// Which.
        path: PathBuf,
        /// The operating system's words.
        error: std::io::Error,
    },
    /// Two stored runs are no parts of one.
    #[error("{} and {} are no shards of one run: {why}", .one.display(), .other.display())]
    Apart {
        /// The one's folder.
        one: PathBuf,
        /// The other's.
        other: PathBuf,
        /// What differs.
        why: String,
    },
    /// A stored run can't be understood.
    #[error("{}: {why}", .path.display())]
    BadRun {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl RunError {
    /// What is to be said to the user.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let code = match self {
            Self::Invalid(problems) => return problems.clone(),
            Self::SetupFailed(_) => Code::SetupFailed,
            Self::File { .. } => Code::UnusableFile,
            Self::Apart { .. } => Code::ShardsApart,
            Self::BadRun { .. } => Code::BadRun,
        };
        vec![Diagnostic::error(code, self.to_string())]
    }

    /// The exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Invalid(_) | Self::BadRun { .. } | Self::Apart { .. } => ExitCode::InvalidConfig,
            Self::SetupFailed(_) | Self::File { .. } => ExitCode::SetupFailed,
        }
    }
}
