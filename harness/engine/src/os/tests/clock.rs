//! Another wall clock, and nothing else that differs.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use killpoint_model::event::Containment;
use killpoint_model::{Clock, SystemClock};

use super::{BOTH, Fixture, OFFSET_MS, eventually, helper, size, traces};
use crate::os::{ClockReport, OsError, SlotEvent, probe_clock, sys};

/// What reading a clock may be late, on a busy machine. Offsets are much larger.
const MARGIN_S: i64 = 120;

/// Fixtures of both tiers whose clock is off.
fn off_by(offset_ms: i64) -> impl Iterator<Item = Fixture> {
    let tiers = if traces() { &BOTH[..] } else { &[] };
    tiers.iter().filter_map(move |&tier| Some(Fixture::open(tier)?.off_by(offset_ms)))
}

fn now_s() -> i64 {
    (SystemClock::default().now_ms() / 1000) as i64
}

/// Fails unless `text` is a time that is off by `offset_ms` from now.
fn assert_off(text: &str, offset_ms: i64, what: &str) {
    let said: f64 = text.trim().parse().unwrap_or_else(|_| panic!("{what}: no number: {text:?}"));
    let off = said as i64 - now_s() - offset_ms / 1000;
    assert!(off.abs() <= MARGIN_S, "{what}: off by {off} s more than {offset_ms} ms");
}

/// All programs of the trees so far were patched; how many there were.
fn patched(f: &Fixture) -> u32 {
    let report = f.slot.take_clock_report();
    assert_eq!(report.failures, Vec::<String>::new());
    report.patched
}

impl Fixture {
    /// Runs a Python program to its end and returns what it printed.
    fn python(&self, program: &str) -> String {
        let pid = self.spawn(&["python3", "-S", "-E", "-c", program]).unwrap();
        let end = self.event();
        let complaint = std::fs::read_to_string(self.path("err")).unwrap();
        assert_eq!(end, SlotEvent::RootExited { pid, code: Some(0), signal: None }, "{complaint}");
        assert_eq!(self.event(), SlotEvent::Emptied);
        self.out()
    }

    /// Compiles a C program; `None`, with a printed line, where that can't be done.
    #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
    fn compiled(&self, source: &str, flags: &[&str]) -> Option<String> {
        std::fs::write(self.path("program.c"), source).unwrap();
        let mut command = Command::new("cc");
        command.args(flags).args(["-O1", "-o", "program", "program.c"]).current_dir(self.dir.path());
        match command.output() {
            Ok(output) if output.status.success() => Some("./program".to_owned()),
            Ok(output) => {
                eprintln!("skipped: cc {flags:?}: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                eprintln!("skipped: cc: {error}");
                None
            }
        }
    }
}

/// Every way of the C library to ask for the time of day, and the monotonic clock.
const ALL_CLOCKS: &str = r#"
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
int main(void) {
    struct timespec t;
    struct timeval v;
    time_t stored;
    clock_gettime(CLOCK_REALTIME, &t); printf("%lld\n", (long long)t.tv_sec);
    clock_gettime(CLOCK_REALTIME_COARSE, &t); printf("%lld\n", (long long)t.tv_sec);
    clock_gettime(CLOCK_TAI, &t); printf("%lld\n", (long long)t.tv_sec);
    timespec_get(&t, TIME_UTC); printf("%lld\n", (long long)t.tv_sec);
    gettimeofday(&v, NULL); printf("%lld\n", (long long)v.tv_sec);
    printf("%lld\n", (long long)time(&stored));
    printf("%lld\n", (long long)stored);
    clock_gettime(CLOCK_MONOTONIC, &t); printf("%lld\n", (long long)t.tv_sec);
    clock_gettime(CLOCK_BOOTTIME, &t); printf("%lld\n", (long long)t.tv_sec);
    return 0;
}
"#;

#[test]
fn every_clock_of_the_day_is_off_in_dynamic_and_static_programs() {
    for flags in [&[][..], &["-static"]] {
        for offset_ms in [OFFSET_MS, -3 * OFFSET_MS, 90_000_500, -500_000_001] {
            for f in off_by(offset_ms) {
                let Some(program) = f.compiled(ALL_CLOCKS, flags) else { return };
                let printed = f.output_of(&format!("exec {program}"));
                let lines: Vec<&str> = printed.lines().collect();
                assert_eq!(lines.len(), 9);
                for (index, line) in lines.iter().take(7).enumerate() {
                    assert_off(line, offset_ms, &format!("clock {index}, {flags:?}"));
                }
                let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
                let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
                for line in &lines[7..] {
                    let seconds: f64 = line.parse().unwrap();
                    assert!((uptime - seconds).abs() <= MARGIN_S as f64, "{seconds}, not {uptime}");
                }
                assert_eq!(patched(&f), 2);
            }
        }
    }
}

#[test]
fn forks_threads_and_new_programs_see_the_same_clock() {
    const TREE: &str = "
import ctypes, os, subprocess, sys, threading, time
def say(what):
    os.write(1, ('%s %f\\n' % (what, time.time())).encode())
say('root')
thread = threading.Thread(target=say, args=('thread',))
thread.start(); thread.join()
pid = os.fork()
if pid == 0:
    say('child')
    thread = threading.Thread(target=say, args=('thread of the child',))
    thread.start(); thread.join()
    os._exit(0)
os.waitpid(pid, 0)
subprocess.run(['sh', '-c', 'echo program $(date +%s)'], check=True)
os.spawnvp(os.P_WAIT, 'sh', ['sh', '-c', 'setsid sh -c \"echo session $(date +%s)\"'])
# The first thread is replaced by another one's program.
threading.Thread(target=os.execvp, args=('sh', ['sh', '-c', 'echo replaced $(date +%s)'])).start()
time.sleep(1000)
";
    for f in off_by(OFFSET_MS) {
        let printed = f.python(TREE);
        let seen: Vec<&str> = printed
            .lines()
            .map(|line| {
                let (what, time) = line.rsplit_once(' ').unwrap();
                assert_off(time, OFFSET_MS, what);
                what
            })
            .collect();
        let wanted = ["root", "thread", "child", "thread of the child", "program", "session", "replaced"];
        assert_eq!(seen, wanted);
        assert!(patched(&f) >= 8);
    }
}

#[test]
fn an_untraced_life_follows_a_traced_one() {
    for mut f in off_by(OFFSET_MS) {
        assert_off(&f.output_of("date +%s"), OFFSET_MS, "traced");
        f.clock_offset_ms = 0;
        assert_off(&f.output_of("date +%s"), 0, "untraced");
        f.clock_offset_ms = -OFFSET_MS;
        assert_off(&f.output_of("date +%s"), -OFFSET_MS, "traced again");
        f.clock_offset_ms = 0;
        let status = f.output_of("exec cat /proc/self/status");
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
        assert_eq!(patched(&f), 4);
        assert_eq!(f.slot.take_clock_report(), ClockReport::default());
    }
}

#[test]
fn ordinary_waits_take_as_long_as_ever() {
    const WAITS: &str = "
import queue, select, threading, time
def takes(wait):
    begun = time.monotonic()
    wait()
    took = time.monotonic() - begun
    assert 0.19 <= took < 60, took
takes(lambda: time.sleep(0.2))
takes(lambda: threading.Event().wait(0.2))
lock = threading.Lock(); lock.acquire()
takes(lambda: lock.acquire(timeout=0.2))
condition = threading.Condition()
def wait():
    with condition: condition.wait(0.2)
takes(wait)
def get():
    try: queue.Queue().get(timeout=0.2)
    except queue.Empty: pass
takes(get)
takes(lambda: select.select([], [], [], 0.2))
takes(lambda: select.poll().poll(200))
takes(lambda: select.epoll().poll(0.2))
";
    for f in off_by(OFFSET_MS) {
        assert_eq!(f.python(WAITS), "");
    }
}

#[test]
fn signals_reach_the_worker_as_they_were_sent() {
    const SIGNALS: &str = "
import os, signal, time
seen = []
wanted = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGTRAP, signal.SIGSEGV, signal.SIGURG,
    signal.SIGWINCH, signal.SIGTSTP, signal.SIGTTIN, signal.SIGCONT, signal.SIGRTMIN + 3, signal.SIGRTMAX]
for number in wanted:
    signal.signal(number, lambda number, frame: seen.append(number))
for number in wanted:
    os.kill(os.getpid(), number)
assert seen == wanted, seen
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)
info = signal.sigwaitinfo([signal.SIGUSR2])
assert (info.si_signo, info.si_pid, info.si_uid) == (signal.SIGUSR2, os.getpid(), os.getuid())
ticks = []
signal.signal(signal.SIGALRM, lambda number, frame: ticks.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
while len(ticks) < 50: signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
children = []
signal.signal(signal.SIGCHLD, lambda number, frame: children.append(number))
pid = os.fork()
if pid == 0: os._exit(7)
assert os.waitpid(pid, 0) == (pid, 7 << 8)
assert children == [signal.SIGCHLD]
";
    for f in off_by(OFFSET_MS) {
        assert_eq!(f.python(SIGNALS), "");
    }
}

#[test]
fn a_worker_can_stop_its_children_and_let_them_go_on() {
    const STOPS: &str = "
import os, signal
for stop in [signal.SIGSTOP, signal.SIGTSTP, signal.SIGSTOP]:
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), stop)
        os._exit(9)
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == stop, status
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    os.kill(pid, signal.SIGCONT)
    _, status = os.waitpid(pid, os.WCONTINUED)
    if os.WIFCONTINUED(status):
        _, status = os.waitpid(pid, 0)
    assert status == 9 << 8, status
";
    for f in off_by(OFFSET_MS) {
        // A group whose leader's parent is outside of it is not orphaned, so that SIGTSTP stops.
        assert_eq!(f.python(&format!("import os\nif os.fork():\n    _, status = os.wait()\n    os._exit(status >> 8)\nos.setpgid(0, 0){STOPS}")), "");
    }
}

#[test]
fn ends_are_reported_as_they_were() {
    for f in off_by(OFFSET_MS) {
        for (script, code, signal) in [
            ("exit 0", Some(0), None),
            ("exit 77", Some(77), None),
            ("kill -TERM $$", None, Some(libc::SIGTERM)),
            ("kill -TRAP $$", None, Some(libc::SIGTRAP)),
            ("kill -SEGV $$", None, Some(libc::SIGSEGV)),
            ("kill -KILL $$", None, Some(libc::SIGKILL)),
            ("sh -c 'kill -KILL $$'; exit 3", Some(3), None),
        ] {
            let pid = f.sh(script);
            assert_eq!(f.event(), SlotEvent::RootExited { pid, code, signal }, "{script}");
            assert_eq!(f.event(), SlotEvent::Emptied);
        }
        // What the worker reaped itself counts as little as it does untraced.
        f.slot.kill_all().unwrap();
        f.output_of("for n in 1 2 3 4 5; do sh -c 'exit 4' || :; done; (sleep 0.05; :) & exit 0");
        let proof = f.slot.kill_all().unwrap();
        assert_eq!((proof.was_alive, proof.survivors, proof.reaped), (false, 0, 2));
    }
}

#[test]
fn a_tree_that_makes_threads_all_the_time_stands_still() {
    const CHURN: &str = "
import os, signal, threading
file = open('written', 'ab', buffering=0)
signal.signal(signal.SIGALRM, lambda number, frame: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
os.fork()
def work():
    file.write(b'x')
while True:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
";
    for f in off_by(OFFSET_MS) {
        f.spawn(&["python3", "-S", "-E", "-c", CHURN]).unwrap();
        for _ in 0..20 {
            let before = size(&f.path("written"));
            eventually("it writes", || size(&f.path("written")) > before);
            f.slot.freeze().unwrap();
            let before = size(&f.path("written"));
            sys::pause(std::time::Duration::from_millis(10));
            assert_eq!(size(&f.path("written")), before);
            f.slot.thaw().unwrap();
        }
        f.slot.freeze().unwrap();
        let proof = f.slot.kill_all().unwrap();
        assert_eq!((proof.signal, proof.was_alive, proof.survivors), (Some(9), true, 0));
        assert_eq!(proof.reaped, 2);
    }
}

/// A 32-bit program that exits with 5: a header, one segment, and `exit` by the interrupt.
fn program_of_32_bits() -> Vec<u8> {
    let code = [0x31, 0xc0, 0x40, 0x31, 0xdb, 0xb3, 5, 0xcd, 0x80];
    let (base, headers) = (0x0804_8000_u32, 52 + 32);
    let length = headers + code.len() as u32;
    let mut image = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let mut put = |bytes: &[u8]| image.extend_from_slice(bytes);
    put(&[2, 0, 3, 0, 1, 0, 0, 0]);
    for word in [base + headers, 52, 0, 0] {
        put(&word.to_le_bytes());
    }
    put(&[52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    for word in [1, 0, base, base, length, length, 5, 0x1000] {
        put(&word.to_le_bytes());
    }
    put(&code);
    image
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn a_program_that_cannot_be_patched_is_reported_and_runs() {
    for f in off_by(OFFSET_MS) {
        std::fs::write(f.path("program"), program_of_32_bits()).unwrap();
        std::fs::set_permissions(f.path("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let pid = f.sh("./program; echo $?; date +%s; exit 0");
        assert_eq!(f.event(), SlotEvent::RootExited { pid, code: Some(0), signal: None });
        let out = f.out();
        let (code, time) = out.split_once('\n').unwrap();
        assert_off(time, OFFSET_MS, "beside it");
        let report = f.slot.take_clock_report();
        if code != "5" {
            eprintln!("skipped: this kernel runs no 32-bit program");
            return;
        }
        assert_eq!(report.patched, 2);
        let [failure] = &report.failures[..] else { panic!("{report:?}") };
        assert!(failure.starts_with("`program` (process "), "{failure}");
        assert!(failure.ends_with("it has no 64-bit vDSO, as a 32-bit program"), "{failure}");
    }
}

/// For an ordinary user: what may not be read may not be patched.
pub(super) fn an_unreadable_program_is_reported(containment: Containment) {
    let Some(f) = Fixture::open(containment).map(|f| f.off_by(OFFSET_MS)) else { return };
    std::fs::copy("/bin/sleep", f.path("sleep")).unwrap();
    std::fs::set_permissions(f.path("sleep"), std::fs::Permissions::from_mode(0o111)).unwrap();
    assert_off(&f.output_of("./sleep 0; date +%s"), OFFSET_MS, "beside it");
    let report = f.slot.take_clock_report();
    // Who may make a user namespace has the right to look into its processes.
    if report.failures.is_empty() {
        assert_eq!((containment, report.patched), (Containment::PidNamespace, 3));
    } else {
        assert_eq!((report.patched, report.failures.len()), (2, 1));
        assert!(report.failures[0].starts_with("`sleep` (process "), "{report:?}");
    }
}

/// Inside another tracer, which leaves no room for ours.
#[expect(clippy::print_stdout, reason = "the test that started this reads it")]
pub(super) fn untraceable() {
    for _ in 0..2 {
        assert_eq!(probe_clock().unwrap_err(), "tracing a process: EPERM: Operation not permitted");
    }
    for f in BOTH.into_iter().filter_map(Fixture::open).map(|f| f.off_by(OFFSET_MS)) {
        let error = f.spawn(&["true"]).unwrap_err();
        assert!(matches!(error, OsError::ClockRefused { .. }) && !error.is_infrastructure(), "{error}");
        assert!(error.to_string().ends_with("tracing the worker: EPERM: Operation not permitted"), "{error}");
        assert!(f.slot.processes().is_empty());
        let f = f.off_by(0);
        assert_off(&f.output_of("date +%s"), 0, "untraced");
        assert_eq!(f.slot.kill_all().unwrap().reaped, 1);
    }
    println!("untraceable: done");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn a_refusal_to_trace_is_explained_and_the_slot_goes_on() {
    if !traces() {
        return;
    }
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=none", "-e", "signal=none", "-o", "/dev/null"]);
    strace.arg(std::env::current_exe().unwrap()).args(helper::ARGUMENTS).env(helper::NAME, "untraceable");
    match strace.output() {
        Ok(output) => {
            let said = format!("{output:?}");
            assert!(output.status.success() && said.contains("untraceable: done"), "{said}");
        }
        Err(error) => eprintln!("skipped: no other tracer here: strace: {error}"),
    }
}
