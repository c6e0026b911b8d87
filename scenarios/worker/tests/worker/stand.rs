//! One ledger, one provider, and workers that are crashed, held or let through at their marks.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::provider::{Provider, Step};

/// Longest wait for anything in these tests.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) type Row = BTreeMap<String, Value>;

pub(crate) struct Stand {
    folder: TempDir,
    pub(crate) provider: Provider,
    /// Extra words for `run`.
    pub(crate) options: Vec<String>,
    /// Extra variables for `run`.
    pub(crate) env: Vec<(&'static str, String)>,
    /// Whether workers run until they are stopped.
    pub(crate) forever: bool,
}

/// What one worker life did.
#[derive(Debug)]
pub(crate) struct Life {
    /// The names of its marks, in order.
    pub(crate) marks: Vec<String>,
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

/// A worker that runs and whose marks wait for the test at one name.
pub(crate) struct Held {
    child: Child,
    arrivals: Receiver<UnixStream>,
}

impl Stand {
    /// `actions` are ids with destinations; they are in the ledger when this returns.
    pub(crate) fn new(actions: &[(&str, &[&str])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let provider = Provider::start(folder.path().join("ledger.db"));
        let stand = Self { folder, provider, options: Vec::new(), env: Vec::new(), forever: false };
        let line_of = |(id, to): &(&str, &[&str])| {
            json!({ "id": id, "to": to, "body": format!("text of {id}") }).to_string()
        };
        let lines = actions.iter().map(line_of).collect::<Vec<_>>().join("\n");
        let life = stand.enqueue(&lines);
        assert_eq!(life.code, Some(0), "{}", life.stderr);
        stand
    }

    /// One action with one destination.
    pub(crate) fn single() -> Self {
        Self::new(&[("a", &["ops@example.test"])])
    }

    pub(crate) fn script(self, steps: &[Step]) -> Self {
        self.provider.state.lock().unwrap().script.extend(steps.iter().copied());
        self
    }

    pub(crate) fn always(self, step: Step) -> Self {
        self.provider.state.lock().unwrap().afterwards = Some(step);
        self
    }

    pub(crate) fn with(mut self, words: &[&str]) -> Self {
        self.options.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// For tests that count attempts and script no silence: a slow machine must not look like a lost reply.
    pub(crate) fn patient(self) -> Self {
        self.with(&["--timeout-ms", "5000"])
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }

    pub(crate) fn enqueue(&self, lines: &str) -> Life {
        let file = self.folder.path().join("actions.jsonl");
        std::fs::write(&file, lines).unwrap();
        let mut command = program();
        command.arg("enqueue").arg("--db").arg(self.db()).arg("--actions").arg(file);
        finish(command.spawn().unwrap())
    }

    /// Any other command of the program; returns what it printed.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let mut command = program();
        let output = command.args(words).stdout(Stdio::piped()).arg("--db").arg(self.db()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn worker(&self, worker_id: &str) -> Command {
        let mut command = program();
        command.arg("run").arg("--db").arg(self.db()).args(["--provider", &self.provider.url]);
        if !self.forever {
            command.arg("--drain");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.args(["--worker-id", worker_id]).args(&self.options);
        for (option, value) in [("--timeout-ms", "300"), ("--reconcile-ms", "150"), ("--lease-ms", "150")] {
            if !self.options.iter().any(|word| word == option) {
                command.args([option, value]);
            }
        }
        command
    }

    /// One whole life.
    pub(crate) fn run(&self) -> Life {
        self.crash_at("", 1)
    }

    /// One life that ends where `mark` is reached for the nth time.
    pub(crate) fn crash_at(&self, mark: &str, nth: usize) -> Life {
        self.crash_command_at(self.worker("host-1"), mark, nth)
    }

    /// The same for any command of the program on the ledger.
    pub(crate) fn crash_words_at(&self, words: &[&str], mark: &str) -> Life {
        let mut command = program();
        command.args(words).arg("--db").arg(self.db());
        self.crash_command_at(command, mark, 1)
    }

    fn crash_command_at(&self, mut command: Command, mark: &str, nth: usize) -> Life {
        let socket = self.folder.path().join("marks");
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let names = Arc::new(Mutex::new(Vec::new()));
        let (seen, mark) = (Arc::clone(&names), mark.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (name, mut stream) = arrival(stream);
                let mut seen = seen.lock().unwrap();
                seen.push(name.clone());
                let crash = name == mark && seen.iter().filter(|other| **other == name).count() == nth;
                stream.write_all(if crash { b"error crash\n" } else { b"go\n" }).unwrap();
            }
        });
        let mut life = finish(command.env("KILLPOINT_SOCKET", &socket).spawn().unwrap());
        life.marks.clone_from(&names.lock().unwrap());
        life
    }

    /// Starts a worker that is held whenever it reaches `mark`.
    pub(crate) fn hold_at(&self, worker_id: &str, mark: &str) -> Held {
        let socket = self.folder.path().join(worker_id);
        let listener = UnixListener::bind(&socket).unwrap();
        let (sender, arrivals) = channel();
        let mark = mark.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (name, mut stream) = arrival(stream);
                if name == mark {
                    let _ = sender.send(stream);
                } else {
                    let _ = stream.write_all(b"go\n");
                }
            }
        });
        let child = self.worker(worker_id).env("KILLPOINT_SOCKET", &socket).spawn().unwrap();
        Held { child, arrivals }
    }

    /// Starts a worker without marks.
    pub(crate) fn start(&self, worker_id: &str) -> Child {
        self.worker(worker_id).spawn().unwrap()
    }

    /// Copies the ledger, whole and closed.
    pub(crate) fn back_up(&self, to: &Path) {
        Connection::open(self.db()).unwrap().execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
    }

    /// Puts a copy in the ledger's place.
    pub(crate) fn restore(&self, from: &Path) {
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(self.db().with_extension(format!("db{end}")));
        }
        std::fs::rename(from, self.db()).unwrap();
    }

    /// A file of actions in the stand's folder.
    pub(crate) fn file(&self, lines: &str) -> String {
        let file = self.folder.path().join("other.jsonl");
        std::fs::write(&file, lines).unwrap();
        file.display().to_string()
    }

    /// One counter by the published query.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let printed = self.command(&["metrics"]);
        let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.into_iter().find(|line| line["name"] == name).unwrap()["value"].as_u64().unwrap()
    }

    /// Waits until a query gives something else than 0.
    pub(crate) fn wait_for(&self, query: &str) {
        let begun = Instant::now();
        while self.count(query) == 0 {
            assert!(begun.elapsed() < LIMIT, "never: {query}");
            std::thread::yield_now();
        }
    }

    /// The ledger by the published query.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let printed = self.command(&["status"]);
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The only row.
    pub(crate) fn row(&self) -> Row {
        let rows = self.rows();
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.into_iter().next().unwrap()
    }

    pub(crate) fn change(&self, statement: &str) {
        let connection = Connection::open(self.db()).unwrap();
        assert_eq!(connection.execute(statement, []).unwrap(), 1);
    }

    pub(crate) fn count(&self, query: &str) -> i64 {
        Connection::open(self.db()).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
    }
}

impl Held {
    /// Asks the worker to end; it is still held.
    pub(crate) fn terminate(&self) {
        terminate(&self.child);
    }

    /// Lets it go on while another writer has the ledger, which gives it back once `until` holds, and ends the
    /// worker's patience.
    pub(crate) fn release_until(
        self,
        mut stream: UnixStream,
        until: impl Fn() -> bool,
        competitor: &Connection,
    ) -> Life {
        stream.write_all(b"go\n").unwrap();
        let begun = Instant::now();
        std::thread::spawn(move || {
            for mut stream in self.arrivals {
                let _ = stream.write_all(b"go\n");
            }
        });
        while !until() {
            assert!(begun.elapsed() < LIMIT, "it never came about");
            std::thread::yield_now();
        }
        let life = finish(self.child);
        competitor.execute_batch("ROLLBACK").unwrap();
        life
    }

    /// Waits until the worker is at the mark.
    pub(crate) fn arrive(&self) -> UnixStream {
        self.arrivals.recv_timeout(LIMIT).unwrap()
    }

    /// Lets it go on, now and at the same mark from now on, until its end.
    pub(crate) fn release(self, mut stream: UnixStream) -> Life {
        stream.write_all(b"go\n").unwrap();
        std::thread::spawn(move || {
            for mut stream in self.arrivals {
                let _ = stream.write_all(b"go\n");
            }
        });
        finish(self.child)
    }
}

/// Asks a worker to end.
pub(crate) fn terminate(child: &Child) {
    let status = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn arrival(stream: UnixStream) -> (String, UnixStream) {
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    reader.read_line(&mut line).unwrap();
    (line.trim_end().rsplit(' ').next().unwrap().to_owned(), reader.into_inner())
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outbox-worker"));
    command.env_remove("KILLPOINT_SOCKET").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Waits for the end of a process, with a limit after which it is killed.
pub(crate) fn finish(mut child: Child) -> Life {
    let stderr = child.stderr.take().unwrap();
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        // Its stderr closes when the process ends.
        let _ = sender.send(std::io::read_to_string(stderr).unwrap_or_default());
    });
    let begun = Instant::now();
    let Ok(stderr) = ended.recv_timeout(LIMIT) else {
        child.kill().unwrap();
        panic!("the worker did not end within {:?}", begun.elapsed());
    };
    Life { marks: Vec::new(), code: child.wait().unwrap().code(), stderr }
}

/// Checks all the cases, several at a time: nearly all of it is waiting.
pub(crate) fn each<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    for group in cases.chunks(12) {
        std::thread::scope(|scope| {
            for case in group {
                scope.spawn(|| check(case));
            }
        });
    }
}
