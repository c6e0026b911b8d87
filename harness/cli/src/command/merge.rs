//! `killpoint merge`: the shards of a run, put together and judged as a whole.

use std::path::PathBuf;

use clap::Args;
use killpoint::model::ExitCode;

use crate::invocation::{Shown, folder_or_default};

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// The folders of the shards, in any order. What is missing is named, and is never green
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// A new or empty folder for the merged run [default: killpoint-runs/TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
}

impl Merge {
    pub(crate) fn run(self) -> ExitCode {
        let targets = match self.shown.targets() {
            Ok(targets) => targets,
            Err(problems) => return problems.complain(),
        };
        let command_line = std::env::args().skip(1).collect();
        let merged = killpoint::merge(&self.runs, &folder_or_default(self.out.as_ref()), command_line);
        self.shown.show_stored(merged, &targets)
    }
}
