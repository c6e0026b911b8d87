//! Configurations and scenario files in the pages.

use std::fs;
use std::path::Path;

use crate::page::{Block, blocks, root};

#[test]
fn every_toml_block_is_read_without_a_diagnostic() {
    let blocks = blocks(&["toml"]);
    assert!(!blocks.is_empty());
    let catalog = killpoint::catalog();
    for Block { place, text, .. } in blocks {
        let has = |start: &str| text.lines().any(|line| line.starts_with(start));
        let is_named = text.starts_with("name = ");
        let diagnostics = if is_named || has("[[fault]]") {
            let head = if is_named { "" } else { "name = \"part\"\nsummary = \"a part\"\n\n" };
            killpoint::scenarios::load_scenario(&format!("{head}{text}"), &place, &catalog).diagnostics
        } else {
            let mut whole = text.clone();
            if !has("[worker]") {
                whole += "\n[worker]\ncommand = [\"worker\"]\n";
            }
            if has("by = \"query\"") && !has("[ledger") {
                whole += "\n[ledger]\npath = \"{state}/l.db\"\nquery = \"select id as action, s as state from l\"\n";
            }
            killpoint::scenarios::load_config(&whole, &place, Path::new("/project"), &catalog).diagnostics
        };
        assert_eq!(diagnostics, [], "{place}\n{text}");
    }
}

#[test]
fn every_yaml_block_is_a_part_of_a_manifest() {
    let manifests = ["ci/github.yml", "ci/gitlab.yml", "github-actions.yml", "gitlab-ci.yml"];
    let manifests = manifests.map(|name| fs::read_to_string(root().join("deploy").join(name)).unwrap());
    let blocks = blocks(&["yaml"]);
    assert!(!blocks.is_empty());
    for Block { place, text, .. } in blocks {
        let is_part = |indent: usize| {
            let indent = " ".repeat(indent);
            let indented = text.lines().map(|line| indent.clone() + line + "\n").collect::<String>();
            manifests.iter().any(|manifest| manifest.contains(&format!("\n{indented}")))
        };
        assert!((0..=8).any(is_part), "{place}: no manifest in `deploy` has this\n{text}");
    }
}
