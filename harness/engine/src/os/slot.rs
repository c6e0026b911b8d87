//! The container of one worker's process tree, used again for each of its generations.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use killpoint_model::event::{Containment, KillProof, ProcessLimit};
use nix::errno::Errno;
use nix::sys::socket::{Shutdown, shutdown};

use super::birth::{STEP_CLONE, STEP_DIRECTORY, STEP_EXEC};
use super::command::{find_program, not_executable};
use super::error::OsError;
use super::launch::{InitProcess, launch_best};
use super::limits::Machine;
use super::link::{Link, Reply, Requests, SlotEvent, State};
use super::traced::{ClockReport, Tracer, Tracing};
use super::tree::{self, Member};
use super::{sys, wire};

/// How long the init may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long a tree may take to stand still.
const FREEZE_LIMIT: Duration = Duration::from_secs(2);
/// How long a tree may take to die.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// How long a sweep tries to stop a tree before it kills what moves.
const STOP_BEFORE_KILL_LIMIT: Duration = Duration::from_millis(500);

/// What a slot is for.
#[derive(Debug, Clone, Copy)]
pub struct SlotSpec {
    /// Processes and threads that the tree may have at a time. At least so many fit; how many more depends on
    /// the [`ProcessLimit`]: in a PID namespace also what `pid_base` is above 300.
    pub processes_max: u32,
    /// Process ids that the worker itself sees start here (300 at least), so that workers of one trial differ.
    /// Only in a PID namespace.
    pub pid_base: u32,
    /// The containment to use and no other; `None` for the strongest there is.
    pub force: Option<Containment>,
}

/// A worker to be started. Its standard input is `/dev/null`.
#[derive(Debug)]
pub struct SpawnSpec<'a> {
    /// The command; its first word is found as [`find_program`] says.
    pub argv: &'a [String],
    /// The whole environment.
    pub env: &'a BTreeMap<String, String>,
    /// The directory to start in.
    pub cwd: &'a Path,
    /// How far the wall clock of the worker and of everything it starts is to be off, in milliseconds; 0 leaves
    /// it alone, and the tree untraced.
    pub clock_offset_ms: i64,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

/// The container of one worker's process tree. Dropping it kills the tree; so does the harness's own death.
///
/// All methods block, each with a limit, and may be called from any thread, one at a time.
pub struct Slot {
    link: Arc<Link>,
    requests: Mutex<Requests>,
    process: InitProcess,
    reader: Option<JoinHandle<()>>,
    containment: Containment,
    reason: Option<String>,
    process_limit: ProcessLimit,
    machine: Machine,
    processes_max: u32,
    tracing: Tracing,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("init", &self.link.init)
            .field("containment", &self.containment)
            .field("process_limit", &self.process_limit)
            .finish_non_exhaustive()
    }
}

impl Slot {
    /// Makes a slot. `on_event` is called from the slot's own thread, in the order in which things happened;
    /// it must not call the slot, and should be quick.
    pub fn open(spec: &SlotSpec, on_event: Box<dyn Fn(SlotEvent) + Send>) -> Result<Self, OsError> {
        let machine = Machine::here();
        let launched = launch_best(spec, machine)?;
        let link = Arc::new(Link {
            control: launched.control,
            init: launched.process.pid,
            watch: (launched.process_limit == ProcessLimit::Watch).then_some(spec.processes_max),
            state: Mutex::default(),
        });
        let (answers, replies) = mpsc::channel();
        let listening = Arc::clone(&link);
        // From here on a slot exists, so that a failure below ends the init, too.
        let mut slot = Self {
            link,
            requests: Mutex::new(Requests { last: 0, replies }),
            process: launched.process,
            reader: None,
            containment: launched.containment,
            reason: launched.reason,
            process_limit: launched.process_limit,
            machine,
            processes_max: spec.processes_max,
            tracing: Tracing::default(),
        };
        let reader = thread::Builder::new()
            .name("killpoint-slot".to_owned())
            .spawn(move || listening.listen(answers, &on_event))
            .map_err(|error| OsError::from_io("starting a slot's thread", &error))?;
        slot.reader = Some(reader);
        Ok(slot)
    }

    /// How the tree is held together.
    pub fn containment(&self) -> Containment {
        self.containment
    }

    /// Why nothing stronger is used, or what is missing from it.
    pub fn containment_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Which limit on the number of processes holds.
    pub fn process_limit(&self) -> ProcessLimit {
        self.process_limit
    }

    /// Starts a worker in a session of its own; returns its process id as the harness sees it, once the program
    /// runs.
    pub fn spawn(&self, spec: SpawnSpec<'_>) -> Result<u32, OsError> {
        let invalid = |what: &str| OsError::InvalidCommand { what: what.to_owned() };
        let Some(command) = spec.argv.first() else { return Err(invalid("the command has no word")) };
        if spec.argv.iter().any(|word| word.contains('\0')) {
            return Err(invalid("a word of the command has a NUL byte"));
        }
        if spec.env.iter().any(|(name, value)| name.contains(['\0', '=']) || value.contains('\0')) {
            return Err(invalid("a variable of the environment has a NUL byte, or `=` in its name"));
        }
        let program = find_program(command, spec.env, spec.cwd)?;
        let pairs: Vec<Vec<u8>> =
            spec.env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect();
        let limit = (self.process_limit == ProcessLimit::Rlimit)
            .then(|| self.machine.rlimit_nproc(self.containment, self.processes_max));
        let argv = spec.argv.iter().map(OsStr::new);
        let image = wire::image(&program, argv, &pairs, spec.cwd, limit)?;

        let fds = [image.memory.as_fd(), spec.stdout.as_fd(), spec.stderr.as_fd()];
        let length = image.length as i32;
        let reply = if spec.clock_offset_ms == 0 {
            let ask = [wire::SPAWN, length];
            self.link.ask(&mut self.requests(), ask, &fds, "starting a worker", ANSWER_LIMIT)?
        } else {
            self.ask_traced(spec.clock_offset_ms, length, fds)?
        };
        let [_, _, _, errno, step, ..] = reply.words;
        match (reply.pid, Errno::from_raw(errno), step) {
            (Some(pid), ..) => Ok(pid),
            (None, errno, STEP_DIRECTORY) => {
                Err(OsError::WorkingDirectory { path: spec.cwd.to_owned(), errno })
            }
            (None, errno, STEP_EXEC) if !is_machine_out(errno) => Err(not_executable(program, errno)),
            (None, errno, STEP_CLONE) => Err(OsError::from_errno("starting a process for a worker", errno)),
            // Without an error the kernel dropped the descriptor, as it does when our table is full.
            (None, errno, _) if errno == Errno::from_raw(0) => {
                Err(OsError::from_errno("taking a worker's descriptor", Errno::EMFILE))
            }
            (None, errno, _) => Err(OsError::from_errno("starting a worker", errno)),
        }
    }

    /// Asks for a worker that is traced from before its first program on, and waits until that is patched.
    fn ask_traced(&self, offset_ms: i64, length: i32, fds: [BorrowedFd<'_>; 3]) -> Result<Reply, OsError> {
        let Tracer { gate, born, begun } = self.tracing.start(offset_ms)?;
        let [image, stdout, stderr] = fds;
        let mut requests = self.requests();
        self.link.state().midwife = Some((requests.next(), born));
        let fds = [image, stdout, stderr, gate.as_fd()];
        let reply = self.link.ask(
            &mut requests,
            [wire::SPAWN_GATED, length],
            &fds,
            "starting a worker",
            ANSWER_LIMIT,
        );
        // A tracer that was not needed ends by this.
        self.link.state().midwife = None;
        let reply = reply?;
        match begun.recv_timeout(ANSWER_LIMIT) {
            Ok(Err(errno)) => Err(OsError::ClockRefused { reason: format!("tracing the worker: {errno}") }),
            // Without a word, the worker died before its first program was there; the reply knows.
            Ok(Ok(())) | Err(_) => Ok(reply),
        }
    }

    /// Takes what became of the clocks of programs that were started with an offset, since the last time.
    pub fn take_clock_report(&self) -> ClockReport {
        self.tracing.take_report()
    }

    /// Stops the whole tree; returns once every thread of it stands still.
    ///
    /// After [`OsError::NotStopping`] part of the tree is stopped; thaw or kill it.
    pub fn freeze(&self) -> Result<(), OsError> {
        self.stop(&mut self.requests(), FREEZE_LIMIT)
    }

    /// Resumes the whole tree. A process that had stopped itself before is resumed as well.
    pub fn thaw(&self) -> Result<(), OsError> {
        let mut requests = self.requests();
        let members = tree::walk(self.link.init);
        self.signal_tree(&mut requests, &members, libc::SIGCONT)
    }

    /// Sends a signal to the root process started last, and to no other; `false` when it is gone.
    pub fn signal_root(&self, signal: i32) -> Result<bool, OsError> {
        self.link.signal_newest(signal)
    }

    /// Kills the whole tree, frozen or not, and returns the proof once nothing is left.
    pub fn kill_all(&self) -> Result<KillProof, OsError> {
        let mut requests = self.requests();
        if self.containment == Containment::Subreaper {
            // A tree that stands still dies at one moment; what keeps moving is caught by the init's sweep.
            match self.stop(&mut requests, STOP_BEFORE_KILL_LIMIT) {
                Ok(()) | Err(OsError::NotStopping { .. } | OsError::System { .. }) => {}
                Err(error) => return Err(error),
            }
            self.link.ask(&mut requests, [wire::ARM, 0], &[], "getting ready to kill", ANSWER_LIMIT)?;
            // Children first: a stopped child of a dead parent would be resumed by the kernel.
            for member in tree::walk(self.link.init).iter().rev() {
                // What can't be killed is found by the wait below.
                let _ = tree::signal(self.link.init, member, libc::SIGKILL);
            }
        }
        let killed = self.link.ask(&mut requests, [wire::KILL, 0], &[], "killing the tree", KILL_LIMIT);
        match killed {
            Ok(reply) => Ok(self.proof(&mut self.link.state(), reply.words)),
            Err(OsError::Unresponsive { limit, .. }) => {
                Err(OsError::Survivors { pids: self.processes(), limit })
            }
            Err(error) => Err(error),
        }
    }

    /// The live processes of the tree, parents first.
    pub fn processes(&self) -> Vec<u32> {
        let members = tree::walk(self.link.init);
        members.iter().filter(|member| member.is_alive()).map(|member| member.pid).collect()
    }

    #[cfg(test)]
    pub(super) fn init_pid(&self) -> u32 {
        self.link.init
    }

    fn proof(&self, state: &mut State, [_, _, reaped, by_us, ..]: wire::Words) -> KillProof {
        let end = state.newest_end.take();
        KillProof {
            signal: if by_us > 0 { Some(libc::SIGKILL) } else { end.and_then(|end| end.signal) },
            code: end.and_then(|end| end.code),
            was_alive: by_us > 0,
            reaped: reaped as u32,
            // The init has no child, and every orphan becomes its child.
            survivors: self.processes().len() as u32,
            containment: self.containment,
        }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        // Answers carry the number of their request, so a panic between the two spoils nothing.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, requests: &mut Requests, limit: Duration) -> Result<(), OsError> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_micros(50);
        let mut seen_before = None;
        let mut members = tree::walk(self.link.init);
        loop {
            self.signal_tree(requests, &members, libc::SIGSTOP)?;
            members = tree::walk(self.link.init);
            let held = self.tracing.held();
            let moving =
                members.iter().find_map(|member| Some((member.pid, member.running_state(held.as_ref())?)));
            let seen: BTreeSet<u32> = members.iter().map(|member| member.pid).collect();
            // A walk can miss a process that was adopted meanwhile; two equal ones of a tree that stands still
            // can't.
            if moving.is_none() && seen_before.as_ref() == Some(&seen) {
                // Without its init a tree can't be seen.
                return if self.process.runs() { Ok(()) } else { Err(OsError::ContainmentLost) };
            }
            seen_before = moving.is_none().then_some(seen);
            if Instant::now() >= deadline {
                let (pid, state) = moving.unwrap_or((self.link.init, '?'));
                return Err(OsError::NotStopping { pid, state, limit });
            }
            if moving.is_some() {
                sys::pause(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
    }

    /// In a namespace the kernel reaches every process at once; elsewhere each one that `members` names.
    fn signal_tree(&self, requests: &mut Requests, members: &[Member], signal: i32) -> Result<(), OsError> {
        let failed =
            |errno| OsError::from_errno(format!("sending signal {signal} to the worker's tree"), errno);
        if self.containment == Containment::PidNamespace {
            let ask = [wire::SIGNAL, signal];
            let reply = self.link.ask(requests, ask, &[], "signalling the tree", ANSWER_LIMIT)?;
            return match reply.words[2] {
                0 => Ok(()),
                errno => Err(failed(Errno::from_raw(errno))),
            };
        }
        for member in members {
            tree::signal(self.link.init, member, signal).map_err(failed)?;
        }
        Ok(())
    }
}

/// Answers of `exec` that speak of the machine and not of the program.
fn is_machine_out(errno: Errno) -> bool {
    matches!(errno, Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE)
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The end of the socket is what tells the init to kill everything and end; it may be gone already.
        let _ = shutdown(self.link.control.as_raw_fd(), Shutdown::Write);
        let gone = self.process.end(KILL_LIMIT);
        if let Some(reader) = self.reader.take().filter(|_| gone) {
            // A panic in the callback was its owner's.
            let _ = reader.join();
            self.tracing.join();
        }
    }
}
