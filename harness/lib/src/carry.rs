//! Carries a trial's folder from one run to another, file by file: nothing is held in memory.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::error::RunError;

/// Copies a trial's folder. Gives what could not be copied, apart from the history, without which a trial is none.
///
/// # Errors
/// The history is not there or can't be copied, or the new folder can't be made.
pub(crate) fn carry(from: &Path, to: &Path) -> Result<Vec<PathBuf>, RunError> {
    let history = Path::new("history.jsonl");
    let fail = |path: PathBuf| move |error| RunError::File { path, error };
    if !from.join(history).is_file() {
        let why = "it is not there: was the shard's folder copied whole?".to_owned();
        return Err(RunError::BadRun { path: from.join(history), why });
    }
    fs::create_dir(to).map_err(fail(to.to_owned()))?;
    fs::copy(from.join(history), to.join(history)).map_err(fail(from.join(history)))?;
    let mut lost = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(from.join(&folder)) else {
            lost.push(from.join(&folder));
            continue;
        };
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            if path == history {
                continue;
            }
            match copied(&from.join(&path), &to.join(&path)) {
                Ok(true) => folders.push(path),
                Ok(false) => {}
                Err(_) => lost.push(from.join(&path)),
            }
        }
    }
    lost.sort();
    Ok(lost)
}

/// Copies one entry; of a folder, which is told by `true`, only itself. A worker's sockets and pipes are left behind:
/// nobody is at their other end, and to open one could last for ever.
fn copied(from: &Path, to: &Path) -> io::Result<bool> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_dir() {
        fs::create_dir(to)?;
    } else if kind.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        fs::copy(from, to)?;
    }
    Ok(kind.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_links_are_carried_and_a_socket_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("state/deep")).unwrap();
        fs::write(from.join("history.jsonl"), "{}\n").unwrap();
        fs::write(from.join("state/deep/file"), "text").unwrap();
        symlink("/nowhere", from.join("state/link")).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(from.join("state/socket")).unwrap();
        assert_eq!(carry(&from, &to).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(fs::read_to_string(to.join("state/deep/file")).unwrap(), "text");
        assert_eq!(fs::read_to_string(to.join("history.jsonl")).unwrap(), "{}\n");
        assert_eq!(fs::read_link(to.join("state/link")).unwrap(), Path::new("/nowhere"));
        assert!(!to.join("state/socket").exists());
    }

    #[test]
    fn a_trial_without_its_history_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        let refused = carry(&from, &to).unwrap_err().to_string();
        assert!(refused.contains("from/history.jsonl") && refused.contains("copied whole"), "{refused}");
        assert!(!to.exists());
    }
}
