//! What survives: a kill keeps what the operating system has, a power cut keeps what was synced.

use killpoint::model::ExitCode::{Holds, Violated};

use crate::bench::Bench;

const POWER_CUT: &str = "power-cut-after-a-confirmation";

#[test]
fn a_ledger_that_is_not_synced_survives_kills_and_not_a_power_cut() {
    let bench = Bench::new();
    let kill = ["--boundary", "mark:ack-committed#1"];
    bench.killpoint(&[&["demo", "--bug", "no-flush"], &kill[..]].concat()).exits(Holds);
    bench.killpoint(&["demo", "--bug", "no-flush", "--scenario", POWER_CUT]).exits(Violated);
    bench.killpoint(&[&["demo"], &kill[..]].concat()).exits(Holds);
    bench.killpoint(&["demo", "--scenario", POWER_CUT]).exits(Holds);
}
