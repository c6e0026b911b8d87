//! `killpoint mark`: the shell's way to name a boundary.

use killpoint::model::ExitCode::{Holds, SetupFailed};
use killpoint::model::event::EventKind;

use crate::bench::{Bench, end_of, started};

#[test]
fn outside_a_trial_a_mark_does_nothing() {
    let bench = Bench::new();
    bench.killpoint(&["mark", "item-claimed"]).exits(Holds).complains(&[]);
    let said = bench.killpoint(&["mark", "--", "item-claimed"]).exits(Holds);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    let said = end_of(started(bench.command(&["mark", "item-claimed"]).env("KILLPOINT_SOCKET", "")));
    said.exits(Holds).complains(&[]);
}

#[test]
fn a_mark_that_nobody_answers_is_an_error() {
    let bench = Bench::new();
    let mut command = bench.command(&["mark", "item-claimed"]);
    end_of(started(command.env("KILLPOINT_SOCKET", bench.path("nobody"))))
        .exits(SetupFailed)
        .complains(&["error:", "nobody"]);
}

#[test]
fn a_shell_names_a_boundary_and_is_killed_there() {
    let script = format!(
        "
import subprocess
first = once('sent')
subprocess.run(['{}', 'mark', 'intent-noted'], check=True)
if first or not lookup():
    post()
",
        env!("CARGO_BIN_EXE_killpoint")
    );
    let bench = Bench::with_worker(&script);
    bench.run_bare(&["mark:intent-noted#1"]).exits(Holds);
    let at = bench.last_events().into_iter().find_map(|event| match event {
        EventKind::FaultDone { at, landed: true, .. } => Some(at.to_string()),
        _ => None,
    });
    assert_eq!(at.as_deref(), Some("mark:intent-noted#1"));
    bench.is_judged_again(Holds);
}
