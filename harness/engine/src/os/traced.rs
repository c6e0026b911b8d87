//! Workers whose wall clock is off: a thread of the harness traces the tree and patches each program's vDSO
//! before its first instruction.
//!
//! The tracer is a thread of the harness and not the init, because waiting as a tracer and waiting as a parent
//! must stay apart: the init counts the deaths of its own children, and these counts are the proof of a kill.
//! A traced process is reaped by its tracer first, and then by its parent as ever.
//!
//! The thread stops no longer than it must. `PTRACE_SEIZE` leaves group stops real: a process stopped by
//! SIGSTOP stands still until SIGCONT, and every other stop is ended at once, signals being passed on
//! unchanged. Should the thread or the harness end, the kernel kills what was traced.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{geteuid, pipe2};

use super::error::OsError;
use super::vdso::{self, Patch};

/// By how much a clock is moved to see whether it can be.
const TRIED_SECONDS: i64 = 3600;

/// How many failures are kept in words.
const FAILURES_MAX: usize = 16;

const OPTIONS: i32 = libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_EXITKILL;

/// What became of the programs that were to have another clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockReport {
    /// Programs whose clock is off: one for each `exec` in the tree.
    pub patched: u32,
    /// Programs whose clock could not be moved, or that tracing kept from something, each with why.
    pub failures: Vec<String>,
}

/// What a slot and its tracers share.
#[derive(Debug, Default)]
pub(super) struct Tracing {
    shared: Arc<Mutex<Shared>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Threads in a group stop that goes on until SIGCONT, by id as the harness sees it.
    held: BTreeSet<u32>,
    report: ClockReport,
}

/// A tracer that waits for its worker to be born.
pub(super) struct Tracer {
    /// Where the new worker waits for a byte until it is traced.
    pub(super) gate: OwnedFd,
    /// Tells the tracer the worker's process id.
    pub(super) born: Sender<u32>,
    /// Answers once the first program is patched, or with why the worker can't be traced.
    pub(super) begun: Receiver<Result<(), Errno>>,
}

impl Tracing {
    /// Starts a tracer. It ends with the tree that it traces, or when `born` is dropped before.
    pub(super) fn start(&self, offset_ms: i64) -> Result<Tracer, OsError> {
        let patch = vdso::own()
            .and_then(|(_, image)| vdso::patch(image, offset_ms))
            .map_err(|error| OsError::ClockRefused { reason: error.to_string() })?;
        let (gate, opener) = pipe2(OFlag::O_CLOEXEC)
            .map_err(|errno| OsError::from_errno("making a gate for a worker", errno))?;
        let (born, births) = mpsc::channel();
        let (starter, begun) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let work = move || {
            let Ok(pid) = births.recv() else { return };
            let first = match open(pid as i32, opener) {
                Ok(()) => Some(starter),
                Err(errno) => {
                    // Nobody is told whose spawn was given up.
                    let _ = starter.send(Err(errno));
                    return;
                }
            };
            Following { patch, shared, first }.run();
        };
        let thread = thread::Builder::new()
            .name("killpoint-clock".to_owned())
            .spawn(work)
            .map_err(|error| OsError::from_io("starting a tracer's thread", &error))?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(Tracer { gate, born, begun })
    }

    /// The threads that stand still in a group stop; `None` where nothing is traced.
    pub(super) fn held(&self) -> Option<BTreeSet<u32>> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().any(|thread| !thread.is_finished()).then(|| lock(&self.shared).held.clone())
    }

    /// Takes what is known since the last time.
    pub(super) fn take_report(&self) -> ClockReport {
        std::mem::take(&mut lock(&self.shared).report)
    }

    /// Waits for the tracers of a tree that is gone.
    pub(super) fn join(&self) {
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A tracer that panicked has killed what it traced.
            let _ = thread.join();
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Each change is one call, so a panic elsewhere leaves nothing half done.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Traces a worker that waits at its gate, and opens it.
fn open(pid: i32, opener: OwnedFd) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SEIZE, pid, 0, OPTIONS as usize)?;
    // A worker that was killed meanwhile reads nothing; its end is seen by the wait.
    let _ = fs::File::from(opener).write_all(&[1]);
    Ok(())
}

/// One tracer's work.
struct Following {
    patch: Patch,
    shared: Arc<Mutex<Shared>>,
    /// Told once, at the first program.
    first: Option<Sender<Result<(), Errno>>>,
}

impl Following {
    /// Follows the tree until nothing of it is left.
    fn run(mut self) {
        loop {
            let mut status = 0;
            // SAFETY: the status is a local. Only what this thread traces is waited for: it has no children.
            let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
            match tid {
                1.. if libc::WIFSTOPPED(status) => self.stopped(tid, libc::WSTOPSIG(status), status >> 16),
                1.. => drop(lock(&self.shared).held.remove(&(tid as u32))),
                _ if Errno::last() == Errno::EINTR => {}
                _ => return,
            }
        }
    }

    /// Ends a stop, unless it is to last. What was killed meanwhile can't be continued, and needs not.
    fn stopped(&mut self, tid: i32, signal: i32, event: i32) {
        let is_group_stop = event == libc::PTRACE_EVENT_STOP
            && matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
        if is_group_stop {
            lock(&self.shared).held.insert(tid as u32);
            let _ = ptrace(libc::PTRACE_LISTEN, tid, 0, 0);
            return;
        }
        lock(&self.shared).held.remove(&(tid as u32));
        if event == libc::PTRACE_EVENT_EXEC {
            self.executed(tid);
        }
        let pass_on = if event == 0 { signal } else { 0 };
        let _ = ptrace(libc::PTRACE_CONT, tid, 0, pass_on as usize);
    }

    /// A new program is there, and has not run yet.
    fn executed(&mut self, pid: i32) {
        let outcome = shift(pid, &self.patch);
        let mut shared = lock(&self.shared);
        let report = &mut shared.report;
        match outcome {
            Ok(()) => report.patched += 1,
            Err(why) => report.fail(pid, &why),
        }
        if loses_privileges(pid) {
            report.fail(pid, "it is set-id, and has not the rights of its owner because it is traced");
        }
        drop(shared);
        if let Some(first) = self.first.take() {
            // Nobody waits for a spawn that was given up.
            let _ = first.send(Ok(()));
        }
    }
}

impl ClockReport {
    fn fail(&mut self, pid: i32, why: &str) {
        if self.failures.len() < FAILURES_MAX {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            self.failures.push(format!("`{}` (process {pid}): {why}", name.trim_end()));
        }
    }
}

/// Whether a worker's wall clock can be moved on this machine, tried once on a copy of this process; if not,
/// why.
pub fn probe_clock() -> Result<(), String> {
    static OUTCOME: OnceLock<Result<(), String>> = OnceLock::new();

    OUTCOME.get_or_init(try_clock).clone()
}

fn try_clock() -> Result<(), String> {
    let (base, image) = vdso::own().map_err(|error| error.to_string())?;
    let patch = vdso::patch(image, TRIED_SECONDS * 1000).map_err(|error| error.to_string())?;
    let entry = std::ptr::with_exposed_provenance::<()>((base + patch.clock_gettime) as usize);
    let (gate, opener) = pipe2(OFlag::O_CLOEXEC).map_err(|errno| format!("making a pipe: {errno}"))?;
    let pid = copy_of_us(gate.as_raw_fd(), entry).map_err(|errno| format!("making a process: {errno}"))?;
    let moved = move_clock_of(pid, &patch).map(|()| drop(fs::File::from(opener).write_all(&[1])));
    let mut status = 0;
    // SAFETY: signals and reaps exactly the child that was made above; the status is a local.
    unsafe {
        if moved.is_err() {
            libc::kill(pid, libc::SIGKILL);
        }
        while libc::waitpid(pid, &raw mut status, libc::__WALL) < 0 && Errno::last() == Errno::EINTR {}
    }
    moved?;
    if status == 0 { Ok(()) } else { Err(format!("a patched process has the wrong time (status {status})")) }
}

/// Stops a process, patches it, and lets it go.
fn move_clock_of(pid: i32, patch: &Patch) -> Result<(), String> {
    let because = |doing: &str| {
        let doing = doing.to_owned();
        move |errno: Errno| format!("{doing}: {errno}")
    };
    ptrace(libc::PTRACE_SEIZE, pid, 0, libc::PTRACE_O_EXITKILL as usize)
        .map_err(because("tracing a process"))?;
    ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0).map_err(because("stopping a traced process"))?;
    // SAFETY: waits for exactly this child, without memory of ours.
    while unsafe { libc::waitpid(pid, null_mut(), libc::__WALL) } < 0 {
        if Errno::last() != Errno::EINTR {
            return Err(because("waiting for a traced process")(Errno::last()));
        }
    }
    shift(pid, patch)?;
    ptrace(libc::PTRACE_DETACH, pid, 0, 0).map_err(because("letting a traced process go"))
}

/// Makes a process that waits at `gate` and then exits with 0 if the clock at `entry` is off as it should be.
fn copy_of_us(gate: RawFd, entry: *const ()) -> Result<i32, Errno> {
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    // SAFETY: without CLONE_VM this is a fork: the child runs on its own copy of this stack, makes system calls
    // on locals, calls the clock that was patched in (`entry` has this signature), and never returns.
    let answer = unsafe {
        let answer = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
        if answer == 0 {
            let clock: extern "C" fn(i32, *mut libc::timespec) -> i32 = std::mem::transmute(entry);
            let (mut real, mut shifted) = (zeroed::<libc::timespec>(), zeroed::<libc::timespec>());
            let mut byte = 0_u8;
            if libc::read(gate, (&raw mut byte).cast(), 1) != 1 {
                libc::_exit(2);
            }
            libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_REALTIME, &raw mut real);
            clock(libc::CLOCK_REALTIME, &raw mut shifted);
            let off = shifted.tv_sec.wrapping_sub(real.tv_sec).wrapping_sub(TRIED_SECONDS);
            libc::_exit(i32::from(!(-60..=60).contains(&off)));
        }
        answer
    };
    let outcome = Errno::result(answer);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    outcome.map(|pid| pid as i32)
}

/// Whether a program should have got other rights than its caller's, which a tracer without them prevents.
fn loses_privileges(pid: i32) -> bool {
    const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
    !geteuid().is_root()
        && fs::metadata(format!("/proc/{pid}/exe")).is_ok_and(|program| program.mode() & SET_ID != 0)
}

/// Writes a patch into a process that stands still and has not yet looked for the time.
fn shift(pid: i32, patch: &Patch) -> Result<(), String> {
    let auxv = fs::read(format!("/proc/{pid}/auxv")).map_err(|error| format!("reading its auxv: {error}"))?;
    let base = vdso_base(&auxv).ok_or("it has no 64-bit vDSO, as a 32-bit program")?;
    for &(offset, old) in &patch.expected {
        let there = peek(pid, base + offset).map_err(|errno| format!("reading its vDSO: {errno}"))?;
        if there != old {
            return Err("its vDSO is not the one of the harness".to_owned());
        }
    }
    for &(offset, new) in &patch.words {
        ptrace(libc::PTRACE_POKEDATA, pid, (base + offset) as usize, new as usize)
            .map_err(|errno| format!("writing to its vDSO: {errno}"))?;
    }
    Ok(())
}

/// Where the kernel says that it mapped the vDSO; `None` also for a 32-bit program's, whose words are shorter.
fn vdso_base(auxv: &[u8]) -> Option<u64> {
    let word = |bytes: &[u8]| Some(u64::from_ne_bytes(bytes.try_into().ok()?));
    let (pairs, _) = auxv.as_chunks::<16>();
    let pair = pairs.iter().find(|pair| word(&pair[..8]) == Some(libc::AT_SYSINFO_EHDR))?;
    word(&pair[8..])
}

fn peek(pid: i32, address: u64) -> Result<u64, Errno> {
    let mut word = 0_u64;
    ptrace(libc::PTRACE_PEEKDATA, pid, address as usize, (&raw mut word).expose_provenance())?;
    Ok(word)
}

/// The system call itself: the C library's function gives a word that was read and an error in one number.
fn ptrace(request: impl Into<i64>, pid: i32, address: usize, data: usize) -> Result<(), Errno> {
    let request: i64 = request.into();
    // SAFETY: the only request that writes to our memory is a peek, and its caller gives room for a word.
    Errno::result(unsafe { libc::syscall(libc::SYS_ptrace, request, pid, address, data) }).map(drop)
}
