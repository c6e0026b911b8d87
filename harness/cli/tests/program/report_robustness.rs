//! Reports of runs that are old, new or damaged, to places that take none, and on terminals that hardly show any.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use killpoint::model::ExitCode::{self, Holds, InvalidConfig, SetupFailed, Unproven, Violated};
use serde_json::{Value, json};

use crate::bench::{Bench, Said, end_of, started};

/// A run that killpoint 0.1.0 wrote in format 1.2: two baselines, and a kill that `blind-resend` does not survive.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/stored");
const KILLED: &str = "0002-kill-at-provider-committed-1";

/// Every command that shows a run, on the stored one.
const SHOWING: [&[&str]; 2] = [&["report", "run"], &["check", "run"]];

/// A folder with a copy of the stored run in `run`.
fn stored() -> Bench {
    let bench = Bench::new();
    copy(Path::new(STORED), &bench.path("run"));
    bench
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn read(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Replaces something in a file that has it.
fn edit(bench: &Bench, name: &str, from: &str, to: &str) {
    let text = read(bench, name);
    assert!(text.contains(from), "{name} has no {from}");
    bench.file(name, &text.replacen(from, to, 1));
}

fn with_version(bench: &Bench, version: (u32, u32)) {
    let mut record: Value = serde_json::from_str(&read(bench, "run/run.json")).unwrap();
    record["version"] = json!(version);
    bench.file("run/run.json", &record.to_string());
}

/// What is left in the bench's folder beside the run.
fn left(bench: &Bench) -> Vec<String> {
    let names = fs::read_dir(bench.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "run");
    names.sort();
    names
}

#[test]
fn an_older_run_is_shown_and_judged_as_ever() {
    let bench = stored();
    let said = bench.killpoint(&["report", "run", "--format", "json"]).exits(Violated);
    insta::assert_snapshot!("stored_run_as_json", said.out);
    for version in [(1, 0), (1, 1), (1, 2)] {
        with_version(&bench, version);
        let again = bench.killpoint(&["report", "run", "--format", "json"]).exits(Violated);
        assert_eq!(again.out, said.out, "{version:?}");
        let checked = bench.killpoint(&["check", "run"]).exits(Violated);
        assert!(!checked.err.contains("differs"), "{checked:?}");
    }
}

#[test]
fn a_newer_run_or_history_is_refused_with_what_to_do() {
    for version in [(1, 99), (2, 0)] {
        let bench = stored();
        with_version(&bench, version);
        for words in SHOWING {
            let (major, minor) = version;
            let text = format!("run format {major}.{minor} is newer than this killpoint reads");
            let report = [words, &["--report", "junit=a.xml"]].concat();
            let said = bench.killpoint(&report).exits(InvalidConfig);
            said.complains(&["run/run.json", &text, "use the killpoint that wrote it"]);
        }
        assert_eq!(left(&bench), Vec::<String>::new(), "nothing is written of it");
    }
    let bench = stored();
    let history = format!("run/{KILLED}/history.jsonl");
    edit(&bench, &history, "\"version\":[1,1]", "\"version\":[1,99]");
    for words in SHOWING {
        let said = bench.killpoint(words).exits(InvalidConfig);
        said.complains(&[
            &history,
            "history format 1.99 is newer than",
            "read it with the killpoint that wrote it",
        ]);
    }
}

#[test]
fn a_history_that_ends_within_an_event_is_read_up_to_the_last_whole_one() {
    let bench = stored();
    let history = format!("run/{KILLED}/history.jsonl");
    let whole = read(&bench, &history);
    let cut_within = |event: u64| {
        let begin = format!("{{\"seq\":{event},");
        whole[..whole.find(&begin).unwrap() + 40].to_owned()
    };
    bench.file(&history, &cut_within(67));

    let shown = bench.killpoint(&["report", "run", "--format", "json"]).exits(Violated);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    let generations = shown["details"][0]["timeline"]["generations"].as_array().unwrap();
    let steps = generations.iter().flat_map(|generation| generation["steps"].as_array().unwrap());
    let last = steps.map(|step| step["event"].as_u64().unwrap()).max();
    assert_eq!(last, Some(64), "the last before the cut that tells something");
    let warning = format!("the history of trial `{KILLED}` ends before the trial does");
    assert!(shown["warnings"].as_array().unwrap().contains(&json!(warning)), "{shown}");

    let said = bench.killpoint(&["check", "run", "--report", "junit=a.xml", "--report", "markdown=a.md"]);
    said.exits(Unproven).says(&["the verdict differs from the stored one", &warning, "? inconclusive"]);
    assert!(read(&bench, "a.xml").contains("type=\"inconclusive\""));
    assert!(read(&bench, "a.md").starts_with("## ? inconclusive: killpoint\n"));

    bench.file(&history, &cut_within(97));
    let said = bench.killpoint(&["check", "run"]).exits(Violated);
    said.says(&["no-blind-resend violated", &warning]).never_panics();
}

#[test]
fn a_report_that_has_no_place_is_named_and_the_others_and_the_verdict_stay() {
    let bench = stored();
    fs::create_dir(bench.path("folder")).unwrap();
    let places = [("no/such/a.xml", "No such file"), ("folder", "it is a folder"), ("/sys/a.xml", "")];
    for (place, why) in places {
        let said = bench.killpoint(&[
            "report",
            "run",
            "--report",
            &format!("junit={place}"),
            "--report",
            "json=b.json",
        ]);
        let named = format!("the report {place} can't be written: {why}");
        let kept = "the verdict stands: violated, exit code 1; it is kept in run";
        let said = said.exits(SetupFailed).says(&[&named, kept, "no-duplicate-effect violated"]);
        assert!(!said.err.contains("b.json"), "{said:?}");
        let report: Value = serde_json::from_str(&read(&bench, "b.json")).unwrap();
        assert_eq!(report["verdict"], "violated");
        fs::remove_file(bench.path("b.json")).unwrap();
    }
    assert_eq!(left(&bench), ["folder"], "no beginning of a report is left");
}

#[test]
fn a_place_that_takes_no_report_is_found_before_anything_is_run() {
    let bench = Bench::new();
    fs::create_dir(bench.path("folder")).unwrap();
    bench.file("file", "");
    for command in [&["demo"][..], &["explore", "--demo"], &["run", "--", "true"]] {
        for (place, why) in [
            ("no/such/a.xml", "No such file"),
            ("folder", "it is a folder"),
            ("file/a.xml", "Not a directory"),
        ] {
            let (words, worker) =
                command.split_at(command.iter().position(|word| *word == "--").unwrap_or(command.len()));
            let report = format!("junit={place}");
            let words =
                [words, &["--run-dir", "run", "--report", &report, "--report", "json=ok.json"], worker]
                    .concat();
            let named = format!("the report {place} can't be written: {why}");
            bench.killpoint(&words).exits(SetupFailed).complains(&[&named, "nothing was run"]);
        }
    }
    assert_eq!(left(&bench), ["file", "folder"], "neither a run nor a trace of the trial");
    assert!(!bench.path("run").exists());
    bench
        .killpoint(&["demo", "--report", "json=a", "--report", "junit=a"])
        .exits(InvalidConfig)
        .complains(&["two reports go to a"]);
}

#[test]
fn a_place_that_goes_away_during_the_run_costs_no_verdict() {
    let bench = Bench::configured(
        "import shutil\npost() if once('sent') else None\nshutil.rmtree(os.path.dirname(os.path.abspath(__file__)) + '/gone', True)\n",
        "",
    );
    fs::create_dir(bench.path("gone")).unwrap();
    let words =
        ["--boundary", "provider:committed#1", "--report", "json=gone/a.json", "--report", "junit=b.xml"];
    let said = bench.run(&words).exits(SetupFailed);
    said.says(&["the report gone/a.json can't be written", "the verdict stands: ", "exit code"]);
    assert!(read(&bench, "b.xml").contains("</testsuites>"));
    assert!(!bench.record().trials.is_empty());
}

#[test]
fn a_report_in_the_runs_own_folder_and_one_on_standard_output() {
    let bench = Bench::new();
    let words = ["demo", "--run-dir", "run", "--boundary", "provider:committed#1"];
    let reports = ["--report", "markdown=run/a.md", "--report", "annotations=-"];
    let said = bench.killpoint(&[&words[..], &reports].concat()).exits(Holds);
    assert!(said.out.ends_with("exit code 0: every check holds\n"), "{said:?}");
    assert!(said.out.lines().last().unwrap().starts_with("::notice title=killpoint%3A holds::"), "{said:?}");
    assert!(read(&bench, "run/a.md").starts_with("## ✓ holds: killpoint\n"));
}

#[test]
fn every_command_that_shows_a_run_writes_every_format() {
    let bench = stored();
    let formats: Vec<&str> = killpoint::reports::entries().iter().map(|entry| entry.name).collect();
    let reports = |command: &str| -> Vec<String> {
        formats
            .iter()
            .flat_map(|format| ["--report".to_owned(), format!("{format}={command}.{format}")])
            .collect()
    };
    let scenario = "name = \"one-kill\"\nsummary = \"a kill\"\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"\n";
    bench.file("one-kill.toml", scenario);
    let kill = ["--boundary", "provider:committed#1"];
    let shard = ["--shard", "1/1", "--run-dir", "shard"];
    let commands: [(&str, Vec<&str>); 6] = [
        ("check", vec!["run"]),
        ("report", vec!["run"]),
        ("demo", [&kill[..], &shard].concat()),
        ("merge", vec!["shard"]),
        ("explore", vec!["--demo", "--cases", "1", "--seed", "1"]),
        ("run", [&kill[..], &["--run-dir", "ran", "--", "true"]].concat()),
    ];
    for (command, words) in commands {
        let asked = reports(command);
        let mut all = vec![command];
        let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        all.extend(&words[..at]);
        all.extend(asked.iter().map(String::as_str));
        all.extend(&words[at..]);
        let said = bench.killpoint(&all).never_panics();
        for format in &formats {
            let path = bench.path(&format!("{command}.{format}"));
            let length = fs::metadata(&path).map_or(0, |known| known.len());
            assert!(length > 0, "{}: {said:?}", path.display());
        }
    }
    // The worker of the run did nothing at all: its set-up failed, and whoever reads only the reports sees that.
    assert!(read(&bench, "run.junit").contains("<error message=\"it was not judged"));
    assert!(read(&bench, "run.sarif").contains("\"executionSuccessful\": false"));
    let help = bench.killpoint(&["replay", "--help"]).exits(Holds);
    assert!(help.out.contains("--report <FORMAT=PATH>"), "{help:?}");
}

/// The location of the first result, or nothing where there is no result.
fn first_place(bench: &Bench, name: &str) -> Option<(String, u64)> {
    let log: Value = serde_json::from_str(&read(bench, name)).unwrap();
    let place = &log["runs"][0]["results"].get(0)?["locations"][0]["physicalLocation"];
    let uri = place["artifactLocation"]["uri"].as_str().unwrap().to_owned();
    Some((uri, place["region"]["startLine"].as_u64().unwrap()))
}

#[test]
fn a_violation_points_at_the_line_that_its_plan_comes_from() {
    let bench = Bench::with_worker("post('key-of-life-%d' % generation)\n");
    bench.config(&format!("# the worker\n\n{}", bench.worker_section()), "");
    let scenario = "# Found by hand.\n\nname = \"one-kill\"\nsummary = \"a kill\"\n\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"\n";
    bench.file("one-kill.toml", scenario);
    let script = bench.path("worker.py").display().to_string();
    let kill = ["--boundary", "provider:committed#1"];
    let runs = [
        ("file", vec!["run", "--scenario", "one-kill.toml"], Some(("one-kill.toml", 3))),
        ("replay", vec!["replay", "one-kill.toml"], Some(("one-kill.toml", 3))),
        ("sweep", [&["run"], &kill[..]].concat(), Some(("killpoint.toml", 3))),
        ("bare", [&["run"], &kill[..], &["--", "python3", &script]].concat(), None),
    ];
    for (name, words, place) in runs {
        let report = format!("sarif={name}.sarif");
        let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let (words, worker) = words.split_at(at);
        let said = bench.killpoint(&[words, &["--run-dir", name, "--report", &report], worker].concat());
        let said = said.exits(Violated);
        let found = first_place(&bench, &format!("{name}.sarif"));
        assert_eq!(found, place.map(|(file, line)| (file.to_owned(), line)), "{name}: {said:?}");
    }
    assert!(read(&bench, "bare.sarif").contains("and no line of a file shows where"));
    let said = bench.killpoint(&["report", "file", "--report", "annotations=-"]).exits(Violated);
    assert!(said.out.contains("\n::error file=one-kill.toml,line=3,title="), "{said:?}");
}

#[test]
fn a_report_replaces_the_old_one_in_one_step_and_keeps_its_mode() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = stored();
    bench.file("old.json", "old");
    fs::set_permissions(bench.path("old.json"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(bench.path("old.json"), bench.path("held.json")).unwrap();
    symlink("old.json", bench.path("link.json")).unwrap();
    bench.killpoint(&["report", "run", "--report", "json=link.json"]).exits(Violated);
    assert_eq!(read(&bench, "held.json"), "old", "the old file was not written to");
    assert!(fs::symlink_metadata(bench.path("link.json")).unwrap().is_symlink());
    assert!(serde_json::from_str::<Value>(&read(&bench, "old.json")).is_ok());
    let mode = fs::metadata(bench.path("old.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(left(&bench), ["held.json", "link.json", "old.json"]);
}

/// Runs a command whose standard output nobody reads any more.
fn into_a_closed_pipe(bench: &Bench, words: &[&str]) -> Said {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut command = bench.command(words);
    command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).stdout(writer);
    let child = command.spawn().unwrap();
    // The parent's end goes with the command, or there would be a reader's peer left.
    drop(command);
    end_of(child)
}

#[test]
fn a_closed_pipe_ends_the_program_quietly_with_the_same_exit_code() {
    let bench = stored();
    let quiet = |words: &[&str], code: ExitCode| {
        let said = into_a_closed_pipe(&bench, words).exits(code);
        assert_eq!(said.err, "", "{words:?}");
    };
    for format in ["text", "json"] {
        for words in SHOWING {
            quiet(&[words, &["--format", format]].concat(), Violated);
        }
        quiet(&["list", "--format", format], Holds);
    }
    quiet(&["report", "run", "--report", "annotations=-"], Violated);
    quiet(&["explain", "kill"], Holds);
    quiet(&["--help"], Holds);
    quiet(&["run", "--help"], Holds);
    let line = format!("set -o pipefail; '{}' list | head -1", env!("CARGO_BIN_EXE_killpoint"));
    let said = end_of(started(Command::new("bash").args(["-c", &line]))).exits(Holds);
    assert_eq!((said.out.lines().count(), said.err.as_str()), (1, ""));
}

/// Runs the program on a terminal of 40 columns, and prints what came to it.
const ON_A_TERMINAL: &str = r"
import fcntl, os, pty, struct, subprocess, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 40, 0, 0))
child = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=slave)
os.close(slave)
shown = b''
try:
    while piece := os.read(master, 65536):
        shown += piece
except OSError:
    pass
sys.stdout.buffer.write(shown)
sys.exit(child.wait())
";

#[test]
fn a_terminal_of_40_columns_is_not_overrun() {
    let bench = stored();
    let program = env!("CARGO_BIN_EXE_killpoint");
    let mut command = Command::new("python3");
    command.args(["-c", ON_A_TERMINAL, program, "report", "run"]).current_dir(bench.path(""));
    let said = end_of(started(&mut command)).exits(Violated);
    let plain = without_colour(&said.out);
    assert!(said.out.contains("\x1b[") && plain.contains("✗ violated"), "a terminal has colour: {said:?}");
    for line in plain.lines().filter(|line| !line.contains("replay: ")) {
        assert!(line.trim_end().chars().count() <= 40, "{line}");
    }
    let no_terminal = bench.killpoint(&["report", "run"]).exits(Violated);
    assert!(!no_terminal.out.contains('\x1b'));
}

fn without_colour(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}
