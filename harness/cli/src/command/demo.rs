//! `killpoint demo`: the gate on the built-in worker, which is this program started again.

use std::path::Path;

use clap::Args;
use killpoint::RunRequest;
use killpoint::model::ExitCode;

use super::demo_worker::{self, Variant};
use crate::diagnostics::Diagnosed;
use crate::gate::Gate;
use crate::invocation::{Selection, Shown};

/// Where the built-in worker's boundaries are stored unless told otherwise.
const BOUNDARIES: &str = "killpoint/demo-boundaries.toml";

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seed a bug; `killpoint selftest` lists them
    #[arg(long, value_name = "NAME")]
    bug: Option<String>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    gate: Gate,
    #[command(flatten)]
    shown: Shown,
}

impl Demo {
    pub(crate) fn run(self) -> ExitCode {
        match self.request() {
            Ok(request) => self.shown.run(request),
            Err(problems) => problems.complain(),
        }
    }

    fn request(&self) -> Result<RunRequest, Diagnosed> {
        let settings = demo_worker::settings(self.bug.as_deref(), Variant::showing(self.bug.as_deref()))?;
        let (strategy, profile) = self.selection.trials(&settings)?;
        let bug = self.bug.as_ref().map(|bug| format!(" --bug {bug}")).unwrap_or_default();
        let request = RunRequest {
            strategy,
            profile,
            jobs: self.selection.jobs(),
            repeat: self.selection.repeat(),
            second_level: self.selection.second_level()?,
            shard: self.selection.shard(),
            folder: self.selection.folder(),
            command_line: std::env::args().skip(1).collect(),
            replay: (format!("killpoint demo{bug}"), String::new()),
            ..RunRequest::sweep(settings, "")
        };
        self.gate.of(request, Path::new(BOUNDARIES))
    }
}
