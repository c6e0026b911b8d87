//! Every client against every case of `conformance.json`, with a server that says what the case says.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    protocol: u32,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    mark: String,
    socket: Socket,
    line: Option<String>,
    answer: Option<String>,
    #[serde(default)]
    answer_pieces: Vec<String>,
    outcome: Outcome,
    error_contains: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Socket {
    Unset,
    Empty,
    Missing,
    Listening,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    Error,
}

/// What carries a mark's name to a client under test that is a process of its own.
const NAME_VARIABLE: &str = "CONFORMANCE_MARK";

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn vectors() -> Vectors {
    let text = std::fs::read_to_string(clients().join("conformance.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Accepts one connection, reads its line, answers and closes. An empty line stands for "the client never came".
fn serve(listener: UnixListener, pieces: Vec<String>) -> JoinHandle<io::Result<String>> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut line = String::new();
        BufReader::new(stream.try_clone()?).read_line(&mut line)?;
        for piece in &pieces {
            // A client that goes away early is judged by what it says, not here.
            let _ = stream.write_all(piece.as_bytes()).and_then(|()| stream.flush());
        }
        Ok(line)
    })
}

/// Runs one case; `client` makes the command that marks the name in [`NAME_VARIABLE`].
fn problem_of(case: &Case, client: &dyn Fn() -> Command) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let mut command = client();
    command.env(NAME_VARIABLE, &case.mark).stdin(Stdio::null());
    match case.socket {
        Socket::Unset => command.env_remove(killpoint_mark::SOCKET_VARIABLE),
        Socket::Empty => command.env(killpoint_mark::SOCKET_VARIABLE, ""),
        Socket::Missing | Socket::Listening => command.env(killpoint_mark::SOCKET_VARIABLE, &socket),
    };
    let server = (case.socket == Socket::Listening).then(|| {
        let pieces = case.answer.iter().chain(&case.answer_pieces).cloned().collect();
        serve(UnixListener::bind(&socket).unwrap(), pieces)
    });
    let output = command.output().unwrap();
    let line = server.map(|server| {
        // Ends the server where the client never came.
        let _ = std::os::unix::net::UnixStream::connect(&socket);
        server.join().unwrap().unwrap()
    });
    judge(case, &output, line.filter(|line| !line.is_empty()))
}

fn judge(case: &Case, output: &Output, line: Option<String>) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    if line != case.line {
        return Some(format!("the server read {line:?}, not {:?}; the client said {said}", case.line));
    }
    if output.status.success() != (case.outcome == Outcome::Ok) {
        return Some(format!("ended with {}; said {said}", output.status));
    }
    let part = case.error_contains.as_deref().unwrap_or_default();
    (!said.contains(part)).then(|| format!("`{part}` is not in what it said: {said}"))
}

fn check_all(client_name: &str, client: &dyn Fn() -> Command) {
    check(client_name, client, &|_| true);
}

fn check(client_name: &str, client: &dyn Fn() -> Command, wanted: &dyn Fn(&Case) -> bool) {
    let problems: Vec<String> = vectors()
        .cases
        .iter()
        .filter(|case| wanted(case))
        .filter_map(|case| problem_of(case, client).map(|problem| format!("{}: {problem}", case.name)))
        .collect();
    assert!(problems.is_empty(), "{client_name}:\n{}", problems.join("\n"));
}

/// The real program behind a name, past the shims of version managers, or `None`.
#[expect(clippy::print_stderr, reason = "a skipped client must be seen in the test's output")]
fn program(name: &str) -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var_os("KILLPOINT_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "`{name}` is not on PATH, and KILLPOINT_REQUIRE_ALL=1 wants every client tested");
        eprintln!("skipped: `{name}` is not on PATH");
    }
    let found = found?;
    if name != "python3" {
        return Some(found);
    }
    let output = Command::new(found).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

#[test]
fn the_vectors_cover_the_protocol() {
    let vectors = vectors();
    assert_eq!(vectors.protocol, 1);
    assert!(
        vectors.cases.iter().all(|case| (case.outcome == Outcome::Error) == case.error_contains.is_some())
    );
    assert!(vectors.cases.iter().all(|case| case.line.is_none() || case.socket == Socket::Listening));
}

/// The process under test of `rust`, which starts it; by itself it has nothing to mark.
#[test]
fn child_that_marks() {
    let Ok(name) = std::env::var(NAME_VARIABLE) else { return };
    if let Err(error) = killpoint_mark::mark(&name) {
        panic!("{error}");
    }
}

#[test]
fn rust() {
    check_all("rust", &|| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child_that_marks", "--nocapture"]);
        command
    });
}

#[test]
fn python() {
    let Some(python) = program("python3") else { return };
    check_all("python", &|| {
        let mut command = Command::new(&python);
        let code = "import os, killpoint_mark\nkillpoint_mark.mark(os.environ['CONFORMANCE_MARK'])";
        command.args(["-B", "-c", code]).env("PYTHONPATH", clients().join("python")).env("PYTHONUTF8", "1");
        command
    });
}

fn check_node(call: &str) {
    let Some(node) = program("node") else { return };
    let module = clients().join("node/killpoint-mark.mjs").canonicalize().unwrap();
    let code = format!(
        "const client = await import('file://{}');\nawait client.{call}(process.env.{NAME_VARIABLE});",
        module.display()
    );
    check_all(call, &|| {
        let mut command = Command::new(&node);
        command.args(["--input-type=module", "-e", &code]);
        command
    });
}

#[test]
fn node() {
    check_node("mark");
}

#[test]
fn node_without_blocking() {
    check_node("markAsync");
}

/// Only the named programs are on PATH, so that the shell client takes the transport that is meant.
fn check_shell(transport: Option<&str>) {
    let Some(shell) = program("sh") else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["wc", "grep"].into_iter().chain(transport) {
        let Some(target) = program(name) else { return };
        symlink(target, folder.path().join(name)).unwrap();
    }
    let code = format!(
        ". '{}'; killpoint_mark \"${NAME_VARIABLE}\"",
        clients().join("shell/killpoint-mark.sh").display()
    );
    let client = || {
        let mut command = Command::new(&shell);
        command.args(["-c", &code]).env("PATH", folder.path());
        command
    };
    if let Some(name) = transport {
        // What happens before the transport is the same for each of them.
        return check(&format!("shell through {name}"), &client, &|case| {
            case.line.is_some() || name == "perl"
        });
    }
    let output = client()
        .env(NAME_VARIABLE, "item-claimed")
        .env(killpoint_mark::SOCKET_VARIABLE, "/s")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("none of killpoint, socat"), "{output:?}");
}

#[test]
fn shell_through_socat() {
    check_shell(Some("socat"));
}

#[test]
fn shell_through_nc() {
    check_shell(Some("nc"));
}

#[test]
fn shell_through_perl() {
    check_shell(Some("perl"));
}

#[test]
fn shell_through_python() {
    check_shell(Some("python3"));
}

#[test]
fn shell_without_any_program_says_so() {
    check_shell(None);
}
