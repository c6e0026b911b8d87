//! System calls that have no safe wrapper in the crates we use.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;

/// Waits until one of `fds` can be read or its other side is gone; says which. All `false` after `limit`.
pub(crate) fn wait_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    limit: Option<Duration>,
) -> Result<[bool; N], Errno> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut polled = fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    loop {
        let left_ms = deadline.map_or(-1, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
        });
        // SAFETY: the array is ours and its length is given.
        let count = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, left_ms) };
        if count >= 0 {
            return Ok(polled.map(|polled| polled.revents != 0));
        }
        let errno = Errno::last();
        if errno != Errno::EINTR {
            return Err(errno);
        }
    }
}

/// A descriptor for a process, safe against reuse of its number.
pub(super) fn pidfd_open(pid: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes two numbers; returns a new descriptor or an error.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    Errno::result(fd)?;
    // SAFETY: the call above made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Sends a signal to the process behind a pidfd.
pub(super) fn pidfd_signal(pidfd: impl AsFd, signal: i32) -> Result<(), Errno> {
    let (fd, no_info) = (pidfd.as_fd().as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: a null siginfo is allowed and means "as kill does".
    Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, 0) }).map(drop)
}

/// Lets a little time pass, for what the kernel announces nowhere: that a thread came to a stop.
pub(super) fn pause(length: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "no event exists for what is waited for; the caller rechecks"
    )]
    std::thread::sleep(length);
}
