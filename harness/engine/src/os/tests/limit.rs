//! The number of processes is bounded, whatever a worker does. Each loop here is itself bounded.

use std::time::Duration;

use killpoint_model::event::{Containment, ProcessLimit};

use super::{BOTH, Fixture, eventually};
use crate::os::{SlotEvent, SlotSpec};

/// So many that whoever only looks from time to time has looked long before the last one.
const MANY: &str = "n=0; while [ $n -lt 6000 ]; do sleep 60 & n=$((n + 1)); done; : > all; wait";

pub(super) fn a_fork_loop_stays_within_its_limit(containment: Containment) {
    let spec = SlotSpec { processes_max: 64, pid_base: 0, force: Some(containment) };
    let Some(f) = Fixture::with(spec) else { return };
    let pid = f.sh(MANY);
    match f.slot.process_limit() {
        ProcessLimit::Watch => {
            // The root may be reaped before the announcement; the order is not what matters.
            let seen: Vec<SlotEvent> = (0..3).map(|_| f.event()).collect();
            assert!(
                seen.iter().any(
                    |event| matches!(event, SlotEvent::LimitExceeded { tasks, limit: 64 } if *tasks > 64)
                ),
                "{seen:?}"
            );
            assert!(seen.contains(&SlotEvent::RootExited { pid, code: None, signal: Some(9) }), "{seen:?}");
            assert!(seen.contains(&SlotEvent::Emptied), "{seen:?}");
        }
        limit => {
            // A refused fork ends the shell; what it started stays.
            assert!(
                matches!(f.event(), SlotEvent::RootExited { pid: ended, code: Some(2), .. } if ended == pid)
            );
            let most = if limit == ProcessLimit::NamespacePidMax { 64 } else { 599 };
            let left = f.slot.processes().len();
            assert!((60..=most).contains(&left), "{limit}: {left}");
            assert_eq!(f.slot.kill_all().unwrap().reaped as usize, left + 1);
            assert_eq!(f.event(), SlotEvent::Emptied);
        }
    }
    assert!(!f.path("all").exists());
    assert_eq!(f.slot.kill_all().unwrap().survivors, 0);
    assert_eq!(f.output_of("echo fine").trim(), "fine");
}

#[test]
fn a_fork_loop_stays_within_its_limit_in_both_tiers() {
    BOTH.into_iter().for_each(a_fork_loop_stays_within_its_limit);
}

#[test]
fn what_is_allowed_fits_also_above_a_base() {
    for base in [0, 300, 2000] {
        for containment in BOTH {
            let spec = SlotSpec { processes_max: 40, pid_base: base, force: Some(containment) };
            let Some(f) = Fixture::with(spec) else { continue };
            // 38 sleepers and their shell.
            f.sh("n=0; while [ $n -lt 38 ]; do sleep 60 & n=$((n + 1)); done; : > all; wait");
            eventually("all of them run", || f.path("all").exists());
            assert_eq!(f.slot.processes().len(), 39);
            assert!(f.events.recv_timeout(Duration::from_millis(60)).is_err());
        }
    }
}
