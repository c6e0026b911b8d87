//! The harness's own death takes everything along.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{BOTH, Fixture, eventually, helper, runs};
use crate::os::OsError;

#[test]
fn killing_the_harness_kills_its_workers() {
    for containment in BOTH {
        let mut harness = Command::new(std::env::current_exe().unwrap())
            .args(helper::ARGUMENTS)
            .env(helper::NAME, format!("harness {containment}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(harness.stdout.take().unwrap()).lines().map_while(Result::ok);
        // The test runner prints around it, also on the same line.
        let line = lines.find_map(|line| line.split_once("pids:").map(|(_, pids)| pids.to_owned()));
        let pids: Vec<u32> =
            line.unwrap_or_default().split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        if pids.is_empty() {
            // The tier can't be had here; the helper said so.
            assert!(harness.wait().unwrap().success());
            continue;
        }
        // The init, the worker and its daemon.
        assert_eq!(pids.len(), 3);
        assert!(pids.iter().all(|&pid| runs(pid)));
        harness.kill().unwrap();
        harness.wait().unwrap();
        eventually("init, worker and daemon are gone", || !pids.iter().any(|&pid| runs(pid)));
    }
}

#[test]
fn an_init_that_was_killed_from_outside_is_never_taken_for_a_dead_tree() {
    for f in Fixture::each() {
        let pid = f.sh("exec sleep 1000");
        kill(Pid::from_raw(f.slot.init_pid() as i32), Signal::SIGKILL).unwrap();
        eventually("the worker is gone", || !runs(pid));
        let lost = |outcome: Result<(), OsError>| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, OsError::ContainmentLost) && error.is_infrastructure(), "{error}");
        };
        lost(f.slot.freeze());
        lost(f.slot.kill_all().map(drop));
        lost(f.spawn(&["true"]).map(drop));
    }
}
