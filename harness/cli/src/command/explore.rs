//! `killpoint explore`: plans that nobody wrote down, until one is red or the budget is spent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use killpoint::model::ExitCode;
use killpoint::scenarios::search::token::Target;
use killpoint::{ExploreRequest, RunRequest, Strategy};

use super::demo_worker::{self, Variant};
use super::run::{CONFIG, load_config};
use crate::diagnostics::Diagnosed;
use crate::invocation::{Selection, Shown, folder_or_default, regressions_beside, time, worker_line};
use crate::preamble::Environment;

/// How long new plans are drawn unless told otherwise.
const TIME_DEFAULT: Duration = Duration::from_secs(60);

/// Arguments of `explore`.
#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// The configuration [default: killpoint.toml]
    #[arg(long, value_name = "FILE", conflicts_with = "demo")]
    config: Option<PathBuf>,
    /// Explore the built-in worker; nothing else is needed
    #[arg(long)]
    demo: bool,
    /// Seed a bug into the built-in worker; `killpoint selftest` lists them
    #[arg(long, value_name = "NAME", requires = "demo")]
    bug: Option<String>,
    /// How long new plans are drawn, such as 60s or 10m [default: 60s, unless --cases is given]
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// How many plans are drawn at most
    #[arg(long, value_name = "N")]
    cases: Option<std::num::NonZeroU32>,
    /// The seed of the plans [default: a new one, which is told]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Where counterexamples are kept as scenario files; those that are there are tried first [default:
    /// killpoint/regressions beside the configuration, killpoint/demo-regressions for the built-in worker]
    #[arg(long, value_name = "DIR")]
    regressions: Option<PathBuf>,
    /// Trials at the same time [default: twice the processors, because trials mostly wait]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroU16>,
    /// A new or empty folder for the run [default: killpoint-runs/TIME]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Go on with the exploration in this folder, with its seed and what it has tried
    #[arg(long, value_name = "DIR", conflicts_with_all = ["run_dir", "seed"])]
    resume: Option<PathBuf>,
    #[command(flatten)]
    environment: Environment,
    #[command(flatten)]
    shown: Shown,
}

impl Explore {
    pub(crate) fn run(self) -> ExitCode {
        match self.request() {
            Ok(request) if self.demo => self.shown.run(request),
            Ok(request) => self.shown.run_announced(request),
            Err(problems) => problems.complain(),
        }
    }

    fn config_path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| CONFIG.into())
    }

    fn request(&self) -> Result<RunRequest, Diagnosed> {
        let (settings, target, replay, regressions) = if self.demo {
            let bug = self.bug.clone();
            let settings = demo_worker::settings(bug.as_deref(), Variant::showing(bug.as_deref()))?;
            let words = bug.as_ref().map(|bug| format!(" --bug {bug}")).unwrap_or_default();
            let folder = Path::new("killpoint/demo-regressions").join(bug.as_deref().unwrap_or("right"));
            (settings, Target::Demo { bug }, format!("killpoint demo{words}"), folder)
        } else {
            let path = self.config_path();
            let settings = self.environment.of(load_config(&path)?);
            let replay = format!("killpoint run --config '{}'{}", path.display(), self.environment.words());
            (settings, Target::Config, replay, regressions_beside(&path))
        };
        let exploring = ExploreRequest {
            seed: self.seed.unwrap_or_else(Selection::new_seed),
            time: self.time.or_else(|| self.cases.is_none().then_some(TIME_DEFAULT)),
            cases: self.cases.map(std::num::NonZeroU32::get),
            regressions: self.regressions.clone().unwrap_or(regressions),
            target,
            resume: self.resume.is_some(),
        };
        let folder = self.resume.clone().unwrap_or_else(|| folder_or_default(self.run_dir.as_ref()));
        Ok(RunRequest {
            strategy: Strategy::Explore(exploring),
            jobs: Selection::jobs_or_default(self.jobs),
            command_line: std::env::args().skip(1).collect(),
            replay: (replay, String::new()),
            source: (!self.demo).then(|| worker_line(&self.config_path())),
            ..RunRequest::sweep(settings, folder)
        })
    }
}
