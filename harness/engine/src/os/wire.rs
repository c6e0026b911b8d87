//! The messages between harness and init, and a worker's plan laid out in memory.
//!
//! Everything here that the init runs makes system calls only: it allocates nothing and takes no lock.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::mem::{size_of, zeroed};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::error::OsError;

/// One message: its kind, the number of the request it belongs to, and numbers.
pub(super) type Words = [i32; 8];

/// At most this many descriptors travel with one message.
pub(super) const DESCRIPTORS_MAX: usize = 4;

/// To the init. `[SPAWN, request, length of the image]` with image, stdout and stderr.
pub(super) const SPAWN: i32 = 1;
/// To the init. `[SIGNAL, request, signal]`: to every process of the namespace.
pub(super) const SIGNAL: i32 = 2;
/// To the init. `[ARM, request]`: deaths by SIGKILL from now on are ours.
pub(super) const ARM: i32 = 3;
/// To the init. `[KILL, request]`: kill all, answer when nothing is left.
pub(super) const KILL: i32 = 4;

/// To the init. As `SPAWN`, with a fourth descriptor: just before its `exec` the worker waits for a byte from it.
pub(super) const SPAWN_GATED: i32 = 5;

/// From the init. `[READY, 0, errno of: private mounts, own /proc, pid_max, ns_last_pid]`.
pub(super) const READY: i32 = 11;
/// From the init. `[FAILED, 0, step, errno]`: it could not set itself up and is gone.
pub(super) const FAILED: i32 = 12;
/// From a worker just before its `exec`. `[BORN, request]`; the kernel adds its process id.
pub(super) const BORN: i32 = 13;
/// From the init. `[SPAWNED, request, pid inside, errno, step]`, with a pidfd where errno is 0.
pub(super) const SPAWNED: i32 = 14;
/// From the init. `[EXITED, 0, pid inside, wait status]`: of any child, adopted ones too.
pub(super) const EXITED: i32 = 15;
/// From the init. `[EMPTIED, 0]`: no process is left below it.
pub(super) const EMPTIED: i32 = 16;
/// From the init. `[DONE, request, errno]`.
pub(super) const DONE: i32 = 17;
/// From the init. `[KILLED, request, reaped, of these by our SIGKILL]`: nothing is left.
pub(super) const KILLED: i32 = 18;

/// What came in one message.
pub(super) struct Received {
    pub(super) words: Words,
    pub(super) fds: [RawFd; DESCRIPTORS_MAX],
    pub(super) fds_len: usize,
    /// The sender's process id in our namespace; 0 unless the socket asks for credentials.
    pub(super) sender_pid: i32,
}

/// Room for the largest ancillary data we use, aligned as `cmsghdr` needs it.
type Control = [u64; 16];

/// Sends one message. Errors are returned as they are; EPIPE means the other side is gone.
pub(super) fn send(socket: RawFd, words: &Words, fds: &[RawFd]) -> Result<(), Errno> {
    let mut control: Control = [0; 16];
    let mut iov = libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: size_of::<Words>() };
    // SAFETY: an all-zero msghdr is a valid, empty one.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut iov;
    header.msg_iovlen = 1;
    if !fds.is_empty() {
        let bytes = size_of_val(fds);
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE and CMSG_LEN only compute; `control` holds DESCRIPTORS_MAX descriptors, so the
        // first header exists and its data has room for `bytes`.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(bytes as u32) as _;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(bytes as u32) as _;
            std::ptr::copy_nonoverlapping(fds.as_ptr().cast::<u8>(), libc::CMSG_DATA(first), bytes);
        }
    }
    loop {
        // SAFETY: every pointer in `header` is to a local that lives until the call returns.
        if unsafe { libc::sendmsg(socket, &raw const header, libc::MSG_NOSIGNAL) } >= 0 {
            return Ok(());
        }
        let errno = Errno::last();
        if errno != Errno::EINTR {
            return Err(errno);
        }
    }
}

/// Waits for one message; `None` when the other side is gone.
pub(super) fn receive(socket: RawFd) -> Result<Option<Received>, Errno> {
    let mut received = Received { words: [0; 8], fds: [-1; DESCRIPTORS_MAX], fds_len: 0, sender_pid: 0 };
    let mut control: Control = [0; 16];
    let mut iov = libc::iovec { iov_base: received.words.as_mut_ptr().cast(), iov_len: size_of::<Words>() };
    // SAFETY: an all-zero msghdr is a valid, empty one.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut iov;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>() as _;
    let length = loop {
        // SAFETY: every pointer in `header` is to a local that lives until the call returns.
        let length = unsafe { libc::recvmsg(socket, &raw mut header, libc::MSG_CMSG_CLOEXEC) };
        if length >= 0 {
            break length;
        }
        match Errno::last() {
            Errno::EINTR => {}
            Errno::ECONNRESET => break 0,
            errno => return Err(errno),
        }
    };
    if length == 0 {
        return Ok(None);
    }
    // SAFETY: the kernel filled `control`; the CMSG functions stay inside of it.
    let mut item = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !item.is_null() {
        // SAFETY: `item` is not null, so it points at a whole header inside `control`.
        unsafe { take(item, &mut received) };
        // SAFETY: as above.
        item = unsafe { libc::CMSG_NXTHDR(&raw const header, item) };
    }
    Ok(Some(received))
}

/// Takes descriptors or credentials out of one ancillary item.
///
/// # Safety
/// `item` must point at a header that the kernel filled, with its data behind it.
#[allow(clippy::unnecessary_cast, reason = "the length is a u32 in other C libraries")]
unsafe fn take(item: *const libc::cmsghdr, received: &mut Received) {
    // SAFETY: by the contract, header and data are readable; reads are unaligned-safe and the number of
    // descriptors is bounded by the array.
    unsafe {
        if (*item).cmsg_level != libc::SOL_SOCKET {
            return;
        }
        let data = libc::CMSG_DATA(item);
        if (*item).cmsg_type == libc::SCM_RIGHTS {
            let bytes = ((*item).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let count = (bytes / size_of::<RawFd>()).min(DESCRIPTORS_MAX);
            std::ptr::copy_nonoverlapping(
                data,
                received.fds.as_mut_ptr().cast::<u8>(),
                count.wrapping_mul(size_of::<RawFd>()),
            );
            received.fds_len = count;
        } else if (*item).cmsg_type == libc::SCM_CREDENTIALS {
            received.sender_pid = data.cast::<libc::ucred>().read_unaligned().pid;
        }
    }
}

impl Received {
    /// Takes ownership of the descriptors. For the harness only: it allocates.
    pub(super) fn into_descriptors(self) -> (Words, Vec<OwnedFd>) {
        let fds = self.fds.iter().take(self.fds_len);
        // SAFETY: the kernel made these descriptors for us with this message, and nobody else has them.
        let fds = fds.map(|&fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect();
        (self.words, fds)
    }
}

/// Words of 8 bytes at the start of an image, before its table of offsets.
pub(super) const IMAGE_HEADER: usize = 5;

/// A worker's plan as the init maps it: `[words, pairs, program, directory, nproc limit or 0]`, then the offsets
/// of the arguments, 0, the offsets of the environment, 0, then the strings.
pub(super) struct Image {
    pub(super) memory: OwnedFd,
    pub(super) length: usize,
}

/// Lays a plan out in memory that the init can map.
pub(super) fn image<'a>(
    program: &Path,
    argv: impl ExactSizeIterator<Item = &'a OsStr>,
    env: &[Vec<u8>],
    directory: &Path,
    processes_max: Option<u64>,
) -> Result<Image, OsError> {
    let (words, pairs) = (argv.len(), env.len());
    let mut offsets: Vec<u64> = vec![words as u64, pairs as u64];
    let table = (IMAGE_HEADER + words + 1 + pairs + 1) * size_of::<u64>();
    let mut strings: Vec<u8> = Vec::new();
    let mut place = |text: &[u8]| {
        let offset = (table + strings.len()) as u64;
        strings.extend_from_slice(text);
        strings.push(0);
        offset
    };
    offsets.push(place(program.as_os_str().as_bytes()));
    offsets.push(place(directory.as_os_str().as_bytes()));
    offsets.push(processes_max.unwrap_or(0));
    offsets.extend(argv.map(|word| place(word.as_bytes())));
    offsets.push(0);
    offsets.extend(env.iter().map(|pair| place(pair)));
    offsets.push(0);

    let mut bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect();
    bytes.append(&mut strings);
    let memory = memfd_create(c"killpoint-worker", MFdFlags::MFD_CLOEXEC)
        .map_err(|errno| OsError::from_errno("making memory for a worker's command", errno))?;
    let mut file = File::from(memory);
    file.write_all(&bytes)
        .map_err(|error| OsError::from_io("writing a worker's command to memory", &error))?;
    Ok(Image { memory: file.into(), length: bytes.len() })
}
