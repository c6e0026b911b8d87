//! The bytes of a database's files on which SQLite's connections meet, locked as another connection would.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

/// A range of bytes, as (start, length).
pub(super) type Range = (i64, i64);

/// In the database file: held shared by every connection that reads, or has a log open.
pub(super) const SHARED: Range = (0x4000_0002, 510);
/// In the database file: held by the one that is going to write, where there is no log.
pub(super) const RESERVED: Range = (0x4000_0001, 1);
/// In the log's index: held by the one that writes to the log.
pub(super) const WAL_WRITE: Range = (120, 1);
/// In the log's index: held shared by each connection that has a snapshot.
pub(super) const WAL_READ: Range = (123, 5);
/// In the log's index: held shared by each connection that has the index open.
pub(super) const WAL_OPEN: Range = (128, 1);

fn flock(kind: i32, (start, length): Range) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

/// Takes a lock that lasts as long as the file is open; `false` where somebody has one in its way.
pub(super) fn take(file: &File, range: Range, exclusive: bool) -> io::Result<bool> {
    let wanted = flock(if exclusive { libc::F_WRLCK } else { libc::F_RDLCK }, range);
    match fcntl(file, FcntlArg::F_OFD_SETLK(&wanted)) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether anybody else has a lock there.
pub(super) fn is_held(file: &File, range: Range) -> io::Result<bool> {
    let mut found = flock(libc::F_WRLCK, range);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}
