//! This test binary as another program: it runs only [`helper`], and only with [`NAME`] set.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io::Write;

use killpoint_model::event::Containment;

use super::{BOTH, Fixture, OFFSET_MS, cage, clock, eventually, limit};
use crate::os::{SlotSpec, SpawnSpec, probe};

/// The variable that says what to be.
pub(super) const NAME: &str = "KILLPOINT_OS_TEST_HELPER";

/// The arguments that select it.
pub(super) const ARGUMENTS: [&str; 4] = ["--exact", "os::tests::helper::helper", "--nocapture", "--quiet"];

/// Starts the helper as a worker, in the fixture's directory.
pub(super) fn spawn_in(f: &Fixture, what: &str) {
    let exe = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let argv: Vec<String> = std::iter::once(exe).chain(ARGUMENTS.map(str::to_owned)).collect();
    let null = || std::fs::File::create("/dev/null").unwrap().into();
    let env = BTreeMap::from([(NAME.to_owned(), what.to_owned())]);
    f.slot
        .spawn(SpawnSpec {
            argv: &argv,
            env: &env,
            cwd: f.dir.path(),
            clock_offset_ms: f.clock_offset_ms,
            stdout: null(),
            stderr: null(),
        })
        .unwrap();
}

#[test]
fn helper() {
    let Ok(what) = std::env::var(NAME) else { return };
    match what.split_once(' ') {
        None if what == "vfork" => wait_in_vfork(),
        None if what == "unprivileged" => unprivileged(),
        None if what == "refused" => refused(),
        None if what == "untraceable" => clock::untraceable(),
        Some(("harness", containment)) => harness(containment.parse().unwrap()),
        _ => panic!("unknown helper `{what}`"),
    }
}

#[expect(clippy::print_stdout, reason = "the test that started this reads it")]
fn harness(containment: Containment) {
    let Some(f) = Fixture::open(containment) else { return };
    let pid = f.sh("(setsid sleep 1000 </dev/null >/dev/null 2>&1 &); : > ready; exec sleep 1000");
    eventually("both run", || f.path("ready").exists() && f.slot.processes().len() == 2);
    let pids = f.slot.processes();
    assert!(pids.contains(&pid));
    println!("pids: {} {} {}", f.slot.init_pid(), pids[0], pids[1]);
    std::io::stdout().flush().unwrap();
    // Until it is killed; a test that went wrong must not leave it for ever.
    let _ = f.events.recv_timeout(super::LIMIT);
}

#[expect(clippy::print_stdout, reason = "the test that started this reads it")]
fn unprivileged() {
    for containment in BOTH {
        cage::a_worker_gains_no_privilege(containment);
        limit::a_fork_loop_stays_within_its_limit(containment);
        clock::an_unreadable_program_is_reported(containment);
        for offset_ms in [0, OFFSET_MS] {
            let Some(f) = Fixture::open(containment) else { continue };
            let f = f.off_by(offset_ms);
            println!("{f:?}");
            f.sh("(setsid sleep 1000 &); (setsid sleep 1000 &); : > ready; exec sleep 1000");
            eventually("all run", || f.path("ready").exists() && f.slot.processes().len() == 3);
            f.slot.freeze().unwrap();
            let proof = f.slot.kill_all().unwrap();
            assert_eq!((proof.signal, proof.reaped, proof.survivors), (Some(9), 3, 0));
        }
    }
    println!("unprivileged: done");
}

/// Root without the right to make a namespace, as in most containers.
#[expect(clippy::print_stdout, reason = "the test that started this reads it")]
fn refused() {
    for _ in 0..2 {
        let capabilities = probe().unwrap();
        assert_eq!(capabilities.containment, Containment::Subreaper);
        let reason = capabilities.containment_reason.unwrap();
        assert!(reason.starts_with("clone of its init failed: EPERM"), "{reason}");
    }
    assert!(Fixture::open(Containment::PidNamespace).is_none());
    let f = Fixture::with(SlotSpec { processes_max: 64, pid_base: 0, force: None }).unwrap();
    assert_eq!(f.output_of("echo fine").trim(), "fine");
    println!("refused: done");
}

/// A parent that sleeps in the kernel because its vfork child does not execute anything.
fn wait_in_vfork() {
    extern "C" fn child(_: *mut c_void) -> c_int {
        // SAFETY: system calls on constants; the parent is suspended, and the child never returns.
        unsafe {
            libc::close(libc::open(c"vforked".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o644));
            loop {
                libc::pause();
            }
        }
    }
    let mut stack = vec![0_u8; 64 * 1024];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let end = stack.as_mut_ptr_range().end.map_addr(|end| end & !15);
    // SAFETY: the child runs on its own stack, which outlives it.
    unsafe { libc::clone(child, end.cast(), flags, std::ptr::null_mut()) };
}
