//! Which limit keeps a worker from filling the machine with processes.

use std::os::unix::fs::MetadataExt;

use killpoint_model::event::{Containment, ProcessLimit};

/// Process ids below this are not given out again once a namespace has wrapped around.
const RESERVED_PIDS: u32 = 300;

/// The kernel's own upper bound of `pid_max`.
const PID_MAX_LIMIT: u32 = 4_194_304;

/// What the user's other programs may grow by while a worker runs, where one count is kept for all of them.
const OTHER_PROGRAMS_HEADROOM: u64 = 256;

/// What is known about the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    /// Major and minor version of the kernel.
    pub(super) kernel: (u32, u32),
    /// The harness's effective user.
    pub(super) euid: u32,
}

impl Machine {
    /// Looks at the running kernel and user.
    pub(super) fn here() -> Self {
        let release = nix::sys::utsname::uname()
            .map(|uname| uname.release().to_string_lossy().into_owned())
            .unwrap_or_default();
        Self { kernel: parse_release(&release), euid: nix::unistd::geteuid().as_raw() }
    }

    /// Whether `kernel.pid_max` belongs to the namespace. Before, writing it would change the whole machine.
    pub(super) fn has_namespace_pid_max(self) -> bool {
        self.kernel >= (6, 14)
    }

    /// The limit that holds, given whether the namespace took its `pid_max`.
    pub(super) fn process_limit(self, containment: Containment, pid_max_set: bool) -> ProcessLimit {
        if containment == Containment::PidNamespace && pid_max_set {
            ProcessLimit::NamespacePidMax
        } else if self.euid != 0 {
            ProcessLimit::Rlimit
        } else {
            // RLIMIT_NPROC does not bind root.
            ProcessLimit::Watch
        }
    }

    /// The value of `RLIMIT_NPROC` that leaves room for `processes_max`.
    pub(super) fn rlimit_nproc(self, containment: Containment, processes_max: u32) -> u64 {
        if containment == Containment::PidNamespace && self.kernel >= (5, 14) {
            // Counted per user namespace, and only the init is in ours besides the worker.
            u64::from(processes_max) + 1
        } else {
            // One count for all programs of the user, other slots too: a backstop, so rather too high, because
            // a refused fork that the worker did not cause would look like its own fault.
            tasks_of_user(self.euid) + 2 * u64::from(processes_max) + OTHER_PROGRAMS_HEADROOM
        }
    }
}

/// The first process id of a namespace, and its `pid_max`, so that `processes_max` fit at any time.
///
/// Ids run from the start and wrap to 300, so what really fits is `processes_max` plus what `pid_base` is
/// above 300.
pub(super) fn pid_range(pid_base: u32, processes_max: u32) -> (u32, u32) {
    let start = pid_base.clamp(RESERVED_PIDS, PID_MAX_LIMIT / 2);
    (start, start.saturating_add(processes_max.max(1)).min(PID_MAX_LIMIT))
}

fn parse_release(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Processes and threads of one user, as far as `/proc` shows them.
fn tasks_of_user(uid: u32) -> u64 {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let mine = entries.flatten().filter(|entry| {
        entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())
            && entry.metadata().is_ok_and(|metadata| metadata.uid() == uid)
    });
    mine.map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(1, |tasks| tasks.count() as u64))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_is_read_up_to_the_minor_version() {
        assert_eq!(parse_release("6.18.44-fc-v657"), (6, 18));
        assert_eq!(parse_release("5.4-rc1"), (5, 4));
        assert_eq!(parse_release(""), (0, 0));
    }

    #[test]
    fn the_range_holds_the_asked_number_even_after_wrap_around() {
        for (base, processes_max) in [(0, 64), (300, 1), (1000, 256), (4_000_000, 64), (9, u32::MAX)] {
            let (start, pid_max) = pid_range(base, processes_max);
            assert!(start >= RESERVED_PIDS && pid_max > RESERVED_PIDS && pid_max <= PID_MAX_LIMIT);
            assert!(pid_max - RESERVED_PIDS >= processes_max.min(64), "{base} {processes_max}");
        }
        assert_eq!(pid_range(0, 64), (300, 364));
    }

    #[test]
    fn root_is_watched_where_the_namespace_has_no_limit_of_its_own() {
        let old_root = Machine { kernel: (5, 10), euid: 0 };
        assert!(!old_root.has_namespace_pid_max());
        assert_eq!(old_root.process_limit(Containment::PidNamespace, false), ProcessLimit::Watch);
        let user = Machine { kernel: (6, 1), euid: 1000 };
        assert_eq!(user.process_limit(Containment::PidNamespace, false), ProcessLimit::Rlimit);
        assert_eq!(user.process_limit(Containment::Subreaper, true), ProcessLimit::Rlimit);
        assert_eq!(user.rlimit_nproc(Containment::PidNamespace, 64), 65);
        assert!(user.rlimit_nproc(Containment::Subreaper, 64) >= 64);
    }
}
