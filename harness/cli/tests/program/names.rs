//! `list` and `explain`.

use killpoint::model::ExitCode::Holds;
use serde_json::Value;

use crate::bench::Bench;

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
            "commands",
            "scenarios",
            "kinds",
            "faults",
            "boundaries",
            "canonical",
            "invariants",
            "dialects",
            "ledgers",
            "presets",
            "needs",
            "formats",
            "plans",
            "profiles",
            "verdicts",
            "exit-codes",
            "diagnostics"
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

#[test]
fn boundaries_are_explained_by_what_they_are_an_occurrence_of() {
    let bench = Bench::new();
    bench
        .killpoint(&["explain", "provider:committed#2"])
        .exits(Holds)
        .says(&["provider (source of boundaries)"]);
    bench
        .killpoint(&["explain", "mark:anything[job-7]#1"])
        .exits(Holds)
        .says(&["mark (source of boundaries)"]);
    bench.killpoint(&["explain", "item-claimed#2"]).exits(Holds).says(&["item-claimed (canonical boundary)"]);
}

#[test]
fn a_name_of_several_kinds_is_explained_as_each_of_them() {
    let bench = Bench::new();
    // A need, a kind of ledgers' page, a source of boundaries: whoever asks may mean any.
    let said = bench.killpoint(&["explain", "ledger"]).exits(Holds);
    assert!(
        said.out.contains("ledger (source of boundaries)")
            && said.out.contains("ledger (need of a scenario)")
    );
    let upper = bench.killpoint(&["explain", "Unknown-Key"]).exits(Holds);
    assert!(upper.out.starts_with("unknown-key (code of a diagnostic)"), "{}", upper.out);
}
