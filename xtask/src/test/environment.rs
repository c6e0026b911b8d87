//! What the tests of the examples need besides cargo, made ready below `target/test-env`.
//!
//! Tests find it through environment variables. Where an interpreter or compiler is missing its variable is
//! not set, the tests that need it skip, and we say so; with `KILLPOINT_REQUIRE_ALL=1` that is an error.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{c_programs, chromium, node, python};

const REQUIRE_ALL: &str = "KILLPOINT_REQUIRE_ALL";

/// The folders in which things are made ready.
pub(super) struct Folders {
    /// The examples, each in a folder of its own.
    pub(super) examples: PathBuf,
    /// The clients for other languages, each in a folder of its own.
    pub(super) clients: PathBuf,
    /// The tests of the HTML report in a browser.
    pub(super) browser: PathBuf,
    /// Where everything made ready lies.
    pub(super) prepared: PathBuf,
}

impl Folders {
    fn below(root: &Path) -> Result<Self> {
        let prepared = root.join("target/test-env");
        std::fs::create_dir_all(&prepared).with_context(|| format!("creating {}", prepared.display()))?;
        Ok(Self {
            examples: root.join("examples"),
            clients: root.join("harness/clients"),
            browser: root.join("reports/tests/browser"),
            prepared,
        })
    }
}

/// A variable for the tests, or why there is none.
pub(super) enum Prepared {
    Ready(Vec<(&'static str, OsString)>),
    Missing { tests: &'static str, why: String },
}

/// The variables for the tests.
#[derive(Default)]
pub(crate) struct Environment(Vec<(&'static str, OsString)>);

impl Environment {
    pub(super) fn prepare(root: &Path) -> Result<Self> {
        let folders = Folders::below(root)?;
        let is_all_required = std::env::var_os(REQUIRE_ALL).is_some_and(|value| value == "1");
        let prepared = [
            python::prepare(&folders)?,
            node::prepare(&folders)?,
            chromium::prepare(),
            c_programs::prepare(&folders)?,
        ];
        Self::collect(prepared, is_all_required)
    }

    /// Only what a browser needs. A missing one is an error.
    pub(crate) fn of_browser(root: &Path) -> Result<Self> {
        Self::collect([node::prepare_browser(&Folders::below(root)?)?, chromium::prepare()], true)
    }

    fn collect(prepared: impl IntoIterator<Item = Prepared>, is_all_required: bool) -> Result<Self> {
        let mut variables = Vec::new();
        for prepared in prepared {
            match prepared {
                Prepared::Ready(ready) => variables.extend(ready),
                Prepared::Missing { tests, why } if is_all_required => {
                    bail!("{tests} tests cannot run: {why}; install it, or unset {REQUIRE_ALL}")
                }
                Prepared::Missing { tests, why } => println!("skipped: {tests} tests: {why}"),
            }
        }
        Ok(Self(variables))
    }

    /// What one of the variables holds.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(one, _)| *one == name).map(|(_, value)| value.as_os_str())
    }

    /// Sets the variables for a command that runs tests.
    pub(crate) fn give_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Files of the examples, one folder deep, that are wanted by their name; in order.
pub(super) fn files_of_examples(folders: &Folders, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if !folders.examples.exists() {
        return Ok(files);
    }
    let list =
        |folder: &Path| std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()));
    for example in list(&folders.examples)? {
        let example = example?.path();
        if example.is_dir() {
            for file in list(&example)? {
                files.push(file?.path());
            }
        }
    }
    files.retain(|file| file.is_file() && wanted(file));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> Prepared {
        Prepared::Missing { tests: "Cobol", why: "no `cobc` on the PATH".to_owned() }
    }

    #[test]
    fn what_is_missing_skips_unless_all_is_required() {
        let ready = || Prepared::Ready(vec![("A", "b".into())]);
        let environment = Environment::collect([missing(), ready()], false).unwrap();
        assert_eq!(environment.0, [("A", OsString::from("b"))]);
        let error = Environment::collect([ready(), missing()], true).err().unwrap().to_string();
        assert_eq!(
            error,
            "Cobol tests cannot run: no `cobc` on the PATH; install it, or unset KILLPOINT_REQUIRE_ALL"
        );
    }

    #[test]
    fn files_of_examples_are_found_one_folder_deep() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders {
            examples: root.path().join("examples"),
            clients: root.path().into(),
            browser: root.path().into(),
            prepared: root.path().into(),
        };
        let find = |name: &str| files_of_examples(&folders, |file| file.ends_with(name)).unwrap();
        assert!(find("package.json").is_empty());
        for folder in ["b", "a", "a/node_modules/c"] {
            std::fs::create_dir_all(folders.examples.join(folder)).unwrap();
            std::fs::write(folders.examples.join(folder).join("package.json"), "{}").unwrap();
        }
        let expected = ["a", "b"].map(|folder| folders.examples.join(folder).join("package.json"));
        assert_eq!(find("package.json"), expected);
    }
}
