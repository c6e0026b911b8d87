//! Workers that can't be started, never work, flood, hide or refuse to die.

use killpoint::model::ExitCode::{Holds, SetupFailed, Violated};

use crate::bench::Bench;

/// A worker that looks up before it sends again, and so is right.
const RIGHT: &str = "
if once('sent') or not lookup():
    post()
";

#[test]
fn a_command_that_does_not_exist_is_named() {
    let bench = Bench::new();
    bench
        .run(&["--", "no-such-program-anywhere"])
        .exits(SetupFailed)
        .complains(&["no-such-program-anywhere", "not found"]);
    bench.is_judged_again(SetupFailed);
}

#[test]
fn a_prepare_command_that_fails_is_shown_with_its_words() {
    let more = "[state]\nprepare = [[\"sh\", \"-c\", \"echo no disk >&2; exit 9\"]]\n";
    let bench = Bench::configured(RIGHT, more);
    bench.run(&[]).exits(SetupFailed).complains(&["prepare command", "exited with 9", "no disk"]);
    bench.is_judged_again(SetupFailed);
}

#[test]
fn a_worker_that_never_sends_is_a_failed_set_up() {
    let bench = Bench::with_worker("print('idle')");
    bench.run_bare(&[]).exits(SetupFailed).complains(&[
        "sent nothing to the provider",
        "{provider.rest}",
        "its last output: idle",
    ]);
    bench.is_judged_again(SetupFailed);
}

#[test]
fn a_worker_that_never_sends_what_its_ledger_owes_has_lost_it() {
    let script = "
import sqlite3
db = sqlite3.connect(state('l.db'))
db.execute('create table if not exists q (id text primary key, st text)')
db.execute(\"insert or ignore into q values ('a1', 'created')\")
db.commit()
";
    let ledger = "[ledger]\nkind = \"sqlite\"\npath = \"{state}/l.db\"\nquery = \"select id as action, st as state from q\"\n";
    let bench = Bench::configured(script, ledger);
    bench.run(&[]).exits(Violated).says(&["a1", "created"]);
    bench.is_judged_again(Violated);
}

#[test]
fn a_worker_that_crashes_at_once_is_shown_with_its_last_words() {
    let bench = Bench::with_worker("sys.exit('boom at line 12')");
    bench.run_bare(&[]).exits(SetupFailed).complains(&["6 times", "exit code 1", "boom at line 12"]);
    bench.is_judged_again(SetupFailed);
}

#[test]
fn a_flood_of_output_is_capped_and_the_run_is_judged() {
    let flood = "
for _ in range(100):
    sys.stdout.buffer.write(b'y' * 1_000_000)
sys.stdout.flush()
";
    let bench = Bench::with_worker(&format!("{flood}{RIGHT}"));
    bench.run_bare(&["provider:committed#1"]).exits(Holds);
    bench.is_judged_again(Holds);
    let bytes = size_of(&bench.path("run"));
    assert!(bytes < 8_000_000, "{bytes}");
}

#[test]
fn nothing_that_flees_or_ignores_sigterm_lives_on() {
    let script = format!(
        "
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write, b'x')
        os.closerange(0, 3)
        time.sleep(600)
    os._exit(0)
os.read(read, 1)
{RIGHT}
time.sleep(600)
"
    );
    let bench = Bench::with_worker(&script);
    let section = bench.worker_section();
    bench.config(
        &format!("{section}lifecycle = \"runs-forever\"\n"),
        "[settle]\nby = \"quiet\"\nquiet = \"300ms\"\n",
    );
    bench.run(&["--boundary", "provider:committed#1"]).exits(Holds);
    bench.is_judged_again(Holds);
    let killed = bench.last_events().into_iter().find_map(|event| match event {
        killpoint::model::event::EventKind::Killed { proof, .. } => Some(proof),
        _ => None,
    });
    let proof = killed.unwrap();
    assert!(proof.was_alive && proof.signal == Some(9) && proof.survivors == 0, "{proof:?}");
}

fn size_of(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() { size_of(&entry.path()) } else { meta.len() }
        })
        .sum()
}
