//! Ledgers that are damaged, locked or wrongly mapped.

use killpoint::model::ExitCode::{Holds, SetupFailed, Unproven};
use killpoint::model::event::EventKind;

use crate::bench::Bench;

/// Commits its intent before it sends, looks up what it doesn't know.
const WORKER: &str = "
import sqlite3
db = sqlite3.connect(state('l.db'), isolation_level=None)
db.execute('create table if not exists q (id text primary key, st text, n int)')
db.execute(\"insert or ignore into q values ('a1', 'created', 0)\")
was = db.execute('select st from q').fetchone()[0]
def become(st):
    db.execute('update q set st = ?', (st,))
";

const MAPPED: &str = "[provider]\naction = \"/ref\"\n[ledger]\nkind = \"sqlite\"\npath = \"{state}/l.db\"\nquery = \"select id as action, st as state from q\"\n";

fn bench(rest: &str, ledger: &str) -> Bench {
    Bench::configured(&format!("{WORKER}{rest}"), ledger)
}

const SEND: &str = "
if was == 'created':
    become('dispatching')
    post()
    become('confirmed')
elif was == 'dispatching':
    if not lookup():
        post()
    become('confirmed')
";

#[test]
fn a_ledger_that_the_worker_ruins_is_inconclusive_with_the_stores_words() {
    let ruin = "
if generation > 1:
    db.close()
    open(state('l.db'), 'wb').write(b'garbage ' * 2000)
";
    let bench = bench(&format!("{SEND}{ruin}"), MAPPED);
    bench
        .run(&["--boundary", "provider:committed#1"])
        .exits(Unproven)
        .says(&["inconclusive", "file is not a database"]);
    bench.is_judged_again(Unproven);
}

#[test]
fn a_lock_that_the_worker_holds_hides_nothing() {
    let locked = "
if was == 'created':
    become('dispatching')
    db.execute('begin exclusive')
    db.execute('update q set n = n + 1')
    post()
    become('confirmed')
    db.execute('commit')
elif was == 'dispatching':
    if not lookup():
        post()
    become('confirmed')
";
    let bench = bench(locked, MAPPED);
    bench.run(&["--boundary", "provider:committed#1"]).exits(Holds);
    let readings = bench.last_events().into_iter().filter_map(|event| match event {
        EventKind::Ledger { view, .. } | EventKind::Final { view, .. } => Some(view.error),
        _ => None,
    });
    assert!(readings.flatten().next().is_none(), "every reading could be made");
    bench.is_judged_again(Holds);
}

#[test]
fn a_query_with_a_wrong_column_fails_the_set_up_with_the_queries_error() {
    let wrong = MAPPED.replace("st as state", "stat as state");
    let bench = bench(SEND, &wrong);
    bench
        .run(&["--boundary", "provider:committed#1"])
        .exits(SetupFailed)
        .says(&["ledger query", "no such column: stat"]);
    bench.is_judged_again(SetupFailed);
}

#[test]
fn a_state_that_is_not_mapped_fails_the_set_up_and_is_named() {
    let bench = bench(&SEND.replace("'confirmed'", "'sent_ok'"), MAPPED);
    bench
        .run(&["--boundary", "provider:committed#1"])
        .exits(SetupFailed)
        .says(&["state `sent_ok` is not mapped", "[ledger]"]);
    bench.is_judged_again(SetupFailed);
}

/// Whether the sample is taken between the last commit and the worker's end is luck; a kill that did not land is
/// never green.
#[test]
fn a_ledger_boundary_at_the_workers_end_is_green_only_if_the_kill_landed() {
    let bench = bench(&format!("{SEND}os._exit(0)"), MAPPED);
    let said = bench.run(&["--boundary", "ledger:confirmed#1"]).never_panics();
    let landed =
        bench.last_events().iter().any(|event| matches!(event, EventKind::FaultDone { landed: true, .. }));
    let said = said.exits(if landed { Holds } else { Unproven });
    if !landed {
        said.says(&["vacuous", "ledger:confirmed#1"]);
    }
}
