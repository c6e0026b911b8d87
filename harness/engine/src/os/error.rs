//! What can go wrong below the engine.

use std::path::PathBuf;
use std::time::Duration;

use killpoint_model::event::Containment;
use nix::errno::Errno;

/// Why something could not be done with processes.
#[derive(Debug, thiserror::Error)]
pub enum OsError {
    /// The machine ran out of something; says nothing about the worker, and a retry may succeed.
    #[error("the machine ran out of something while {doing}: {errno}")]
    Infrastructure {
        /// What was being done.
        doing: String,
        /// The operating system's answer.
        errno: Errno,
    },
    /// The operating system refused.
    #[error("{doing}: {errno}")]
    System {
        /// What was being done.
        doing: String,
        /// The operating system's answer.
        errno: Errno,
    },
    /// The required containment can't be had here.
    #[error("containment `{containment}` can't be had on this machine: {reason}")]
    ContainmentRefused {
        /// What was asked for.
        containment: Containment,
        /// The step that failed, the answer, and the likely cause.
        reason: String,
    },
    /// A worker's wall clock can't be moved here.
    #[error("the worker's clock can't be moved on this machine: {reason}")]
    ClockRefused {
        /// The step that failed, and the answer.
        reason: String,
    },
    /// There is no such program.
    #[error("command `{command}` not found (looked in {searched}); give its path, or set PATH")]
    CommandNotFound {
        /// The first word of the command.
        command: String,
        /// The directories or the path looked at.
        searched: String,
    },
    /// The program is there but can't be started.
    #[error("`{}` can't be executed: {errno}{hint}", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        errno: Errno,
        /// What to do, starting with a separator; may be empty.
        hint: &'static str,
    },
    /// The worker's directory can't be entered.
    #[error("working directory `{}` can't be entered: {errno}", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// The operating system's answer.
        errno: Errno,
    },
    /// A word of the command or of the environment has a NUL byte, or the command has no word.
    #[error("{what}")]
    InvalidCommand {
        /// What is wrong, and where.
        what: String,
    },
    /// A process of the tree kept running after SIGSTOP.
    #[error("process {pid} (state {state}) did not stop within {} ms", limit.as_millis())]
    NotStopping {
        /// Process id as the harness sees it.
        pid: u32,
        /// Its state letter as in `/proc/PID/stat`.
        state: char,
        /// How long was waited.
        limit: Duration,
    },
    /// Processes of the tree live on after SIGKILL.
    #[error("processes {pids:?} are still there {} ms after SIGKILL", limit.as_millis())]
    Survivors {
        /// Process ids as the harness sees them.
        pids: Vec<u32>,
        /// How long was waited.
        limit: Duration,
    },
    /// The slot's init did not answer.
    #[error("the slot's init did not answer within {} ms while {doing}", limit.as_millis())]
    Unresponsive {
        /// What it was asked to do.
        doing: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// The slot's init is gone, so nothing can be said about its tree any more.
    #[error("the slot's init is gone; something outside of the harness must have killed it")]
    ContainmentLost,
}

impl OsError {
    /// Whether the machine, not the worker or the configuration, is at fault: no verdict can follow.
    pub fn is_infrastructure(&self) -> bool {
        match self {
            Self::Infrastructure { .. }
            | Self::NotStopping { .. }
            | Self::Survivors { .. }
            | Self::Unresponsive { .. }
            | Self::ContainmentLost => true,
            Self::System { .. }
            | Self::ContainmentRefused { .. }
            | Self::ClockRefused { .. }
            | Self::CommandNotFound { .. }
            | Self::NotExecutable { .. }
            | Self::WorkingDirectory { .. }
            | Self::InvalidCommand { .. } => false,
        }
    }

    /// Sorts an answer of the operating system: a shortage, or a refusal.
    pub(crate) fn from_errno(doing: impl Into<String>, errno: Errno) -> Self {
        let doing = doing.into();
        if is_shortage(errno) { Self::Infrastructure { doing, errno } } else { Self::System { doing, errno } }
    }

    /// The same for errors of the standard library.
    pub(crate) fn from_io(doing: impl Into<String>, error: &std::io::Error) -> Self {
        Self::from_errno(doing, Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)))
    }
}

/// Whether the machine is out of something that may come back.
pub(super) fn is_shortage(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EAGAIN | Errno::ENOMEM | Errno::ENOSPC | Errno::EMFILE | Errno::ENFILE | Errno::EDQUOT
    )
}
