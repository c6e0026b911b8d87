//! Ctrl-C, and death of the worker or of the program by somebody else's hand.

use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::time::Duration;

use killpoint::model::ExitCode::{Holds, Interrupted};
use killpoint::model::event::EventKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::{Bench, end_of};

/// How long something may take that happens at once on an idle machine.
const LIMIT: Duration = Duration::from_secs(20);
/// How long a worker's tree may outlive the program.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// `hold()` connects to the test and stays connected until the process is dead.
const HOLD: &str = "
import socket
held = socket.socket(socket.AF_UNIX)
def hold():
    held.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'held'))
    held.recv(1)
";

/// Where workers that hold connect to.
struct Holders {
    listener: UnixListener,
}

impl Holders {
    fn at(bench: &Bench) -> Self {
        Self { listener: UnixListener::bind(bench.path("held")).unwrap() }
    }

    /// The next worker that holds.
    fn next(&self) -> UnixStream {
        let (sender, receiver) = mpsc::channel();
        let listener = self.listener.try_clone().unwrap();
        std::thread::spawn(move || sender.send(listener.accept().unwrap().0));
        receiver.recv_timeout(LIMIT).expect("no worker came")
    }
}

/// Waits for the end of a connection, which is the death of whoever held it.
fn assert_dies(mut holder: UnixStream) {
    holder.set_read_timeout(Some(GONE_LIMIT)).unwrap();
    match holder.read(&mut [0]) {
        Ok(read) => assert_eq!(read, 0),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "it lives on: {error}"),
    }
}

fn pid_of(child: &std::process::Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// A worker that holds in its second life, so that the fault-free trials are complete.
fn held_after_a_kill() -> Bench {
    let bench = Bench::configured(
        &format!("{HOLD}\nif generation > 1:\n    hold()\nif once('sent') or not lookup():\n    post()"),
        "",
    );
    let section = bench.worker_section();
    bench.config(&section, "[sweep]\nboundaries = [\"provider:committed#1\"]\nplans = []\n");
    bench
}

#[test]
fn ctrl_c_kills_the_trees_and_keeps_what_was_recorded() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let bench = held_after_a_kill();
        let holders = Holders::at(&bench);
        let program = bench.start(&["run", "--run-dir", "run"]);
        let holder = holders.next();
        kill(pid_of(&program), signal).unwrap();
        end_of(program).exits(Interrupted).says(&["interrupted"]);
        assert_dies(holder);
        assert_eq!(bench.processes(), Vec::<String>::new());
        let record = bench.record();
        assert!(record.interrupted);
        assert_eq!(record.trials.len(), 2, "both fault-free trials are on record");
        bench.is_judged_again(Interrupted);
    }
}

#[test]
fn the_trees_die_with_the_program() {
    let bench = held_after_a_kill();
    let holders = Holders::at(&bench);
    let program = bench.start(&["run", "--run-dir", "run"]);
    let holder = holders.next();
    kill(pid_of(&program), Signal::SIGKILL).unwrap();
    assert_dies(holder);
    assert_eq!(end_of(program).code, None);
    assert_eq!(bench.processes(), Vec::<String>::new());
    let record = bench.record();
    assert_eq!(record.trials.len(), 2, "what had ended is on record");
    let said = bench.killpoint(&["check", "run"]).never_panics();
    assert_ne!(said.code, Some(0), "a run that was cut short is not green");
}

#[test]
fn a_worker_that_somebody_else_kills_is_started_again() {
    let bench = Bench::configured(
        &format!("{HOLD}\nif once('held'):\n    hold()\nif once('sent') or not lookup():\n    post()"),
        "[sweep]\nboundaries = [\"provider:committed#1\"]\nplans = []\n",
    );
    let holders = Holders::at(&bench);
    let program = bench.start(&["run", "--run-dir", "run"]);
    for _trial in 0..3 {
        let holder = holders.next();
        // The program itself is not started from the folder's path, so what is found is the worker.
        for pid in bench.pids() {
            kill(pid, Signal::SIGKILL).unwrap();
        }
        assert_dies(holder);
    }
    end_of(program).exits(Holds);
    assert_eq!(bench.processes(), Vec::<String>::new());
    let exits = bench.last_events().into_iter().filter_map(|event| match event {
        EventKind::Exited { signal, .. } => signal,
        _ => None,
    });
    assert_eq!(exits.collect::<Vec<_>>(), [9]);
    bench.is_judged_again(Holds);
}
