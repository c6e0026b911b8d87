//! The library's files.

use std::collections::BTreeSet;
use std::path::Path;

use killpoint_model::{Fault, Plan};
use killpoint_scenarios::{KINDS, LIBRARY, NEEDS, Scenario, load_scenario, to_toml};

use crate::catalog;

fn load(name: &str) -> Scenario {
    let file = LIBRARY.iter().find(|file| file.name == name).unwrap();
    let loaded = load_scenario(file.text, name, &catalog());
    assert_eq!(loaded.diagnostics, [], "{name}");
    loaded.value.unwrap()
}

#[test]
fn every_file_loads_under_its_own_name_and_says_what_passes() {
    for file in LIBRARY {
        let scenario = load(file.name);
        assert_eq!(scenario.name, file.name);
        assert_eq!(scenario.plan.scenario.as_deref(), Some(file.name));
        assert!(
            scenario.kind.is_some() && !scenario.plan.is_baseline() && !scenario.source.is_empty(),
            "{}",
            file.name
        );
        assert!(scenario.explanation.contains("What passes: "), "{}", file.name);
        assert!(!scenario.summary.contains('\n') && !scenario.summary.ends_with('.'), "{}", file.name);
    }
}

#[test]
fn every_plan_survives_the_way_through_text() {
    let parts = |plan: Plan| (plan.rules, plan.faults, plan.actions, plan.workers);
    for file in LIBRARY {
        let plan = load(file.name).plan;
        let again = load_scenario(&to_toml(&plan), file.name, &catalog());
        assert_eq!(again.diagnostics, [], "{}", file.name);
        assert_eq!(again.value.map(|scenario| parts(scenario.plan)), Some(parts(plan)), "{}", file.name);
    }
}

#[test]
fn the_slice_and_the_folder_hold_the_same_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("library");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let names: BTreeSet<String> = LIBRARY.iter().map(|file| format!("{}.toml", file.name)).collect();
    assert_eq!(names, files);
    assert_eq!(names.len(), LIBRARY.len(), "a name is there twice");
}

#[test]
fn kinds_and_scenarios_name_each_other() {
    let of_kind = |id: &str| -> BTreeSet<&str> {
        let files = LIBRARY.iter().filter(|file| load(file.name).kind.as_deref() == Some(id));
        files.map(|file| file.name).collect()
    };
    for kind in KINDS {
        let named: BTreeSet<&str> = kind.scenarios.iter().copied().collect();
        assert_eq!((named.len(), of_kind(kind.id)), (kind.scenarios.len(), named), "{}", kind.id);
    }
}

/// Faults that are done to the ledger's file.
const OF_A_DATABASE: &[&str] = &[
    "store-busy",
    "store-busy-snapshot",
    "store-read-only",
    "store-no-space",
    "store-rollback",
    "power-cut",
];

#[test]
fn what_a_schedule_does_is_among_its_needs() {
    let mut used = BTreeSet::new();
    for file in LIBRARY {
        let Scenario { name, needs, plan, .. } = load(file.name);
        let does = |fault: &str| plan.faults.iter().any(|at| at.fault.name == fault);
        for (condition, need) in [
            (does("second-worker") || does("store-second") || plan.workers > 1, "second-worker"),
            (does("worker-clock"), "clock"),
            (does("cleanup"), "cleanup"),
            (does("hold-producer"), "producer"),
            (OF_A_DATABASE.iter().any(|fault| does(fault)), "ledger"),
        ] {
            assert!(!condition || needs.iter().any(|known| known == need), "{name} needs `{need}`");
        }
        used.extend(needs);
    }
    assert_eq!(used.len(), NEEDS.len(), "a need that no scenario has");
}

#[test]
fn the_two_drops_differ_in_the_commit_alone() {
    let after = load("deploy-42-notify-drop-after-accept").plan;
    let before = load("deploy-42-notify-drop-before-accept").plan;
    assert_eq!(after.rules[0].plan.twin(), Some(before.rules[0].plan));
    assert_eq!((&after.faults, &after.actions), (&before.faults, &before.actions));
    assert_eq!(
        (after.rules[0].matches.clone(), after.rules[0].times),
        (before.rules[0].matches.clone(), before.rules[0].times)
    );
}

#[test]
fn the_articles_boundaries_are_all_there() {
    let staged = |name: &str| -> Vec<(String, String)> {
        let Plan { faults, .. } = load(name).plan;
        faults.into_iter().map(|fault| (fault.at.to_string(), fault.fault.name)).collect()
    };
    for (name, at, fault) in [
        ("jobs-after-result-committed", "result-committed#1", "kill"),
        ("jobs-before-delivery", "dispatch-started#1", "kill"),
        ("jobs-after-delivery-before-sent", "provider:replied#1", "kill"),
        ("jobs-during-delivery-timeout", "provider:committed#1", "kill"),
        ("run-before-result-committed", "mark:before-result-commit#1", "kill"),
        ("run-after-result-before-item", "result-committed#1", "kill"),
        ("run-after-item-before-claim", "item-enqueued#1", "kill"),
        ("run-after-acceptance-before-ack", "provider:committed#1", "kill"),
        ("run-after-ack-before-cleanup", "ack-committed#1", "kill"),
        ("run-two-workers-one-item", "mark:before-claim#1", "second-worker"),
    ] {
        assert_eq!(staged(name), [(at.to_owned(), fault.to_owned())], "{name}");
    }
    assert_eq!(load("jobs-during-delivery-timeout").plan.provider_plan, "timeout-after-accept");
    assert!(load("three-crashes-in-a-row").plan.faults.iter().all(|at| at.fault == Fault::named("kill")));
}
