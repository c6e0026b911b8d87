//! The reference behaviour in a second language: right in every schedule, and wrong in ten ways, each of them seen.
//! Nothing that the program says may depend on one worker's habits.

use std::path::{Path, PathBuf};

use killpoint::model::ExitCode::{Holds, Violated};
use killpoint::model::InvariantStatus;

use crate::bench::Bench;

/// Bug, where it shows, and the invariant that must be among those that are violated there.
const BUGS: &[(&str, Where, &str)] = &[
    ("blind-resend", Where::Kill("provider:committed#1"), "no-blind-resend"),
    // Its rows have their keys from the beginning, so what is missing shows only in what recovery makes of them.
    ("send-before-intent", Where::Kill("provider:committed#1"), "no-blind-resend"),
    ("key-per-attempt", Where::Scenario("lost-reply"), "stable-key"),
    ("unknown-as-failed", Where::Scenario("lost-reply"), "unknown-is-explicit"),
    ("swallow-timeout", Where::Plan("timeout-before-accept"), "no-false-success"),
    ("trust-first-lookup", Where::Scenario("late-accept"), "no-duplicate-effect"),
    ("orphans-stay-locked", Where::Kill("item-claimed#1"), "terminal-state-explicit"),
    ("retry-refused", Where::Scenario("rejected"), "refusal-is-final"),
    ("mark-before-send", Where::Kill("provider:received#1"), "confirmed-after-acceptance"),
    ("never-starts-sending", Where::Nowhere, "terminal-state-explicit"),
];

/// The schedule that shows a bug.
#[derive(Debug, Clone, Copy)]
enum Where {
    /// A kill there.
    Kill(&'static str),
    /// A scenario of the library.
    Scenario(&'static str),
    /// A plan of the provider at the first attempt.
    Plan(&'static str),
    /// Without any fault.
    Nowhere,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/worker-python").canonicalize().unwrap()
}

/// The worker's own configuration, wrong in one way where a bug is named, with one plan to sweep.
fn configure(bench: &Bench, bug: Option<&str>, plan: Option<&str>) {
    let text = std::fs::read_to_string(folder().join("killpoint.toml")).unwrap();
    let mut table: toml::Table = toml::from_str(&text).unwrap();
    let worker = table["worker"].as_table_mut().unwrap();
    worker.insert("cwd".into(), folder().to_str().unwrap().into());
    let bug = bug.into_iter().flat_map(|bug| ["--bug", bug]).map(toml::Value::from);
    worker["command"].as_array_mut().unwrap().extend(bug);
    if let Some(plan) = plan {
        let sweep = toml::toml! { boundaries = ["provider:received#1"] };
        table.insert("sweep".into(), sweep.into());
        table["sweep"].as_table_mut().unwrap().insert("plans".into(), vec![plan].into());
    }
    bench.file("killpoint.toml", &toml::to_string(&table).unwrap());
}

#[test]
fn the_right_worker_holds_at_every_boundary_and_under_every_plan() {
    let bench = Bench::new();
    configure(&bench, None, None);
    bench.run(&[]).exits(Holds);
    assert!(bench.record().trials.len() > 20, "a kill at each boundary, and each plan");
}

#[test]
fn the_right_worker_holds_where_the_bugs_show() {
    let bench = Bench::new();
    configure(&bench, None, None);
    bench
        .run(&["--scenario", "lost-reply", "--scenario", "late-accept", "--scenario", "rejected"])
        .exits(Holds);
}

#[test]
fn each_of_the_ten_bugs_is_red_by_its_invariant() {
    for (bug, shows, invariant) in BUGS {
        let bench = Bench::new();
        let plan = if let Where::Plan(plan) = shows { Some(*plan) } else { None };
        configure(&bench, Some(bug), plan);
        let words = match shows {
            Where::Kill(at) => vec!["--boundary", at],
            Where::Scenario(name) => vec!["--scenario", name],
            Where::Plan(_) => vec![],
            Where::Nowhere => vec!["--boundary", "provider:received#1"],
        };
        bench.run(&words).exits(Violated);
        let violated: Vec<String> = bench
            .record()
            .trials
            .iter()
            .filter_map(|trial| trial.verdict.as_ref())
            .flat_map(|judged| &judged.outcomes)
            .filter(|outcome| outcome.status == InvariantStatus::Violated)
            .map(|outcome| {
                assert!(outcome.findings.iter().all(|finding| !finding.events.is_empty()), "{bug}");
                outcome.invariant.clone()
            })
            .collect();
        assert!(violated.iter().any(|name| name == invariant), "{bug}: {invariant} is not in {violated:?}");
    }
}
