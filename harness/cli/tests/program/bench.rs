//! One temporary folder with a worker in it, and the program run there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use killpoint::RunFolder;
use killpoint::model::event::EventKind;
use killpoint::model::{ExitCode, History, RunRecord, TrialRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long the program may take, whatever it is asked.
const LIMIT: Duration = Duration::from_secs(300);
/// How long something of a worker may be there after the program has ended.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// What every worker here shares: `post` and `lookup` speak to the provider, `state(NAME)` is a file's path.
const TINY: &str = r#"
import http.client, json, os, sys
generation = int(os.environ.get("GENERATION", "1"))
def state(name):
    return os.path.join(os.environ["STATE_DIR"], name)
def call(method, path, body=None, headers={}):
    host = os.environ["PROVIDER_URL"].split("//")[1]
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
def post(key="k1", **more):
    body = json.dumps({"to": "ann@example.com", "body": "hello", "ref": "a1", **more})
    return call("POST", "/v1/messages", body, {"Idempotency-Key": key, "Content-Type": "application/json"})
def lookup(key="k1"):
    return call("GET", "/v1/messages?idempotency_key=" + key)[1]["data"]
def once(name):
    """Makes a file; false where it was there."""
    try:
        os.close(os.open(state(name), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False
"#;

/// A folder of its own. Its path is in the command line of every worker that is started from it.
pub(crate) struct Bench {
    folder: TempDir,
}

/// What one call of the program gave.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with `worker.py` and the library that it may import.
    pub(crate) fn with_worker(script: &str) -> Self {
        let bench = Self::new();
        bench.file("tiny.py", TINY);
        bench.file("worker.py", &format!("from tiny import *\n{script}"));
        bench
    }

    /// The same with a `killpoint.toml`; `more` is appended to it.
    pub(crate) fn configured(script: &str, more: &str) -> Self {
        let bench = Self::with_worker(script);
        bench.config(&bench.worker_section(), more);
        bench
    }

    /// A `killpoint.toml` that begins with a given section.
    pub(crate) fn config(&self, worker: &str, more: &str) {
        self.file("killpoint.toml", &format!("{worker}\n{more}"));
    }

    /// The `[worker]` section for `worker.py`, with the path as the marker.
    pub(crate) fn worker_section(&self) -> String {
        format!(
            "[worker]\ncommand = [\"python3\", \"{}\"]\nenv = {{ PROVIDER_URL = \"{{provider.rest}}\", STATE_DIR = \
             \"{{state}}\", GENERATION = \"{{generation}}\" }}\n",
            self.path("worker.py").display()
        )
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The program in this folder, not started yet.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_killpoint"));
        command.args(words).current_dir(self.folder.path()).env_remove("KILLPOINT_SOCKET");
        command
    }

    /// Starts the program with its output captured.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        started(&mut self.command(words))
    }

    /// Runs the program to its end.
    pub(crate) fn killpoint(&self, words: &[&str]) -> Said {
        end_of(self.start(words))
    }

    /// `killpoint run` into the folder `run`, with more words, and nothing of a worker left.
    pub(crate) fn run(&self, words: &[&str]) -> Said {
        let said = self.killpoint(&[&["run", "--run-dir", "run"], words].concat());
        assert_eq!(self.processes(), Vec::<String>::new(), "{said:?}");
        said
    }

    /// `worker.py` without a configuration, killed at some boundaries.
    pub(crate) fn run_bare(&self, boundaries: &[&str]) -> Said {
        let worker = self.path("worker.py").display().to_string();
        let mut words: Vec<&str> = boundaries.iter().flat_map(|name| ["--boundary", name]).collect();
        words.extend(["--", "python3", &worker]);
        self.run(&words)
    }

    /// The record in `run`.
    pub(crate) fn record(&self) -> RunRecord {
        RunFolder::open(&self.path("run")).unwrap().1
    }

    /// The history of a trial in `run`.
    pub(crate) fn history(&self, trial: &TrialRecord) -> History {
        let (folder, _) = RunFolder::open(&self.path("run")).unwrap();
        folder.history(&trial.folder).unwrap()
    }

    /// The events of the trial that comes last.
    pub(crate) fn last_events(&self) -> Vec<EventKind> {
        let record = self.record();
        let history = self.history(record.trials.last().unwrap());
        history.events.into_iter().map(|event| event.event).collect()
    }

    /// What is recorded can be judged again, to the same exit code.
    pub(crate) fn is_judged_again(&self, code: ExitCode) {
        let said = self.killpoint(&["check", "run"]).exits(code);
        assert!(!said.err.contains("differs"), "{said:?}");
    }

    /// Command lines of living processes that were started from this folder; waits for the last to go.
    pub(crate) fn processes(&self) -> Vec<String> {
        let deadline = Instant::now() + GONE_LIMIT;
        loop {
            let found = processes_with(self.folder.path());
            if found.is_empty() || Instant::now() >= deadline {
                return found.into_iter().map(|(_, line)| line).collect();
            }
            std::thread::yield_now();
        }
    }

    /// Process ids of what runs from this folder, as this process sees them.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        processes_with(self.folder.path()).into_iter().map(|(pid, _)| pid).collect()
    }
}

impl Said {
    pub(crate) fn exits(self, code: ExitCode) -> Self {
        assert_eq!(self.code, Some(i32::from(code.code())), "{}\n{}", self.out, self.err);
        self.never_panics()
    }

    pub(crate) fn never_panics(self) -> Self {
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// All parts are in what was said, on either stream. Line breaks of the layout don't count.
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = format!("{} {}", flat(&self.out), flat(&self.err));
        for part in parts {
            assert!(said.contains(part), "`{part}` is not said:\n{}\n{}", self.out, self.err);
        }
        self
    }

    /// The parts are on standard error, and nothing is on standard output.
    pub(crate) fn complains(self, parts: &[&str]) -> Self {
        assert_eq!(self.out, "");
        self.says(parts)
    }
}

/// Starts a command with its output captured.
pub(crate) fn started(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a program that was started here.
pub(crate) fn end_of(child: Child) -> Said {
    let pid = Pid::from_raw(child.id().cast_signed());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output: Output = receiver.recv_timeout(LIMIT).map_or_else(
        |_| {
            // It is our own child, and not waited for yet.
            kill(pid, Signal::SIGKILL).unwrap();
            panic!("the program did not end within {LIMIT:?}")
        },
        Result::unwrap,
    );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

fn processes_with(marker: &Path) -> Vec<(Pid, String)> {
    let marker = marker.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&marker).then(|| (Pid::from_raw(pid), line))
        })
        .collect()
}
