//! Exploring, from the first plan to a scenario file and a token that anybody can replay.

use std::fs;
use std::path::PathBuf;

use killpoint::RunFolder;
use killpoint::model::ExitCode::{Holds, InvalidConfig, Unproven, Violated};
use killpoint::model::exploration::{Exploration, ExplorationEnd, RegressionOutcome};
use killpoint::model::{RunRecord, Verdict};

use crate::bench::{Bench, Said};

/// Explores the built-in worker, with these words besides.
fn explore(bench: &Bench, run: &str, words: &[&str]) -> Said {
    let begin = ["explore", "--demo", "--run-dir", run, "--regressions", "kept"];
    bench.killpoint(&[&begin, words].concat())
}

fn record(bench: &Bench, run: &str) -> RunRecord {
    RunFolder::open(&bench.path(run)).unwrap().1
}

fn exploration(bench: &Bench, run: &str) -> Exploration {
    record(bench, run).exploration.unwrap()
}

fn kept(bench: &Bench) -> Vec<PathBuf> {
    let entries = fs::read_dir(bench.path("kept")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_bug_is_found_made_small_kept_and_replayed() {
    let bench = Bench::new();
    let said =
        explore(&bench, "one", &["--bug", "blind-resend", "--cases", "40", "--seed", "7"]).exits(Violated);
    let explored = exploration(&bench, "one");
    assert_eq!(explored.ended, ExplorationEnd::Counterexample);
    let found = &explored.counterexamples[0];
    assert!(found.confirmed_before.is_all() && found.confirmed_after.is_all(), "{found:?}");
    assert_eq!((found.confirmed_before.of, found.confirmed_after.of), (3, 3));
    assert!(found.smallest.faults.len() + found.smallest.rules.len() <= 2, "{:?}", found.smallest);
    assert!(said.out.contains(&found.token), "the line to replay is printed whole");

    // The token and the file are the same trial, and red by the same invariant.
    let file = &kept(&bench)[0];
    assert!(fs::read_to_string(file).unwrap().starts_with(&format!("# {}", found.invariant)));
    bench.killpoint(&["replay", &found.token, "--repeat", "5", "--run-dir", "two"]).exits(Violated);
    let file = file.to_str().unwrap();
    bench
        .killpoint(&["demo", "--bug", "blind-resend", "--scenario", file, "--run-dir", "three"])
        .exits(Violated);
    for run in ["two", "three"] {
        let trials = record(&bench, run).trials;
        let faulted = trials.iter().filter(|trial| !trial.plan.is_baseline());
        for trial in faulted {
            let judged = trial.verdict.as_ref().unwrap();
            assert_eq!(judged.violated().next().unwrap().invariant, found.invariant, "{run}");
            assert_eq!(trial.plan.content_id(), found.smallest.content_id());
        }
    }
}

#[test]
fn the_right_worker_is_explored_without_a_finding_and_what_was_not_seen_is_said() {
    let bench = Bench::new();
    explore(&bench, "one", &["--cases", "16", "--seed", "3"])
        .exits(Holds)
        .says(&["explored 16 plans", "not seen:"]);
    let explored = exploration(&bench, "one");
    assert_eq!((explored.cases, explored.ended), (16, ExplorationEnd::Cases));
    assert!(explored.counterexamples.is_empty() && kept(&bench).is_empty());
    assert!(explored.covered.iter().any(|pair| pair.struck > 0), "some plan did something");
    assert!(!explored.unseen.is_empty(), "16 plans can't see everything");
    bench.killpoint(&["check", "one"]).exits(Holds);
}

#[test]
fn a_kept_counterexample_comes_first_and_is_kept_when_it_is_fixed() {
    let bench = Bench::new();
    explore(&bench, "one", &["--bug", "blind-resend", "--cases", "40", "--seed", "7"]).exits(Violated);
    let before = kept(&bench);
    explore(&bench, "two", &["--bug", "blind-resend", "--cases", "1", "--seed", "8"]).exits(Violated);
    assert_eq!(exploration(&bench, "two").regressions[0].outcome, RegressionOutcome::Fails);
    explore(&bench, "three", &["--cases", "1", "--seed", "8"]).exits(Holds).says(&["fixed"]);
    assert_eq!(exploration(&bench, "three").regressions[0].outcome, RegressionOutcome::Fixed);
    assert!(before.iter().all(|file| kept(&bench).contains(file)), "nothing that was kept is removed");
}

#[test]
fn a_counterexample_whose_moment_is_gone_is_stale_and_never_green() {
    let bench = Bench::new();
    fs::create_dir(bench.path("kept")).unwrap();
    let gone = "name = \"gone\"\nsummary = \"a moment that was renamed\"\n\n[[fault]]\nat = \"mark:item-clamed#1\"\ndo = \"kill\"\n";
    bench.file("kept/gone.toml", gone);
    explore(&bench, "one", &["--cases", "2", "--seed", "1"]).exits(Unproven).says(&[
        "stale",
        "mark:item-clamed#1",
        "mark:item-claimed#1",
    ]);
    assert_eq!(exploration(&bench, "one").regressions[0].outcome, RegressionOutcome::Stale);
}

#[test]
fn a_moment_that_only_recovery_makes_is_not_stale() {
    let bench = Bench::new();
    fs::create_dir(bench.path("kept")).unwrap();
    let twice = "name = \"twice\"\nsummary = \"killed in the request, and in the recovery\"\n\n[[fault]]\n\
        at = \"provider:committed#1\"\ndo = \"kill\"\n\n[[fault]]\nat = \"provider:lookup#1\"\ndo = \"kill\"\n";
    bench.file("kept/twice.toml", twice);
    explore(&bench, "one", &["--cases", "4", "--seed", "1"]).exits(Holds);
    let again = exploration(&bench, "one").regressions;
    assert_eq!(again[0].outcome, RegressionOutcome::Fixed, "{again:?}");
}

#[test]
fn an_exploration_goes_on_where_it_ended() {
    let bench = Bench::new();
    explore(&bench, "one", &["--cases", "10", "--seed", "5"]).exits(Holds);
    let first: Vec<String> =
        record(&bench, "one").trials.iter().map(|trial| trial.plan.content_id()).collect();
    bench
        .killpoint(&["explore", "--demo", "--resume", "one", "--cases", "14", "--regressions", "kept"])
        .exits(Holds);
    let after = record(&bench, "one");
    let drawn = after.trials.iter().filter(|trial| trial.drawn);
    let ids: Vec<String> = drawn.map(|trial| trial.plan.content_id()).collect();
    assert_eq!(ids.len(), 14, "four more");
    assert!(ids.iter().collect::<std::collections::BTreeSet<_>>().len() == 14, "no plan is tried twice");
    assert!(ids.iter().take(10).all(|id| first.contains(id)));
    assert_eq!(after.exploration.unwrap().seed, 5);
    assert_eq!(after.verdict, Verdict::Holds);
    let buggy = ["explore", "--demo", "--bug", "blind-resend", "--regressions", "other"];
    bench
        .killpoint(&[&buggy[..], &["--cases", "8", "--seed", "5", "--run-dir", "red"]].concat())
        .exits(Violated);
    let found = exploration(&bench, "red").counterexamples;
    bench.killpoint(&[&buggy[..], &["--cases", "9", "--resume", "red"]].concat()).exits(Violated);
    assert_eq!(exploration(&bench, "red").counterexamples[0], found[0], "what was found is not lost");
    bench.killpoint(&["demo", "--boundary", "provider:committed#1", "--run-dir", "two"]).exits(Holds);
    bench
        .killpoint(&["explore", "--demo", "--resume", "two", "--cases", "8"])
        .exits(InvalidConfig)
        .complains(&["no exploration"]);
}

#[test]
fn what_can_not_be_replayed_is_refused_with_the_reason() {
    let bench = Bench::new();
    for (token, why) in [
        ("kp2:abc", "version 2"),
        ("kp1:abc", "damaged"),
        ("kp1:", "damaged"),
        ("nothing-of-the-kind", "neither a replay token nor a file"),
    ] {
        bench.killpoint(&["replay", token]).exits(InvalidConfig).never_panics().complains(&[why]);
    }
    bench.killpoint(&["explore", "--demo", "--time", "60"]).exits(InvalidConfig).complains(&["unit"]);
    bench.killpoint(&["explore", "--demo", "--bug", "none-such"]).exits(InvalidConfig);
}

#[test]
fn a_kept_counterexample_is_tried_first_in_a_run() {
    let bench = Bench::configured(
        "once('sent') and post()\n",
        "[sweep]\nboundaries = [\"provider:received#1\"]\nplans = []\n",
    );
    fs::create_dir_all(bench.path("killpoint/regressions")).unwrap();
    let one = "name = \"kept\"\nsummary = \"killed once accepted\"\n\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"\n";
    bench.file("killpoint/regressions/kept.toml", one);
    bench.run(&[]);
    let plans: Vec<String> = bench.record().trials.into_iter().skip(2).map(|trial| trial.plan.name).collect();
    assert_eq!(plans, ["kept", "kill at provider:received#1"]);
}
