//! `killpoint mark NAME`: the shell's way to name a boundary.

use clap::Args;
use killpoint::model::ExitCode;

use crate::code::Code;
use crate::diagnostics::Diagnosed;

/// Arguments of `mark`.
#[derive(Debug, Args)]
pub(crate) struct Mark {
    /// The mark's name, such as item-claimed
    name: String,
}

impl Mark {
    pub(crate) fn run(self) -> ExitCode {
        match killpoint_mark::mark(&self.name) {
            Ok(()) => ExitCode::Holds,
            Err(error) => {
                Diagnosed::one(Code::MarkFailed, &error.to_string()).complain();
                ExitCode::SetupFailed
            }
        }
    }
}
