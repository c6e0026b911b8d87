//! What a test needs of the machine, and where it was made ready.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a test needs of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Needs {
    Python,
    Node,
    Curl,
    Compiler,
}

impl Needs {
    /// The PATH on which it is found; `None` where it is missing, which is said, and an error where all is required.
    #[expect(clippy::print_stdout, reason = "a test that skips says so")]
    pub(crate) fn path(self, test: &str) -> Option<OsString> {
        match self.folder() {
            Ok(folder) => Some(path_with(folder)),
            Err(missing) => {
                let all = std::env::var_os("KILLPOINT_REQUIRE_ALL").is_some_and(|value| value == "1");
                assert!(
                    !all,
                    "{missing} is missing; run `cargo xtask test`, which prepares what can be prepared"
                );
                println!("skipped: {test}: {missing} is missing; run `cargo xtask test`");
                None
            }
        }
    }

    /// A folder to put in front of the PATH, or what is missing.
    fn folder(self) -> Result<Option<PathBuf>, &'static str> {
        let prepared = |variable: &'static str| std::env::var_os(variable).map(PathBuf::from).ok_or(variable);
        match self {
            Self::Python => Ok(prepared("KILLPOINT_TEST_PYTHON")?.parent().map(Path::to_owned)),
            Self::Node => Ok(prepared("KILLPOINT_TEST_NODE")?.parent().map(Path::to_owned)),
            Self::Compiler => prepared("KILLPOINT_TEST_BIN").map(|_| None),
            Self::Curl => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let found = std::env::split_paths(&path).any(|folder| folder.join("curl").is_file());
                if found { Ok(None) } else { Err("the program `curl`") }
            }
        }
    }
}

/// The PATH with more folders in front.
pub(crate) fn path_with(folders: impl IntoIterator<Item = PathBuf>) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path))).unwrap()
}
