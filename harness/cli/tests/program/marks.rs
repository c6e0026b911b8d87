//! `killpoint mark`: the shell's way to name a boundary.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use killpoint::model::ExitCode::{Holds, SetupFailed};
use killpoint::model::event::EventKind;
use serde_json::Value;

use crate::bench::{Bench, end_of, started};

#[test]
fn outside_a_trial_a_mark_does_nothing() {
    let bench = Bench::new();
    bench.killpoint(&["mark", "item-claimed"]).exits(Holds).complains(&[]);
    let said = bench.killpoint(&["mark", "--", "item-claimed"]).exits(Holds);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    let said = end_of(started(bench.command(&["mark", "item-claimed"]).env("KILLPOINT_SOCKET", "")));
    said.exits(Holds).complains(&[]);
}

#[test]
fn a_mark_that_nobody_answers_is_an_error() {
    let bench = Bench::new();
    let mut command = bench.command(&["mark", "item-claimed"]);
    end_of(started(command.env("KILLPOINT_SOCKET", bench.path("nobody"))))
        .exits(SetupFailed)
        .complains(&["error[mark-failed]", "nobody"]);
}

#[test]
fn a_shell_names_a_boundary_and_is_killed_there() {
    let script = format!(
        "
import subprocess
first = once('sent')
subprocess.run(['{}', 'mark', 'intent-noted'], check=True)
if first or not lookup():
    post()
",
        env!("CARGO_BIN_EXE_killpoint")
    );
    let bench = Bench::with_worker(&script);
    bench.run_bare(&["mark:intent-noted#1"]).exits(Holds);
    let at = bench.last_events().into_iter().find_map(|event| match event {
        EventKind::FaultDone { at, landed: true, .. } => Some(at.to_string()),
        _ => None,
    });
    assert_eq!(at.as_deref(), Some("mark:intent-noted#1"));
    bench.is_judged_again(Holds);
}

/// The shell client takes this program where it is on PATH, and is then held to what every client is held to.
#[test]
fn the_shell_client_through_this_program_keeps_the_protocol() {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients");
    let text = std::fs::read_to_string(clients.join("conformance.json")).unwrap();
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    let problems: Vec<String> = cases.iter().filter_map(|case| problem_of(case, &clients)).collect();
    assert_eq!(problems, Vec::<String>::new());
}

fn problem_of(case: &Value, clients: &Path) -> Option<String> {
    let bench = Bench::new();
    let socket = bench.path("s");
    let server = (case["socket"] == "listening").then(|| {
        let listener = UnixListener::bind(&socket).unwrap();
        let whole = case["answer"].as_str();
        let pieces = case["answer_pieces"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let answer: String = whole.into_iter().chain(pieces).collect();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            // A client that goes away early is judged by what it says, not here.
            let _ = stream.write_all(answer.as_bytes());
            line
        })
    });
    let mut command = Command::new("sh");
    let script = clients.join("shell/killpoint-mark.sh");
    command.args(["-c", ". \"$0\"; killpoint_mark \"$1\"", &script.display().to_string()]);
    let path = std::env::var("PATH").unwrap_or_default();
    let program = Path::new(env!("CARGO_BIN_EXE_killpoint")).parent().unwrap();
    command.arg(case["mark"].as_str().unwrap()).env("PATH", format!("{}:{path}", program.display()));
    match case["socket"].as_str().unwrap() {
        "unset" => command.env_remove("KILLPOINT_SOCKET"),
        "empty" => command.env("KILLPOINT_SOCKET", ""),
        _ => command.env("KILLPOINT_SOCKET", &socket),
    };
    let said = end_of(started(&mut command));
    let line = server.map(|server| {
        // Ends the server where the client never came.
        let _ = UnixStream::connect(&socket);
        server.join().unwrap()
    });
    let kept = line.filter(|line| !line.is_empty()).as_deref() == case["line"].as_str()
        && (said.code == Some(0)) == (case["outcome"] == "ok")
        && said.err.contains(case["error_contains"].as_str().unwrap_or_default());
    (!kept).then(|| format!("{}: {said:?}", case["name"]))
}
