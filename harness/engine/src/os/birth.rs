//! Between a worker's `clone` and its `exec`.
//!
//! The child shares the init's memory and the init waits (`CLONE_VFORK`), so a start costs the same however
//! large the harness is, and the child reports a failure by writing it down.

use std::ffi::{c_char, c_int, c_void};
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::ptr::null_mut;

use nix::errno::Errno;

use super::wire::{self, BORN, IMAGE_HEADER};

/// The step of a birth that failed.
pub(super) const STEP_MEMORY: i32 = 1;
/// See [`STEP_MEMORY`].
pub(super) const STEP_CLONE: i32 = 2;
/// See [`STEP_MEMORY`].
pub(super) const STEP_DIRECTORY: i32 = 3;
/// See [`STEP_MEMORY`].
pub(super) const STEP_EXEC: i32 = 4;
/// See [`STEP_MEMORY`].
pub(super) const STEP_GATE: i32 = 5;

/// The type of a limit's name differs between C libraries.
#[cfg(target_env = "musl")]
type Resource = c_int;
/// See above.
#[cfg(not(target_env = "musl"))]
type Resource = libc::__rlimit_resource_t;

/// What the child needs, and where it leaves its failure.
struct Birth {
    request: i32,
    control: RawFd,
    stdout: RawFd,
    stderr: RawFd,
    /// What a byte must come from before the worker begins; -1 for nothing.
    gate: RawFd,
    program: *const c_char,
    directory: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    processes_max: u64,
    step: c_int,
    errno: c_int,
}

/// A worker that runs.
pub(super) struct Born {
    /// Process id in the init's namespace.
    pub(super) pid: i32,
    pub(super) pidfd: RawFd,
}

/// Starts a worker from its image. Errors are the step and the errno. Runs in the init.
///
/// `stack_end` is the high end of a stack that nothing else uses.
pub(super) fn give_birth(
    request: i32,
    length: usize,
    control: RawFd,
    [image, stdout, stderr, gate]: [RawFd; wire::DESCRIPTORS_MAX],
    stack_end: *mut c_void,
) -> Result<Born, (i32, Errno)> {
    // SAFETY: a new private mapping of a descriptor that is ours; no memory of ours is touched.
    let base = unsafe {
        libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE, image, 0)
    };
    if base == libc::MAP_FAILED {
        return Err((STEP_MEMORY, Errno::last()));
    }
    // SAFETY: the mapping holds an image made by `wire::image`, and is aligned to a page.
    let mut birth = unsafe { read_image(base.cast()) };
    birth.request = request;
    birth.control = control;
    birth.stdout = stdout;
    birth.stderr = stderr;
    birth.gate = gate;
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let argument: *mut Birth = &raw mut birth;
    // SAFETY: the child runs `child` on its own stack and only until exec or exit, while we are suspended;
    // `birth` and `pidfd` outlive the call.
    let pid = unsafe { libc::clone(child, stack_end, flags, argument.cast(), &raw mut pidfd) };
    let clone_errno = Errno::last();
    // SAFETY: the child has its own copy of the memory by now, or is gone; nothing points into it any more.
    unsafe { libc::munmap(base, length) };
    if pid < 0 {
        return Err((STEP_CLONE, clone_errno));
    }
    // SAFETY: plain read of a local that the child may have written through the pointer.
    let (step, errno) = unsafe { ((*argument).step, (*argument).errno) };
    if errno == 0 {
        return Ok(Born { pid, pidfd });
    }
    // SAFETY: reaps exactly this child, which exits without delay, and closes a descriptor of ours.
    unsafe {
        while libc::waitpid(pid, null_mut(), 0) < 0 && Errno::last() == Errno::EINTR {}
        libc::close(pidfd);
    }
    Err((step, Errno::from_raw(errno)))
}

/// Turns the offsets of an image into pointers, in place.
///
/// # Safety
/// `base` must be the start of a private, writable mapping of a whole image made by `wire::image`.
unsafe fn read_image(base: *mut u64) -> Birth {
    // SAFETY: by the contract all offsets lie inside the image, and the table has words + pairs + 2 entries.
    unsafe {
        let (words, pairs) = (*base as usize, *base.add(1) as usize);
        let text = |offset: u64| base.cast::<c_char>().add(offset as usize).cast_const();
        let table = base.add(IMAGE_HEADER);
        for index in 0..words.wrapping_add(pairs).wrapping_add(2) {
            let entry = table.add(index);
            if *entry != 0 {
                *entry = text(*entry) as u64;
            }
        }
        Birth {
            request: 0,
            control: -1,
            stdout: -1,
            stderr: -1,
            gate: -1,
            program: text(*base.add(2)),
            directory: text(*base.add(3)),
            argv: table.cast(),
            envp: table.add(words.wrapping_add(1)).cast(),
            processes_max: *base.add(4),
            step: 0,
            errno: 0,
        }
    }
}

/// Runs in the worker's process until it becomes the worker.
extern "C" fn child(argument: *mut c_void) -> c_int {
    let birth: *mut Birth = argument.cast();
    // SAFETY: `argument` is the Birth of `give_birth`, whose thread is suspended until we exec or exit, so we
    // are alone with it. All calls are system calls on memory that lives in the shared mapping.
    unsafe {
        // The kernel adds our process id as the harness sees it. A harness that is gone is noticed by the init.
        let _ = wire::send((*birth).control, &[BORN, (*birth).request, 0, 0, 0, 0, 0, 0], &[]);
        if (*birth).gate >= 0 && !passes((*birth).gate) {
            (*birth).errno = libc::EPERM;
            (*birth).step = STEP_GATE;
            libc::_exit(127)
        }
        libc::setsid();
        libc::dup2((*birth).stdout, 1);
        libc::dup2((*birth).stderr, 2);
        close_from(3);
        limit(libc::RLIMIT_CORE, 0);
        if (*birth).processes_max > 0 {
            limit(libc::RLIMIT_NPROC, (*birth).processes_max);
        }
        let step = if libc::chdir((*birth).directory) < 0 {
            STEP_DIRECTORY
        } else {
            // The init blocks every signal; its dispositions are the default ones already.
            let mut none: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
            libc::execve((*birth).program, (*birth).argv, (*birth).envp);
            STEP_EXEC
        };
        (*birth).errno = Errno::last_raw();
        (*birth).step = step;
        libc::_exit(127)
    }
}

/// Waits for a byte; `false` when none will come.
fn passes(gate: RawFd) -> bool {
    let mut byte = 0_u8;
    loop {
        // SAFETY: reads one byte into a local.
        match unsafe { libc::read(gate, (&raw mut byte).cast(), 1) } {
            -1 if Errno::last() == Errno::EINTR => {}
            length => return length == 1,
        }
    }
}

/// Lowers a limit; never raises one.
///
/// # Safety
/// Only system calls on locals; safe wherever a system call is.
unsafe fn limit(resource: Resource, most: u64) {
    // SAFETY: an rlimit is two numbers; both pointers are to a local.
    unsafe {
        let mut now: libc::rlimit = zeroed();
        if libc::getrlimit(resource, &raw mut now) == 0 {
            now.rlim_max = now.rlim_max.min(most as libc::rlim_t);
            now.rlim_cur = now.rlim_cur.min(now.rlim_max);
            libc::setrlimit(resource, &raw const now);
        }
    }
}

/// Closes every descriptor from `first` on.
pub(super) fn close_from(first: RawFd) {
    // SAFETY: closing descriptors of this process, whose code uses none of them afterwards.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) == 0 {
            return;
        }
        // Before Linux 5.9, or refused by a filter.
        let mut limit: libc::rlimit = zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for fd in first..limit.rlim_cur.min(1 << 16) as RawFd {
            libc::close(fd);
        }
    }
}
