//! Boundaries that changed since an earlier run, and a sweep that is narrowed to them.

use killpoint::model::ExitCode::{Holds, InvalidConfig, Violated};
use killpoint::model::RunRecord;

use crate::bench::Bench;

const STORED: &str = "killpoint/boundaries.toml";
/// A sweep of kills alone.
const SWEEP: &str = "[sweep]\nplans = []\n";
const RIGHT: &str = "for key in KEYS:\n    if not lookup(key):\n        post(key)";

fn worker(keys: &str) -> String {
    format!("from tiny import *\nKEYS = {keys}\n{RIGHT}")
}

fn bench(keys: &str) -> Bench {
    let bench = Bench::configured("", SWEEP);
    bench.file("worker.py", &worker(keys));
    bench
}

fn record(bench: &Bench, folder: &str) -> RunRecord {
    killpoint::RunFolder::open(&bench.path(folder)).unwrap().1
}

fn faulted(record: &RunRecord) -> Vec<String> {
    let names = record.trials.iter().skip(2).map(|trial| trial.plan.name.clone());
    names.collect()
}

#[test]
fn a_narrowed_sweep_does_what_changed_and_says_what_it_left_out() {
    let bench = bench("['k1']");
    let run = |folder: &str, words: &[&str]| {
        bench.killpoint(&[&["run", "--run-dir", folder, "--changed"], words].concat())
    };
    run("first", &[]).exits(Holds).says(&["there was no killpoint/boundaries.toml", "was written"]);
    let whole = faulted(&record(&bench, "first"));
    assert!(whole.len() > 3, "{whole:?}");
    let stored = std::fs::read_to_string(bench.path(STORED)).unwrap();
    assert!(stored.contains("\"provider:committed#1\""), "{stored}");

    let left_out = whole.len() - 1;
    run("same", &[]).exits(Holds).says(&[
        &format!("· {left_out} trials left out ·"),
        "changes of boundaries: none since killpoint/boundaries.toml",
        &format!("{left_out} of {} trials of the sweep were left out", whole.len()),
        "not said of the whole",
        &format!("of 3 trials, {left_out} left out"),
    ]);
    assert_eq!(faulted(&record(&bench, "same")), ["kill at provider:committed#1"], "one is always tried");

    bench.file("worker.py", &worker("['k1', 'k2']"));
    let said = run("more", &[]).exits(Holds);
    let said = said.says(&["new: ", "provider:committed#2", "provider:committed: 1 → 2"]);
    assert!(!said.out.contains("no trial, scenario or regression"), "the sweep acts there");
    let names = faulted(&record(&bench, "more"));
    assert!(names.contains(&"kill at provider:committed#2".to_owned()), "{names:?}");
    assert_eq!(std::fs::read_to_string(bench.path(STORED)).unwrap(), stored, "nobody asked for an update");
    bench.killpoint(&["report", "more"]).exits(Holds).says(&["provider:committed: 1 → 2"]);

    let words = ["--scenario", "lost-reply"];
    let said = run("scenario", &words).exits(Holds);
    let said = said.says(&["new, and no trial, scenario or regression acts there", "- provider:committed#2"]);
    assert!(!said.out.contains("left out"), "what is named is done");

    run("update", &["--update-boundaries"]).exits(Holds).says(&["was written"]);
    assert_ne!(std::fs::read_to_string(bench.path(STORED)).unwrap(), stored);
}

#[test]
fn a_run_that_is_not_green_stores_no_boundaries() {
    let bench = Bench::configured(
        "post()\npost('k2')",
        "[sweep]\nboundaries = [\"provider:committed#1\"]\nplans = []\n",
    );
    for folder in ["one", "two"] {
        bench
            .killpoint(&["run", "--run-dir", folder, "--changed"])
            .exits(Violated)
            .says(&["was not written", "must not leave out what is wrong now"]);
        assert!(!bench.path(STORED).exists(), "the second run would leave out what is red");
    }
}

#[test]
fn a_file_that_can_not_be_read_is_refused_before_anything_runs() {
    let bench = bench("['k1']");
    bench.file("mine.toml", "version = 1\nhits = [\"provider:comitted#1\"]\n");
    bench
        .killpoint(&["run", "--run-dir", "run", "--changed=mine.toml"])
        .exits(InvalidConfig)
        .complains(&["mine.toml:2:9", "did you mean `committed`?"]);
    assert!(!bench.path("run").exists());
}
