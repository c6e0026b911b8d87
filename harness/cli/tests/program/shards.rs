//! A run in shards, merged, is the whole run; and what of it is missing is never green.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use killpoint::RunFolder;
use killpoint::model::ExitCode::{self, Holds, InvalidConfig, SetupFailed, Unproven, Violated};
use killpoint::model::run::TrialRole;
use killpoint::model::{RunRecord, TrialRecord, Verdict};

use crate::bench::{Bench, Said, end_of};

/// How long a shard may take to its first trial.
const LIMIT: Duration = Duration::from_secs(30);

/// Exact boundaries, so that every fault-free trial reaches all of them.
const BOUNDARIES: &[&str] = &[
    "mark:execution-started#1",
    "mark:item-enqueued#1",
    "mark:item-claimed#1",
    "provider:connected#1",
    "provider:received#1",
    "provider:committed#1",
    "provider:replied#1",
    "provider:committed#2",
    "mark:ack-committed#2",
];

fn boundaries() -> Vec<&'static str> {
    BOUNDARIES.iter().flat_map(|name| ["--boundary", name]).collect()
}

fn record(bench: &Bench, folder: &str) -> RunRecord {
    RunFolder::open(&bench.path(folder)).unwrap().1
}

fn faulted(record: &RunRecord) -> Vec<&TrialRecord> {
    record.trials.iter().filter(|trial| trial.role == TrialRole::Faulted).collect()
}

/// What each trial with a fault came to: by what it does and its repetition, its verdict and what was delivered.
fn outcomes(record: &RunRecord) -> BTreeMap<(String, u32), (Verdict, u32)> {
    let outcome = |trial: &TrialRecord| {
        let judged = trial.verdict.as_ref().unwrap();
        ((trial.plan.content_id(), trial.repetition), (judged.verdict, judged.counters.effects))
    };
    faulted(record).into_iter().map(outcome).collect()
}

fn names(record: &RunRecord) -> Vec<(String, u32)> {
    faulted(record).iter().map(|trial| (trial.plan.name.clone(), trial.repetition)).collect()
}

/// The demo in `count` processes at the same time, into the folders `shard-1`, … .
fn demo_in_shards(bench: &Bench, count: u32, words: &[&str]) -> Vec<Said> {
    let started: Vec<_> = (1..=count)
        .map(|index| {
            let (shard, folder) = (format!("{index}/{count}"), format!("shard-{index}"));
            let part = ["demo", "--jobs", "2", "--shard", &shard, "--run-dir", &folder];
            bench.start(&[&part, words].concat())
        })
        .collect();
    started.into_iter().map(|child| end_of(child).never_panics()).collect()
}

fn merge(bench: &Bench, out: &str, shards: &[&str]) -> Said {
    bench.killpoint(&[&["merge", "--out", out], shards].concat()).never_panics()
}

const FOUR: [&str; 4] = ["shard-1", "shard-2", "shard-3", "shard-4"];

/// Runs the demo whole, and in four shards that are merged, and compares the two trial by trial.
fn is_the_same_in_shards(words: &[&str], code: ExitCode) -> Bench {
    let bench = Bench::new();
    bench.killpoint(&[&["demo", "--run-dir", "run"], words].concat()).exits(code);
    demo_in_shards(&bench, 4, words);
    merge(&bench, "merged", &FOUR).exits(code).says(&["4 of 4 shards merged"]);
    let (whole, merged) = (bench.record(), record(&bench, "merged"));
    assert_eq!(names(&merged), names(&whole), "the same trials in the same order");
    assert_eq!(outcomes(&merged), outcomes(&whole));
    assert_eq!(merged.verdict, whole.verdict);
    assert!(merged.merged.as_ref().unwrap().is_complete());
    assert!(!merged.interrupted);
    // Every shard has fault-free trials of its own; apart from them nothing is more or less.
    let fault_free = |record: &RunRecord| record.trials.len() - faulted(record).len();
    assert_eq!(fault_free(&merged), 4 * fault_free(&whole));
    assert_eq!(merged.settings, whole.settings);
    for command in ["check", "report"] {
        let again = bench.killpoint(&[command, "merged"]).exits(code);
        assert!(!again.err.contains("differs"), "{again:?}");
    }
    // Each trial is in one shard, and no shard has all of them.
    let shares: Vec<usize> = FOUR.iter().map(|name| faulted(&record(&bench, name)).len()).collect();
    assert_eq!(shares.iter().sum::<usize>(), faulted(&whole).len());
    assert!(shares.iter().filter(|share| **share > 0).count() > 1, "{shares:?}");
    bench
}

#[test]
fn the_right_worker_in_four_shards_is_the_whole_run_and_a_dead_shard_is_missing() {
    let words = [&boundaries()[..], &["--repeat", "2"]].concat();
    let bench = is_the_same_in_shards(&words, Holds);
    let dead = FOUR.iter().find(|name| faulted(&record(&bench, name)).len() > 1).unwrap();
    let own = names(&record(&bench, dead));
    let index = &dead["shard-".len()..];

    // Its folder was lost.
    std::fs::rename(bench.path(dead), bench.path("elsewhere")).unwrap();
    let lost = merge(&bench, "without", &FOUR).exits(Unproven);
    let lost = lost.says(&[
        "3 of 4 shards merged",
        &format!("shard {index}/4: no run of it is there, with {} trials", own.len()),
        &format!("{dead} is not there"),
    ]);
    let named: Vec<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
    lost.says(&named);
    let without = record(&bench, "without");
    let missing = without.merged.unwrap().missing;
    let missing: Vec<_> = missing.into_iter().map(|one| (one.trial.name, one.trial.repetition)).collect();
    assert_eq!(missing, own);
    assert_eq!(without.verdict, Verdict::Inconclusive);
    bench.killpoint(&["check", "without"]).exits(Unproven);
    bench.killpoint(&["report", "without", "--format", "json"]).exits(Unproven).says(&["\"missing\": ["]);

    // It was interrupted before its last trial.
    let mut cut = record(&bench, "elsewhere");
    cut.interrupted = true;
    let dropped = cut.trials.pop().unwrap();
    let text = serde_json::to_string(&cut).unwrap();
    std::fs::rename(bench.path("elsewhere"), bench.path(dead)).unwrap();
    bench.file(&format!("{dead}/run.json"), &text);
    merge(&bench, "cut", &FOUR)
        .exits(Unproven)
        .says(&[&format!("shard {index}/4: it was interrupted before 1 of its trials"), &dropped.plan.name]);
}

#[test]
fn a_bug_in_four_shards_is_the_whole_run_and_its_replay_lines_work() {
    let scenarios = ["late-accept", "lookup-lags", "rejected", "lost-reply", "reset-after-accept"];
    let scenarios = scenarios.iter().flat_map(|name| ["--scenario", name]);
    let words: Vec<&str> = ["--bug", "trust-first-lookup"].into_iter().chain(scenarios).collect();
    let bench = is_the_same_in_shards(&words, Violated);
    // What was merged stands by itself.
    for name in FOUR {
        std::fs::remove_dir_all(bench.path(name)).unwrap();
    }
    let merged = record(&bench, "merged");
    let mut files = 0;
    for trial in faulted(&merged) {
        if let Some((_, rest)) = trial.replay.split_once("--scenario '") {
            let path = rest.split('\'').next().unwrap();
            assert!(path.contains(&format!("merged/{}/", trial.folder)), "{path}");
            assert!(Path::new(path).is_file(), "{path}");
            files += 1;
        }
    }
    assert!(files > 0);
    bench.killpoint(&["check", "merged"]).exits(Violated).says(&["no-duplicate-effect"]);
}

#[test]
fn a_shard_that_is_killed_leaves_what_it_planned() {
    let bench = Bench::new();
    let words =
        [&["demo", "--jobs", "1", "--shard", "1/1", "--run-dir", "shard-1"], &boundaries()[..]].concat();
    let mut child = bench.start(&words);
    let deadline = Instant::now() + LIMIT;
    let ended = |path: &Path| RunFolder::open(path).map_or(0, |(_, record)| faulted(&record).len());
    while ended(&bench.path("shard-1")) == 0 {
        assert!(Instant::now() < deadline, "no trial ended");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    end_of(child);
    let done = ended(&bench.path("shard-1"));
    assert!(done < BOUNDARIES.len(), "it was too fast");
    let left = BOUNDARIES.len() - done;
    merge(&bench, "merged", &["shard-1"]).exits(Unproven).says(&[
        &format!("shard 1/1: it ended before {left} of its trials"),
        "kill at mark:ack-committed#2 (shard 1)",
        &format!("{left} missing"),
    ]);
}

#[test]
fn a_shard_says_that_it_is_not_the_whole() {
    let bench = Bench::new();
    let one = ["demo", "--boundary", "provider:committed#1"];
    let mut codes = Vec::new();
    for index in ["1/2", "2/2"] {
        let said =
            bench.killpoint(&[&one[..], &["--shard", index, "--run-dir", &index.replace('/', "-")]].concat());
        let said = said.never_panics().says(&[&format!("shard {index} alone"), "`killpoint merge RUN…`"]);
        codes.push(said.code);
    }
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)], "a shard without trials shows nothing by itself");
    merge(&bench, "merged", &["2-2", "1-2"]).exits(Holds);
}

/// A shard of a run of one kill, quickly.
fn small(bench: &Bench, folder: &str, shard: &str, more: &[&str]) {
    let words = ["demo", "--boundary", "provider:committed#1", "--shard", shard, "--run-dir", folder];
    assert!(matches!(bench.killpoint(&[&words[..], more].concat()).never_panics().code, Some(0..=2)));
}

#[test]
fn what_does_not_belong_together_is_refused_with_both_names() {
    let bench = Bench::new();
    small(&bench, "one", "1/2", &[]);
    small(&bench, "other", "2/2", &["--bug", "blind-resend"]);
    merge(&bench, "merged", &["one", "other"]).exits(InvalidConfig).complains(&[
        "one and other are no shards of one run",
        "`settings.producer.argv[",
        "is absent in the one, \"--bug\" in the other",
    ]);
    small(&bench, "of-three", "2/3", &[]);
    merge(&bench, "merged", &["one", "of-three"])
        .exits(InvalidConfig)
        .complains(&["one and of-three are no shards of one run", "the one is of 2 shards, the other of 3"]);
    small(&bench, "again", "1/2", &[]);
    merge(&bench, "merged", &["one", "again"])
        .exits(InvalidConfig)
        .complains(&["one and again", "both are shard 1"]);
    let mut newer = record(&bench, "again");
    newer.killpoint = "9.9.9".into();
    bench.file("again/run.json", &serde_json::to_string(&newer).unwrap());
    merge(&bench, "merged", &["one", "again"])
        .exits(InvalidConfig)
        .complains(&["ran the one, killpoint 9.9.9 the other"]);
    assert!(!bench.path("merged").exists(), "nothing is made of what can't be merged");
}

#[test]
fn what_is_no_shard_is_refused() {
    let bench = Bench::new();
    small(&bench, "one", "1/1", &[]);
    let whole = ["demo", "--boundary", "provider:committed#1", "--run-dir", "whole"];
    bench.killpoint(&whole).exits(Holds);
    let refused = |run: &str, parts: &[&str]| {
        merge(&bench, "merged", &["one", run]).exits(InvalidConfig).complains(parts);
    };
    refused("whole", &["whole/run.json", "a whole run, not a shard", "--shard I/N"]);
    std::fs::create_dir(bench.path("empty")).unwrap();
    refused("empty", &["empty/run.json", "No such file"]);
    merge(&bench, "merged", &["nowhere"])
        .exits(InvalidConfig)
        .complains(&["nowhere", "none of the shards is there"]);

    let text = std::fs::read_to_string(bench.path("one/run.json")).unwrap();
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from));
        std::fs::create_dir_all(bench.path("bad")).unwrap();
        bench.file("bad/run.json", &text.replacen(from, to, 1));
    };
    std::fs::create_dir(bench.path("bad")).unwrap();
    bench.file("bad/run.json", &text[..text.len() / 2]);
    refused("bad", &["bad/run.json", "it is cut short: was it copied whole?"]);
    let minor = killpoint::model::run::RUN_VERSION.1;
    replaced(&format!("    {minor}\n"), "    99\n");
    refused("bad", &["bad/run.json", "newer than this killpoint reads"]);
    replaced("\"folder\": \"0002-", "\"folder\": \"../0002-");
    refused("bad", &["bad/run.json", "is no name of a trial's folder"]);
    replaced("\"count\": 1,", "\"count\": 0,");
    refused("bad", &["bad/run.json", "not 0"]);

    merge(&bench, "merged", &["one"]).exits(Holds);
    refused("merged", &["merged/run.json", "a merged run, not a shard"]);
    merge(&bench, "merged", &["one"]).exits(SetupFailed).complains(&["merged", "not empty"]);
    let trial = record(&bench, "one").trials[2].folder.clone();
    std::fs::remove_file(bench.path("one").join(&trial).join("history.jsonl")).unwrap();
    merge(&bench, "again", &["one"]).exits(InvalidConfig).complains(&[
        &trial,
        "history.jsonl",
        "copied whole",
    ]);
}

#[test]
fn a_shard_that_is_written_wrongly_is_refused() {
    let bench = Bench::new();
    for (shard, part) in [
        ("0/4", "there is no shard 0 of 4"),
        ("5/4", "there is no shard 5 of 4"),
        ("1/0", "1 to 1000 shards, not 0"),
        ("1/1001", "1 to 1000 shards, not 1001"),
        ("4", "I/N, such as 2/4"),
    ] {
        bench.killpoint(&["demo", "--shard", shard]).exits(InvalidConfig).complains(&["--shard", part]);
    }
    bench.killpoint(&["merge"]).exits(InvalidConfig).complains(&["RUN"]);
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 0, "nothing was made");
}
