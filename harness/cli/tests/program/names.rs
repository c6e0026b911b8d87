//! Help, `list` and `explain`.

use killpoint::model::ExitCode::Holds;
use serde_json::Value;

use crate::bench::Bench;

#[test]
fn the_help_of_every_command() {
    let bench = Bench::new();
    let commands = [
        "", "demo", "init", "doctor", "run", "explore", "replay", "check", "report", "merge", "list",
        "explain", "provider", "mark", "selftest",
    ];
    for command in commands {
        let words: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let said = bench.killpoint(&words).exits(Holds);
        assert_eq!(said.err, "");
        let name = if command.is_empty() { "killpoint" } else { command };
        insta::assert_snapshot!(format!("help_{name}"), said.out);
    }
}

#[test]
fn every_command_has_a_help_that_is_tested() {
    let said = Bench::new().killpoint(&["--help"]).exits(Holds);
    let listed = said.out.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed: Vec<&str> = listed.take_while(|line| !line.is_empty()).filter_map(first_word).collect();
    let tested = [
        "demo", "init", "doctor", "run", "explore", "replay", "check", "report", "merge", "list", "explain",
        "provider", "mark", "selftest", "help",
    ];
    assert_eq!(listed, tested);
}

/// The name in a line of a list; continued lines are indented further.
fn first_word(line: &str) -> Option<&str> {
    line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?.split_whitespace().next()
}

#[test]
fn every_name_that_is_listed_is_explained() {
    let bench = Bench::new();
    let said = bench.killpoint(&["list", "--format", "json"]).exits(Holds);
    let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let mut kinds: Vec<&str> = rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "scenarios",
            "kinds",
            "faults",
            "boundaries",
            "invariants",
            "dialects",
            "ledgers",
            "formats",
            "plans",
            "profiles"
        ]
    );
    for kind in kinds {
        let shown = bench.killpoint(&["list", kind]).exits(Holds).out;
        let names: Vec<&str> = shown.lines().skip(1).filter_map(first_word).collect();
        let listed: Vec<&str> =
            rows.iter().filter(|row| row["kind"] == kind).filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(names, listed);
        for row in rows.iter().filter(|row| row["kind"] == kind) {
            let (name, summary) = (row["name"].as_str().unwrap(), row["summary"].as_str().unwrap());
            bench.killpoint(&["explain", name]).exits(Holds).says(&[name, summary]);
        }
    }
}

#[test]
fn a_kind_of_fault_is_explained_by_its_id_and_by_its_name() {
    let bench = Bench::new();
    let by_id = bench.killpoint(&["explain", "K07"]).exits(Holds).says(&[
        "zombie",
        "claim-is-exclusive",
        "What passes",
    ]);
    let name = by_id.out.split(' ').next().unwrap();
    assert_eq!(bench.killpoint(&["explain", name]).exits(Holds).out, by_id.out);
    assert_eq!(bench.killpoint(&["explain", "k07"]).exits(Holds).out, by_id.out);
}
