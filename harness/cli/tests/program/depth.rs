//! Faults during recovery: a second kill where the worker recovers from the first.

use killpoint::model::ExitCode::{Holds, InvalidConfig, Violated};
use killpoint::model::event::EventKind;
use killpoint::model::{RunRecord, TrialRecord};

use crate::bench::Bench;

/// Looks before it sends again, but takes a recovery that was cut short for one that sent nothing.
const WRONG_THE_SECOND_TIME: &str = r#"
if once("begun"):
    post()
elif once("recovering"):
    lookup() or post()
elif not os.path.exists(state("done")):
    post("k2")
open(state("done"), "w").close()
"#;

/// The same, but a recovery that was cut short looks again.
const RIGHT_EACH_TIME: &str = r#"
if once("begun"):
    post()
elif not os.path.exists(state("done")):
    lookup() or post()
open(state("done"), "w").close()
"#;

fn second_level(record: &RunRecord) -> Vec<&TrialRecord> {
    record.trials.iter().filter(|trial| trial.plan.faults.len() == 2).collect()
}

#[test]
fn the_right_worker_holds_and_each_second_kill_lands_in_another_life() {
    let bench = Bench::new();
    let words = ["--boundary", "provider:committed#2", "--boundary", "provider:replied#2"];
    bench
        .killpoint(&[&["demo", "--depth", "2", "--run-dir", "run"], &words[..]].concat())
        .exits(Holds)
        .says(&["2 first crashes, 1 of them merged as equal", "same ledger rows, writes and effects"]);
    let record = bench.record();
    let second = second_level(&record);
    assert!(second.len() > 3, "{}", second.len());
    assert_eq!(record.trials.len(), 2 + 2 + second.len());
    for trial in &second {
        let [first, then] = &trial.plan.faults[..] else { unreachable!() };
        assert_eq!(first.at.to_string(), "provider:committed#2", "the other crash is the same one");
        assert_eq!(trial.plan.name, format!("kill at {}, then at {}", first.at, then.at));
        assert!(trial.replay.contains("--scenario '"), "{}", trial.replay);
        let history = bench.history(trial);
        let lives: Vec<u32> = history
            .events
            .iter()
            .filter(
                |event| matches!(&event.event, EventKind::Killed { proof, .. } if proof.signal == Some(9)),
            )
            .map(|event| event.generation)
            .collect();
        assert_eq!(lives.len(), 2, "{}", trial.plan.name);
        assert!(lives[0] < lives[1] && history.generations() > lives[1], "{lives:?}");
    }
    bench.is_judged_again(Holds);
}

#[test]
fn a_worker_that_is_wrong_in_its_second_recovery_is_red_at_depth_2_only() {
    let sweep = "[sweep]\nboundaries = [\"provider:received#1\", \"provider:committed#1\"]\nplans = []\n";
    let bench = Bench::configured(WRONG_THE_SECOND_TIME, sweep);
    bench.killpoint(&["run", "--run-dir", "first"]).exits(Holds);
    bench
        .run(&["--depth", "2"])
        .exits(Violated)
        .says(&["no-duplicate-effect", "2 first crashes, 0 of them merged"]);
    let record = bench.record();
    let cut_short = "kill at provider:committed#1, then at provider:lookup#1";
    let cut_short = record.trials.iter().find(|trial| trial.plan.name == cut_short).unwrap();
    let mut violated = cut_short.verdict.as_ref().unwrap().violated();
    assert!(violated.any(|outcome| outcome.invariant == "no-duplicate-effect"));
    let red = |trial: &&TrialRecord| {
        trial.verdict.as_ref().is_some_and(|judged| judged.violated().next().is_some())
    };
    assert!(record.trials.iter().filter(red).all(|trial| trial.plan.faults.len() == 2));
    // A short budget sees each first crash before any of them twice.
    let mut second = second_level(&record);
    second.sort_by(|a, b| a.folder.cmp(&b.folder));
    let firsts: Vec<String> =
        second.iter().take(2).map(|trial| trial.plan.faults[0].at.to_string()).collect();
    assert_eq!(firsts, ["provider:received#1", "provider:committed#1"]);
    let replay = &second.into_iter().find(red).unwrap().replay;
    let file = replay.split('\'').rev().nth(1).unwrap();
    bench.killpoint(&["run", "--scenario", file, "--run-dir", "again"]).exits(Violated);

    let right = Bench::configured(RIGHT_EACH_TIME, sweep);
    right.run(&["--depth", "2"]).exits(Holds);
    assert!(second_level(&right.record()).len() > 3);
}

#[test]
fn what_the_time_did_not_suffice_for_is_told() {
    let bench = Bench::new();
    let words =
        ["demo", "--depth", "2", "--time", "1ms", "--jobs", "1", "--boundary", "provider:committed#2"];
    let said = bench.killpoint(&[&words[..], &["--run-dir", "run"]].concat()).exits(Holds);
    let record = bench.record();
    let done = second_level(&record).len();
    assert!(done <= 1, "{done}");
    said.says(&[
        &format!("depth 2: {done} of "),
        "second-level trials were done in 1 ms; left out from `kill at provider:committed#2, then at ",
    ]);
    assert!(record.warnings.iter().any(|warning| warning.contains("left out from")));
}

#[test]
fn what_depth_2_can_not_go_on_from_is_refused() {
    let bench = Bench::new();
    for (words, part) in [
        (&["--depth", "2", "--shard", "1/2"][..], "leave --shard out"),
        (&["--depth", "2", "--scenario", "lost-reply"], "choose their own trials"),
        (&["--depth", "2", "--profile", "restart-safe"], "choose their own trials"),
        (&["--depth", "2", "--strategy", "scenario"], "choose their own trials"),
        (&["--time", "60s"], "give --depth 2"),
        (&["--depth", "2", "--time", "60"], "a time has a unit"),
        (&["--depth", "3"], "--depth"),
        (&["--depth", "0"], "--depth"),
    ] {
        bench.killpoint(&[&["demo"], words].concat()).exits(InvalidConfig).complains(&[part]);
    }
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 0, "nothing was made");
}
