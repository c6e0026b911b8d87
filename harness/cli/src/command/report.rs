//! `killpoint report`: shows a stored run as it was judged.

use std::path::PathBuf;

use clap::Args;
use killpoint::RunFolder;
use killpoint::model::ExitCode;

use crate::invocation::Shown;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run's folder
    run: PathBuf,
    #[command(flatten)]
    shown: Shown,
}

impl Report {
    pub(crate) fn run(self) -> ExitCode {
        match self.shown.targets() {
            Ok(targets) => self.shown.show_stored(RunFolder::open(&self.run), &targets),
            Err(problems) => problems.complain(),
        }
    }
}
