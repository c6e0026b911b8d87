//! `init` and `doctor` at the command line: what they refuse, what they write, what they print.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use killpoint::model::ExitCode::{Holds, InvalidConfig, SetupFailed};
use serde_json::Value;

use crate::bench::Bench;

const WORKER: &str = "import os, sys, requests\nif sys.argv[1] == 'enqueue':\n    n = int(sys.argv[2])\nwhile True:\n    \
    requests.post(os.environ['PROVIDER_URL'], json={'to': 'a'})\n    open(os.environ['WORKER_DB'])\n";

fn project() -> Bench {
    let bench = Bench::new();
    bench.file("worker.py", WORKER);
    bench
}

#[test]
fn a_proposal_is_printed_or_written_and_never_over_a_file() {
    let bench = project();
    let printed = bench.killpoint(&["init", "--print"]).exits(Holds);
    assert!(printed.out.starts_with("# Proposed by `killpoint init`"), "{}", printed.out);
    assert!(
        printed.err.contains("worker.command") && !bench.path("killpoint.toml").exists(),
        "{}",
        printed.err
    );
    bench.killpoint(&["init"]).exits(InvalidConfig).complains(&["no terminal to ask", "--yes", "--print"]);
    let said = bench.killpoint(&["init", "--yes"]).exits(Holds);
    said.says(&["Assumed:", "worker.py:2", "Could not guess:", "Next: killpoint run"]);
    let written = fs::read_to_string(bench.path("killpoint.toml")).unwrap();
    assert_eq!(written.trim_end(), printed.out.trim_end());
    bench.file("killpoint.toml", "mine");
    bench.killpoint(&["init", "--yes"]).exits(InvalidConfig).complains(&["is there already", "--force"]);
    assert_eq!(fs::read_to_string(bench.path("killpoint.toml")).unwrap(), "mine");
    bench.killpoint(&["init", "--yes", "--force"]).exits(Holds);
    assert_eq!(fs::read_to_string(bench.path("killpoint.toml")).unwrap(), written);
    bench.killpoint(&["init", "--print", "--yes"]).exits(InvalidConfig).complains(&["cannot be used with"]);
}

#[test]
fn a_folder_that_gives_nothing_is_refused_with_what_to_do() {
    let bench = Bench::new();
    fs::create_dir(bench.path("mailer")).unwrap();
    bench.killpoint(&["init", "mialer", "--yes"]).exits(InvalidConfig).complains(&["did you mean `mailer`?"]);
    bench.file("file", "");
    bench.killpoint(&["init", "file", "--yes"]).exits(InvalidConfig).complains(&["is no folder"]);
    let said = bench.killpoint(&["init", "mailer", "--yes"]).exits(InvalidConfig);
    said.says(&["nothing in mailer looks like a worker", "under `[worker]`"]);
    assert!(!bench.path("mailer/killpoint.toml").exists());
}

#[test]
fn what_can_not_be_read_is_listed_and_the_rest_is_proposed() {
    let bench = project();
    symlink(bench.path("."), bench.path("loop")).unwrap();
    bench.file("huge.sql", &"x".repeat(300 << 10));
    fs::write(bench.path("binary.py"), b"a\0b").unwrap();
    fs::write(bench.path("broken.db"), b"SQLite format 3\0").unwrap();
    fs::create_dir(bench.path("closed")).unwrap();
    fs::set_permissions(bench.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let said = bench.killpoint(&["init", "--yes"]).exits(Holds);
    fs::set_permissions(bench.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    said.says(&["Not read:", "huge.sql: it has 300 KiB", "binary.py: it is no text", "broken.db: "]);
}

#[test]
fn a_file_that_can_not_be_written_is_a_failed_set_up() {
    let bench = project();
    // A folder in its place, which even root can't write as a file.
    fs::create_dir(bench.path("killpoint.toml")).unwrap();
    let said = bench.killpoint(&["init", "--yes", "--force"]).exits(SetupFailed);
    said.says(&["killpoint.toml can't be written"]);
}

#[test]
fn a_database_of_the_project_gives_tables_and_words() {
    let bench = project();
    let script = "import sqlite3, sys\nd = sqlite3.connect('dev.db')\nd.executescript(\"\"\"create table Queue (message_id text \
        primary key, status text); insert into Queue values ('secret-row', 'locked'), ('b', 'done')\"\"\")\nd.commit()\n";
    let status =
        std::process::Command::new("python3").args(["-c", script]).current_dir(bench.path(".")).status();
    if !status.is_ok_and(|status| status.success()) {
        return;
    }
    let before = fs::read(bench.path("dev.db")).unwrap();
    let said = bench.killpoint(&["init", "--print"]).exits(Holds);
    assert!(said.out.contains("select message_id as action, status as state from Queue"), "{}", said.out);
    assert!(said.out.contains("states = { done = \"confirmed\", locked = \"dispatching\" }"), "{}", said.out);
    assert!(!said.out.contains("secret-row") && !said.err.contains("secret-row"));
    assert_eq!(fs::read(bench.path("dev.db")).unwrap(), before);
}

#[test]
fn doctor_tries_the_machine_and_reads_the_configuration() {
    let bench = project();
    bench.killpoint(&["doctor"]).exits(Holds).says(&[
        "containment",
        "libfaketime",
        "`killpoint init` proposes one",
    ]);
    bench.killpoint(&["init", "--yes"]).exits(Holds);
    let said = bench.killpoint(&["doctor", "--format", "json"]).exits(Holds);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&json["format"], &json["version"], &json["can_run"]),
        (&"killpoint-doctor".into(), &1.into(), &true.into())
    );
    let named = |list: &str, kind: &str, name: &str| {
        json[list]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| (kind.is_empty() || one["kind"] == kind) && one["name"] == name)
    };
    assert!(named("machine", "", "worker-clock") && named("reached", "", "worker.command"));
    assert!(named("left_out", "invariant", "counters-agree") && named("left_out", "fault", "hold-producer"));
    assert!(named("left_out", "checklist", "a1-5") || json["left_out"].as_array().unwrap().len() > 20);
    assert!(!bench.path("killpoint-runs").exists(), "nothing is left behind");
}

#[test]
fn doctor_says_what_is_wrong_with_a_configuration() {
    let bench = project();
    bench.file("killpoint.toml", "[worker]\ncomand = [\"x\"]\n");
    bench
        .killpoint(&["doctor"])
        .exits(InvalidConfig)
        .complains(&["killpoint.toml:2", "did you mean `command`?"]);
    bench
        .killpoint(&["doctor", "--config", "kilpoint.toml"])
        .exits(InvalidConfig)
        .complains(&["did you mean `killpoint.toml`?"]);
    bench.file("killpoint.toml", "[worker]\ncommand = [\"no-such-program\"]\n");
    bench.killpoint(&["doctor"]).exits(SetupFailed).says(&[
        "[broken] worker.command",
        "not found",
        "The gate can't run",
    ]);
}

#[test]
fn doctor_says_when_no_trial_can_run() {
    let bench = project();
    let mut command = bench.command(&["doctor", "--format", "json"]);
    // Longer than a socket's path may be.
    let long = bench.path(&"x".repeat(100));
    fs::create_dir(&long).unwrap();
    let output = command.env("TMPDIR", &long).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["can_run"]), (Some(4), &false.into()));
    let socket = json["machine"].as_array().unwrap().iter().find(|one| one["name"] == "mark-socket").unwrap();
    assert_eq!(socket["state"], "missing");
    assert!(socket["to_do"].as_str().unwrap().contains("TMPDIR"));
}
