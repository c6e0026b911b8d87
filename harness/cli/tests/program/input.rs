//! What is wrong in what the user wrote is said with its place, before anything is started.

use killpoint::model::ExitCode::{InvalidConfig, SetupFailed, Unproven};

use crate::bench::Bench;

const WORKER: &str = "[worker]\ncommand = [\"true\"]\n";

/// A configuration that is refused, with what must be said.
fn refused(config: &str, parts: &[&str]) {
    let bench = Bench::new();
    bench.file("killpoint.toml", config);
    bench.run(&[]).exits(InvalidConfig).complains(parts);
    assert!(!bench.path("run").exists(), "nothing is made for a run that can't be");
}

#[test]
fn an_unknown_key_is_shown_in_its_line() {
    refused(
        "[worker]\ncomand = [\"true\"]\n",
        &["unknown-key", "killpoint.toml:2:1", "did you mean `command`?"],
    );
}

#[test]
fn all_problems_of_a_file_are_shown_at_once() {
    refused(
        "promise = \"exactly-one\"\n[worker]\ncommand = [\"true\"]\nrestarts-max = -1\n",
        &["killpoint.toml:1:", "exactly-once", "killpoint.toml:4:"],
    );
}

#[test]
fn text_that_is_no_toml_is_shown_in_its_line() {
    refused("[worker\n", &["killpoint.toml:1:"]);
}

#[test]
fn unknown_names_in_the_configuration_come_with_the_nearest() {
    for (more, parts) in [
        ("[ledger]\nkind = \"sqlit\"\npath = \"x\"\n", ["killpoint.toml:4:", "`sqlite`"]),
        (
            "[ledger]\nkind = \"sqlite\"\npath = \"x\"\npreset = \"run-delivry\"\n",
            ["killpoint.toml:6:", "`run-delivery`"],
        ),
        ("[provider]\ndialect = \"rset\"\n", ["killpoint.toml:4:", "`rest`"]),
        ("[sweep]\nplans = [\"drop-after-acept\"]\n", ["killpoint.toml:4:", "`drop-after-accept`"]),
        ("[sweep]\nboundaries = [\"provider:comitted#1\"]\n", ["killpoint.toml:4:", "`committed`"]),
        ("[boundaries]\nitem-claimd = \"mark:x\"\n", ["killpoint.toml:4:", "`item-claimed`"]),
    ] {
        refused(&format!("{WORKER}{more}"), &parts);
    }
}

#[test]
fn unknown_names_on_the_command_line_come_with_the_nearest() {
    let bench = Bench::new();
    for (words, parts) in [
        (&["demo", "--boundary", "provider:comitted#1"][..], ["unknown-boundary", "`committed`"]),
        (&["demo", "--boundary", "provider:committed#0"], ["unknown-boundary", "count from 1"]),
        (&["demo", "--scenario", "late-acept"], ["unknown-scenario", "`late-accept`"]),
        (&["demo", "--bug", "blind-resnd"], ["unknown-bug", "`blind-resend`"]),
        (&["demo", "--report", "jsn=x"], ["unknown-format", "`json`"]),
        (&["demo", "--report", "json"], ["bad-report", "FORMAT=PATH"]),
        (
            &["demo", "--scenario", "late-accept", "--boundary", "provider:committed"],
            ["two-strategies", "--boundary"],
        ),
        (&["run", "--config", "x", "--", "true"], ["two-workers", "--config"]),
        (&["list", "fault"], ["unknown-kind", "`faults`"]),
        (&["explain", "no-lost-actoin"], ["unknown-name", "`no-lost-action`"]),
        (&["demo", "--jobs", "0"], ["--jobs", "0"]),
        (&["demmo"], ["demmo", "'demo'"]),
    ] {
        bench.killpoint(words).exits(InvalidConfig).complains(&parts);
    }
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let bench = Bench::new();
    bench.run(&[]).exits(InvalidConfig).complains(&["killpoint.toml", "No such file", "--config"]);
    bench.run(&["--config", "other.toml"]).exits(InvalidConfig).complains(&["other.toml"]);
    bench.killpoint(&["check", "nowhere"]).exits(InvalidConfig).complains(&["nowhere", "No such file"]);
    bench.killpoint(&["report", "nowhere"]).exits(InvalidConfig).complains(&["nowhere", "No such file"]);
    bench.file("run.json", "{}");
    bench.killpoint(&["check", "."]).exits(InvalidConfig).complains(&["run.json", "no killpoint run"]);
}

#[test]
fn an_unknown_fault_is_shown_in_the_scenario() {
    let bench = Bench::new();
    bench.file(
        "mine.toml",
        "name = \"mine\"\nsummary = \"s\"\n\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"kil\"\n",
    );
    bench
        .killpoint(&["demo", "--scenario", "mine.toml"])
        .exits(InvalidConfig)
        .complains(&["mine.toml:6:", "did you mean `kill`?"]);
}

#[test]
fn a_run_never_writes_over_another() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("run")).unwrap();
    bench.file("run/precious", "");
    let words = ["demo", "--run-dir", "run"];
    bench.killpoint(&words).exits(SetupFailed).complains(&["not empty", "name another"]);
}

#[test]
fn a_boundary_of_the_configuration_that_is_never_reached_is_not_green() {
    let bench = Bench::configured("post()", "[sweep]\nboundaries = [\"provider:committed#7\"]\nplans = []\n");
    bench.run(&[]).exits(Unproven).says(&[
        "`provider:committed#7` was never reached",
        "the nearest that was reached: `provider:committed#1`",
        "vacuous",
    ]);
    bench.is_judged_again(Unproven);
}

#[test]
fn a_kill_that_comes_too_late_is_vacuous() {
    let bench = Bench::with_worker("post()");
    bench.run_bare(&["provider:received#99"]).exits(Unproven).says(&["provider:received#99", "vacuous"]);
    assert_eq!(bench.record().trials.len(), 3);
    bench.is_judged_again(Unproven);
}
