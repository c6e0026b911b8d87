//! `killpoint check`: judges a stored run again.

use std::path::PathBuf;

use clap::Args;
use killpoint::model::ExitCode;
use killpoint::reports::View;

use crate::diagnostics;
use crate::invocation::Shown;
use crate::show;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The run's folder
    run: PathBuf,
    #[command(flatten)]
    shown: Shown,
}

impl Check {
    pub(crate) fn run(self) -> ExitCode {
        let targets = match self.shown.targets() {
            Ok(targets) => targets,
            Err(problems) => return problems.complain(),
        };
        let checked = match killpoint::check(&self.run) {
            Ok(checked) => checked,
            Err(error) => return diagnostics::complain_of_run(&error),
        };
        for folder in &checked.changed {
            show::note(&format!("{folder}: the verdict differs from the stored one"));
        }
        let view = View::new(&checked.record, &checked.histories);
        self.shown.show(&view, &self.run, &targets)
    }
}
