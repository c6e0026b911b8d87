//! Every scenario of the library is run on the built-in worker, and holds: the right worker is right in all of
//! them. What each one finds in a wrong worker is shown by `killpoint selftest`.

use std::process::Command;

use killpoint::scenarios::{LIBRARY, load_scenario};

/// Tests that share the library, so that they run beside each other.
const SHARES: usize = 4;

/// Scenarios that the built-in worker can be asked for: it has no children, and no feed unless told so.
fn names() -> Vec<&'static str> {
    let catalog = killpoint::catalog();
    LIBRARY
        .iter()
        .filter(|entry| {
            let scenario = load_scenario(entry.text, entry.name, &catalog).value.unwrap();
            !scenario.needs.iter().any(|need| need == "children" || need == "inbound")
        })
        .map(|entry| entry.name)
        .collect()
}

fn share(number: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_killpoint"));
    command.arg("demo").arg("--run-dir").arg(folder.path().join("run")).current_dir(folder.path());
    let own: Vec<&str> = names().into_iter().skip(number).step_by(SHARES).collect();
    assert!(own.len() > 10, "{own:?}");
    for name in &own {
        command.args(["--scenario", name]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{own:?}\n{said}");
}

#[test]
fn first_share() {
    share(0);
}

#[test]
fn second_share() {
    share(1);
}

#[test]
fn third_share() {
    share(2);
}

#[test]
fn fourth_share() {
    share(3);
}
