//! `killpoint doctor`: what this machine can do, what a configuration reaches, and what is left out.

use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::doctor;
use killpoint::model::{ExitCode, Settings};

use super::run::{CONFIG, load_config};
use crate::diagnostics::{Diagnosed, complain_of_run};
use crate::invocation::Form;
use crate::show;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The configuration to hold against this machine [default: killpoint.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where runs are put: files are tried there
    #[arg(long, value_name = "DIR", default_value = "killpoint-runs")]
    run_dir: PathBuf,
    /// What standard output carries
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

impl Doctor {
    pub(crate) fn run(self) -> ExitCode {
        let config = match self.settings() {
            Ok(config) => config,
            Err(problems) => return problems.complain(),
        };
        let named = config.as_ref().map(|(file, settings)| (file.as_str(), settings));
        let diagnosis = match super::block_on(doctor::diagnose(named, &self.run_dir)) {
            Ok(Ok(diagnosis)) => diagnosis,
            Ok(Err(error)) => return complain_of_run(&error),
            Err(code) => return code,
        };
        let text = match self.format {
            Form::Text => doctor::show(&diagnosis, show::width()),
            Form::Json => serde_json::to_string_pretty(&diagnosis).unwrap_or_default(),
        };
        let code = if diagnosis.can_run { ExitCode::Holds } else { ExitCode::SetupFailed };
        show::lines_to_stdout(&text).err().unwrap_or(code)
    }

    /// The configuration that was named, or the usual one where it is there.
    fn settings(&self) -> Result<Option<(String, Settings)>, Diagnosed> {
        let path = match &self.config {
            Some(path) => path.clone(),
            None if Path::new(CONFIG).exists() => PathBuf::from(CONFIG),
            None => return Ok(None),
        };
        Ok(Some((path.display().to_string(), load_config(&path)?)))
    }
}
