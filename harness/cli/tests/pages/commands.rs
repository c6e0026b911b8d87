//! The commands of all pages but the tutorial.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use crate::page::{Step, blocks, is_there, root, skip, steps};
use crate::printed::first_missing;
use crate::tutorial;

/// How many pages are gone through at the same time.
const PAGES_AT_A_TIME: usize = 3;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_killpoint");

#[test]
fn commands_end_as_the_pages_say_and_print_what_they_show() {
    let mut by_page: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    for block in blocks(&["sh", "console"]) {
        let page = block.place.split(':').next().unwrap_or_default();
        by_page.entry(page.to_owned()).or_default().extend(steps(&block));
    }
    by_page.remove(tutorial::PAGE);
    assert!(by_page.len() > 3, "{by_page:?}");
    // Pages side by side, because trials mostly wait; but each of them runs several trials at a time.
    let left = Mutex::new(by_page.values());
    std::thread::scope(|scope| {
        for _ in 0..PAGES_AT_A_TIME {
            scope.spawn(|| {
                while let Some(steps) = next(&left) {
                    run_page(steps);
                }
            });
        }
    });
}

fn next<T>(left: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    left.lock().unwrap().next()
}

/// Runs the commands of one page, one after the other in one folder.
fn run_page(steps: &[Step]) {
    let fixture = Fixture::new();
    let mut provider = None;
    for step in steps {
        let words: Vec<&str> = step.command.split_whitespace().collect();
        match words.as_slice() {
            ["cargo", "xtask", task, ..] => {
                let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
                assert!(tasks.contains(&format!("\n  {task} ")), "{}: no task `{task}`", step.place);
            }
            ["cargo", "install", "--path", path] => {
                assert!(root().join(path).join("Cargo.toml").is_file(), "{}: {path}", step.place);
            }
            ["git", "add", file] => {
                assert!(fixture.path(file).exists(), "{}: there is no {file}", step.place);
            }
            ["curl", ..] if !is_there("curl") => skip("curl", step),
            ["curl", ..] => {
                let provider = provider.get_or_insert_with(|| Provider::start(&fixture));
                fixture.run(step, &step.command, &provider.addresses);
            }
            ["killpoint", ..] => fixture.run(step, &narrowed(&step.command), &[]),
            ["cargo", "run", "--release", "--", ..] => {
                let command = step.command.replacen("cargo run --release --", "killpoint", 1);
                fixture.run(step, &narrowed(&command), &[]);
            }
            _ => panic!("{}: this test can't run `{}`", step.place, step.command),
        }
    }
}

/// The same command, done sooner: a whole sweep is narrowed to one boundary, and the selftest, or a profile, which
/// chooses its trials itself, or a proposal where there is a configuration already, to its help.
fn narrowed(command: &str) -> String {
    if command.contains("--profile") || command.starts_with("killpoint init") {
        return format!("{command} --help");
    }
    let selects = ["--boundary", "--scenario", "--strategy"].iter().any(|flag| command.contains(flag));
    for whole in ["killpoint demo", "killpoint run"] {
        if let Some(rest) = command.strip_prefix(whole).filter(|_| !selects) {
            return format!("{whole} --boundary provider:committed#1{rest}");
        }
    }
    if command == "killpoint selftest" { "killpoint selftest --help".to_owned() } else { command.to_owned() }
}

/// A folder in which the pages' commands work: a worker, its configuration, and the program on the PATH.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        let at = |name: &str| fixture.path(name);
        fs::create_dir(at("bin")).unwrap();
        fs::create_dir(at("runs")).unwrap();
        symlink(PROGRAM, at("bin/killpoint")).unwrap();
        // The worker of the demo, which makes its own work where nobody enqueues any.
        let worker = format!(
            "#!/bin/sh\n\
             echo '{{\"id\":\"a-1\",\"to\":[\"ann@example.com\"],\"body\":\"hello\"}}' > \"$STATE_DIR/actions.jsonl\"\n\
             '{PROGRAM}' built-in-worker enqueue --db \"$WORKER_DB\" --actions \"$STATE_DIR/actions.jsonl\" || exit 1\n\
             exec '{PROGRAM}' built-in-worker run --db \"$WORKER_DB\" --provider \"$PROVIDER_URL\" --worker-id one --drain\n"
        );
        fixture.program("worker", &worker);
        let config = "[worker]\ncommand = [\"./worker\"]\n\
                      env = { PROVIDER_URL = \"{provider.rest}\", STATE_DIR = \"{state}\", WORKER_DB = \"{state}/l.db\" }\n";
        for name in ["killpoint.toml", "other.toml"] {
            fs::write(at(name), config).unwrap();
        }
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that can be run.
    pub(crate) fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn shell(&self, command: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.folder.path().join("bin")).chain(std::env::split_paths(&path));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.folder.path());
        shell.env("PATH", std::env::join_paths(folders).unwrap()).stdin(Stdio::null());
        shell
    }

    pub(crate) fn run(&self, step: &Step, command: &str, variables: &[(String, String)]) {
        let output = self.shell(command).envs(variables.iter().cloned()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(step.exit_code), "{}: {command}\n{out}\n{err}", step.place);
        if let Some(missing) = first_missing(&step.shown, &out) {
            panic!("{}: {command}\nnot printed: {missing}\nprinted was:\n{out}", step.place);
        }
    }
}

/// The fake provider as a program of its own.
struct Provider {
    process: Child,
    addresses: Vec<(String, String)>,
}

impl Provider {
    fn start(fixture: &Fixture) -> Self {
        let mut command = fixture.shell("exec killpoint provider");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let addresses = ["rest", "control", "token"]
            .map(|name| (name.to_uppercase(), ready[name].as_str().unwrap().to_owned()))
            .to_vec();
        Self { process, addresses }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
