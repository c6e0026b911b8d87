//! What the kernel knows about a file beyond its bytes: the immutable attribute, and which pages are not on
//! disk yet.

use std::fs::File;
use std::mem::zeroed;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

/// `chattr +i`: nobody can change, rename or delete it, root included.
const IMMUTABLE: libc::c_long = 0x10;

/// The number is the same on every architecture that we run on.
const SYS_CACHESTAT: libc::c_long = 451;

/// What `cachestat` is asked about.
#[repr(C)]
struct CacheRange {
    start: u64,
    length: u64,
}

/// What it answers, in pages.
#[repr(C)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    in_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Makes a file or directory immutable, or no longer so. Returns whether it was before.
pub(crate) fn set_immutable(file: &File, immutable: bool) -> Result<bool, Errno> {
    let mut flags: libc::c_long = 0;
    // SAFETY: the request reads the attributes into a local that is at least as large as the kernel writes.
    Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) })?;
    let before = flags & IMMUTABLE != 0;
    let wanted = if immutable { flags | IMMUTABLE } else { flags & !IMMUTABLE };
    if wanted != flags {
        // SAFETY: the request takes the attributes from a local.
        Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const wanted) })?;
    }
    Ok(before)
}

/// How many pages of a range were written and are not on their way to the disk yet (Linux 6.5). File systems
/// in memory never have any, and overlays do not show those of the file below.
pub(crate) fn dirty_pages(file: &File, start: u64, length: u64) -> Result<u64, Errno> {
    let range = CacheRange { start, length };
    // SAFETY: an all-zero answer is a valid one.
    let mut answer: CacheStat = unsafe { zeroed() };
    // SAFETY: both structures are laid out as the kernel's and live for the call; the last word is no flags.
    let outcome =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut answer, 0_u32) };
    Errno::result(outcome)?;
    Ok(answer.dirty)
}
