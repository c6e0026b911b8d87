//! Files that can't be written until their time is over.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::StoreError;
use crate::os::set_immutable;
use crate::trial::ActiveFault;

/// Permission bits that let somebody write.
const WRITE_BITS: u32 = 0o222;

/// What must be undone for one file.
#[derive(Debug)]
enum Undo {
    Mode(PathBuf, u32),
    Attribute(PathBuf),
}

impl Undo {
    fn run(&self) -> io::Result<()> {
        match self {
            Self::Mode(path, mode) => fs::set_permissions(path, fs::Permissions::from_mode(*mode)),
            Self::Attribute(path) => {
                set_immutable(&File::open(path)?, false).map(drop).map_err(io::Error::from)
            }
        }
    }
}

/// Some files, read-only for a time.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    path: PathBuf,
    until: Instant,
    undo: Vec<Undo>,
}

impl ReadOnly {
    /// Makes files read-only: by their permissions, and for root, whom these do not bind, by the immutable
    /// attribute. Nobody may have them open, because permissions bind only who opens later. `path` is what
    /// the record names.
    ///
    /// # Errors
    /// A refusal where this machine can't do it; nothing is left changed then.
    pub(crate) fn begin(path: &Path, files: &[PathBuf], until: Instant) -> Result<Self, StoreError> {
        if files.is_empty() {
            return Err(StoreError::refused(format!("there is no file at {} yet", path.display())));
        }
        let by_attribute = nix::unistd::geteuid().is_root();
        let mut begun = Self { path: path.to_owned(), until, undo: Vec::new() };
        for file in files {
            let locked = if by_attribute { begun.freeze(file) } else { begun.forbid(file) };
            locked.and_then(|()| verify(file)).map_err(refused)?;
        }
        Ok(begun)
    }

    fn forbid(&mut self, file: &Path) -> io::Result<()> {
        let mode = fs::metadata(file)?.permissions().mode();
        self.undo.push(Undo::Mode(file.to_owned(), mode));
        fs::set_permissions(file, fs::Permissions::from_mode(mode & !WRITE_BITS))
    }

    fn freeze(&mut self, file: &Path) -> io::Result<()> {
        if !set_immutable(&File::open(file)?, true)? {
            self.undo.push(Undo::Attribute(file.to_owned()));
        }
        Ok(())
    }
}

fn refused(error: io::Error) -> StoreError {
    StoreError::refused(format!(
        "files can't be made read-only here ({error}); run as an ordinary user, or, as root, with the capability \
         LINUX_IMMUTABLE (a container's --cap-add) on a file system that has the attribute, such as ext4 or xfs"
    ))
}

/// Tries what must not work.
fn verify(file: &Path) -> io::Result<()> {
    if file.is_dir() || OpenOptions::new().append(true).open(file).is_err() {
        return Ok(());
    }
    Err(io::Error::other("it can still be opened for writing"))
}

impl ActiveFault for ReadOnly {
    fn name(&self) -> &'static str {
        "store-read-only"
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    fn end(&mut self) -> String {
        // What is gone meanwhile needs no undoing.
        let failed: Vec<String> = self
            .undo
            .drain(..)
            .rev()
            .filter_map(|undo| undo.run().err().filter(|error| error.kind() != io::ErrorKind::NotFound))
            .map(|error| error.to_string())
            .collect();
        if failed.is_empty() {
            "writable again".into()
        } else {
            format!("left read-only: {}", failed.join("; "))
        }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn files_can_not_be_written_until_it_ends_or_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("l.db");
        fs::write(&file, "one").unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let begin = || ReadOnly::begin(&file, std::slice::from_ref(&file), until);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        let mut active = match begin() {
            Ok(active) => active,
            Err(StoreError::Refused(why)) => return assert!(why.contains("LINUX_IMMUTABLE"), "{why}"),
            Err(error) => panic!("{error}"),
        };
        assert!(fs::write(&file, "two").is_err() && fs::read_to_string(&file).unwrap() == "one");
        assert_eq!(active.end(), "writable again");
        assert_eq!(active.end(), "writable again");
        fs::write(&file, "two").unwrap();
        let dropped = begin().unwrap();
        assert!(fs::write(&file, "three").is_err());
        drop(dropped);
        fs::write(&file, "three").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode(), mode);
        assert!(matches!(ReadOnly::begin(&file, &[], until), Err(StoreError::Refused(_))));
    }
}
