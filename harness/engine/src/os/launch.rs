//! Starting an init, and saying why a tier can't be had.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

use killpoint_model::event::{Containment, ProcessLimit};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::error::{OsError, is_shortage};
use super::init::{self, Namespaces, STEPS, Setup};
use super::limits::{Machine, pid_range};
use super::slot::SlotSpec;
use super::{sys, tree, wire};

/// How long an init may take to set itself up.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// The stack on which workers are between clone and exec.
const STACK_BYTES: usize = 64 * 1024;

/// What this machine permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The strongest containment that can be had.
    pub containment: Containment,
    /// Why nothing stronger, or what is missing from it.
    pub containment_reason: Option<String>,
    /// The process limit that would hold.
    pub process_limit: ProcessLimit,
}

/// Tries what this machine permits, by making a slot and closing it. Fails where no tier can be had, or where
/// the machine is out of something.
pub fn probe() -> Result<Capabilities, OsError> {
    let machine = Machine::here();
    let spec = SlotSpec { processes_max: 64, pid_base: 0, force: None };
    let launched = launch_best(&spec, machine)?;
    let capabilities = Capabilities {
        containment: launched.containment,
        containment_reason: launched.reason.clone(),
        process_limit: launched.process_limit,
    };
    drop(launched.control);
    launched.process.end(READY_LIMIT);
    Ok(capabilities)
}

/// An init that is ready.
pub(super) struct Launched {
    pub(super) containment: Containment,
    pub(super) reason: Option<String>,
    pub(super) process_limit: ProcessLimit,
    pub(super) control: OwnedFd,
    pub(super) process: InitProcess,
}

/// The init's process, a child of the harness.
pub(super) struct InitProcess {
    pub(super) pid: u32,
    pidfd: OwnedFd,
}

impl InitProcess {
    /// Whether it has not ended.
    pub(super) fn runs(&self) -> bool {
        matches!(sys::wait_readable([self.pidfd.as_fd()], Some(Duration::ZERO)), Ok([false]))
    }

    /// Waits for its end, which the end of the control socket brings about; kills it after `limit`. Says
    /// whether it is gone.
    pub(super) fn end(&self, limit: Duration) -> bool {
        let ended = |limit| matches!(sys::wait_readable([self.pidfd.as_fd()], Some(limit)), Ok([true]));
        let gone = ended(limit) || {
            // Already dead is as good as killed; the wait tells.
            let _ = sys::pidfd_signal(&self.pidfd, libc::SIGKILL);
            ended(Duration::from_secs(1))
        };
        if gone {
            // Nobody else waits for it; should somebody have done so, it is reaped all the same.
            let _ = waitpid(Pid::from_raw(self.pid as i32), None);
        }
        gone
    }
}

/// Why a launch came to nothing.
enum Failure {
    /// This machine does not permit it.
    Refused(String),
    /// It may work another time.
    Passing(OsError),
}

/// The strongest containment there is, or the one that the spec forces.
pub(super) fn launch_best(spec: &SlotSpec, machine: Machine) -> Result<Launched, OsError> {
    // A refusal does not change while we run; trying again for each slot would only cost time.
    static REFUSED: OnceLock<String> = OnceLock::new();

    let refused = |containment, reason| OsError::ContainmentRefused { containment, reason };
    if !tree::kernel_lists_children() {
        let reason =
            "the kernel has no /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN), or /proc is missing";
        return Err(refused(spec.force.unwrap_or(Containment::Subreaper), reason.to_owned()));
    }
    let try_one = |containment| match launch(containment, spec, machine) {
        Ok(launched) => Ok(Ok(launched)),
        Err(Failure::Refused(reason)) => Ok(Err(reason)),
        Err(Failure::Passing(error)) => Err(error),
    };
    if let Some(containment) = spec.force {
        return try_one(containment)?.map_err(|reason| refused(containment, reason));
    }
    if REFUSED.get().is_none() {
        match try_one(Containment::PidNamespace)? {
            Ok(launched) => return Ok(launched),
            // Another thread may have stored the same.
            Err(reason) => drop(REFUSED.set(reason)),
        }
    }
    let mut launched =
        try_one(Containment::Subreaper)?.map_err(|reason| refused(Containment::Subreaper, reason))?;
    launched.reason = REFUSED.get().cloned();
    Ok(launched)
}

fn launch(containment: Containment, spec: &SlotSpec, machine: Machine) -> Result<Launched, Failure> {
    let passing = |doing: &str| {
        let doing = doing.to_owned();
        move |errno| Failure::Passing(OsError::from_errno(doing, errno))
    };
    let (control, theirs) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(passing("making a slot's control socket"))?;
    setsockopt(&control, sockopt::PassCred, &true).map_err(passing("asking for process ids on a socket"))?;

    let in_namespace = containment == Containment::PidNamespace;
    let user_namespace = in_namespace && machine.euid != 0;
    let pid_max_wanted = in_namespace && machine.has_namespace_pid_max();
    let setup = Setup {
        control: theirs.as_raw_fd(),
        namespaces: in_namespace.then(|| namespaces(spec, user_namespace, pid_max_wanted)),
        stack: vec![0; STACK_BYTES],
    };
    let process = clone_init(&setup, user_namespace).map_err(|errno| match errno {
        // Out of namespaces is a setting of the machine, not a passing shortage.
        Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE => {
            passing("starting a slot's init")(errno)
        }
        _ => Failure::Refused(with_cause(&format!("clone of its init failed: {errno}"))),
    })?;
    drop(theirs);

    match hello(&control) {
        Ok(notes) => {
            let pid_max_set = pid_max_wanted && notes[2] == 0;
            Ok(Launched {
                containment,
                reason: in_namespace.then(|| missing(&notes)).flatten(),
                process_limit: machine.process_limit(containment, pid_max_set),
                control,
                process,
            })
        }
        Err(failure) => {
            drop(control);
            process.end(READY_LIMIT);
            Err(failure)
        }
    }
}

fn namespaces(spec: &SlotSpec, user_namespace: bool, pid_max_wanted: bool) -> Namespaces {
    let text = |text: String| CString::new(text).unwrap_or_default();
    let (start, pid_max) = pid_range(spec.pid_base, spec.processes_max);
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    Namespaces {
        // The same id on both sides: files look the same, and after exec no capability is left.
        maps: user_namespace.then(|| (text(format!("{uid} {uid} 1")), text(format!("{gid} {gid} 1")))),
        pid_max: pid_max_wanted.then(|| text(pid_max.to_string())),
        last_pid: text((start - 1).to_string()),
    }
}

/// Makes the process. All signals are blocked around it, so that no handler of the harness runs in the copy.
fn clone_init(setup: &Setup, user_namespace: bool) -> Result<InitProcess, Errno> {
    let mut flags = libc::CLONE_PIDFD | libc::SIGCHLD;
    if setup.namespaces.is_some() {
        flags |= libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    }
    if user_namespace {
        flags |= libc::CLONE_NEWUSER;
    }
    let mut pidfd: i32 = -1;
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    // SAFETY: without CLONE_VM this is a fork: the child runs on its own copy of this stack, and `run` never
    // returns and keeps to system calls. `pidfd` is written in our memory only.
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0) };
    if answer == 0 {
        init::run(setup);
    }
    let outcome = Errno::result(answer);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    let pid = outcome? as u32;
    // SAFETY: the clone made this descriptor, and nobody else has it.
    Ok(InitProcess { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// Waits for the init's first message: the errnos of the steps that may fail, in the order of `wire::READY`.
fn hello(control: &OwnedFd) -> Result<[i32; 4], Failure> {
    let doing = "setting itself up";
    let failed = |errno| Failure::Passing(OsError::from_errno("waiting for a slot's init", errno));
    if sys::wait_readable([control.as_fd()], Some(READY_LIMIT)).map_err(failed)? == [false] {
        return Err(Failure::Passing(OsError::Unresponsive { doing, limit: READY_LIMIT }));
    }
    let Some(received) = wire::receive(control.as_raw_fd()).map_err(failed)? else {
        return Err(Failure::Refused(with_cause("its init died while setting itself up")));
    };
    match received.words {
        [wire::READY, _, private, own_proc, pid_max, last_pid, ..] => {
            Ok([private, own_proc, pid_max, last_pid])
        }
        [_, _, step, errno, ..] => {
            let errno = Errno::from_raw(errno);
            let step = STEPS.get((step - 1) as usize).copied().unwrap_or("an unknown step");
            if is_shortage(errno) {
                return Err(Failure::Passing(OsError::from_errno(format!("{step} in a slot's init"), errno)));
            }
            Err(Failure::Refused(with_cause(&format!("{step} failed: {errno}"))))
        }
    }
}

/// What a namespace lacks that works all the same.
fn missing(notes: &[i32; 4]) -> Option<String> {
    let [private, own_proc, _, last_pid] = notes.map(Errno::from_raw);
    let ok = Errno::from_raw(0);
    let proc = if private == ok { own_proc } else { private };
    let lacks: Vec<String> = [
        (proc != ok).then(|| format!("/proc shows the outer process ids (mounting its own failed: {proc})")),
        (last_pid != ok).then(|| format!("process ids begin at 2 in each slot (ns_last_pid: {last_pid})")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!lacks.is_empty()).then(|| lacks.join("; "))
}

/// Adds the setting that is the likely cause.
fn with_cause(what: &str) -> String {
    let settings = [
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces is 0"),
        ("/proc/sys/user/max_pid_namespaces", "0", "sysctl user.max_pid_namespaces is 0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone is 0"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns is 1",
        ),
    ];
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let mut causes: Vec<&str> =
        settings.iter().filter(|(path, value, _)| is(path, value)).map(|(_, _, cause)| *cause).collect();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status.lines().any(|line| line.starts_with("Seccomp:") && !line.ends_with('0')) {
        causes.push("a seccomp filter is active, as in most containers");
    }
    if causes.is_empty() { what.to_owned() } else { format!("{what} ({})", causes.join("; ")) }
}
