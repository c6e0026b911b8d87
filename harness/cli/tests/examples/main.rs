//! Every example comes to the verdicts that `examples/expected.json` says. For the public libraries those are
//! what was seen by hand, with real kills and another provider.

mod init;
mod needs;
mod packages;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use killpoint::RunFolder;
use killpoint::model::event::{CommandRole, EventKind};
use killpoint::model::run::TrialRole;
use killpoint::model::verdict::ActionVerdict;
use killpoint::model::{ExitCode, History, InvariantStatus, TrialRecord, TrialVerdict, Verdict};
use needs::Needs;
use serde::Deserialize;

/// What the file says of one case of one example.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    example: String,
    config: String,
    /// What the case was called when it was measured; `every trial` stands for a whole sweep.
    case: String,
    /// Where the worker is killed.
    boundary: Option<String>,
    /// Or what the provider does at the first attempt.
    plan: Option<String>,
    /// Or a file of `examples/cases`.
    scenario: Option<String>,
    /// Whether the enqueuer is killed as soon as it says that it has committed.
    #[serde(default)]
    enqueuer_killed: bool,
    /// Whether it is luck which of the case's entries comes true, that of who is faster, or of a lease on a busy
    /// machine; then effects and invariants are the least that
    /// it shows.
    #[serde(default)]
    luck: bool,
    effects: u32,
    /// The store's own last word on every row, or `no row`.
    #[serde(rename = "final")]
    last_word: String,
    verdict: Verdict,
    /// What became of the action; of several, of each that was not simply delivered once.
    action: ActionVerdict,
    /// Exactly those that are violated.
    invariants: Vec<String>,
}

impl Expected {
    fn is_about(&self, trial: &TrialRecord) -> bool {
        if let Some(scenario) = &self.scenario {
            return trial.plan.scenario.as_ref() == Some(scenario);
        }
        match (&self.boundary, &self.plan) {
            (Some(boundary), _) => trial.plan.name == format!("kill at {boundary}"),
            (None, Some(plan)) => trial.plan.name == format!("{plan} at attempt 1"),
            (None, None) => self.case == "every trial" || trial.role != TrialRole::Faulted,
        }
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn expectations() -> Vec<Expected> {
    let text = std::fs::read_to_string(examples().join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What is run of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The sweep of its configuration.
    Sweep,
    /// The schedules of `examples/cases`.
    Cases,
    /// The fault-free trial and one kill, with an enqueuer that is killed once it has committed.
    EnqueuerKilled,
}

impl Part {
    fn of(expected: &Expected) -> Self {
        match (&expected.scenario, expected.enqueuer_killed) {
            (Some(_), _) => Self::Cases,
            (None, true) => Self::EnqueuerKilled,
            (None, false) => Self::Sweep,
        }
    }

    fn arguments(self, expected: &[Expected], config: &str, example: &Path, scratch: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--config".into()];
        match self {
            Self::Sweep => arguments.push(config.into()),
            Self::Cases => {
                arguments.push(config.into());
                // Once each, though luck may give a case several entries.
                let scenarios: BTreeSet<&String> =
                    expected.iter().filter_map(|one| one.scenario.as_ref()).collect();
                for scenario in scenarios {
                    arguments.extend(["--scenario".into(), format!("../cases/{scenario}.toml").into()]);
                }
            }
            Self::EnqueuerKilled => {
                arguments.push(with_enqueuer_killed(&example.join(config), example, scratch).into());
                arguments.extend(["--boundary".into(), "provider:committed#1".into()]);
            }
        }
        arguments
    }
}

/// The same configuration, but for the enqueuer, which is killed when it says that it has committed.
fn with_enqueuer_killed(config: &Path, example: &Path, scratch: &Path) -> PathBuf {
    let mut table: toml::Table = toml::from_str(&std::fs::read_to_string(config).unwrap()).unwrap();
    let mut set = |section: &str, key: &str, value: &str| {
        table[section].as_table_mut().unwrap().insert(key.to_owned(), value.to_owned().into());
    };
    set("state", "enqueue-kill-after", "ENQUEUED");
    set("worker", "cwd", example.to_str().unwrap());
    let path = scratch.join("killpoint.toml");
    std::fs::write(&path, toml::to_string(&table).unwrap()).unwrap();
    path
}

/// Whether the enqueuer of a trial ended by our signal, or was faster and ended well: it has nothing left to do
/// after the line that it is killed for.
fn enqueuer_ended_there(trial: &TrialRecord, run_dir: &Path) -> bool {
    let history = std::fs::read_to_string(run_dir.join(&trial.folder).join("history.jsonl")).unwrap();
    let history = History::parse(&history).unwrap();
    history.events.iter().any(|event| {
        matches!(&event.event, EventKind::CommandRan { role: CommandRole::Enqueue, code: None | Some(0), .. })
    })
}

/// Runs one configuration of one example and compares.
fn check(example: &str, config: &str, part: Part, needs: Needs) {
    let Some(path) = needs.path(&format!("{example}/{config}")) else { return };
    let expected: Vec<Expected> = expectations()
        .into_iter()
        .filter(|expected| expected.example == example && expected.config == config)
        .filter(|expected| Part::of(expected) == part)
        .collect();
    let scratch = tempfile::tempdir().unwrap();
    let run_dir = scratch.path().join("run");
    let example_dir = examples().join(example).canonicalize().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_killpoint"))
        .arg("run")
        .args(part.arguments(&expected, config, &example_dir, scratch.path()))
        .args(["--format", "json", "--run-dir"])
        .arg(&run_dir)
        .current_dir(&example_dir)
        .env("PATH", path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("no report: {error}: {errors}"));
    let (_, record) = RunFolder::open(&run_dir).unwrap();
    let mut problems: Vec<String> =
        record.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    let cases: BTreeSet<&str> = expected.iter().map(|expected| expected.case.as_str()).collect();
    for case in cases {
        let entries: Vec<&Expected> = expected.iter().filter(|expected| expected.case == case).collect();
        let compared = entries.iter().map(|expected| compare(expected, &record.trials, &run_dir));
        let differ: Vec<Vec<String>> = compared.filter(|problems| !problems.is_empty()).collect();
        // Of several entries for one case, luck decides which one comes true.
        if differ.len() == entries.len() {
            problems.extend(differ.into_iter().flatten());
        }
    }
    if part == Part::EnqueuerKilled {
        let alive = record.trials.iter().filter(|trial| !enqueuer_ended_there(trial, &run_dir));
        problems.extend(alive.map(|trial| format!("{}: the enqueuer went on", trial.plan.name)));
    }
    assert!(problems.is_empty(), "{example}/{config}:\n{}\n{errors}", problems.join("\n"));
    if part == Part::Sweep {
        let verdict = Verdict::worst(expected.iter().map(|expected| expected.verdict));
        assert_eq!(report["verdict"], verdict.as_str(), "{errors}");
        assert_eq!(output.status.code(), Some(i32::from(ExitCode::from(verdict).code())), "{errors}");
    }
}

/// What is not as expected, a line each.
fn compare(expected: &Expected, trials: &[TrialRecord], run_dir: &Path) -> Vec<String> {
    let about: Vec<&TrialRecord> = trials.iter().filter(|trial| expected.is_about(trial)).collect();
    if about.is_empty() {
        return vec![format!("{}: there is no such trial", expected.case)];
    }
    let wanted = |seen: &Seen| Seen {
        verdict: Some(expected.verdict),
        effects: if expected.luck { seen.effects.max(expected.effects) } else { expected.effects },
        actions: BTreeSet::from([expected.action]),
        violated: {
            let more = seen.violated.iter().filter(|_| expected.luck && !expected.invariants.is_empty());
            expected.invariants.iter().chain(more).cloned().collect()
        },
        last_words: BTreeSet::from([expected.last_word.clone()]),
    };
    let seen = about.into_iter().map(|trial| (&trial.plan.name, Seen::of(trial, run_dir)));
    seen.filter(|(_, seen)| *seen != wanted(seen))
        .map(|(name, seen)| {
            format!("{} ({name}):\n  expected {:?}\n  seen     {seen:?}", expected.case, wanted(&seen))
        })
        .collect()
}

/// What came out of a trial.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    verdict: Option<Verdict>,
    effects: u32,
    actions: BTreeSet<ActionVerdict>,
    violated: BTreeSet<String>,
    last_words: BTreeSet<String>,
}

impl Seen {
    fn of(trial: &TrialRecord, run_dir: &Path) -> Self {
        let history = std::fs::read_to_string(run_dir.join(&trial.folder).join("history.jsonl")).unwrap();
        let history = History::parse(&history).unwrap();
        let judged = trial.verdict.as_ref();
        let violated = judged.iter().flat_map(|judged| &judged.outcomes);
        let violated = violated.filter(|outcome| outcome.status == InvariantStatus::Violated);
        Self {
            verdict: judged.map(|judged| judged.verdict),
            effects: history.counters().effects,
            actions: judged.map(actions).unwrap_or_default(),
            violated: violated.map(|outcome| outcome.invariant.clone()).collect(),
            last_words: last_words(&history),
        }
    }
}

fn actions(judged: &TrialVerdict) -> BTreeSet<ActionVerdict> {
    let mut verdicts: BTreeSet<ActionVerdict> = judged.actions.iter().map(|action| action.verdict).collect();
    if verdicts.len() > 1 {
        verdicts.remove(&ActionVerdict::DeliveredOnce);
    }
    verdicts
}

fn last_words(history: &History) -> BTreeSet<String> {
    let rows = history.final_rows().map(|(_, rows)| rows).unwrap_or_default();
    if rows.is_empty() {
        return BTreeSet::from(["no row".to_owned()]);
    }
    rows.iter().filter_map(|row| row.raw_state.clone()).collect()
}

macro_rules! examples {
    ($($name:ident: $example:literal, $config:literal, $part:ident, $needs:ident;)+) => {
        $(
            #[test]
            fn $name() {
                check($example, $config, Part::$part, Needs::$needs);
            }
        )+

        #[test]
        fn nothing_that_is_expected_is_left_out() {
            let tested =
                BTreeSet::from([$(($example.to_owned(), $config.to_owned(), format!("{:?}", Part::$part))),+]);
            let expected: BTreeSet<(String, String, String)> = expectations()
                .into_iter()
                .map(|expected| {
                    let part = format!("{:?}", Part::of(&expected));
                    (expected.example, expected.config, part)
                })
                .collect();
            assert_eq!(tested, expected);
        }
    };
}

examples! {
    huey: "huey", "killpoint.toml", Sweep, Python;
    huey_cases: "huey", "killpoint.toml", Cases, Python;
    huey_enqueuer_killed: "huey", "killpoint.toml", EnqueuerKilled, Python;
    litequeue: "litequeue", "killpoint.toml", Sweep, Python;
    litequeue_cases: "litequeue", "killpoint.toml", Cases, Python;
    litequeue_enqueuer_killed: "litequeue", "killpoint.toml", EnqueuerKilled, Python;
    litequeue_with_a_sweep: "litequeue", "killpoint-sweep.toml", Sweep, Python;
    litequeue_with_a_sweep_cases: "litequeue", "killpoint-sweep.toml", Cases, Python;
    litequeue_with_a_sweep_enqueuer_killed: "litequeue", "killpoint-sweep.toml", EnqueuerKilled, Python;
    persist_queue: "persist-queue", "killpoint.toml", Sweep, Python;
    persist_queue_cases: "persist-queue", "killpoint.toml", Cases, Python;
    persist_queue_enqueuer_killed: "persist-queue", "killpoint.toml", EnqueuerKilled, Python;
    plainjob: "plainjob", "killpoint.toml", Sweep, Node;
    plainjob_cases: "plainjob", "killpoint.toml", Cases, Node;
    plainjob_enqueuer_killed: "plainjob", "killpoint.toml", EnqueuerKilled, Node;
    plainjob_as_it_comes: "plainjob", "killpoint-default.toml", Sweep, Node;
    shell_files: "shell-files", "killpoint.toml", Sweep, Curl;
    shell_files_wrong: "shell-files", "wrong.toml", Sweep, Curl;
    node_journal: "node-journal", "killpoint.toml", Sweep, Node;
    node_journal_wrong: "node-journal", "wrong.toml", Sweep, Node;
    c_sqlite: "c-sqlite", "killpoint.toml", Sweep, Compiler;
    c_sqlite_wrong: "c-sqlite", "wrong.toml", Sweep, Compiler;
}
