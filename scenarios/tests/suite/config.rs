//! What a configuration comes to.

use std::path::{Path, PathBuf};

use killpoint_model::settings::{Lifecycle, SettleBy};
use killpoint_model::{ExecutionState, RowState, Settings};
use killpoint_scenarios::{load_config, load_scenario};

use crate::catalog;

fn load(text: &str) -> Settings {
    let loaded = load_config(text, "killpoint.toml", Path::new("/project"), &catalog());
    assert_eq!(loaded.diagnostics, []);
    loaded.value.unwrap()
}

/// The TOML blocks of the README: first a configuration, then a scenario.
fn readme_blocks() -> Vec<String> {
    let readme = include_str!("../../README.md");
    let blocks = readme.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_readme_shows_every_key_and_all_of_it_loads() {
    let blocks = readme_blocks();
    insta::assert_json_snapshot!("readme_config", load(&blocks[0]));
    let scenario = load_scenario(&blocks[1], "killed-while-sending.toml", &catalog());
    assert_eq!(scenario.diagnostics, []);
    insta::assert_json_snapshot!("readme_scenario", scenario.value.unwrap().plan);
}

#[test]
fn a_command_is_enough() {
    let settings = load("[worker]\ncommand = [\"./worker\"]\n");
    let mut expected = Settings::default();
    expected.worker.command.argv = vec!["./worker".into()];
    expected.worker.command.cwd = "/project".into();
    assert_eq!(settings, expected);
}

#[test]
fn line_endings_of_windows_and_a_byte_order_mark_are_fine() {
    let text = "\u{feff}promise = \"at-most-once\"\r\n[worker]\r\ncommand = [\"a\"]\r\n[worker.env]\r\nA = \"1\"\r\n";
    assert_eq!(load(text).worker.command.env["A"], "1");
}

#[test]
fn the_way_to_settle_follows_the_lifecycle() {
    for (lifecycle, by) in [
        (Lifecycle::Drains, SettleBy::Exit),
        (Lifecycle::RunsForever, SettleBy::Quiet),
        (Lifecycle::OneShot, SettleBy::Quiet),
        (Lifecycle::Daemonises, SettleBy::Quiet),
    ] {
        let settings = load(&format!("[worker]\ncommand = [\"a\"]\nlifecycle = \"{lifecycle}\"\n"));
        assert_eq!(settings.settle.by, by, "{lifecycle}");
    }
}

#[test]
fn paths_are_absolute() {
    let settings = load(
        "[worker]\ncommand = [\"a\"]\ncwd = \"./sub\"\n[state]\nfrom = \"fixtures/state\"\nprovider = \"/p.jsonl\"\n",
    );
    assert_eq!(settings.worker.command.cwd, PathBuf::from("/project/sub"));
    assert_eq!(settings.state.from, Some(PathBuf::from("/project/fixtures/state")));
    assert_eq!(settings.state.provider, Some(PathBuf::from("/p.jsonl")));
}

#[test]
fn canonical_words_mean_themselves_and_the_file_has_the_last_say() {
    let ledger = |keys: &str| {
        let text = format!("[worker]\ncommand = [\"a\"]\n[ledger]\npath = \"{{state}}/l.db\"\n{keys}");
        load(&text).ledger.unwrap()
    };
    let plain = ledger("query = \"select 1\"\n");
    assert_eq!(plain.states.get("unknown"), Some(&RowState::Unknown));
    assert_eq!(plain.states.get("sent"), None);
    let preset = ledger("preset = \"jobs\"\nstates = { failed = \"created\", posted = \"confirmed\" }\n");
    assert_eq!(preset.states["sent"], RowState::Confirmed);
    assert_eq!((preset.states["failed"], preset.states["posted"]), (RowState::Created, RowState::Confirmed));
    assert_eq!(preset.executions["done"], ExecutionState::Succeeded);
}

#[test]
fn the_ledgers_command_never_sees_the_live_state() {
    let settings = load(
        "[worker]\ncommand = [\"a\"]\nenv = { WORKER_DB = \"{state}/l.db\" }\n[ledger]\nkind = \"command\"\ncommand = [\"status\", \"{copy}\"]\n",
    );
    let command = settings.ledger.unwrap().command.unwrap();
    assert_eq!(command.env["WORKER_DB"], "{copy}/l.db");
}
