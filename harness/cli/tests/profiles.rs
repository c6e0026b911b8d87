//! Profiles on the command line, and the example that is made for them.

use std::path::Path;
use std::process::{Command, Output};

use killpoint::model::ExitCode;

fn killpoint(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_killpoint")).args(words).output().unwrap()
}

fn refused(words: &[&str], why: &str) {
    let output = killpoint(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(i32::from(ExitCode::InvalidConfig.code())), "{said}");
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_profile_is_known_and_chooses_the_trials_alone() {
    refused(&["demo", "--profile", "pre-hostin"], "did you mean `pre-hosting`");
    for other in [["--boundary", "provider:committed"], ["--scenario", "rejected"], ["--strategy", "sweep"]] {
        refused(&[&["demo", "--profile", "restart-safe"], &other[..]].concat(), "leave --scenario");
    }
}

#[test]
fn profiles_are_listed_and_explained() {
    let list = String::from_utf8(killpoint(&["list", "profiles"]).stdout).unwrap();
    assert!(list.contains("restart-safe") && list.contains("pre-hosting"), "{list}");
    let text = String::from_utf8(killpoint(&["explain", "pre-hosting"]).stdout).unwrap();
    assert!(text.contains("never yes by default") && text.contains("--profile pre-hosting"), "{text}");
}

#[test]
fn the_example_asks_the_reference_worker_in_its_own_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/outbox");
    let text = std::fs::read_to_string(folder.join("killpoint.toml")).unwrap();
    let loaded = killpoint::scenarios::load_config(&text, "killpoint.toml", &folder, &killpoint::catalog());
    assert_eq!(loaded.diagnostics, []);
    let settings = loaded.value.unwrap();
    let ledger = settings.ledger.unwrap();
    assert_eq!(ledger.query.as_deref(), Some(outbox_worker::LEDGER_QUERY));
    for (own, canonical) in outbox_worker::LEDGER_STATES {
        let mapped = ledger.states.get(*own).map_or(*own, |state| state.as_str());
        assert_eq!(mapped, *canonical);
    }
    assert_eq!(settings.metrics.unwrap().query.as_deref(), Some(outbox_worker::METRICS_QUERY));
    let inbound = std::fs::read_to_string(folder.join("inbound.toml")).unwrap();
    let loaded = killpoint::scenarios::load_config(&inbound, "inbound.toml", &folder, &killpoint::catalog());
    assert_eq!(loaded.diagnostics, []);
    assert!(loaded.value.unwrap().inbound.is_some());
}
