//! What this machine permits, tried by the means of the faults themselves on files of our own.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Instant;

use nix::sys::statvfs::statvfs;

use crate::os::dirty_pages;
use crate::store::read_only::ReadOnly;
use crate::store::space::Mount;
use crate::trial::ActiveFault;

/// Bytes that are written to see whether they can be.
const WRITTEN_BYTES: usize = 1 << 20;

/// Whether a state directory can have a file system with a size of its own, below `folder`.
///
/// # Errors
/// Why not, and what to do.
pub fn small_file_system(folder: &Path) -> Result<(), String> {
    let mut mount = Mount::over(&folder.join("small"))?;
    let written =
        fs::write(folder.join("small/file"), "x").map_err(|error| format!("writing to it: {error}"));
    mount.end();
    written
}

/// Whether a store below `folder` can be made read-only for a time.
///
/// # Errors
/// Why not, and what to do.
pub fn read_only_store(folder: &Path) -> Result<(), String> {
    let file = folder.join("read-only");
    fs::write(&file, "x").map_err(|error| format!("writing a file: {error}"))?;
    let mut active = ReadOnly::begin(&file, std::slice::from_ref(&file), Instant::now())
        .map_err(|error| error.to_string())?;
    active.end();
    Ok(())
}

/// Whether the kernel shows which pages of a file below `folder` are not on the disk yet.
///
/// # Errors
/// Why not, and what to do.
pub fn unsynced_pages(folder: &Path) -> Result<(), String> {
    let help = "it needs Linux 6.5 and a run directory on a disk's file system, such as ext4 or xfs";
    let path = folder.join("unsynced");
    fs::write(&path, vec![7; 4096]).map_err(|error| format!("writing a file: {error}"))?;
    let file = File::open(&path).map_err(|error| format!("opening a file: {error}"))?;
    match dirty_pages(&file, 0, 4096) {
        Ok(0) => Err(format!("a page that was just written is not shown as unsynced; {help}")),
        Ok(_) => Ok(()),
        Err(errno) => Err(format!("the kernel does not show unsynced pages ({errno}); {help}")),
    }
}

/// Writes to `folder` and reaches the disk; gives the bytes that are free there for us.
///
/// # Errors
/// What the file system says.
pub fn free_bytes(folder: &Path) -> Result<u64, String> {
    let path = folder.join("written");
    let file = fs::write(&path, vec![0; WRITTEN_BYTES]).and_then(|()| File::open(&path));
    file.and_then(|file| file.sync_all())
        .map_err(|error| format!("writing {WRITTEN_BYTES} bytes: {error}"))?;
    let stat = statvfs(folder).map_err(|errno| format!("asking for free space: {errno}"))?;
    Ok(stat.blocks_available() * stat.fragment_size())
}

/// Opens a socket for marks where a trial would, and gives the length of its path.
///
/// # Errors
/// What the operating system says, with the folder.
pub fn mark_socket() -> Result<usize, String> {
    let folder = tempfile::Builder::new().prefix("killpoint-").tempdir();
    let folder =
        folder.map_err(|error| format!("making a folder in {}: {error}", std::env::temp_dir().display()))?;
    let path = folder.path().join("64-1000");
    let length = path.as_os_str().len();
    UnixListener::bind(&path).map_err(|error| {
        format!("a socket at {} ({length} bytes, 107 are allowed): {error}", path.display())
    })?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_try_gives_an_answer_and_leaves_a_folder_that_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        for tried in
            [small_file_system(folder.path()), read_only_store(folder.path()), unsynced_pages(folder.path())]
        {
            assert!(tried.as_ref().map_or_else(|why| why.len() > 20, |()| true), "{tried:?}");
        }
        assert!(free_bytes(folder.path()).unwrap() > 0);
        assert!(mark_socket().unwrap() > 10);
        folder.close().unwrap();
    }
}
