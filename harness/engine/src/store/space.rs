//! A state directory on a file system of its own, whose size is what is in it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use super::StoreError;
use crate::trial::ActiveFault;

/// What the state may grow to while nothing is done to it. It takes memory only as it is filled.
const SIZE_MAX_BYTES: u64 = 1 << 30;

const FLAGS: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
const NONE: Option<&str> = None;

/// A file system in memory over the state directory, for as long as a trial lasts.
#[derive(Debug)]
pub(crate) struct Mount {
    path: PathBuf,
    mounted: bool,
}

impl Mount {
    /// Mounts it over a directory, which is made where it is not there.
    ///
    /// # Errors
    /// Why that can't be done here, and what to do.
    pub(crate) fn over(path: &Path) -> Result<Self, String> {
        fs::create_dir_all(path).map_err(|error| format!("making {}: {error}", path.display()))?;
        let data = format!("size={SIZE_MAX_BYTES},mode=0700");
        mount(Some("killpoint-state"), path, Some("tmpfs"), FLAGS, Some(data.as_str())).map_err(|errno| {
            format!(
                "a file system with a limited size can't be mounted ({errno}); run as root with the capability \
                 SYS_ADMIN, or within `unshare --user --map-root-user --mount`"
            )
        })?;
        // Where mounts are shared with other namespaces, unmounting is, too: making it private would leave theirs.
        Ok(Self { path: path.to_owned(), mounted: true })
    }

    /// Takes it away, and leaves its content in the directory below for whoever reads the trial later.
    fn unmount(&self) -> io::Result<()> {
        let kept = self.path.with_extension("kept");
        let copied = crate::state::copy_tree(&self.path, &kept);
        umount2(&self.path, MntFlags::MNT_DETACH)?;
        copied?;
        fs::remove_dir(&self.path)?;
        fs::rename(&kept, &self.path)
    }
}

impl ActiveFault for Mount {
    fn name(&self) -> &'static str {
        "store-no-space"
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }

    fn is_over(&self, _now: Instant) -> bool {
        false
    }

    fn is_set_up(&self) -> bool {
        true
    }

    fn end(&mut self) -> String {
        if !std::mem::take(&mut self.mounted) {
            return "the file system with a size is gone".into();
        }
        match self.unmount() {
            Ok(()) => "the file system with a size is gone".into(),
            Err(error) => format!("the file system with a size: {error}"),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.end();
    }
}

/// No space left, for a time.
#[derive(Debug)]
pub(crate) struct Full {
    path: PathBuf,
    until: Instant,
    begun: bool,
}

fn resize(path: &Path, bytes: u64) -> Result<(), Errno> {
    let data = format!("size={bytes}");
    mount(NONE, path, NONE, FLAGS | MsFlags::MS_REMOUNT, Some(data.as_str()))
}

/// Bytes in use on our own file system at this path; `None` where there is none of ours.
fn used_bytes(path: &Path) -> io::Result<Option<u64>> {
    let stat = statfs(path)?;
    let parent = path.parent().unwrap_or(path);
    let is_mount = fs::metadata(path)?.dev() != fs::metadata(parent)?.dev();
    let used = stat.blocks().saturating_sub(stat.blocks_free()) * stat.block_size() as u64;
    Ok((is_mount && stat.filesystem_type() == TMPFS_MAGIC).then_some(used))
}

impl Full {
    /// From now on, nothing can be added to what is in the state directory. What is there can be overwritten.
    ///
    /// # Errors
    /// A refusal where the directory is not on a file system of its own, or is empty.
    pub(crate) fn begin(path: &Path, until: Instant) -> Result<Self, StoreError> {
        let looking = StoreError::io(format!("looking at {}", path.display()));
        let used = used_bytes(path).map_err(looking)?.ok_or_else(|| {
            StoreError::refused(
                "the state directory is not on a file system of its own, so it can't be filled alone",
            )
        })?;
        if used == 0 {
            return Err(StoreError::refused("the state directory is empty here"));
        }
        resize(path, used)
            .map_err(|errno| StoreError::io(format!("filling {}", path.display()))(errno.into()))?;
        Ok(Self { path: path.to_owned(), until, begun: true })
    }
}

impl ActiveFault for Full {
    fn name(&self) -> &'static str {
        "store-no-space"
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    fn end(&mut self) -> String {
        if !std::mem::take(&mut self.begun) {
            return "there is space again".into();
        }
        match resize(&self.path, SIZE_MAX_BYTES) {
            Ok(()) => "there is space again".into(),
            Err(errno) => format!("there is still no space: {errno}"),
        }
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_full_state_directory_takes_nothing_more_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let until = Instant::now() + Duration::from_secs(60);
        let mut mounted = match Mount::over(&state) {
            Ok(mounted) => mounted,
            Err(why) => return assert!(why.contains("SYS_ADMIN"), "{why}"),
        };
        assert!(matches!(Full::begin(&state, until), Err(StoreError::Refused(why)) if why.contains("empty")));
        fs::write(state.join("first"), [1; 10_000]).unwrap();
        let mut full = Full::begin(&state, until).unwrap();
        let error = fs::write(state.join("second"), [1; 10_000]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(full.end(), "there is space again");
        fs::write(state.join("second"), [1; 10_000]).unwrap();
        assert_eq!(mounted.end(), mounted.end());
        assert!(used_bytes(&state).unwrap().is_none());
        assert_eq!(fs::read(state.join("second")).unwrap(), [1; 10_000], "the content stays");
        assert!(
            matches!(Full::begin(&state, until), Err(StoreError::Refused(why)) if why.contains("of its own"))
        );
        drop(Mount::over(&state).unwrap());
        assert!(used_bytes(&state).unwrap().is_none(), "nothing stays mounted");
    }
}
