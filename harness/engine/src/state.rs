//! The state directory of a trial: made fresh or copied, compared, and read for words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files that one state directory may have before we refuse to copy it.
const FILES_MAX: usize = 100_000;
/// Bytes that one state directory may have before we refuse to copy it.
const BYTES_MAX: u64 = 4 << 30;
/// Bytes of one file that are read for words.
const WORD_BYTES_MAX: u64 = 8 << 20;
/// Words that are kept.
const WORDS_MAX: usize = 5_000;

/// Copies a directory tree: regular files, directories and symbolic links. Sockets, pipes and devices are
/// left out: they have no content that survives a process.
///
/// # Errors
/// What the file system says, or that the tree is over the limits.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let mut budget = (FILES_MAX, BYTES_MAX);
    copy_level(from, to, &mut budget)
}

fn copy_level(from: &Path, to: &Path, budget: &mut (usize, u64)) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let target = to.join(entry.file_name());
        let left = |what: &str| io::Error::other(format!("{}: too many {what} to copy", from.display()));
        budget.0 = budget.0.checked_sub(1).ok_or_else(|| left("files"))?;
        if kind.is_dir() {
            copy_level(&entry.path(), &target, budget)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else if kind.is_file() {
            // The worker may delete a file between the listing and the copy only while it runs free.
            match copy_content(&entry.path(), &target) {
                Ok(bytes) => budget.1 = budget.1.checked_sub(bytes).ok_or_else(|| left("bytes"))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// A write-ahead log is copied in pieces of a page and reaches the disk: what we put there is not what a power
/// cut would take from the worker, and the page cache must be able to tell the two apart.
fn copy_content(from: &Path, to: &Path) -> io::Result<u64> {
    if !from.to_string_lossy().ends_with("-wal") {
        return fs::copy(from, to);
    }
    let (mut source, mut target) = (fs::File::open(from)?, fs::File::create(to)?);
    target.set_permissions(source.metadata()?.permissions())?;
    let (mut piece, mut bytes) = ([0; 4096], 0);
    loop {
        let length = source.read(&mut piece)?;
        if length == 0 {
            target.sync_data()?;
            return Ok(bytes);
        }
        target.write_all(&piece[..length])?;
        bytes += length as u64;
    }
}

/// Copies one file for our own use: the copy can be written whatever the original's permissions are.
pub(crate) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let mut permissions = fs::metadata(to)?.permissions();
    permissions.set_mode(permissions.mode() | 0o600);
    fs::set_permissions(to, permissions)
}

/// What the files of a directory look like from outside: enough to see whether anything was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signature(BTreeMap<PathBuf, (u64, i64, i64, u64)>);

impl Signature {
    /// Reads sizes, times and inodes of some files; absent ones count as absent.
    pub fn of_files(paths: &[PathBuf]) -> Self {
        let facts = |path: &PathBuf| {
            let meta = fs::symlink_metadata(path).ok()?;
            Some((path.clone(), (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino())))
        };
        Self(paths.iter().filter_map(facts).collect())
    }

    /// The same for a whole tree, without SQLite's shared-memory index, which is rebuilt by every reader.
    pub fn of_tree(root: &Path) -> Self {
        let mut files = Vec::new();
        list_files(root, &mut files);
        files.retain(|path| !path.to_string_lossy().ends_with("-shm"));
        Self::of_files(&files)
    }
}

/// All files and directories below `root`, and `root` itself, directories after what they hold.
pub(crate) fn entries(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten().take(FILES_MAX) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(entries(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found.push(root.to_owned());
    found
}

fn list_files(root: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten().take(FILES_MAX) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list_files(&entry.path(), into),
            Ok(_) if into.len() < FILES_MAX => into.push(entry.path()),
            _ => {}
        }
    }
}

/// Words in the files below `root` that could say openly that something was not delivered: for SQLite
/// databases the text values and small numbers by table and column, for other files every word of four
/// letters or more. Compared with the baseline's, they tell "parked openly" from "silently gone" where
/// no ledger mapping is configured. `root` must be a copy.
pub fn words(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    list_files(root, &mut files);
    files.sort();
    let mut found = BTreeSet::new();
    for path in &files {
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        if ["-wal", "-shm", "-journal"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let mut head = Vec::new();
        let Ok(file) = fs::File::open(path) else { continue };
        if file.take(WORD_BYTES_MAX).read_to_end(&mut head).is_err() {
            continue;
        }
        if head.starts_with(b"SQLite format 3\0") {
            crate::ledgers::sqlite::column_words(path, &mut found);
        } else {
            text_words(&head, &mut found);
        }
        if found.len() >= WORDS_MAX {
            break;
        }
    }
    found.into_iter().take(WORDS_MAX).collect()
}

fn text_words(bytes: &[u8], found: &mut BTreeSet<String>) {
    for word in bytes.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| (4..=40).contains(&word.len()))
    {
        found.insert(String::from_utf8_lossy(word).to_ascii_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_files_and_a_write_changes_the_signature() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let from = folder.path().join("from");
        fs::create_dir_all(from.join("deep/er"))?;
        fs::write(from.join("deep/er/file"), "one")?;
        std::os::unix::fs::symlink("deep", from.join("link"))?;
        let to = folder.path().join("to");
        copy_tree(&from, &to)?;
        assert_eq!(fs::read_to_string(to.join("deep/er/file"))?, "one");
        assert_eq!(fs::read_link(to.join("link"))?, Path::new("deep"));
        let before = Signature::of_tree(&to);
        fs::write(to.join("deep/er/file"), "longer")?;
        assert_ne!(Signature::of_tree(&to), before);
        Ok(())
    }

    #[test]
    fn words_of_databases_and_text_files_are_found() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let db = rusqlite::Connection::open(folder.path().join("a.db"))?;
        db.execute_batch(
            "create table q (state text, code int); insert into q values ('delivery_unknown', 3)",
        )?;
        drop(db);
        fs::write(folder.path().join("journal.json"), r#"{"status":"parked"}"#)?;
        let found = words(folder.path());
        assert!(found.contains(&"q.state=delivery_unknown".to_owned()), "{found:?}");
        assert!(found.contains(&"q.code=3".to_owned()), "{found:?}");
        assert!(found.contains(&"parked".to_owned()), "{found:?}");
        Ok(())
    }
}
