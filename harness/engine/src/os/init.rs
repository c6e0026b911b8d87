//! What runs in a slot's init process.
//!
//! The process is a copy of one thread of the harness. Other threads may have held any lock at that moment,
//! so from [`run`] on there are only system calls on memory that was made before: no allocation, no lock, no
//! standard I/O, no panic.

use std::ffi::{CStr, CString, c_int};
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};

use nix::errno::Errno;

use super::birth::{self, Born, close_from, give_birth};
use super::wire::{
    self, ARM, DONE, EMPTIED, EXITED, FAILED, KILL, KILLED, READY, Received, SIGNAL, SPAWN, SPAWN_GATED,
    SPAWNED, Words,
};

/// Where the control socket is kept; 0 to 2 are `/dev/null`.
const CONTROL: RawFd = 3;

/// How long one round of killing may wait for a death before it looks again, in a namespace.
const NAMESPACE_ROUND_MS: c_int = 100;
/// The same for a sweep, in which each round reaches only the init's own children.
const SWEEP_ROUND_MS: c_int = 1;

/// Everything the init needs, made before it exists.
pub(super) struct Setup {
    pub(super) control: RawFd,
    pub(super) namespaces: Option<Namespaces>,
    pub(super) stack: Vec<u8>,
}

/// What is written inside fresh namespaces.
pub(super) struct Namespaces {
    /// Lines for `uid_map` and `gid_map`, where there is a user namespace.
    pub(super) maps: Option<(CString, CString)>,
    /// `kernel.pid_max`, where it belongs to the namespace.
    pub(super) pid_max: Option<CString>,
    /// The process id before the first one to be used.
    pub(super) last_pid: CString,
}

/// The steps that must succeed, numbered from 1 as they are reported.
pub(super) const STEPS: [&str; 5] = [
    "closing inherited descriptors",
    "writing /proc/self/setgroups",
    "writing /proc/self/uid_map",
    "writing /proc/self/gid_map",
    "becoming a child subreaper",
];

/// The process id 1 of a namespace, or a subreaper, until the harness is gone.
pub(super) extern "C" fn run(setup: &Setup) -> ! {
    let report = match set_up(setup) {
        Ok(notes) => [READY, 0, notes[0], notes[1], notes[2], notes[3], 0, 0],
        Err((step, errno)) => [FAILED, 0, step, errno as i32, 0, 0, 0, 0],
    };
    let signals = signal_descriptor();
    if wire::send(CONTROL, &report, &[]).is_err() || report[0] == FAILED {
        exit();
    }
    let mut init = Init {
        setup,
        // "Every process" must never mean the whole machine.
        // SAFETY: takes nothing, returns a number.
        namespace: setup.namespaces.is_some() && unsafe { libc::getpid() } == 1,
        occupied: false,
        counting: false,
        killing: None,
        reaped: 0,
        killed: 0,
    };
    loop {
        init.turn(signals);
    }
}

fn set_up(setup: &Setup) -> Result<[i32; 4], (i32, Errno)> {
    reset_signals();
    move_descriptors(setup.control).map_err(|errno| (1, errno))?;
    // SAFETY: system calls on constants.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"killpoint-init".as_ptr());
    }
    let Some(namespaces) = &setup.namespaces else {
        // SAFETY: a system call on constants.
        let answer = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        return if answer < 0 { Err((5, Errno::last())) } else { Ok([0; 4]) };
    };
    if let Some((uid_map, gid_map)) = &namespaces.maps {
        write_file(c"/proc/self/setgroups", c"deny").map_err(|errno| (2, errno))?;
        write_file(c"/proc/self/uid_map", uid_map).map_err(|errno| (3, errno))?;
        write_file(c"/proc/self/gid_map", gid_map).map_err(|errno| (4, errno))?;
    }
    let private = mount(c"/", None, libc::MS_REC | libc::MS_SLAVE);
    // On mounts that are still shared the new /proc would show up in the whole machine.
    let own_proc = private
        .and_then(|()| mount(c"/proc", Some(c"proc"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC));
    let pid_max =
        namespaces.pid_max.as_ref().map_or(Ok(()), |text| write_file(c"/proc/sys/kernel/pid_max", text));
    let last_pid = write_file(c"/proc/sys/kernel/ns_last_pid", &namespaces.last_pid);
    Ok([private, own_proc, pid_max, last_pid]
        .map(|outcome| outcome.map_or_else(|errno| errno as i32, |()| 0)))
}

struct Init<'a> {
    setup: &'a Setup,
    namespace: bool,
    /// Something was started and not everything is reaped.
    occupied: bool,
    /// Deaths by SIGKILL are counted as ours.
    counting: bool,
    /// The request that is answered once nothing is left.
    killing: Option<i32>,
    /// Since the last kill.
    reaped: i32,
    killed: i32,
}

impl Init<'_> {
    /// Waits for something to happen, and deals with it.
    fn turn(&mut self, signals: RawFd) {
        let wait_ms = match (self.killing, self.namespace) {
            (None, _) => -1,
            (Some(_), true) => NAMESPACE_ROUND_MS,
            (Some(_), false) => SWEEP_ROUND_MS,
        };
        let mut polled = [CONTROL, signals].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: two entries of a local array; the buffer of the read is a local of the size given.
        unsafe {
            libc::poll(polled.as_mut_ptr(), 2, wait_ms);
            let mut drained = [0_u8; size_of::<libc::signalfd_siginfo>()];
            if polled[1].revents != 0 {
                libc::read(signals, drained.as_mut_ptr().cast(), drained.len());
            }
        }
        if polled[0].revents != 0 {
            match wire::receive(CONTROL) {
                Ok(Some(request)) => self.obey(&request),
                Ok(None) => self.die(),
                Err(_) => {}
            }
        }
        if self.killing.is_some() {
            self.kill();
        }
        self.reap();
    }

    fn obey(&mut self, request: &Received) {
        let number = request.words[1];
        match request.words[0] {
            SPAWN => self.spawn(request, 3),
            SPAWN_GATED => self.spawn(request, 4),
            SIGNAL if self.namespace => {
                // SAFETY: signals every process of our own namespace but ourselves.
                let errno = match unsafe { libc::kill(-1, request.words[2]) } {
                    0 => 0,
                    // Nobody is there.
                    _ if Errno::last() == Errno::ESRCH => 0,
                    _ => Errno::last_raw(),
                };
                self.tell([DONE, number, errno, 0, 0, 0, 0, 0], &[]);
            }
            ARM => {
                self.count_from_now();
                self.tell([DONE, number, 0, 0, 0, 0, 0, 0], &[]);
            }
            KILL => {
                self.count_from_now();
                // A request without a number expects no answer, and must not take one away.
                if self.killing.is_none_or(|killing| killing == 0) {
                    self.killing = Some(number);
                }
            }
            _ => {}
        }
    }

    /// What died before this moment did not die of us.
    fn count_from_now(&mut self) {
        if !self.counting {
            self.reap();
            self.counting = true;
        }
    }

    fn spawn(&mut self, request: &Received, fds_len: usize) {
        let number = request.words[1];
        let stack_end = self.setup.stack.as_ptr_range().end.map_addr(|end| end & !15).cast_mut().cast();
        let length = request.words[2] as usize;
        let outcome = if request.fds_len == fds_len {
            give_birth(number, length, CONTROL, request.fds, stack_end)
        } else {
            // A full table of descriptors drops some silently.
            Err((birth::STEP_MEMORY, Errno::EMFILE))
        };
        for &fd in request.fds.iter().take(request.fds_len) {
            close(fd);
        }
        match outcome {
            Ok(Born { pid, pidfd }) => {
                self.occupied = true;
                self.tell([SPAWNED, number, pid, 0, 0, 0, 0, 0], &[pidfd]);
                close(pidfd);
            }
            Err((step, errno)) => self.tell([SPAWNED, number, 0, errno as i32, step, 0, 0, 0], &[]),
        }
    }

    /// SIGKILL to whatever is in reach; `reap` tells when that was everything.
    fn kill(&self) {
        if self.namespace {
            // SAFETY: signals every process of our own namespace but ourselves.
            unsafe { libc::kill(-1, libc::SIGKILL) };
        } else {
            kill_children();
        }
    }

    /// Reaps what is dead, reports it, and reports when nothing is left.
    fn reap(&mut self) {
        loop {
            let mut status = 0;
            // SAFETY: the status is a local.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
            match pid {
                0 => return,
                1.. => {
                    self.reaped = self.reaped.wrapping_add(1);
                    let by_us =
                        self.counting && libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
                    self.killed = self.killed.wrapping_add(i32::from(by_us));
                    self.tell([EXITED, 0, pid, status, 0, 0, 0, 0], &[]);
                }
                _ if Errno::last() == Errno::EINTR => {}
                _ => return self.nothing_is_left(),
            }
        }
    }

    fn nothing_is_left(&mut self) {
        if self.occupied {
            self.occupied = false;
            self.tell([EMPTIED, 0, 0, 0, 0, 0, 0, 0], &[]);
        }
        if let Some(number) = self.killing.take() {
            self.tell([KILLED, number, self.reaped, self.killed, 0, 0, 0, 0], &[]);
            self.counting = false;
            self.reaped = 0;
            self.killed = 0;
        }
    }

    fn tell(&self, words: Words, fds: &[RawFd]) {
        if wire::send(CONTROL, &words, fds).is_err() {
            self.die();
        }
    }

    /// The harness is gone: so is everything it started.
    fn die(&self) -> ! {
        if !self.namespace {
            // SAFETY: waits without memory of ours; the pause is a poll of nothing.
            unsafe {
                loop {
                    kill_children();
                    while libc::waitpid(-1, null_mut(), libc::WNOHANG | libc::__WALL) > 0 {}
                    if Errno::last() == Errno::ECHILD {
                        break;
                    }
                    libc::poll(null_mut(), 0, SWEEP_ROUND_MS);
                }
            }
        }
        // The end of a namespace's process 1 ends all the others; the kernel waits for them.
        exit()
    }
}

/// Kills the init's own children. Orphans become its children in turn, so repeating this reaches everything.
/// A number can't be reused meanwhile: only the init reaps them.
fn kill_children() {
    let mut text = [0_u8; 4096];
    // SAFETY: reads into a local buffer of the size given.
    let length = unsafe {
        let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(fd, text.as_mut_ptr().cast(), text.len());
        libc::close(fd);
        usize::try_from(length).unwrap_or(0)
    };
    let mut pid: i32 = 0;
    for &byte in text.iter().take(length) {
        if byte.is_ascii_digit() {
            pid = pid.wrapping_mul(10).wrapping_add(i32::from(byte.wrapping_sub(b'0')));
        } else {
            // A number that the buffer cut off never gets here, and 0 or less would mean a group.
            if pid > 1 {
                // SAFETY: signals a child of ours that nobody but us can reap.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            pid = 0;
        }
    }
}

/// Default dispositions, and everything blocked: nothing but SIGKILL is for the init.
fn reset_signals() {
    // SAFETY: system calls on locals. The kernel's sigaction is at most four words, and all-zero it is the
    // default one. The C library's own function would leave out the signals it uses for threads.
    unsafe {
        let default = [0_u64; 4];
        let (none, mask_bytes) = (null_mut::<u64>(), size_of::<u64>());
        for signal in 1..=64 {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, mask_bytes);
        }
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, null_mut());
    }
}

fn signal_descriptor() -> RawFd {
    // SAFETY: system calls on locals.
    unsafe {
        let mut children: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    }
}

/// Leaves the control socket at its place and `/dev/null` at 0 to 2; everything else of the harness is closed.
fn move_descriptors(control: RawFd) -> Result<(), Errno> {
    // SAFETY: this process owns all descriptors, and uses none but these afterwards.
    unsafe {
        // First out of the way of the places to be filled.
        let control = Errno::result(libc::fcntl(control, libc::F_DUPFD_CLOEXEC, 10))?;
        let null = Errno::result(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR))?;
        let null_high = Errno::result(libc::fcntl(null, libc::F_DUPFD_CLOEXEC, 10))?;
        Errno::result(libc::dup3(control, CONTROL, libc::O_CLOEXEC))?;
        for standard in 0..=2 {
            Errno::result(libc::dup2(null_high, standard))?;
        }
    }
    close_from(CONTROL + 1);
    Ok(())
}

fn write_file(path: &CStr, text: &CStr) -> Result<(), Errno> {
    // SAFETY: both strings end with a NUL and live for the call.
    unsafe {
        let fd = Errno::result(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let written = Errno::result(libc::write(fd, text.as_ptr().cast(), text.count_bytes()));
        libc::close(fd);
        written.map(drop)
    }
}

fn mount(target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> Result<(), Errno> {
    let source = kind.unwrap_or(c"none");
    let kind = kind.map_or(null(), CStr::as_ptr);
    // SAFETY: all strings end with a NUL and live for the call.
    Errno::result(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, null()) }).map(drop)
}

fn close(fd: RawFd) {
    // SAFETY: a descriptor that the init got for itself and uses no more.
    unsafe { libc::close(fd) };
}

fn exit() -> ! {
    // SAFETY: ends the process at once; no destructor of the harness may run in this copy.
    unsafe { libc::_exit(0) }
}
