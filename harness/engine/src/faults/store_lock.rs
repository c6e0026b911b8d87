//! A lock file of a dead owner is left behind.

use std::fs;
use std::path::{Component, Path};

use killpoint_model::Entry;

use super::{Applying, Fault, Parameters};
use crate::parameters::known_only;
use crate::store::target::{NOBODY_LEFT, begins, landed, missed, refusal};
use crate::store::{StoreError, on_files};
use crate::trial::Trial;

/// The file unless told otherwise.
const FILE_DEFAULT: &str = "worker.pid";
/// The highest process id that Linux can give, which is in use nowhere.
const DEAD_PID: &str = "4194303\n";

/// The `store-lock` fault.
#[derive(Debug)]
pub(super) struct StoreLock;

static ENTRY: Entry = Entry {
    name: "store-lock",
    summary: "kills the workers and leaves a lock file behind whose owner is dead",
    explanation: "A pid file, a lock file or a lease file of an owner that can't give it back any more. `file` names it below the \
        state directory; it gets `text`, or else the id of a process that does not exist. One that the dead worker itself left \
        is not touched. The next life must see that the owner is gone and go on. Locks in rows need no fault of their own: a \
        `kill` after the claim leaves them behind.",
    example: "[[fault]]\nat = \"mark:item-claimed#1\"\ndo = \"store-lock\"\nwith = { file = \"worker.pid\" }",
};

fn text<'w>(with: &'w Parameters, name: &str, default: &'w str) -> Result<&'w str, String> {
    let Some(value) = with.get(name) else { return Ok(default) };
    value.as_str().ok_or_else(|| format!("`{name}`: a text is needed"))
}

fn file(with: &Parameters) -> Result<&str, String> {
    let file = text(with, "file", FILE_DEFAULT)?;
    let mut parts = Path::new(file).components().peekable();
    let stays_below = parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)));
    if stays_below { Ok(file) } else { Err("`file`: a path below the state directory is needed".into()) }
}

impl Fault for StoreLock {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["file", "text"])?;
        text(with, "text", DEAD_PID)?;
        file(with).map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let path = trial.state_dir().join(file(with).unwrap_or(FILE_DEFAULT));
            let content = text(with, "text", DEAD_PID).unwrap_or(DEAD_PID).to_owned();
            if !trial.kill(0).await? {
                return Ok(missed(NOBODY_LEFT));
            }
            if path.exists() {
                begins(trial, ENTRY.name, &path, "the dead worker left it itself");
                return Ok(landed("killed; the worker's own lock file is left behind"));
            }
            let target = path.clone();
            let write = move || {
                let folder = target.parent().map_or(Ok(()), fs::create_dir_all);
                folder
                    .and_then(|()| fs::write(&target, content))
                    .map_err(|error| StoreError::Io { doing: format!("writing {}", target.display()), error })
            };
            match on_files(write).await {
                Ok(()) => {
                    begins(trial, ENTRY.name, &path, "left behind by an owner that is dead");
                    Ok(landed("killed; a dead owner's lock file is left behind"))
                }
                Err(error) => refusal(error),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_stays_below_the_state_directory() {
        let check = |file: &str| StoreLock.check(&[("file".to_owned(), file.into())].into());
        assert_eq!(check("locks/worker.lock"), Ok(()));
        for file in ["", "/etc/passwd", "../up", "a/../../up"] {
            assert!(check(file).is_err_and(|why| why.contains("below")), "{file}");
        }
    }
}
