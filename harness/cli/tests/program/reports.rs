//! What is written of a run: for programs, for a second look, and to do it again.

use std::process::Command;

use killpoint::model::ExitCode::{self, Holds, Violated};
use killpoint::model::Verdict;
use serde_json::Value;

use crate::bench::{Bench, Said, end_of, started};

fn demo(bench: &Bench, words: &[&str]) -> Said {
    bench.killpoint(&[&["demo", "--run-dir", "run"], words].concat())
}

#[test]
fn a_right_demo_in_json_says_what_its_schema_says() {
    let bench = Bench::new();
    let words = ["--boundary", "provider:committed#1", "--format", "json", "--report", "json=report.json"];
    let said = demo(&bench, &words).exits(Holds);
    assert_eq!(said.err, "", "a program that reads it is not disturbed");
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&report["verdict"], &report["exit_code"]), (&"holds".into(), &0.into()));
    let schema = killpoint::reports::json_schema();
    assert_eq!(misfits(&schema, &schema, &report, "$"), Vec::<String>::new());
    let mut written: Value =
        serde_json::from_str(&std::fs::read_to_string(bench.path("report.json")).unwrap()).unwrap();
    written["run_dir"] = report["run_dir"].clone();
    assert_eq!(written, report);
}

#[test]
fn a_stored_run_is_shown_and_judged_as_it_was() {
    let bench = Bench::new();
    let words = ["--bug", "blind-resend", "--boundary", "provider:committed#1", "--format", "json"];
    let first = demo(&bench, &words).exits(Violated);
    let first: Value = serde_json::from_str(&first.out).unwrap();
    assert_eq!(first["exit_code"], 1);
    for command in ["check", "report"] {
        let again = bench.killpoint(&[command, "run", "--format", "json"]).exits(Violated);
        let mut again: Value = serde_json::from_str(&again.out).unwrap();
        again["run_dir"] = first["run_dir"].clone();
        assert_eq!(again, first, "{command}");
        bench.killpoint(&[command, "run"]).exits(Violated).says(&["violated", "no-duplicate-effect"]);
    }
}

#[test]
fn a_history_that_is_cut_or_damaged_is_never_green() {
    let bench = Bench::new();
    demo(&bench, &["--boundary", "provider:committed#1"]).exits(Holds);
    let record = bench.record();
    let path = bench.path("run").join(&record.trials[2].folder).join("history.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    bench.killpoint(&["check", "run"]).exits(ExitCode::Unproven).says(&["differs from the stored one"]);
    std::fs::write(&path, whole.replacen("\"seq\":3", "\"seq\":4", 1)).unwrap();
    bench.killpoint(&["check", "run"]).exits(ExitCode::InvalidConfig).complains(&["history.jsonl", "line 4"]);
    std::fs::remove_file(&path).unwrap();
    bench
        .killpoint(&["check", "run"])
        .exits(ExitCode::InvalidConfig)
        .complains(&["history.jsonl", "No such file"]);
}

#[test]
fn a_report_of_a_history_that_is_cut_reads_to_its_last_event_and_is_not_green() {
    let bench = Bench::new();
    demo(&bench, &["--boundary", "provider:committed#1"]).exits(Holds);
    let folder = bench.record().trials[2].folder.clone();
    let path = bench.path("run").join(&folder).join("history.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let ends = format!("the history of trial `{folder}` ends before the trial does");
    bench
        .killpoint(&["report", "run", "--report", "html=report.html"])
        .exits(ExitCode::Unproven)
        .says(&["? inconclusive", "warnings"]);
    let page = std::fs::read_to_string(bench.path("report.html")).unwrap();
    assert!(page.contains(&ends), "{ends}");
    std::fs::write(&path, whole.replacen("\"seq\":3", "\"seq\":4", 1)).unwrap();
    bench
        .killpoint(&["report", "run"])
        .exits(ExitCode::InvalidConfig)
        .complains(&["history.jsonl", "line 4"]);
}

#[test]
fn the_replay_line_of_a_violated_trial_repeats_it() {
    for words in [
        ["--bug", "blind-resend", "--boundary", "provider:committed#1"],
        ["--bug", "trust-first-lookup", "--scenario", "late-accept"],
    ] {
        let bench = Bench::new();
        demo(&bench, &words).exits(Violated);
        let record = bench.record();
        let violated = |trial: &&killpoint::model::TrialRecord| {
            trial.verdict.as_ref().is_some_and(|judged| judged.verdict == Verdict::Violated)
        };
        let trial = record.trials.iter().find(violated).unwrap();
        let rest = trial.replay.strip_prefix("killpoint ").unwrap();
        let line = format!("'{}' {rest} --run-dir again", env!("CARGO_BIN_EXE_killpoint"));
        end_of(started(Command::new("sh").args(["-c", &line]).current_dir(bench.path("")))).exits(Violated);
        let (_, again) = killpoint::RunFolder::open(&bench.path("again")).unwrap();
        let repeated = again.trials.iter().find(violated).unwrap();
        let violations = |trial: &killpoint::model::TrialRecord| {
            let outcomes = trial.verdict.iter().flat_map(|judged| judged.outcomes.clone());
            outcomes.map(|outcome| (outcome.invariant, outcome.status)).collect::<Vec<_>>()
        };
        assert_eq!(violations(repeated), violations(trial));
        assert_eq!(repeated.plan.faults, trial.plan.faults);
    }
}

/// Where a document is no instance of a schema, in the keywords that matter to a reader: fields that must be there,
/// fields that nobody told of, and plain types.
fn misfits(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return misfits(root, root.pointer(reference.trim_start_matches('#')).unwrap(), value, place);
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let fits = choices.iter().any(|choice| misfits(root, choice, value, place).is_empty());
        return if fits { Vec::new() } else { vec![format!("{place}: no choice fits")] };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind = |name: &Value| name == kind;
    let fits = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is_kind),
        Value::Null => schema["const"].is_null() || schema["const"] == *value,
        name => is_kind(name),
    };
    let mut found =
        if fits { Vec::new() } else { vec![format!("{place}: {value} is no {}", schema["type"])] };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    found.extend(
        required.filter(|name| value.get(name).is_none()).map(|name| format!("{place}.{name} is missing")),
    );
    for (name, field) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(property) => found.extend(misfits(root, property, field, &format!("{place}.{name}"))),
            None => found.push(format!("{place}.{name} is not in the schema")),
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let item_schema = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
        found.extend(misfits(root, item_schema, item, &format!("{place}[{index}]")));
    }
    found
}
