//! `killpoint report`: shows a stored run as it was judged.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use killpoint::RunFolder;
use killpoint::model::{ExitCode, History};
use killpoint::reports::View;

use crate::invocation::Shown;
use crate::show;

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
        let targets = match self.shown.targets() {
            Ok(targets) => targets,
            Err(problems) => return problems.complain(),
        };
        let stored = RunFolder::open(&self.run).and_then(|(folder, record)| {
            let histories: Result<BTreeMap<String, History>, _> = record
                .trials
                .iter()
                .map(|trial| Ok((trial.folder.clone(), folder.history(&trial.folder)?)))
                .collect();
            Ok((record, histories?))
        });
        match stored {
            Ok((record, histories)) => {
                let view = View::new(&record, &histories);
                self.shown.show(&view, &self.run, &targets)
            }
            Err(error) => {
                show::complain(&error.to_string());
                error.exit_code()
            }
        }
    }
}
