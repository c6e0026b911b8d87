//! A worker that is alive and does nothing: no process dies, no error is raised, and the gate is red.

use std::path::Path;

use killpoint::model::ExitCode::{Holds, Violated};
use killpoint::model::InvariantStatus;

use crate::bench::Bench;

fn example(config: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/asyncio-task");
    folder.join(config).display().to_string()
}

#[test]
fn a_background_task_that_nobody_holds_is_red_without_any_fault() {
    let bench = Bench::new();
    bench.run(&["--config", &example("wrong.toml")]).exits(Violated);
    let baseline = bench.record().trials.remove(0);
    assert!(baseline.plan.faults.is_empty() && baseline.plan.rules.is_empty());
    let judged = baseline.verdict.unwrap();
    let due = judged.outcomes.iter().find(|outcome| outcome.invariant == "due-is-served").unwrap();
    assert_eq!(due.status, InvariantStatus::Violated);
    assert!(due.findings.iter().all(|finding| !finding.events.is_empty()));
}

#[test]
fn a_background_task_that_is_held_is_green() {
    Bench::new()
        .run(&["--config", &example("killpoint.toml"), "--boundary", "provider:committed#1"])
        .exits(Holds);
}
