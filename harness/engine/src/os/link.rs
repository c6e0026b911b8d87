//! The harness's side of the conversation with an init.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::error::OsError;
use super::sys;
use super::tree::{self, Member};
use super::wire::{self, Received, Words};

/// How often the processes are counted where the kernel does not limit them.
const WATCH_PERIOD: Duration = Duration::from_millis(20);

/// Something that happened in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotEvent {
    /// A process that was started with [`super::Slot::spawn`] ended, by itself or killed.
    RootExited {
        /// Process id as the harness sees it.
        pid: u32,
        /// Exit code, where it exited.
        code: Option<i32>,
        /// Signal, where it was killed.
        signal: Option<i32>,
    },
    /// No process of the tree is left, the adopted ones included.
    Emptied,
    /// The tree outgrew its limit and is being killed; only where the kernel does not hold the limit.
    LimitExceeded {
        /// Processes and threads counted.
        tasks: u32,
        /// How many were allowed.
        limit: u32,
    },
}

/// How a root process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RootEnd {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// An answer of the init.
pub(super) struct Reply {
    pub(super) words: Words,
    /// The new process, where one was asked for and started.
    pub(super) pid: Option<u32>,
}

/// What both sides of the harness know: those who ask, and the thread that listens.
pub(super) struct Link {
    pub(super) control: OwnedFd,
    pub(super) init: u32,
    /// The number of tasks above which the harness kills the tree; `None` where the kernel limits it.
    pub(super) watch: Option<u32>,
    pub(super) state: Mutex<State>,
}

/// What is known from the messages so far.
#[derive(Default)]
pub(super) struct State {
    /// A worker between its birth and the init's answer, with its request.
    born: Option<(i32, u32)>,
    /// Who must know of a worker's birth before it goes on, with its request.
    pub(super) midwife: Option<(i32, Sender<u32>)>,
    /// By process id inside.
    roots: BTreeMap<i32, Root>,
    /// The root started last, by process id inside.
    newest: Option<i32>,
    pub(super) newest_end: Option<RootEnd>,
    occupied: bool,
    over_limit: bool,
}

struct Root {
    pid: u32,
    pidfd: OwnedFd,
}

/// Numbers the requests and takes their answers; whoever holds it has the slot for itself.
pub(super) struct Requests {
    pub(super) last: i32,
    pub(super) replies: Receiver<Reply>,
}

impl Requests {
    /// The number of the next request.
    pub(super) fn next(&self) -> i32 {
        self.last.checked_add(1).unwrap_or(1)
    }
}

impl Link {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole after each statement, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(
        &self,
        requests: &mut Requests,
        [kind, argument]: [i32; 2],
        fds: &[BorrowedFd<'_>],
        doing: &'static str,
        limit: Duration,
    ) -> Result<Reply, OsError> {
        let deadline = Instant::now() + limit;
        requests.last = requests.next();
        let number = requests.last;
        self.send(&[kind, number, argument, 0, 0, 0, 0, 0], fds)?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match requests.replies.recv_timeout(left) {
                Ok(reply) if reply.words[1] == number => return Ok(reply),
                // The late answer to a request that was given up.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(OsError::Unresponsive { doing, limit }),
                Err(RecvTimeoutError::Disconnected) => return Err(OsError::ContainmentLost),
            }
        }
    }

    fn send(&self, words: &Words, fds: &[BorrowedFd<'_>]) -> Result<(), OsError> {
        let raw: Vec<_> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        wire::send(self.control.as_raw_fd(), words, &raw).map_err(|errno| match errno {
            Errno::EPIPE | Errno::ECONNRESET => OsError::ContainmentLost,
            errno => OsError::from_errno("asking a slot's init", errno),
        })
    }

    /// Sends a signal to the root started last; `false` when it is gone.
    pub(super) fn signal_newest(&self, signal: i32) -> Result<bool, OsError> {
        let state = self.state();
        let Some(root) = state.newest.and_then(|inside| state.roots.get(&inside)) else { return Ok(false) };
        match sys::pidfd_signal(&root.pidfd, signal) {
            Ok(()) => Ok(true),
            Err(Errno::ESRCH) => Ok(false),
            Err(errno) => Err(OsError::from_errno(format!("sending signal {signal} to {}", root.pid), errno)),
        }
    }

    /// Takes messages until the init is gone. Runs in the slot's own thread.
    pub(super) fn listen(&self, replies: Sender<Reply>, on_event: &dyn Fn(SlotEvent)) {
        self.hear_all(&replies, on_event);
        // An init ends after its tree. One that was killed from outside leaves these to us; the error that
        // follows says that there may be more.
        for root in self.state().roots.values() {
            let _ = sys::pidfd_signal(&root.pidfd, libc::SIGKILL);
        }
    }

    fn hear_all(&self, replies: &Sender<Reply>, on_event: &dyn Fn(SlotEvent)) {
        let mut next_look = Instant::now();
        loop {
            let period = self.watch.filter(|_| self.state().occupied).map(|_| WATCH_PERIOD);
            match sys::wait_readable([self.control.as_fd()], period) {
                Ok([true]) => match wire::receive(self.control.as_raw_fd()) {
                    Ok(Some(received)) => self.hear(received, replies, on_event),
                    Ok(None) | Err(_) => return,
                },
                Ok([false]) => {}
                Err(_) => return,
            }
            // Not after each message: a large tree that dies sends one for each of its processes.
            if let Some(limit) = self.watch.filter(|_| next_look <= Instant::now()) {
                self.count_tasks(limit, on_event);
                next_look = Instant::now() + WATCH_PERIOD;
            }
        }
    }

    fn hear(&self, received: Received, replies: &Sender<Reply>, on_event: &dyn Fn(SlotEvent)) {
        let sender_pid = received.sender_pid;
        let (words, fds) = received.into_descriptors();
        let reply = |pid| {
            // Whoever asked may have given up.
            let _ = replies.send(Reply { words, pid });
        };
        match words {
            [wire::BORN, request, ..] => self.born(request, sender_pid as u32),
            [wire::SPAWNED, request, inside, ..] => reply(self.root_started(request, inside, fds)),
            [wire::EXITED, _, inside, status, ..] => {
                if let Some(event) = self.child_ended(inside, status) {
                    on_event(event);
                }
            }
            [wire::EMPTIED, ..] => {
                self.state().occupied = false;
                on_event(SlotEvent::Emptied);
            }
            _ => reply(None),
        }
    }

    fn born(&self, request: i32, pid: u32) {
        let mut state = self.state();
        state.born = Some((request, pid));
        if let Some((_, midwife)) = state.midwife.take().filter(|(born_for, _)| *born_for == request) {
            // A spawn that was given up has none any more.
            let _ = midwife.send(pid);
        }
    }

    fn root_started(&self, request: i32, inside: i32, fds: Vec<OwnedFd>) -> Option<u32> {
        let mut state = self.state();
        let (_, pid) = state.born.take().filter(|(born_for, _)| *born_for == request)?;
        let pidfd = fds.into_iter().next()?;
        state.roots.insert(inside, Root { pid, pidfd });
        state.newest = Some(inside);
        state.newest_end = None;
        state.occupied = true;
        state.over_limit = false;
        Some(pid)
    }

    /// The event of a root's end; `None` for any other process.
    fn child_ended(&self, inside: i32, status: i32) -> Option<SlotEvent> {
        let mut state = self.state();
        let root = state.roots.remove(&inside)?;
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        if state.newest == Some(inside) {
            state.newest = None;
            state.newest_end = Some(RootEnd { code, signal });
        }
        Some(SlotEvent::RootExited { pid: root.pid, code, signal })
    }

    fn count_tasks(&self, limit: u32, on_event: &dyn Fn(SlotEvent)) {
        if !self.state().occupied {
            return;
        }
        let members = tree::walk(self.init);
        let tasks = members.iter().map(Member::tasks).sum();
        if tasks <= limit {
            return;
        }
        let announced = std::mem::replace(&mut self.state().over_limit, true);
        if !announced {
            on_event(SlotEvent::LimitExceeded { tasks, limit });
        }
        for member in &members {
            // Whatever escapes this is reached by the init's own sweep.
            let _ = tree::signal(self.init, member, libc::SIGKILL);
        }
        if !announced {
            // Once: the init goes on until nothing is left. The queue of the socket is short, and while the init waits
            // for room to report the dead, who listens to it must not wait for room to ask for more.
            // Number 0: nobody waits for the answer. An init that is gone has killed everything.
            let _ = self.send(&[wire::KILL, 0, 0, 0, 0, 0, 0, 0], &[]);
        }
    }
}
