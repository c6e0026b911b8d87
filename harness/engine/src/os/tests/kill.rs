//! `kill_all` and its proof.

use killpoint_model::event::Containment;

use super::{Fixture, eventually, runs};
use crate::os::SlotEvent;

/// Daemons that a kill of the process group does not reach: double fork, own session, signals ignored, and
/// their own children come and go.
const DAEMONS: &str = r#"
    for name in a b c d; do
        (setsid sh -c 'trap "" TERM HUP INT; : > $0; while :; do sleep 0.02; done' $name </dev/null &)
    done
    sleep 1000
"#;

#[test]
fn daemons_die_with_the_worker() {
    for f in Fixture::each() {
        let pid = f.sh(DAEMONS);
        eventually("the daemons run", || ["a", "b", "c", "d"].iter().all(|name| f.path(name).exists()));
        let before = f.slot.processes();
        assert!(before.contains(&pid) && before.len() >= 6, "{before:?}");

        let proof = f.slot.kill_all().unwrap();

        assert_eq!((proof.signal, proof.code, proof.was_alive), (Some(9), None, true));
        assert_eq!(proof.survivors, 0);
        assert!(proof.reaped >= 6, "{proof:?}");
        assert_eq!(proof.containment, f.slot.containment());
        assert!(f.slot.processes().is_empty());
        assert!(before.iter().all(|&pid| !runs(pid)), "{before:?}");
        assert_eq!(f.event(), SlotEvent::RootExited { pid, code: None, signal: Some(9) });
        assert_eq!(f.event(), SlotEvent::Emptied);
    }
}

#[test]
fn a_frozen_tree_dies_without_running_again() {
    for f in Fixture::each() {
        // The child would write if the death of its parent resumed it.
        f.sh("(trap 'echo woken >> woken' HUP CONT; : > ready; while :; do sleep 0.01; done) & sleep 1000");
        eventually("the child runs", || f.path("ready").exists());
        f.slot.freeze().unwrap();
        let proof = f.slot.kill_all().unwrap();
        assert_eq!((proof.signal, proof.was_alive, proof.survivors), (Some(9), true, 0));
        assert!(!f.path("woken").exists());
    }
}

#[test]
fn a_worker_that_had_ended_is_not_said_to_be_killed() {
    for f in Fixture::each() {
        let pid = f.sh("exit 7");
        assert_eq!(f.event(), SlotEvent::RootExited { pid, code: Some(7), signal: None });
        assert_eq!(f.event(), SlotEvent::Emptied);
        let proof = f.slot.kill_all().unwrap();
        assert_eq!((proof.signal, proof.code, proof.was_alive), (None, Some(7), false));
        assert_eq!((proof.reaped, proof.survivors), (1, 0));

        // The daemon outlives its parent: the tree was alive, the root was not.
        let pid = f.sh("(setsid sleep 1000 </dev/null &); exit 3");
        assert_eq!(f.event(), SlotEvent::RootExited { pid, code: Some(3), signal: None });
        let proof = f.slot.kill_all().unwrap();
        assert_eq!((proof.signal, proof.code, proof.was_alive), (Some(9), Some(3), true));

        let nothing = f.slot.kill_all().unwrap();
        assert_eq!((nothing.signal, nothing.was_alive, nothing.reaped), (None, false, 0));
    }
}

#[test]
fn a_slot_serves_one_generation_after_the_other() {
    for f in Fixture::each() {
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            outside.push(f.sh("echo $$; : > ready; sleep 1000"));
            eventually("the worker runs", || f.path("ready").exists());
            inside.push(f.out());
            std::fs::remove_file(f.path("ready")).unwrap();
            assert_eq!(f.slot.kill_all().unwrap().signal, Some(9));
        }
        for pids in [outside.iter().map(u32::to_string).collect(), inside.clone()] {
            let mut distinct = pids.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), 5, "{pids:?}");
        }
        if f.slot.containment() == Containment::PidNamespace && f.slot.containment_reason().is_none() {
            assert_eq!(inside.first().unwrap().trim(), "1000");
        }
    }
}

#[test]
fn terminating_reaches_the_root_only() {
    for f in Fixture::each() {
        let pid = f.sh("(setsid sleep 1000 &) ; trap 'exit 5' TERM; : > ready; while :; do sleep 0.01; done");
        eventually("the worker runs", || f.path("ready").exists());
        assert!(f.slot.signal_root(libc::SIGTERM).unwrap());
        assert_eq!(f.event(), SlotEvent::RootExited { pid, code: Some(5), signal: None });
        assert_eq!(f.slot.processes().len(), 1);
        assert!(!f.slot.signal_root(libc::SIGTERM).unwrap());
    }
}

#[test]
fn dropping_a_slot_kills_its_tree() {
    for f in Fixture::each() {
        f.sh(DAEMONS);
        eventually("the daemons run", || f.path("d").exists());
        let pids = f.slot.processes();
        assert!(pids.len() >= 2);
        drop(f.slot);
        assert!(pids.iter().all(|&pid| !runs(pid)), "{pids:?}");
    }
}

/// Hops to a new process each moment. Only in a namespace with a limit, and it ends by itself.
#[test]
fn a_worker_that_hops_between_processes_is_caught() {
    let Some(f) = Fixture::open(Containment::PidNamespace) else { return };
    for _ in 0..10 {
        f.sh("hop() { [ $1 -gt 3000 ] || (hop $(($1 + 1)) &) ; }; : > ready; hop 0; hop 0; hop 0; exec sleep 1000");
        eventually("the worker runs", || f.path("ready").exists());
        std::fs::remove_file(f.path("ready")).unwrap();
        let proof = f.slot.kill_all().unwrap();
        assert_eq!((proof.was_alive, proof.survivors), (true, 0));
        assert!(f.slot.processes().is_empty());
    }
}
