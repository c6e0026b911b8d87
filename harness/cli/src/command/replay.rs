//! `killpoint replay`: one plan again, from a token or a scenario file.

use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::model::{ExitCode, Plan, Settings};
use killpoint::scenarios::search::token::{Target, Token};
use killpoint::{RunRequest, Strategy, worker_id};

use super::demo_worker::{self, Variant};
use super::run::{CONFIG, load_config};
use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::invocation::{Selection, Shown, folder_or_default, scenario, worker_line};
use crate::preamble::Environment;
use crate::show;

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A token that begins with kp1:, or a scenario file
    #[arg(value_name = "TOKEN|FILE")]
    what: String,
    /// The configuration, for a token that is not of the built-in worker [default: killpoint.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How often the trial is done
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: std::num::NonZeroU32,
    /// Trials at the same time [default: twice the processors, because trials mostly wait]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroU16>,
    /// A new or empty folder for the run [default: killpoint-runs/TIME]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    #[command(flatten)]
    environment: Environment,
    #[command(flatten)]
    shown: Shown,
}

impl Replay {
    pub(crate) fn run(self) -> ExitCode {
        match self.request() {
            Ok((request, Target::Demo { .. })) => self.shown.run(request),
            Ok((request, Target::Config)) => self.shown.run_announced(request),
            Err(problems) => problems.complain(),
        }
    }

    fn request(&self) -> Result<(RunRequest, Target), Diagnosed> {
        let (plan, target, noted) = self.plan()?;
        let (settings, replay) = self.settings(&target)?;
        if noted.is_some_and(|noted| noted != worker_id(&settings)) {
            show::note(
                "the worker's settings differ from those that the token was made with; its verdict may differ, too",
            );
        }
        let request = RunRequest {
            strategy: Strategy::Scenarios(vec![plan]),
            jobs: Selection::jobs_or_default(self.jobs),
            repeat: self.repeat.get(),
            command_line: std::env::args().skip(1).collect(),
            replay: (replay, String::new()),
            source: matches!(target, Target::Config).then(|| worker_line(&self.config_path())),
            ..RunRequest::sweep(settings, folder_or_default(self.run_dir.as_ref()))
        };
        Ok((request, target))
    }

    /// The plan, its worker, and the settings that it was made with where that is known.
    fn plan(&self) -> Result<(Plan, Target, Option<String>), Diagnosed> {
        if Path::new(&self.what).is_file() {
            return Ok((scenario(&self.what)?, Target::Config, None));
        }
        if !self.what.trim_start().starts_with("kp") {
            let what = format!(
                "`{}` is neither a replay token nor a file; copy the token whole, it begins with kp1:, or name a scenario file",
                self.what
            );
            return Err(Diagnosed::one(Code::BadToken, &what));
        }
        let token =
            Token::decode(&self.what).map_err(|error| Diagnosed::one(Code::BadToken, &error.to_string()))?;
        Ok((token.plan, token.target, token.settings_id))
    }

    fn config_path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| CONFIG.into())
    }

    fn settings(&self, target: &Target) -> Result<(Settings, String), Diagnosed> {
        match target {
            Target::Demo { .. } if self.config.is_some() => {
                let what =
                    "the token is of the built-in worker, and --config names another one; leave --config out";
                Err(Diagnosed::one(Code::TwoWorkers, what))
            }
            Target::Demo { bug } => {
                let words = bug.as_ref().map(|bug| format!(" --bug {bug}")).unwrap_or_default();
                let settings = demo_worker::settings(bug.as_deref(), Variant::showing(bug.as_deref()))?;
                Ok((settings, format!("killpoint demo{words}")))
            }
            Target::Config => {
                let path = self.config_path();
                let words = self.environment.words();
                let replay = format!("killpoint run --config '{}'{words}", path.display());
                Ok((self.environment.of(load_config(&path)?), replay))
            }
        }
    }
}
