//! Explorations of the reference worker by the release program, each in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::MetadataCommand;
use killpoint::RunFolder;
use killpoint::model::exploration::{Counterexample, KOfN};
use killpoint::model::plan::duration_ms;
use killpoint::model::run::TrialRole;
use killpoint::model::{Plan, RunRecord, Verdict};
use outbox_worker::{BUGS, bug_named};

/// The seed of every exploration.
pub(super) const SEED: u32 = 1;

/// How often what was found is replayed.
const REPLAYS: &str = "3";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// How long each bug is looked for.
    pub(super) time: String,
    /// How long the right worker is explored; not at all where it is `0s`.
    pub(super) right: String,
    /// The bugs; all where none is named.
    pub(super) bugs: Vec<String>,
    /// Where the runs are kept.
    pub(super) runs: Option<PathBuf>,
}

impl Options {
    pub(super) fn of(words: &[&str]) -> Result<Self> {
        let mut options =
            Self { time: "60s".to_owned(), right: "300s".to_owned(), bugs: Vec::new(), runs: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} needs a value"))?;
            match *word {
                "--time" | "--right" => {
                    ensure!(duration_ms(value).is_some(), "{word} {value}: a time has a unit, such as 60s");
                    let place = if *word == "--time" { &mut options.time } else { &mut options.right };
                    (*value).clone_into(place);
                }
                "--bug" => {
                    ensure!(bug_named(value).is_some(), "--bug {value}: no seeded bug has this name");
                    options.bugs.push((*value).to_owned());
                }
                "--runs" => options.runs = Some(std::path::absolute(value)?),
                _ => bail!("no such option: `{word}`"),
            }
        }
        Ok(options)
    }

    /// The bugs that are asked for, in the order of the kinds.
    pub(super) fn bugs(&self) -> impl Iterator<Item = &'static str> {
        let asked = |name: &&str| self.bugs.is_empty() || self.bugs.iter().any(|bug| bug == name);
        BUGS.iter().map(|bug| bug.name).filter(asked).collect::<Vec<_>>().into_iter()
    }
}

/// The release program, and where its runs go.
#[derive(Debug)]
pub(super) struct Bench {
    program: PathBuf,
    folder: PathBuf,
    /// Removes the runs that nobody wants to keep.
    _temporary: Option<tempfile::TempDir>,
}

impl Bench {
    /// Builds the program.
    pub(super) fn new(root: &Path, runs: Option<&Path>) -> Result<Self> {
        let status = Command::new("cargo")
            .args(["build", "--release", "--quiet", "--package", "killpoint-cli"])
            .current_dir(root)
            .status()
            .context("starting cargo")?;
        ensure!(status.success(), "the program could not be built; cargo's words are above");
        let metadata = MetadataCommand::new().current_dir(root).no_deps().exec().context("cargo metadata")?;
        let program = metadata.target_directory.join("release/killpoint").into_std_path_buf();
        let temporary = if runs.is_some() { None } else { Some(tempfile::tempdir()?) };
        let folder =
            runs.or(temporary.as_ref().map(tempfile::TempDir::path)).context("no folder")?.to_owned();
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Self { program, folder, _temporary: temporary })
    }

    /// Explores the worker with a bug, or the right one. A run that is there already is read.
    pub(super) fn explore(&self, bug: Option<&str>, time: &str) -> Result<Explored> {
        let name = bug.unwrap_or("right");
        let run = self.folder.join(name);
        if !run.join("run.json").is_file() {
            let seed = SEED.to_string();
            let regressions = self.folder.join(format!("{name}-regressions"));
            let words = ["explore", "--demo", "--time", time, "--seed", &seed];
            let mut command = self.quiet(&words);
            command.arg("--run-dir").arg(&run).arg("--regressions").arg(&regressions);
            command.args(bug.iter().flat_map(|bug| ["--bug", bug]));
            let code = command.status().context("starting killpoint")?.code();
            let there = run.join("run.json").is_file();
            ensure!(there, "exploring {name} ended with {code:?} and left no record in {}", run.display());
        }
        let (folder, record) = RunFolder::open(&run).with_context(|| format!("reading {}", run.display()))?;
        Ok(Explored { folder, record })
    }

    /// How many trials of a token's replay are red. A worker that is red without any fault is not tried with one.
    pub(super) fn replayed(&self, token: &str) -> Result<KOfN> {
        let place = tempfile::tempdir_in(&self.folder)?;
        let run = place.path().join("run");
        let mut command = self.quiet(&["replay", token, "--repeat", REPLAYS]);
        command.arg("--run-dir").arg(&run).status().context("starting killpoint")?;
        let (_, record) = RunFolder::open(&run).with_context(|| format!("reading {}", run.display()))?;
        let faulted = record.trials.iter().any(|trial| trial.role == TrialRole::Faulted);
        let trials = record.trials.iter().filter(|trial| !faulted || trial.role == TrialRole::Faulted);
        let verdicts: Vec<_> = trials.map(|trial| trial.verdict.as_ref().map(|it| it.verdict)).collect();
        let red = verdicts.iter().filter(|verdict| **verdict == Some(Verdict::Violated)).count() as u32;
        Ok(KOfN { red, of: verdicts.len() as u32 })
    }

    fn quiet(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// A run that explored.
#[derive(Debug)]
pub(super) struct Explored {
    pub(super) folder: RunFolder,
    pub(super) record: RunRecord,
}

impl Explored {
    /// What was found first.
    pub(super) fn counterexample(&self) -> Option<&Counterexample> {
        let found = &self.record.exploration.as_ref()?.counterexamples;
        found.iter().find(|one| one.is_certain()).or_else(|| found.first())
    }

    /// Plans that were tried.
    pub(super) fn cases(&self) -> u32 {
        self.record.exploration.as_ref().map_or(0, |exploration| exploration.cases)
    }

    /// The invariant that a trial without any fault violates, if one does.
    pub(super) fn red_without_a_fault(&self) -> Option<&str> {
        let fault_free = self.record.trials.iter().filter(|trial| trial.role != TrialRole::Faulted);
        let mut judged = fault_free.filter_map(|trial| trial.verdict.as_ref());
        let red = judged.find(|judged| judged.verdict == Verdict::Violated)?;
        Some(red.violated().next().map_or("the verdict on an action", |outcome| outcome.invariant.as_str()))
    }

    /// Drawn trials that showed nothing, of all.
    pub(super) fn vacuous(&self) -> (usize, usize) {
        let drawn = self.record.trials.iter().filter(|trial| trial.drawn);
        let verdicts: Vec<Verdict> =
            drawn.filter_map(|trial| Some(trial.verdict.as_ref()?.verdict)).collect();
        (verdicts.iter().filter(|verdict| **verdict == Verdict::Vacuous).count(), verdicts.len())
    }
}

/// Faults, rules, own actions and workers of a plan.
pub(super) fn size(plan: &Plan) -> String {
    let (faults, rules, actions) = (plan.faults.len(), plan.rules.len(), plan.actions.len());
    format!("{faults}+{rules}+{actions}+{}", plan.workers.max(1))
}

/// How busy the machine is: figures of seconds mean little without it.
pub(super) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next().unwrap_or("unknown");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("load {first} on {processors} processors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let options = Options::of(&["--time", "30s", "--bug", "blind-resend", "--right", "0s"]).unwrap();
        assert_eq!((options.time.as_str(), options.right.as_str()), ("30s", "0s"));
        assert_eq!(options.bugs().collect::<Vec<_>>(), ["blind-resend"]);
        assert_eq!(Options::of(&[]).unwrap().bugs().count(), BUGS.len());
        for bad in [&["--time"][..], &["--time", "60"], &["--bug", "none-such"], &["--seed", "1"]] {
            assert!(Options::of(bad).is_err(), "{bad:?}");
        }
    }
}
