//! A worker without a configuration: the fault-free trials' effects are the only oracle.

use killpoint::model::ExitCode::{Holds, Unproven, Violated};

use crate::bench::Bench;

#[test]
fn a_worker_that_sends_whenever_it_starts_sends_twice() {
    let bench = Bench::with_worker("post()");
    bench
        .run_bare(&["provider:committed#1"])
        .exits(Violated)
        .says(&["no-duplicate-effect", "2 effects where 1 was owed"]);
    bench.is_judged_again(Violated);
}

#[test]
fn a_worker_that_marks_before_it_sends_loses() {
    let bench = Bench::with_worker("if once('done'):\n    post()");
    bench.run_bare(&["provider:received#1"]).exits(Violated).says(&["no-lost-action", "ann@example.com"]);
    bench.is_judged_again(Violated);
}

#[test]
fn a_worker_that_looks_up_before_it_sends_again_is_right() {
    let bench = Bench::with_worker("if once('sent') or not lookup():\n    post()");
    bench.run_bare(&["provider:received#1", "provider:committed#1"]).exits(Holds);
    bench.is_judged_again(Holds);
}

#[test]
fn whether_a_worker_parks_or_loses_needs_its_ledger() {
    let script = "
if once('sent'):
    post()
    once('done')
elif not os.path.exists(state('done')):
    open(state('note.json'), 'w').write('{\"status\": \"parked\"}')
";
    let bench = Bench::with_worker(script);
    bench.run_bare(&["provider:received#1"]).exits(Unproven).says(&["inconclusive", "map the ledger"]);
    bench.is_judged_again(Unproven);
}

#[test]
fn what_differs_in_every_request_disturbs_nobody() {
    let script = "
import time, uuid
if once('sent') or not lookup():
    post(nonce=uuid.uuid4().hex, at=time.time())
";
    let bench = Bench::with_worker(script);
    bench.run_bare(&["provider:received#1", "provider:committed#1"]).exits(Holds);
    bench.is_judged_again(Holds);
}
