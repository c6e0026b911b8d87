//! The library's files.

use std::collections::BTreeSet;
use std::path::Path;

use killpoint_model::{Fault, Plan};
use killpoint_scenarios::{LIBRARY, Scenario, load_scenario};

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
        assert!(!scenario.plan.is_baseline() && !scenario.source.is_empty(), "{}", file.name);
        assert!(scenario.explanation.contains("What passes: "), "{}", file.name);
        assert!(!scenario.summary.contains('\n') && !scenario.summary.ends_with('.'), "{}", file.name);
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
