//! killpoint in a `#[test]`: say which worker and which trials, run, assert.

mod error;
mod outcome;
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use killpoint_model::{HitName, Plan, Settings, Severity};
use killpoint_scenarios::{LIBRARY, Loaded, bare_settings, load_config, load_scenario, unknown_scenario};

pub use error::{GateError, Problem};
pub use outcome::{GateRun, GateTrial};

use crate::catalog::catalog;
use crate::code::Code;
use crate::job::{RunRequest, Strategy};
use crate::progress::Silent;
use crate::replay::{replay_of_command, replay_of_config};
use crate::run::{Finished, run};
use crate::text_file::read_text;

/// Where runs are recorded, beside the folder of the test program.
const RUNS: &str = "killpoint-runs";
/// Characters of a test's name in the name of a folder.
const TEST_NAME_CHARS_MAX: usize = 80;

/// A gate in a test: a worker and the trials that it has to pass. Without a selection it is a sweep: a kill at every
/// boundary that the fault-free trial reaches, and each way in which a reply can be lost.
///
/// ```no_run
/// use killpoint::{Gate, GateError};
///
/// #[test]
/// fn a_dropped_reply_is_no_second_message() -> Result<(), GateError> {
///     let run = Gate::from_config("killpoint.toml")?
///         .scenario("deploy-42-notify-drop-after-accept")
///         .boundary("provider:committed#1")
///         .run()?;
///     for trial in run.trials() {
///         println!("{}: {}", trial.name(), trial.verdict());
///     }
///     run.assert_holds();
///     Ok(())
/// }
/// ```
///
/// Plans that a test makes itself, such as those that `killpoint::scenarios::search::plans` lets proptest generate,
/// go in with [`plan`](Self::plan).
///
/// It blocks, with threads of its own, in a synchronous test as well as in an asynchronous one. The run is recorded
/// below the target folder, in `killpoint-runs` beside the test programs, unless [`folder`](Self::folder) says
/// otherwise.
#[derive(Debug, Clone)]
#[must_use = "nothing is tried before `run`"]
pub struct Gate {
    settings: Settings,
    replay: (String, String),
    warnings: Vec<String>,
    scenarios: Vec<String>,
    plans: Vec<Plan>,
    boundaries: Vec<String>,
    jobs: usize,
    repeat: u32,
    folder: Option<PathBuf>,
}

impl Gate {
    /// The worker that a configuration describes. A relative path starts at the current folder, which for tests is
    /// that of their package.
    ///
    /// # Errors
    /// The file can't be read or is invalid: everything that is wrong in it, with its line.
    pub fn from_config(path: impl AsRef<Path>) -> Result<Self, GateError> {
        let path = path.as_ref();
        let text = read_text(path).map_err(|file| error::unreadable(*file))?;
        let absolute = std::path::absolute(path)
            .map_err(|error| GateError::Unreadable { path: path.to_owned(), error })?;
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        let (settings, warnings) =
            value_of(load_config(&text, &path.display().to_string(), folder, &catalog()), &text)?;
        Ok(Self { warnings, replay: replay_of_config(path), ..Self::from_settings(settings) })
    }

    /// A worker that is a command without a configuration. It finds the provider in `PROVIDER_URL` and a fresh folder
    /// in `STATE_DIR`, and the fault-free trials are the only oracle.
    ///
    /// # Errors
    /// There is no current folder to start it in.
    pub fn from_command<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Result<Self, GateError> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        let here =
            std::env::current_dir().map_err(|error| GateError::Unreadable { path: ".".into(), error })?;
        let replay = replay_of_command(&words);
        Ok(Self { replay, ..Self::from_settings(bare_settings(words, here)) })
    }

    /// A worker that settings describe, made by the test itself.
    pub fn from_settings(settings: Settings) -> Self {
        Self {
            settings,
            replay: ("killpoint run".to_owned(), String::new()),
            warnings: Vec::new(),
            scenarios: Vec::new(),
            plans: Vec::new(),
            boundaries: Vec::new(),
            // Tests run side by side already, so that this is less than the program's own default.
            jobs: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            repeat: 1,
            folder: None,
        }
    }

    /// A scenario of the library by its name, or a scenario file; may be called again.
    pub fn scenario(mut self, name_or_file: impl Into<String>) -> Self {
        self.scenarios.push(name_or_file.into());
        self
    }

    /// A plan; may be called again.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.plans.push(plan);
        self
    }

    /// A boundary at which the worker is killed, such as `provider:committed#1`; may be called again.
    pub fn boundary(mut self, name: impl Into<String>) -> Self {
        self.boundaries.push(name.into());
        self
    }

    /// Trials at the same time; one per processor unless this is called.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs;
        self
    }

    /// How often each trial is done.
    pub fn repeat(mut self, times: u32) -> Self {
        self.repeat = times;
        self
    }

    /// A new or empty folder for the run.
    pub fn folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folder = Some(path.into());
        self
    }

    /// Runs all trials and judges them. Violations are no errors: they are in what is returned.
    ///
    /// # Errors
    /// A scenario or a boundary is unknown, the worker does not work without faults either, or the run can't be
    /// recorded.
    pub fn run(mut self) -> Result<GateRun, GateError> {
        let strategy = self.strategy()?;
        let request = RunRequest {
            strategy,
            jobs: self.jobs,
            repeat: self.repeat,
            replay: self.replay,
            ..RunRequest::sweep(self.settings, self.folder.unwrap_or_else(fresh_folder))
        };
        Ok(GateRun::new(run_to_its_end(request)?, self.warnings))
    }

    /// What was selected. Where both plans and boundaries were, it is both.
    fn strategy(&mut self) -> Result<Strategy, GateError> {
        let mut plans = std::mem::take(&mut self.plans);
        for name in &self.scenarios {
            let (plan, warnings) = scenario(name)?;
            plans.push(plan);
            self.warnings.extend(warnings);
        }
        let hit = |name: &String| {
            name.parse::<HitName>().map_err(|problem| error::one(Code::UnknownBoundary, &problem.to_string()))
        };
        let boundaries = self.boundaries.iter().map(hit).collect::<Result<Vec<_>, _>>()?;
        Ok(match (plans.is_empty(), boundaries.is_empty()) {
            (true, true) => Strategy::Sweep,
            (true, false) => Strategy::Boundaries(boundaries),
            (false, true) => Strategy::Scenarios(plans),
            (false, false) => {
                self.settings.sweep.boundaries = boundaries;
                self.settings.sweep.plans.clear();
                Strategy::SweepAnd(plans)
            }
        })
    }
}

/// The plan of a scenario of the library or of a file, with warnings.
fn scenario(name: &str) -> Result<(Plan, Vec<String>), GateError> {
    let (text, file) = match LIBRARY.iter().find(|entry| entry.name == name) {
        Some(entry) => (entry.text.to_owned(), format!("{name}.toml")),
        None if Path::new(name).is_file() => {
            let text = read_text(Path::new(name)).map_err(|file| error::unreadable(*file))?;
            (text, name.to_owned())
        }
        None => return Err(error::one(Code::UnknownScenario, &unknown_scenario(name))),
    };
    let (scenario, warnings) = value_of(load_scenario(&text, &file, &catalog()), &text)?;
    Ok((scenario.plan, warnings))
}

/// The value of something that was loaded, with the warnings about it.
fn value_of<T>(loaded: Loaded<T>, text: &str) -> Result<(T, Vec<String>), GateError> {
    let (errors, warnings): (Vec<_>, Vec<_>) =
        loaded.diagnostics.into_iter().partition(|problem| problem.severity == Severity::Error);
    match loaded.value {
        Some(value) if errors.is_empty() => {
            Ok((value, error::problems(warnings, text).iter().map(Problem::to_string).collect()))
        }
        _ => Err(GateError::Invalid(error::problems(errors, text))),
    }
}

/// Runs in a thread of its own, because the caller's may be one of an asynchronous test, which must not block.
fn run_to_its_end(request: RunRequest) -> Result<Finished, GateError> {
    let work = || {
        let runtime = tokio::runtime::Runtime::new().map_err(GateError::Threads)?;
        let finished = runtime.block_on(run(request, &Silent));
        // Threads that still wait for a dead worker's pipe must not hold the test.
        runtime.shutdown_background();
        Ok(finished?)
    };
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A folder that is not there yet, named after the test.
fn fresh_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let runs = std::env::current_exe().ok().and_then(|program| runs_beside(&program));
    let runs = runs.unwrap_or_else(|| RUNS.into());
    let test = folder_name(std::thread::current().name().unwrap_or("test"));
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = runs.join(format!("{test}-{}-{number}", std::process::id()));
        if !folder.exists() {
            return folder;
        }
    }
}

/// Cargo puts test programs into `deps` below the profile's folder.
fn runs_beside(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    (folder.file_name()? == "deps").then(|| folder.with_file_name(RUNS))
}

/// A test's name as that of a folder.
fn folder_name(test: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    test.chars().map(plain).take(TEST_NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_lie_in_the_target_folder_under_the_name_of_the_test() {
        let beside = runs_beside(Path::new("/p/target/debug/deps/gate-0123abcd"));
        assert_eq!(beside, Some("/p/target/debug/killpoint-runs".into()));
        assert_eq!(runs_beside(Path::new("/tmp/rust_out")), None);
        assert_eq!(folder_name("mail::twice is/wrong"), "mail--twice-is-wrong");
        let (one, other) = (fresh_folder(), fresh_folder());
        assert_ne!(one, other);
        assert!(one.to_string_lossy().contains("runs_lie_in_the_target_folder"), "{}", one.display());
    }

    #[test]
    fn what_is_selected_is_what_is_tried() {
        let gate = || Gate::from_settings(Settings::default());
        assert!(matches!(gate().strategy(), Ok(Strategy::Sweep)));
        assert!(
            matches!(gate().plan(Plan::default()).strategy(), Ok(Strategy::Scenarios(plans)) if plans.len() == 1)
        );
        let boundary = gate().boundary("provider:committed#1");
        assert!(matches!(boundary.clone().strategy(), Ok(Strategy::Boundaries(hits)) if hits.len() == 1));
        let mut both = boundary.scenario(LIBRARY[0].name);
        assert!(matches!(both.strategy(), Ok(Strategy::SweepAnd(plans)) if plans.len() == 1));
        assert_eq!(both.settings.sweep.boundaries.len(), 1);
        assert!(both.settings.sweep.plans.is_empty());
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        let gate = || Gate::from_settings(Settings::default());
        let error = gate().scenario("deploy-42-notify-drop-after-acept").strategy().unwrap_err().to_string();
        assert!(
            error.ends_with("did you mean `deploy-42-notify-drop-after-accept`? [unknown-scenario]"),
            "{error}"
        );
        let error = gate().boundary("nonsense").strategy().unwrap_err().to_string();
        assert!(error.ends_with("[unknown-boundary]"), "{error}");
    }
}
