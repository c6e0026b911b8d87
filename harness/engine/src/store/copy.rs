//! The state directory, remembered and put back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::StoreError;
use crate::state::copy_tree;

/// Where a trial remembers its state directory.
pub(crate) fn remembered(folder: &Path) -> PathBuf {
    folder.join("state-copy")
}

/// Remembers a state directory as it is, in place of what was remembered before. Nobody may write meanwhile.
///
/// # Errors
/// What the file system says.
pub(crate) fn remember(state: &Path, folder: &Path) -> Result<(), StoreError> {
    replace_with_copy(state, &remembered(folder)).map_err(StoreError::io("copying the state directory"))
}

/// Puts back what was remembered, in place of all that is in the state directory; the directory itself stays.
///
/// # Errors
/// A refusal where nothing was remembered.
pub(crate) fn restore(state: &Path, folder: &Path) -> Result<(), StoreError> {
    let copy = remembered(folder);
    if !copy.is_dir() {
        return Err(StoreError::refused("no copy was remembered: put a `store-copy` at an earlier hit"));
    }
    empty(state)
        .and_then(|()| copy_tree(&copy, state))
        .map_err(StoreError::io("restoring the state directory"))
}

/// Makes a state directory for a second instance: of what was remembered, or else of the state as it is.
/// Returns it, and whether a remembered one was taken.
///
/// # Errors
/// What the file system says.
pub(crate) fn second_instance(state: &Path, folder: &Path) -> Result<(PathBuf, bool), StoreError> {
    let (copy, second) = (remembered(folder), folder.join("state-second"));
    let is_remembered = copy.is_dir();
    let source = if is_remembered { &copy } else { state };
    replace_with_copy(source, &second).map_err(StoreError::io("copying the state directory"))?;
    Ok((second, is_remembered))
}

fn replace_with_copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    copy_tree(from, to)
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_restored_is_exactly_what_was_remembered() {
        let trial = tempfile::tempdir().unwrap();
        let state = trial.path().join("state");
        fs::create_dir_all(state.join("deep")).unwrap();
        fs::write(state.join("deep/a"), "old").unwrap();
        assert!(matches!(restore(&state, trial.path()), Err(StoreError::Refused(_))));
        remember(&state, trial.path()).unwrap();
        fs::write(state.join("deep/a"), "new").unwrap();
        fs::write(state.join("later"), "x").unwrap();
        assert!(second_instance(&state, trial.path()).unwrap().1);
        restore(&state, trial.path()).unwrap();
        assert_eq!(fs::read_to_string(state.join("deep/a")).unwrap(), "old");
        assert!(!state.join("later").exists());
        fs::write(state.join("later"), "x").unwrap();
        remember(&state, trial.path()).unwrap();
        let (second, _) = second_instance(&state, trial.path()).unwrap();
        assert!(second.join("later").exists(), "the last one is remembered");
    }
}
