//! Every code that an error or a warning can carry, met through the built program and kept as a snapshot.
//!
//! A new code needs a case: one more entry of [`cases::CASES`], then `INSTA_UPDATE=always cargo test -p killpoint-cli
//! --test diagnostics`, then a look at the snapshot.

mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use cases::{CASES, Case};
use serde_json::Value;
use tempfile::TempDir;

/// Codes that no case shows, and why. Most need a broken machine: their words are put together by the same code as all
/// others, which has tests of its own.
const WITHOUT_CASE: &[(&str, &str)] = &[
    ("internal", "a bug would have to be built in"),
    (
        "boundary-after-exit",
        "what a worker does in its last breath may be seen before or after it; see `sweep`",
    ),
    (
        "interrupted",
        "a run that is interrupted is reported; this is said of one that could not even be recorded",
    ),
    (
        "not-configured",
        "a profile shows it under a heading of its own, and has tests of its own; see `missing_needs`",
    ),
    ("no-program", "the system would have to hide the file of a running program"),
    ("no-threads", "the system would have to refuse threads to whoever runs the tests, root as well"),
];

/// Cases at the same time.
const THREADS: usize = 6;

/// The program, for a shell in a folder of its own.
fn shell(folder: &Path, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_killpoint"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder);
    // What is around the tests must not show in what is said.
    command.env_clear().env("PATH", path).env("HOME", folder).env("COLUMNS", "100");
    command
}

/// What a case prints, with its exit code, and without what differs from run to run.
fn said(case: &Case) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in case.files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    shown(&folder, case.script, shell(folder.path(), case.script).output().unwrap())
}

fn shown(folder: &TempDir, script: &str, output: Output) -> String {
    let mut text = format!("$ {script}\n");
    for stream in [output.stdout, output.stderr] {
        let stream = String::from_utf8(stream).unwrap();
        assert!(!stream.contains("panicked"), "{script}\n{stream}");
        text += &stream.replace(folder.path().to_str().unwrap(), "FOLDER");
    }
    let code = output.status.code().map_or("none".to_owned(), |code| code.to_string());
    text.push_str("exit code ");
    text.push_str(&code);
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The codes that the program lists.
fn registered() -> BTreeSet<String> {
    let output = shell(Path::new("."), "killpoint list diagnostics --format json").output().unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_code_has_a_case_or_a_reason_for_none() {
    let met: BTreeSet<String> = CASES.iter().map(|case| case.code.to_owned()).collect();
    let excused: BTreeSet<String> = WITHOUT_CASE.iter().map(|(code, _)| (*code).to_owned()).collect();
    assert_eq!(met.intersection(&excused).next(), None, "it has a case: take it out of WITHOUT_CASE");
    let named: BTreeSet<String> = met.union(&excused).cloned().collect();
    let registered = registered();
    let lacking: Vec<_> = registered.difference(&named).collect();
    assert!(lacking.is_empty(), "no case shows {lacking:?}: add one to CASES in tests/diagnostics/cases.rs");
    let gone: Vec<_> = named.difference(&registered).collect();
    assert!(gone.is_empty(), "no code is called {gone:?} any more: remove its cases");
}

#[test]
fn each_code_is_shown_by_its_cases() {
    // Cases mostly wait for trials.
    let shares = CASES.chunks(CASES.len().div_ceil(THREADS));
    let all: Vec<(&Case, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .map(|share| scope.spawn(|| share.iter().map(|case| (case, said(case))).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut by_code: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (case, said) in all {
        let marked = [format!("[{}]: ", case.code), format!("[{}]; ", case.code)];
        assert!(marked.iter().any(|mark| said.contains(mark)), "`{}` is not said:\n{said}", case.code);
        assert_plain(&said);
        by_code.entry(case.code).or_default().push(said);
    }
    for (code, said) in by_code {
        insta::assert_snapshot!(code, said.join("\n\n"));
    }
}

/// No message shows a type of the program, or what a parser calls things.
fn assert_plain(said: &str) {
    let text: String = said.lines().skip(1).collect::<Vec<_>>().join("\n");
    for word in [
        "Option<",
        "Vec<",
        "Some(",
        "None",
        "Err(",
        "struct ",
        "enum ",
        "u32",
        "u64",
        "i64",
        "::",
        "os error",
        "invalid type",
        "sequence",
        "expected a map",
        "non-zero type",
        "invalid digit",
        "..=",
    ] {
        assert!(!text.contains(word), "`{word}` in\n{said}");
    }
}
