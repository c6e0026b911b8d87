//! What `init` proposes leads to a true verdict without editing: on the examples with their configurations taken
//! away, and on projects of other shapes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use killpoint::RunFolder;
use killpoint::model::run::TrialRole;
use killpoint::model::verdict::ActionVerdict;

use super::actions;
use super::needs::Needs;

/// A project in a folder of its own, as a newcomer has it.
struct Newcomer {
    folder: tempfile::TempDir,
    path: std::ffi::OsString,
}

impl Newcomer {
    fn new(project: &Path, needs: Needs) -> Option<Self> {
        let path = needs.path(&project.display().to_string())?;
        let folder = tempfile::tempdir().unwrap();
        copy(project, &folder.path().join("project"));
        Some(Self { folder, path })
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn killpoint(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_killpoint"));
        command.args(words).current_dir(self.project()).env("PATH", &self.path).output().unwrap()
    }

    /// `init --yes`, then a run with a kill at one boundary: its exit code, and what became of the actions there.
    fn verdict_at(&self, boundary: &str) -> (Option<i32>, Vec<ActionVerdict>) {
        let made = self.killpoint(&["init", "--yes"]);
        assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
        let run = self.killpoint(&["run", "--boundary", boundary, "--run-dir", "run", "--format", "json"]);
        let errors = String::from_utf8_lossy(&run.stderr);
        let (_, record) =
            RunFolder::open(&self.project().join("run")).unwrap_or_else(|error| panic!("{error}: {errors}"));
        let faulted = record.trials.iter().filter(|trial| trial.role == TrialRole::Faulted);
        let judged = faulted.filter_map(|trial| trial.verdict.as_ref());
        let mut seen: Vec<ActionVerdict> = judged.flat_map(actions).collect();
        seen.sort();
        seen.dedup();
        (run.status.code(), seen)
    }
}

/// Copies sources: no configuration, nothing that was built or installed.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let is_ours =
            name.to_string_lossy().starts_with("killpoint") || path.extension() == Some(OsStr::new("db"));
        if is_ours || name == "node_modules" || name == "__pycache__" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn example(name: &str) -> PathBuf {
    super::examples().join(name)
}

fn made_up(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lib/tests/projects").join(name)
}

#[test]
fn a_queue_that_forgets_what_it_took_loses() {
    let Some(newcomer) = Newcomer::new(&example("huey"), Needs::Python) else { return };
    let (code, seen) = newcomer.verdict_at("provider:received#1");
    assert!(code == Some(1) && seen.contains(&ActionVerdict::Lost), "{code:?} {seen:?}");
}

#[test]
fn a_queue_that_gives_again_duplicates() {
    let Some(newcomer) = Newcomer::new(&example("persist-queue"), Needs::Python) else { return };
    assert_eq!(newcomer.verdict_at("provider:committed#1"), (Some(1), vec![ActionVerdict::Duplicate]));
}

#[test]
fn an_outbox_of_files_holds() {
    let Some(newcomer) = Newcomer::new(&example("shell-files"), Needs::Curl) else { return };
    assert_eq!(newcomer.verdict_at("provider:committed#1"), (Some(0), vec![ActionVerdict::DeliveredOnce]));
}

#[test]
fn an_outbox_with_argparse_that_parks_what_is_in_doubt_holds() {
    let Some(newcomer) = Newcomer::new(&made_up("python-sqlite"), Needs::Python) else { return };
    assert_eq!(newcomer.verdict_at("provider:committed#1"), (Some(0), vec![ActionVerdict::ExplicitUnknown]));
}

#[test]
fn a_worker_without_a_ledger_that_sends_again_duplicates() {
    let Some(newcomer) = Newcomer::new(&made_up("no-ledger"), Needs::Python) else { return };
    assert_eq!(newcomer.verdict_at("provider:committed#1"), (Some(1), vec![ActionVerdict::Duplicate]));
}

#[test]
fn a_node_worker_that_writes_after_it_sent_duplicates() {
    let Some(newcomer) = Newcomer::new(&made_up("node-sqlite"), Needs::Node) else { return };
    let modules = std::env::var_os("KILLPOINT_TEST_NODE_MODULES").map(PathBuf::from).unwrap();
    symlink(modules.join("plainjob/node_modules"), newcomer.project().join("node_modules")).unwrap();
    assert_eq!(newcomer.verdict_at("provider:committed#1"), (Some(1), vec![ActionVerdict::Duplicate]));
}
