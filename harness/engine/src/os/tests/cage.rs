//! What the containment is, and that it gives a worker nothing.

use killpoint_model::event::Containment;
use nix::unistd::geteuid;

use super::{BOTH, Fixture, helper};
use crate::os::probe;

#[test]
fn probe_says_what_an_open_slot_then_is() {
    let capabilities = probe().unwrap();
    let spec = crate::os::SlotSpec { processes_max: 64, pid_base: 0, force: None };
    let f = Fixture::with(spec).unwrap();
    assert_eq!(f.slot.containment(), capabilities.containment);
    assert_eq!(f.slot.containment_reason(), capabilities.containment_reason.as_deref());
    assert_eq!(f.slot.process_limit(), capabilities.process_limit);
    let is_weaker = capabilities.containment == Containment::Subreaper;
    assert!(!is_weaker || capabilities.containment_reason.is_some());
}

#[test]
fn a_namespace_shows_a_worker_only_its_own_tree() {
    let mounts = || std::fs::read_to_string("/proc/mounts").unwrap().matches(" /proc proc ").count();
    let mounts_before = mounts();
    let Some(f) = Fixture::open(Containment::PidNamespace) else { return };
    if f.slot.containment_reason().is_some() {
        return;
    }
    let seen = f.output_of("cd /proc; cat 1/comm; echo [0-9]*; exec readlink self");
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[0], "killpoint-init");
    assert_eq!(lines[1], format!("1 {}", lines[2]));
    // Process 1 can't be killed from inside.
    assert_eq!(f.output_of("kill -9 1; kill -9 -- -1; echo fine").trim(), "fine");
    // Its mounts stay inside.
    assert_eq!(mounts(), mounts_before);
}

pub(super) fn a_worker_gains_no_privilege(containment: Containment) {
    let Some(f) = Fixture::open(containment) else { return };
    let status = f.output_of("exec cat /proc/self/status");
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = |text: &str, name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for name in ["CapEff", "CapPrm", "CapInh", "CapAmb", "Uid", "Gid", "NoNewPrivs"] {
        assert_eq!(line(&status, name), line(&own, name), "{containment}");
    }
}

#[test]
fn a_worker_has_the_privileges_of_the_harness() {
    BOTH.into_iter().for_each(a_worker_gains_no_privilege);
}

/// Runs the helper as a less privileged process; `None`, with a printed line, where that can't be done.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn with_less_privilege(shed: &[&str], what: &str) -> Option<String> {
    if !geteuid().is_root() {
        eprintln!("skipped: {what}: no root whose privileges could be shed");
        return None;
    }
    let mut command = std::process::Command::new("setpriv");
    command.args(shed).arg(std::env::current_exe().unwrap()).args(helper::ARGUMENTS).env(helper::NAME, what);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: {what}: setpriv: {error}");
            return None;
        }
    };
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if stderr.contains("setpriv:") {
        eprintln!("skipped: {what}: {stderr}");
        return None;
    }
    assert!(output.status.success(), "{stdout}\n{stderr}");
    Some(stdout.into_owned())
}

#[test]
fn everything_holds_for_an_ordinary_user() {
    let shed = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if let Some(printed) = with_less_privilege(&shed, "unprivileged") {
        assert!(printed.contains("unprivileged: done"), "{printed}");
    }
}

#[test]
fn a_refused_namespace_is_explained_and_does_without() {
    let shed = ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
    if let Some(printed) = with_less_privilege(&shed, "refused") {
        assert!(printed.contains("refused: done"), "{printed}");
    }
}
