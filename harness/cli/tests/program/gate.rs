//! Known failures: what is listed passes loudly, what is new is red, what is listed for nothing is red too.

use killpoint::model::ExitCode::{Holds, InvalidConfig, Unproven, Violated};
use killpoint::model::Verdict;
use serde_json::Value;

use crate::bench::{Bench, Said};

const FILE: &str = "known.toml";
const BUG: &[&str] = &["--bug", "blind-resend"];
const AT: &[&str] = &["--boundary", "provider:committed#1"];

fn demo(bench: &Bench, folder: &str, words: &[&[&str]]) -> Said {
    bench.killpoint(&[&["demo", "--run-dir", folder, "--baseline", FILE], &words.concat()[..]].concat())
}

fn text(bench: &Bench) -> String {
    std::fs::read_to_string(bench.path(FILE)).unwrap()
}

/// A folder whose file lists what a bug of the demo's worker violates at one boundary.
fn listed() -> Bench {
    let bench = Bench::new();
    demo(&bench, "first", &[BUG, AT, &["--update-baseline"]]).exits(Holds).says(&[
        "✗ violated",
        "known violation",
        "none new",
        "known.toml was written",
    ]);
    bench
}

#[test]
fn without_a_file_nothing_is_run_and_it_is_said_how_to_write_one() {
    let bench = Bench::new();
    demo(&bench, "run", &[BUG, AT]).exits(InvalidConfig).complains(&[
        "no-baseline",
        FILE,
        "--update-baseline",
    ]);
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 0, "nothing was made");
    for words in [&["--update-baseline"][..], &["--baseline", FILE, "--accept-new"]] {
        bench.killpoint(&[&["demo"], words].concat()).exits(InvalidConfig).complains(&["--"]);
    }
    bench.file(FILE, "version = 1\n\n[[known]]\ntrail = \"a\"\n");
    demo(&bench, "run", &[AT]).exits(InvalidConfig).complains(&["known.toml:4:1", "did you mean `trial`?"]);
    demo(&bench, "run", &[AT, &["--update-baseline"]]).exits(InvalidConfig);
    bench.file(FILE, "version = 1\n");
    demo(&bench, "run", &[AT, &["--update-baseline", "--shard", "1/2"]])
        .exits(InvalidConfig)
        .complains(&["bad-baseline", "shard"]);
}

#[test]
fn a_known_violation_passes_loudly_and_every_later_look_says_the_same() {
    let bench = listed();
    let before = text(&bench);
    assert!(
        before.contains("trial = \"kill at provider:committed#1\"") && before.contains("no-duplicate-effect")
    );
    let said = demo(&bench, "run", &[BUG, AT, &["--repeat", "2"]]).exits(Holds);
    let said = said.says(&["✗ violated", "known violation", "exit code 0", "none new", "(2 of 2)"]);
    assert_eq!(text(&bench), before, "nobody asked for an update");
    let record = bench.record();
    assert_eq!(record.verdict, Verdict::Violated, "the verdict stays what it is");
    for command in ["report", "check"] {
        let again = bench.killpoint(&[command, "run"]).exits(Holds);
        let lines = |text: &str| {
            text.lines()
                .filter(|line| !line.starts_with("recorded in"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&again.out), lines(&said.out), "{command}");
    }
    let json = bench.killpoint(&["report", "run", "--format", "json"]).exits(Holds);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["verdict"], &json["exit_code"]), (&"violated".into(), &0.into()));
    assert!(json["exit_meaning"].as_str().unwrap().contains("known violation"));
    assert_eq!(json["baseline"]["rest"], "holds");
    assert_eq!(json["baseline"]["known"][0]["red"], 2);
    assert_eq!(json["baseline"]["new"], Value::Array(Vec::new()));
}

#[test]
fn a_stale_entry_fails_until_it_is_taken_out() {
    let bench = listed();
    let before = text(&bench);
    demo(&bench, "fixed", &[AT]).exits(Unproven).says(&[
        "✓ holds",
        "exit code 2",
        "none any more",
        "take it out of the file, or run with --update-baseline",
    ]);
    assert_eq!(text(&bench), before);
    bench.killpoint(&["report", "fixed"]).exits(Unproven);
    demo(&bench, "update", &[AT, &["--update-baseline"]]).exits(Holds).says(&["0 put in", "taken out"]);
    assert!(!text(&bench).contains("[[known]]"));
    demo(&bench, "red", &[BUG, AT]).exits(Violated).says(&["new violation", "exit code 1"]);
}

#[test]
fn a_new_violation_is_red_and_only_accepted_where_that_is_asked_for() {
    let bench = listed();
    let before = text(&bench);
    let other: &[&str] = &["--bug", "trust-first-lookup", "--scenario", "late-accept"];
    let said = demo(&bench, "new", &[other]).exits(Violated);
    said.says(&["new violation", "not part of this run, left alone"]);
    demo(&bench, "shrink", &[other, &["--update-baseline"]]).exits(Violated).says(&["0 put in, 0 taken out"]);
    assert_eq!(text(&bench), before, "it only shrinks");
    demo(&bench, "accept", &[other, &["--update-baseline", "--accept-new"]]).exits(Holds);
    let after = text(&bench);
    assert!(after.contains("scenario = \"late-accept\"") && after.contains("kill at provider:committed#1"));
    demo(&bench, "again", &[other]).exits(Holds);
    assert_eq!(text(&bench), after);
}

#[test]
fn what_proves_nothing_is_never_excused() {
    let bench = listed();
    demo(&bench, "vacuous", &[BUG, AT, &["--boundary", "provider:received#99"]]).exits(Unproven).says(&[
        "known violation",
        "vacuous",
        "exit code 2",
        "nothing was proven",
    ]);
}

#[test]
fn shards_that_were_held_against_one_file_are_so_as_a_whole() {
    let bench = listed();
    let shard = |folder: &str, part: &str, words: &[&str]| {
        let own = ["demo", "--run-dir", folder, "--shard", part];
        bench.killpoint(&[&own[..], BUG, AT, &["--boundary", "mark:execution-started#1"], words].concat())
    };
    let with = ["--baseline", FILE];
    let codes: Vec<_> =
        [("one", "1/2"), ("two", "2/2")].map(|(folder, part)| shard(folder, part, &with).code).to_vec();
    assert!(codes.contains(&Some(0)), "the shard with the violation passes: {codes:?}");
    bench
        .killpoint(&["merge", "--out", "merged", "one", "two"])
        .exits(Holds)
        .says(&["2 of 2 shards merged · 2 known violations", "exit code 0"]);
    bench.killpoint(&["check", "merged"]).exits(Holds);
    shard("plain", "2/2", &[]);
    bench.killpoint(&["merge", "--out", "mixed", "one", "plain"]).exits(Violated);
}
