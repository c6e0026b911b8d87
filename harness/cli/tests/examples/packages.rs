//! killpoint below the test runners of other languages: what the pages of the packages show, on the examples.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use killpoint::RunFolder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::examples;
use crate::needs::Needs;

/// How long a test runner may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);
/// How long a worker's tree may outlive the program.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// One of the packages.
#[derive(Clone, Copy)]
enum Package {
    Pytest,
    NodeTest,
}

impl Package {
    fn folder(self) -> PathBuf {
        let name = match self {
            Self::Pytest => "pytest",
            Self::NodeTest => "node-test",
        };
        examples().join("../harness/clients").join(name).canonicalize().unwrap()
    }

    fn needs(self) -> Needs {
        match self {
            Self::Pytest => Needs::Python,
            Self::NodeTest => Needs::Node,
        }
    }

    /// The fenced blocks of its page in a language.
    fn blocks(self, language: &str) -> Vec<String> {
        let page = fs::read_to_string(self.folder().join("README.md")).unwrap();
        let fence = format!("```{language}\n");
        let blocks: Vec<String> = page
            .match_indices(&fence)
            .map(|(at, _)| page[at + fence.len()..].split("```").next().unwrap().to_owned())
            .collect();
        assert!(!blocks.is_empty(), "the page shows no `{language}`");
        blocks
    }
}

/// What a test runner printed, and how it ended.
struct Said {
    code: Option<i32>,
    text: String,
}

impl Said {
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.text);
        self
    }

    /// The lines are there, each at the start of a line and after the one before. Numbers of events may differ.
    fn shows(&self, lines: &[&str]) {
        let mut printed = self.text.lines().map(str::trim);
        for line in lines {
            let steady = line.split(", events").next().unwrap().trim();
            assert!(printed.any(|found| found.starts_with(steady)), "not there: {line}\n{}", self.text);
        }
    }
}

/// An example in a folder of its own, with the package and the program at hand.
struct Project {
    folder: TempDir,
    path: std::ffi::OsString,
}

impl Project {
    /// `None` where the interpreter is missing.
    fn of(example: &str, package: Package) -> Option<Self> {
        let interpreter = package.needs().path(&format!("{example} below a test runner"))?;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for entry in fs::read_dir(examples().join(example)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, at(path.file_name().unwrap().to_str().unwrap())).unwrap();
            }
        }
        for name in ["bin", "node_modules"] {
            fs::create_dir(at(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_killpoint"), at("bin/killpoint")).unwrap();
        if let Package::NodeTest = package {
            // As npm installs a folder.
            symlink(package.folder(), at("node_modules/killpoint-node-test")).unwrap();
            let modules = std::env::var_os("KILLPOINT_TEST_NODE_MODULES").map(PathBuf::from).unwrap();
            let modules = modules.join(example).join("node_modules");
            for entry in fs::read_dir(modules).into_iter().flatten().flatten() {
                symlink(entry.path(), at("node_modules").join(entry.file_name())).unwrap();
            }
        }
        let folders = std::iter::once(at("bin")).chain(std::env::split_paths(&interpreter));
        let path = std::env::join_paths(folders).unwrap();
        Some(Self { folder, path })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the page's files: each begins with a comment that is its name.
    fn write(&self, blocks: &[String], comment: &str) {
        for block in blocks {
            let name = block.lines().next().unwrap().strip_prefix(comment).unwrap().trim();
            fs::write(self.at(name), block).unwrap();
        }
    }

    /// Leaves only two kills of the configuration's sweep, because each trial takes seconds.
    fn sweep_less(&self) {
        let path = self.at("killpoint.toml");
        let text = fs::read_to_string(&path).unwrap();
        let (head, _) = text.split_once("[sweep]").unwrap();
        let sweep = "[sweep]\nboundaries = [\"provider:received#1\", \"provider:committed#1\"]\nplans = []\n";
        fs::write(path, format!("{head}{sweep}")).unwrap();
    }

    fn start(&self, program: &str, words: &[&str]) -> Child {
        // In the background of a shell SIGINT is ignored, and so it would be by what is started here.
        Command::new("env")
            .args(["--default-signal=INT", program])
            .args(words)
            .env("PATH", &self.path)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, program: &str, words: &[&str]) -> Said {
        end_of(self.start(program, words))
    }

    /// Runs the commands of a page; each has to succeed.
    fn run_page(&self, package: Package) {
        for command in package.blocks("sh").iter().flat_map(|block| block.lines()) {
            self.run("sh", &["-c", command]).exits(0);
        }
    }

    /// The folders of the runs, below `killpoint-runs`.
    fn runs(&self) -> Vec<PathBuf> {
        fs::read_dir(self.at("killpoint-runs")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Command lines of living processes that name this folder; waits for the last to go.
    fn processes(&self) -> Vec<String> {
        let marker = self.folder.path().display().to_string();
        let deadline = Instant::now() + GONE_LIMIT;
        loop {
            let entries = fs::read_dir("/proc").unwrap().flatten();
            let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
            let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
            let found: Vec<String> = lines.filter(|line| line.contains(&marker)).collect();
            if found.is_empty() || Instant::now() >= deadline {
                return found;
            }
            std::thread::yield_now();
        }
    }
}

fn end_of(child: Child) -> Said {
    let pid = Pid::from_raw(child.id().cast_signed());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(LIMIT).map_or_else(
        |_| {
            // It is our own child, and not waited for yet.
            kill(pid, Signal::SIGKILL).unwrap();
            panic!("the test runner did not end within {LIMIT:?}")
        },
        Result::unwrap,
    );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), text: text(&output.stdout) + &text(&output.stderr) }
}

#[test]
fn pytest_reads_and_shows_what_was_recorded() {
    let package = Package::Pytest;
    let Some(project) = Project::of("asyncio-task", package) else { return };
    let tests = package.folder().join("tests");
    project.run("pytest", &["-q", "-p", "no:cacheprovider", tests.to_str().unwrap()]).exits(0);
}

#[test]
fn node_test_reads_and_shows_what_was_recorded() {
    let package = Package::NodeTest;
    let Some(project) = Project::of("node-journal", package) else { return };
    for name in ["recorded.test.mjs", "gate.test.mjs"] {
        let file = package.folder().join("test").join(name);
        project.run("node", &["--test", file.to_str().unwrap()]).exits(0);
    }
}

#[test]
fn pytest_is_green_on_a_right_worker_as_its_page_says() {
    let package = Package::Pytest;
    let Some(project) = Project::of("asyncio-task", package) else { return };
    project.write(&package.blocks("python"), "#");
    fs::write(project.at("pytest.ini"), &package.blocks("ini")[0]).unwrap();
    project.run_page(package);
    // The configuration, and each test of the page.
    assert_eq!(project.runs().len(), 3);
}

#[test]
fn pytest_is_red_on_a_public_library_as_its_page_says() {
    let package = Package::Pytest;
    let Some(project) = Project::of("persist-queue", package) else { return };
    project.sweep_less();
    let said = project.run("pytest", &["-v", "killpoint.toml"]).exits(1);
    said.shows(&package.blocks("text")[0].lines().collect::<Vec<_>>());
    said.shows(&[
        "killpoint.toml::baseline PASSED",
        "killpoint.toml::baseline again PASSED",
        "killpoint.toml::kill at provider:received#1 FAILED",
        "no-blind-resend: once sent again",
        "order-0 to user0@example.com: duplicate, effects 2, owed 1",
        "FAILED killpoint.toml::kill at provider:committed#1",
    ]);
    assert!(said.text.contains("2 failed, 2 passed"), "{}", said.text);
    is_recorded(&project);
}

#[test]
fn node_test_is_green_on_a_right_worker_as_its_page_says() {
    let package = Package::NodeTest;
    let Some(project) = Project::of("node-journal", package) else { return };
    project.write(&package.blocks("js"), "//");
    project.run_page(package);
    assert_eq!(project.runs().len(), 2);
}

#[test]
fn node_test_is_red_on_a_public_library_as_its_page_says() {
    let package = Package::NodeTest;
    let Some(project) = Project::of("plainjob", package) else { return };
    project.write(&package.blocks("js")[..1], "//");
    let said = project.run("node", &["--test", "--test-reporter=spec", "outbox.test.mjs"]).exits(1);
    said.shows(&[
        "✔ baseline (",
        "✔ baseline again (",
        "✖ kill at provider:received#1",
        "✖ kill at provider:committed#1",
    ]);
    let shown = package.blocks("text")[0].clone();
    // Node puts the error's name in front of its first line.
    said.shows(&shown.lines().skip(1).collect::<Vec<_>>());
    assert!(said.text.contains("pass 2\n") && said.text.contains("fail 3\n"), "{}", said.text);
    is_recorded(&project);
}

/// The one run is on disk, with the trials that were shown.
fn is_recorded(project: &Project) {
    let runs = project.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let (_, record) = RunFolder::open(&runs[0]).unwrap();
    assert_eq!(record.trials.len(), 4);
}

/// A worker that never comes to rest, with a word when it is there.
fn endless(package: Package) -> Option<Project> {
    let project = Project::of("shell-files", package)?;
    nix::unistd::mkfifo(&project.at("there"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let folder = project.folder.path().display().to_string();
    fs::write(project.at("endless.sh"), format!("echo 1 > '{folder}/there'\nwhile :; do sleep 60; done\n"))
        .unwrap();
    let config = format!("[worker]\ncommand = [\"sh\", \"{folder}/endless.sh\"]\n");
    fs::write(project.at("killpoint.toml"), config).unwrap();
    Some(project)
}

/// Waits for the worker, interrupts the test runner and nobody else, and looks for what is left.
fn interrupt(project: &Project, runner: Child, signal: Signal) -> Said {
    let (sender, receiver) = mpsc::channel();
    let there = project.at("there");
    std::thread::spawn(move || sender.send(fs::read(there).unwrap()));
    receiver.recv_timeout(LIMIT).expect("the worker was not started");
    kill(Pid::from_raw(runner.id().cast_signed()), signal).unwrap();
    let said = end_of(runner);
    assert_eq!(project.processes(), Vec::<String>::new(), "{}", said.text);
    said
}

#[test]
fn nothing_is_left_of_a_pytest_that_is_interrupted() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let Some(project) = endless(Package::Pytest) else { return };
        let runner = project.start("pytest", &["killpoint.toml"]);
        interrupt(&project, runner, signal).exits(2);
        assert!(is_interrupted(&project.runs()[0]));
    }
}

#[test]
fn nothing_is_left_of_a_node_test_that_is_interrupted() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let Some(project) = endless(Package::NodeTest) else { return };
        fs::write(
            project.at("endless.test.mjs"),
            "import { gate } from 'killpoint-node-test';\nawait gate();\n",
        )
        .unwrap();
        let runner = project.start("node", &["--test", "endless.test.mjs"]);
        let said = interrupt(&project, runner, signal);
        assert_ne!(said.code, Some(0), "{}", said.text);
    }
}

fn is_interrupted(run: &Path) -> bool {
    RunFolder::open(run).unwrap().1.interrupted
}
