//! The process tree below an init, as `/proc` shows it to the harness.

use std::collections::{BTreeSet, VecDeque};
use std::fs;

use nix::errno::Errno;

use super::sys;

/// One process of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) threads: Vec<Thread>,
}

/// One thread, with its state letter as in `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thread {
    id: u32,
    state: char,
    has_children: bool,
}

impl Member {
    /// Whether any thread can still run; what is left otherwise is an entry that waits to be reaped.
    pub(super) fn is_alive(&self) -> bool {
        self.threads.iter().any(|thread| !matches!(thread.state, 'Z' | 'X'))
    }

    /// Processes and threads that count against a limit.
    pub(super) fn tasks(&self) -> u32 {
        self.threads.len() as u32
    }

    /// The state of a thread that could still execute the program's instructions, where there is one.
    ///
    /// `held` are the threads that a tracer of ours holds stopped. Any other traced stop of its tree is about to
    /// end. Without such a tracer it is `None`, and a traced stop is somebody else's and lasts.
    pub(super) fn running_state(&self, held: Option<&BTreeSet<u32>>) -> Option<char> {
        self.threads.iter().find(|thread| !self.stands_still(thread, held)).map(|thread| thread.state)
    }

    fn stands_still(&self, thread: &Thread, held: Option<&BTreeSet<u32>>) -> bool {
        match thread.state {
            'T' | 'Z' | 'X' => true,
            't' => held.is_none_or(|held| held.contains(&thread.id)),
            // A vfork parent sleeps until its child has executed a program, and that child is stopped.
            'D' => thread.has_children && is_in_clone(self.pid, thread.id),
            _ => false,
        }
    }
}

/// Every process below `init`, parents first. Processes that come or go meanwhile may be missed: compare two
/// walks where that matters.
pub(super) fn walk(init: u32) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    let mut seen = BTreeSet::from([init]);
    let mut pending = VecDeque::from([(init, 0)]);
    while let Some((pid, parent)) = pending.pop_front() {
        let mut threads = Vec::new();
        for id in threads_of(pid) {
            let below = children(pid, id);
            if let Some((state, _)) = stat(&format!("/proc/{pid}/task/{id}/stat")) {
                threads.push(Thread { id, state, has_children: !below.is_empty() });
            }
            pending.extend(below.into_iter().filter(|&child| seen.insert(child)).map(|child| (child, pid)));
        }
        if pid != init && !threads.is_empty() {
            members.push(Member { pid, parent, threads });
        }
    }
    members
}

/// Sends `signal` to a process that a walk found, unless its number belongs to another process by now.
/// `Ok` also when the process is gone.
pub(super) fn signal(init: u32, member: &Member, signal: i32) -> Result<(), Errno> {
    let pidfd = match sys::pidfd_open(member.pid) {
        Ok(pidfd) => pidfd,
        Err(Errno::ESRCH) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    // After the pidfd is open: what now has the number and one of our parents is what the pidfd means, or the
    // pidfd means something dead.
    match stat(&format!("/proc/{}/stat", member.pid)) {
        Some((_, parent)) if parent == member.parent || parent == init => {
            match sys::pidfd_signal(pidfd, signal) {
                Err(Errno::ESRCH) => Ok(()),
                other => other,
            }
        }
        _ => Ok(()),
    }
}

/// Whether the kernel lists children, which everything here needs (`CONFIG_PROC_CHILDREN`).
pub(super) fn kernel_lists_children() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

fn threads_of(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children(pid: u32, thread: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// State letter and parent. The command's name before them may hold anything, parentheses too.
fn stat(path: &str) -> Option<(char, u32)> {
    let bytes = fs::read(path).ok()?;
    let end = bytes.iter().rposition(|&byte| byte == b')')?;
    let rest = String::from_utf8_lossy(bytes.get(end + 1..)?).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn is_in_clone(pid: u32, thread: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).unwrap_or_default();
    let number = text.split_ascii_whitespace().next().and_then(|word| word.parse::<i64>().ok());
    number.is_some_and(|number| {
        #[cfg(target_arch = "x86_64")]
        if number == libc::SYS_vfork {
            return true;
        }
        number == libc::SYS_clone || number == libc::SYS_clone3
    })
}
