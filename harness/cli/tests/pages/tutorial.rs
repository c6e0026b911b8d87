//! The tutorial, from its first command to its last, on the example that it is about.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::commands::PROGRAM;
use crate::page::{Block, Step, blocks_of, is_there, root, skip, steps};
use crate::printed::first_missing;

pub(crate) const PAGE: &str = "docs/tutorial.md";

fn page() -> Vec<Block> {
    blocks_of(&root().join(PAGE))
}

/// The tutorial's files, with their texts.
fn files() -> Vec<(PathBuf, String)> {
    let example = root().join("examples/tutorial");
    let folders = [example.join("steps"), example];
    let listed = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = listed.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// A shell that is left open: `cd` changes where the next command is run.
struct Session {
    home: tempfile::TempDir,
    folder: PathBuf,
    times: Vec<(String, Duration)>,
}

impl Session {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("bin")).unwrap();
        symlink(PROGRAM, home.path().join("bin/killpoint")).unwrap();
        Self { home, folder: root(), times: Vec::new() }
    }

    fn carry_out(&mut self, step: &Step) {
        let words: Vec<&str> = step.command.split_whitespace().collect();
        match words.as_slice() {
            // The program is there already: it is what is tested.
            ["cargo", "install", "--debug", "--path", path] => {
                assert!(root().join(path).join("Cargo.toml").is_file(), "{}: {path}", step.place);
            }
            ["cd", to] => {
                self.folder = match to.strip_prefix("~/") {
                    Some(below) => self.home.path().join(below),
                    None => self.folder.join(to),
                };
                assert!(self.folder.is_dir(), "{}: {}", step.place, self.folder.display());
            }
            ["killpoint" | "cp" | "git", ..] => self.run(step),
            _ => panic!("{}: this test can't run `{}`", step.place, step.command),
        }
    }

    fn run(&mut self, step: &Step) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.home.path().join("bin")).chain(std::env::split_paths(&path));
        let mut shell = Command::new("sh");
        shell.args(["-c", &step.command]).current_dir(&self.folder).stdin(Stdio::null());
        shell.env("PATH", std::env::join_paths(folders).unwrap()).env("HOME", self.home.path());
        let begin = Instant::now();
        let output = shell.output().unwrap();
        self.times.push((step.command.clone(), begin.elapsed()));
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let place = &step.place;
        assert_eq!(output.status.code(), Some(step.exit_code), "{place}: {}\n{out}\n{err}", step.command);
        if let Some(missing) = first_missing(&step.shown, &out) {
            panic!("{place}: {}\nnot printed: {missing}\nprinted was:\n{out}", step.command);
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "whoever reads the test's output may want the times")]
fn the_tutorial_goes_from_red_to_green() {
    let steps: Vec<Step> = page()
        .iter()
        .filter(|block| matches!(block.language.as_str(), "sh" | "console"))
        .flat_map(steps)
        .collect();
    for program in ["python3", "git"] {
        if !is_there(program) {
            return skip(program, &steps[0]);
        }
    }
    let mut session = Session::new();
    for step in &steps {
        session.carry_out(step);
    }
    let kept = fs::read_dir(session.folder.join("killpoint/regressions")).unwrap().count();
    assert_ne!(kept, 0, "no counterexample was kept");
    for (command, time) in &session.times {
        println!("{:6.1} s  {command}", time.as_secs_f64());
    }
}

/// Patches and configurations are shown whole, and the worker's code is the worker's.
#[test]
fn what_the_tutorial_shows_is_what_lies_in_its_example() {
    let files = files();
    let end = |path: &Path| path.extension().unwrap_or_default().to_str().unwrap().to_owned();
    let shown: Vec<Block> = page()
        .into_iter()
        .filter(|block| matches!(block.language.as_str(), "toml" | "diff" | "python"))
        .collect();
    for Block { place, language, text } in &shown {
        let is_there = match language.as_str() {
            "python" => files.iter().any(|(path, whole)| end(path) == "py" && whole.contains(text.as_str())),
            _ => files.iter().any(|(_, whole)| whole == text),
        };
        assert!(is_there, "{place}: no file of the tutorial has this\n{text}");
    }
    for (path, whole) in files.iter().filter(|(path, _)| end(path) == "patch" || end(path) == "toml") {
        assert!(shown.iter().any(|block| block.text == *whole), "{} is not shown", path.display());
    }
}
