//! A worker that knows nothing of the harness, beside one whose clock is five minutes ahead.

use killpoint::model::ExitCode::{Holds, Violated};

use crate::bench::Bench;

/// Holds its action by a lease of a minute, judged by the clock that its first word names.
const LEASING: &str = "
import sqlite3, time
clock = {'wall': time.CLOCK_REALTIME, 'boot': time.CLOCK_BOOTTIME}[sys.argv[1]]
db = sqlite3.connect(state('l.db'), isolation_level=None, timeout=10)
def claim():
    now = time.clock_gettime(clock)
    free = 'update q set st = \\'sending\\', until = ? where st = \\'new\\' or st = \\'sending\\' and until < ?'
    return db.execute(free, (now + 60, now)).rowcount
if sys.argv[1:] == ['wall', 'enqueue'] or sys.argv[1:] == ['boot', 'enqueue']:
    db.execute('create table q (id text primary key, st text, until real)')
    db.execute(\"insert into q values ('a1', 'new', 0)\")
elif claim():
    post()
    db.execute(\"update q set st = 'sent'\")
";

fn leasing_by(clock: &str) -> Bench {
    let bench = Bench::with_worker(LEASING);
    let worker = bench.path("worker.py").display().to_string();
    let env = "env = { PROVIDER_URL = \"{provider.rest}\", STATE_DIR = \"{state}\" }";
    let section =
        format!("[worker]\ncommand = [\"python3\", \"{worker}\", \"{clock}\", \"{{worker}}\"]\n{env}\n");
    let more = format!(
        "[state]\nenqueue = [\"python3\", \"{worker}\", \"{clock}\", \"enqueue\"]\n\n\
         [ledger]\nkind = \"sqlite\"\npath = \"{{state}}/l.db\"\nquery = \"select id as action, st as state, 'k1' as key from q\"\n\
         states = {{ new = \"created\", sending = \"dispatching\", sent = \"confirmed\" }}\n"
    );
    bench.config(&section, &more);
    bench
}

#[test]
fn a_lease_by_the_wall_clock_is_found_without_the_workers_help() {
    for (clock, code) in [("boot", Holds), ("wall", Violated)] {
        let bench = leasing_by(clock);
        let said = bench.run(&["--scenario", "second-worker-five-minutes-ahead"]);
        if said.out.contains("worker-clock is not to be had here") {
            // Without the right to trace it is never green, and nothing else is to be seen.
            return;
        }
        said.exits(code);
        bench.is_judged_again(code);
    }
}
