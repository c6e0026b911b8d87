//! `killpoint run`: the gate.

use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::model::{ExitCode, Settings};
use killpoint::{RunRequest, scenarios};

use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::gate::Gate;
use crate::invocation::{Selection, Shown, boundaries_beside, regressions_beside, worker_line};
use crate::preamble::Environment;

/// Where the configuration is read from unless told otherwise.
pub(super) const CONFIG: &str = "killpoint.toml";

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The configuration [default: killpoint.toml, unless a command is given]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    gate: Gate,
    #[command(flatten)]
    environment: Environment,
    #[command(flatten)]
    shown: Shown,
    /// A worker to run without a configuration: the baseline's effects are the only oracle. It is given
    /// PROVIDER_URL, STATE_DIR and WORKER_DB, and {provider.rest} and {state} are filled in
    #[arg(last = true, value_name = "CMD", num_args = 1..)]
    command: Vec<String>,
}

impl Run {
    pub(crate) fn run(self) -> ExitCode {
        match self.request() {
            Ok(request) => self.shown.run_announced(request),
            Err(problems) => problems.complain(),
        }
    }

    fn request(&self) -> Result<RunRequest, Diagnosed> {
        let (settings, mut replay) = self.settings()?;
        let settings = self.environment.of(settings);
        replay.0 += &self.environment.words();
        let (strategy, profile) = self.selection.trials(&settings)?;
        let request = RunRequest {
            strategy,
            profile,
            jobs: self.selection.jobs(),
            repeat: self.selection.repeat(),
            second_level: self.selection.second_level()?,
            shard: self.selection.shard(),
            folder: self.selection.folder(),
            command_line: std::env::args().skip(1).collect(),
            replay,
            source: self.command.is_empty().then(|| worker_line(&self.config_path())),
            regressions: self.command.is_empty().then(|| regressions_beside(&self.config_path())),
            ..RunRequest::sweep(settings, "")
        };
        self.gate.of(request, &boundaries_beside(&self.config_path()))
    }

    fn config_path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| CONFIG.into())
    }

    fn settings(&self) -> Result<(Settings, (String, String)), Diagnosed> {
        if self.command.is_empty() {
            let path = self.config_path();
            return Ok((load_config(&path)?, killpoint::replay_of_config(&path)));
        }
        if self.config.is_some() {
            return Err(Diagnosed::one(
                Code::TwoWorkers,
                "a command after `--` and --config both name a worker; give one",
            ));
        }
        let cwd = std::env::current_dir().map_err(|error| {
            Diagnosed::one(Code::NoFolder, &format!("the current folder can't be read: {error}"))
        })?;
        let replay = killpoint::replay_of_command(&self.command);
        Ok((scenarios::bare_settings(self.command.clone(), cwd), replay))
    }
}

/// Reads a configuration.
pub(super) fn load_config(path: &Path) -> Result<Settings, Diagnosed> {
    crate::diagnostics::load(path, |text, file| {
        // The file's path first: the folder of a bare file name is empty, and has no absolute form.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        scenarios::load_config(text, file, folder, &killpoint::catalog())
    })
}
