//! Every example comes to the verdicts that `examples/expected.json` says. For the public libraries those are
//! what was seen by hand, with real kills and another provider.

mod needs;
mod packages;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use killpoint::RunFolder;
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

/// Runs one configuration of one example and compares.
fn check(example: &str, config: &str, needs: Needs) {
    let Some(path) = needs.path(&format!("{example}/{config}")) else { return };
    let expected: Vec<Expected> = expectations()
        .into_iter()
        .filter(|expected| expected.example == example && expected.config == config)
        .collect();
    let run_dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_killpoint"))
        .args(["run", "--config", config, "--format", "json", "--run-dir"])
        .arg(run_dir.path())
        .current_dir(examples().join(example))
        .env("PATH", path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("no report: {error}: {errors}"));
    let (_, record) = RunFolder::open(run_dir.path()).unwrap();
    let mut problems: Vec<String> =
        record.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    problems.extend(expected.iter().flat_map(|expected| compare(expected, &record.trials, run_dir.path())));
    assert!(problems.is_empty(), "{example}/{config}:\n{}\n{errors}", problems.join("\n"));
    let verdict = Verdict::worst(expected.iter().map(|expected| expected.verdict));
    assert_eq!(report["verdict"], verdict.as_str(), "{errors}");
    assert_eq!(output.status.code(), Some(i32::from(ExitCode::from(verdict).code())), "{errors}");
}

/// What is not as expected, a line each.
fn compare(expected: &Expected, trials: &[TrialRecord], run_dir: &Path) -> Vec<String> {
    let about: Vec<&TrialRecord> = trials.iter().filter(|trial| expected.is_about(trial)).collect();
    if about.is_empty() {
        return vec![format!("{}: there is no such trial", expected.case)];
    }
    let wanted = Seen {
        verdict: Some(expected.verdict),
        effects: expected.effects,
        actions: BTreeSet::from([expected.action]),
        violated: expected.invariants.iter().cloned().collect(),
        last_words: BTreeSet::from([expected.last_word.clone()]),
    };
    let seen = about.into_iter().map(|trial| (&trial.plan.name, Seen::of(trial, run_dir)));
    seen.filter(|(_, seen)| *seen != wanted)
        .map(|(name, seen)| {
            format!("{} ({name}):\n  expected {wanted:?}\n  seen     {seen:?}", expected.case)
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
    ($($name:ident: $example:literal, $config:literal, $needs:ident;)+) => {
        $(
            #[test]
            fn $name() {
                check($example, $config, Needs::$needs);
            }
        )+

        #[test]
        fn nothing_that_is_expected_is_left_out() {
            let tested = BTreeSet::from([$(($example.to_owned(), $config.to_owned())),+]);
            let expected: BTreeSet<(String, String)> =
                expectations().into_iter().map(|expected| (expected.example, expected.config)).collect();
            assert_eq!(tested, expected);
        }
    };
}

examples! {
    huey: "huey", "killpoint.toml", Python;
    litequeue: "litequeue", "killpoint.toml", Python;
    litequeue_with_a_sweep: "litequeue", "killpoint-sweep.toml", Python;
    persist_queue: "persist-queue", "killpoint.toml", Python;
    plainjob: "plainjob", "killpoint.toml", Node;
    plainjob_as_it_comes: "plainjob", "killpoint-default.toml", Node;
    shell_files: "shell-files", "killpoint.toml", Curl;
    shell_files_wrong: "shell-files", "wrong.toml", Curl;
    node_journal: "node-journal", "killpoint.toml", Node;
    node_journal_wrong: "node-journal", "wrong.toml", Node;
    c_sqlite: "c-sqlite", "killpoint.toml", Compiler;
    c_sqlite_wrong: "c-sqlite", "wrong.toml", Compiler;
}
