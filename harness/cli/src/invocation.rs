//! What `run` and `demo` share: which trials, how they are shown, and the run itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use killpoint::model::checklist::{ProfileName, RunProfile};
use killpoint::model::plan::duration_ms;
use killpoint::model::{Clock, ExitCode, HitName, Plan, RunRecord, Settings, SourceLine, SystemClock};
use killpoint::reports::{self, Options, View};
use killpoint::{RunError, RunFolder, RunRequest, SecondLevel, Shard, scenarios};

use crate::code::Code;
use crate::command;
use crate::diagnostics::{self, Diagnosed};
use crate::preamble;
use crate::progress::Bar;
use crate::report_file::{self, STDOUT};
use crate::show;

/// Where the counterexamples of a worker are kept: beside its configuration.
pub(crate) fn regressions_beside(config: &Path) -> PathBuf {
    config.parent().unwrap_or(Path::new("")).join("killpoint/regressions")
}

/// Where the boundaries of a worker are stored: beside its configuration.
pub(crate) fn boundaries_beside(config: &Path) -> PathBuf {
    config.parent().unwrap_or(Path::new("")).join("killpoint/boundaries.toml")
}

/// Where the plans come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// The plans as written in scenario files
    Scenario,
    /// A trial per boundary hit of the baseline, and one per provider plan
    Sweep,
}

/// Form of what is printed to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For a person
    Text,
    /// For a program
    Json,
}

/// Which trials.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// A scenario of the library by name, or a scenario file; may be given again
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Vec<String>,
    /// Kill at this boundary only, such as provider:committed#1; may be given again
    #[arg(long, value_name = "NAME")]
    boundary: Vec<String>,
    /// A ready-made selection of trials: restart-safe, or pre-hosting with its checklist
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Where the plans come from [default: scenario if one is named, else sweep]
    #[arg(long, value_enum)]
    strategy: Option<Strategy>,
    /// How many faults follow each other: 2 kills once more, at each boundary of the recovery from each kill of
    /// the sweep
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=2))]
    depth: u8,
    /// How long new trials of depth 2 are begun, such as 60s or 10m [default: until all are done]
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Trials at the same time [default: twice the processors, because trials mostly wait]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroU16>,
    /// How often each trial is done
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: std::num::NonZeroU32,
    /// Do one part of the run, such as 2/4: the baselines and a share of the other trials, chosen by what
    /// they do. `killpoint merge` puts the parts together
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// A new or empty folder for the run [default: killpoint-runs/TIME]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

/// When colour is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// In a terminal, unless NO_COLOR is set; everywhere where CLICOLOR_FORCE is
    Auto,
    /// Whatever the environment says
    Always,
    /// Whatever the environment says
    Never,
}

/// How results are shown.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// What standard output carries
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    /// Write a report to a file as well, such as json=report.json; `-` prints it; may be given again
    #[arg(long, value_name = "FORMAT=PATH")]
    report: Vec<String>,
    /// Say nothing before the report; errors and warnings are said all the same
    #[arg(long, short)]
    quiet: bool,
    /// When the report is coloured; it says nothing by colour alone
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    color: Color,
}

/// Reports to write: format and file.
pub(crate) type Targets = Vec<(&'static dyn reports::Format, PathBuf)>;

impl Selection {
    /// Trials at the same time.
    pub(crate) fn jobs(&self) -> usize {
        Self::jobs_or_default(self.jobs)
    }

    /// What was asked for, or twice the processors.
    pub(crate) fn jobs_or_default(jobs: Option<std::num::NonZeroU16>) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        jobs.map_or(2 * processors, |jobs| usize::from(jobs.get()))
    }

    /// How often each trial is done.
    pub(crate) fn repeat(&self) -> u32 {
        self.repeat.get()
    }

    /// Faults during recovery, where they are asked for.
    pub(crate) fn second_level(&self) -> Result<Option<SecondLevel>, Diagnosed> {
        match (self.depth, self.time) {
            (2, time) => Ok(Some(SecondLevel { time })),
            (_, None) => Ok(None),
            (_, Some(_)) => Err(Diagnosed::one(
                killpoint::Code::BadDepth,
                "--time limits the trials of depth 2, and the depth is 1; give --depth 2, or leave --time out",
            )),
        }
    }

    /// Which part of the run is done, where it is divided.
    pub(crate) const fn shard(&self) -> Option<Shard> {
        self.shard
    }

    /// The run's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        folder_or_default(self.run_dir.as_ref())
    }

    /// A seed that is another one each time.
    pub(crate) fn new_seed() -> u64 {
        SystemClock::default().now_ms() ^ (u64::from(std::process::id()) << 32)
    }

    /// The strategy that was asked for, with the profile that made it; a sweep where nothing was.
    pub(crate) fn trials(
        &self,
        settings: &Settings,
    ) -> Result<(killpoint::Strategy, Option<RunProfile>), Diagnosed> {
        let Some(name) = &self.profile else {
            return Ok((self.strategy()?.unwrap_or(killpoint::Strategy::Sweep), None));
        };
        if !self.scenario.is_empty() || !self.boundary.is_empty() || self.strategy.is_some() {
            let what = "--profile chooses the trials itself; leave --scenario, --boundary and --strategy out";
            return Err(Diagnosed::one(Code::TwoStrategies, what));
        }
        let name: ProfileName = name
            .parse()
            .map_err(|error| Diagnosed::one(Code::UnknownProfile, &format!("--profile: {error}")))?;
        let (strategy, profile) =
            killpoint::profile(name, settings).map_err(|error| Diagnosed::plain(error.diagnostics()))?;
        Ok((strategy, Some(profile)))
    }

    /// The strategy that was asked for; `None` where nothing was.
    fn strategy(&self) -> Result<Option<killpoint::Strategy>, Diagnosed> {
        if !self.scenario.is_empty() && (!self.boundary.is_empty() || self.strategy == Some(Strategy::Sweep))
        {
            let what = "--scenario and a sweep (--boundary, --strategy sweep) exclude each other; run them one by one";
            return Err(Diagnosed::one(Code::TwoStrategies, what));
        }
        if !self.boundary.is_empty() {
            let parse = |text: &String| {
                text.parse::<HitName>()
                    .map_err(|error| Diagnosed::one(killpoint::Code::UnknownBoundary, &error.to_string()))
            };
            let hits = self.boundary.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
            return Ok(Some(killpoint::Strategy::Boundaries(hits)));
        }
        if self.scenario.is_empty() && self.strategy != Some(Strategy::Scenario) {
            return Ok(self.strategy.map(|_| killpoint::Strategy::Sweep));
        }
        let library: Vec<String> = scenarios::LIBRARY.iter().map(|entry| entry.name.to_owned()).collect();
        let wanted = if self.scenario.is_empty() { &library } else { &self.scenario };
        let plans = wanted.iter().map(|name| scenario(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(killpoint::Strategy::Scenarios(plans)))
    }
}

/// The folder that was asked for, or one that nobody has used.
pub(crate) fn folder_or_default(asked: Option<&PathBuf>) -> PathBuf {
    asked.cloned().unwrap_or_else(|| {
        let now_ms = SystemClock::default().now_ms();
        Path::new("killpoint-runs").join(format!("{now_ms}-{}", std::process::id()))
    })
}

/// A scenario of the library.
pub(crate) fn load_library(entry: &scenarios::LibraryScenario) -> Result<scenarios::Scenario, Diagnosed> {
    let loaded = scenarios::load_scenario(entry.text, &format!("{}.toml", entry.name), &killpoint::catalog());
    let mut scenario = diagnostics::value_of(loaded, entry.text)?;
    // The library is no file of the user.
    scenario.plan.source = None;
    Ok(scenario)
}

/// Where a configuration describes the worker.
pub(crate) fn worker_line(config: &Path) -> SourceLine {
    let text = std::fs::read_to_string(config).unwrap_or_default();
    let before = text.lines().position(|line| line.trim_start().starts_with("[worker]"));
    SourceLine { file: config.display().to_string(), line: before.map_or(1, |before| before as u32 + 1) }
}

/// A scenario by name, or from a file.
pub(crate) fn scenario(name: &str) -> Result<Plan, Diagnosed> {
    let catalog = killpoint::catalog();
    if let Some(entry) = scenarios::LIBRARY.iter().find(|entry| entry.name == name) {
        return load_library(entry).map(|scenario| scenario.plan);
    }
    if !Path::new(name).is_file() {
        return Err(Diagnosed::one(killpoint::Code::UnknownScenario, &scenarios::unknown_scenario(name)));
    }
    diagnostics::load(Path::new(name), |text, file| scenarios::load_scenario(text, file, &catalog))
        .map(|scenario| scenario.plan)
}

impl Shown {
    /// Says what will be started, and runs. For workers that are not our own.
    pub(crate) fn run_announced(&self, request: RunRequest) -> ExitCode {
        let around = preamble::look(&request.settings);
        if self.format == Form::Text {
            if !self.quiet {
                show::lines_to_stderr(&preamble::lines(&around, &request.folder).join("\n"));
            }
            for warning in &around.warnings {
                Diagnosed::warning(Code::RealSurroundings, warning).complain();
            }
        }
        self.run(RunRequest { warnings: around.warnings, ..request })
    }

    /// Runs, shows, and gives the exit code.
    pub(crate) fn run(&self, request: RunRequest) -> ExitCode {
        let targets = match self.targets() {
            Ok(targets) => targets,
            Err(problems) => return problems.complain(),
        };
        let folder = request.folder.clone();
        if let Err(code) = report_file::reachable(&targets, &folder) {
            return code;
        }
        let bar = Arc::new(Bar::new(self.format == Form::Text && !self.quiet));
        let outcome = command::block_on(async {
            bar.watch_signals();
            killpoint::run(request, &*bar).await
        });
        bar.clear();
        match outcome {
            Err(code) => code,
            Ok(Err(error)) => {
                let code = complain_of_run(&error, &folder, bar.was_cancelled());
                if matches!(error, RunError::SetupFailed(_)) {
                    report_file::write_what_there_is(&folder, &targets);
                }
                code
            }
            Ok(Ok(finished)) => {
                let view = View::new(&finished.record, &finished.histories);
                self.show(&view, finished.folder.path(), &targets)
            }
        }
    }

    /// Shows a run from its folder, as it was judged.
    pub(crate) fn show_stored(
        &self,
        stored: Result<(RunFolder, RunRecord), RunError>,
        targets: &Targets,
    ) -> ExitCode {
        match stored.and_then(|(folder, record)| Ok((folder.view(&record)?, folder))) {
            Ok((view, folder)) => self.show(&view, folder.path(), targets),
            Err(error) => diagnostics::complain_of_run(&error),
        }
    }

    /// Prints a view and writes its reports. Gives the view's exit code, or what went wrong with the writing.
    pub(crate) fn show(&self, view: &View, folder: &Path, targets: &Targets) -> ExitCode {
        let mut code = view.exit_code();
        let name = if self.format == Form::Json { "json" } else { "terminal" };
        let printed = reports::find(name)
            .ok_or(ExitCode::Internal)
            .and_then(|format| show::write_stdout(format, view, &self.options(folder)));
        if let Err(failed) = printed {
            code = failed;
        }
        for (format, path) in targets {
            if let Err(failed) = report_file::deliver(*format, view, folder, path) {
                let verdict = view.exit_code();
                let (number, folder) = (verdict.code(), folder.display());
                show::note(&format!(
                    "the verdict stands: {}, exit code {number}; it is kept in {folder}",
                    view.verdict
                ));
                code = failed;
            }
        }
        code
    }

    fn options(&self, folder: &Path) -> Options {
        Options { color: show::is_colored(self.color), width: show::width(), ..report_file::options(folder) }
    }

    /// The reports that were asked for, before anything is run: a misspelt format must not cost a run.
    pub(crate) fn targets(&self) -> Result<Targets, Diagnosed> {
        let one = |text: &String| {
            let parts = text.split_once('=').filter(|(_, path)| !path.is_empty());
            let (name, path) = parts.ok_or_else(|| {
                Diagnosed::one(Code::BadReport, &format!("`{text}`: a report is FORMAT=PATH"))
            })?;
            let format = reports::find(name).ok_or_else(|| {
                let names: Vec<&str> = reports::entries().iter().map(|entry| entry.name).collect();
                let what = killpoint::model::diagnostic::UnknownWord::new(name, names);
                Diagnosed::one(Code::UnknownFormat, &format!("--report: {what}"))
            })?;
            Ok((format, PathBuf::from(path)))
        };
        let targets: Targets = self.report.iter().map(one).collect::<Result<_, _>>()?;
        let mut paths = BTreeSet::new();
        match targets.iter().find(|(_, path)| path != Path::new(STDOUT) && !paths.insert(path)) {
            None => Ok(targets),
            Some((_, path)) => {
                let what =
                    format!("--report: two reports go to {}; give each a file of its own", path.display());
                Err(Diagnosed::one(Code::BadReport, &what))
            }
        }
    }
}

fn complain_of_run(error: &RunError, folder: &Path, interrupted: bool) -> ExitCode {
    if interrupted {
        let what = format!("interrupted; what was recorded is in {}", folder.display());
        Diagnosed::one(Code::Interrupted, &what).complain();
        return ExitCode::Interrupted;
    }
    let code = diagnostics::complain_of_run(error);
    if !matches!(error, RunError::Invalid(_)) && folder.join("run.json").is_file() {
        show::note(&format!("what was recorded is in {}", folder.display()));
    }
    code
}

/// A time with its unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    duration_ms(text)
        .filter(|ms| *ms > 0)
        .map(Duration::from_millis)
        .ok_or_else(|| "a time has a unit: 500ms, 60s, 10m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        for bad in ["60", "s", "0s", "-1s", "1 minute"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
