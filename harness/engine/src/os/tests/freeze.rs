//! Standing still, and going on.

use std::time::Duration;

use super::{Fixture, eventually, helper, size};
use crate::os::sys;

const WRITERS: &str = r"
import os, threading, subprocess
def write(name):
    with open(name, 'ab', buffering=0) as file:
        while True:
            file.write(b'x')
names = ['w%d' % n for n in range(4)]
if os.fork() == 0:
    os.setsid()
    names = ['v%d' % n for n in range(4)]
for name in names:
    threading.Thread(target=write, args=(name,)).start()
while True:
    subprocess.run(['true'])
";

#[test]
fn busy_threads_stand_still_and_go_on() {
    for f in Fixture::each() {
        f.spawn(&["python3", "-S", "-c", WRITERS]).unwrap();
        let files: Vec<_> = ["w0", "w1", "w2", "w3", "v0", "v1", "v2", "v3"].map(|name| f.path(name)).into();
        let sizes = || files.iter().map(|file| size(file)).collect::<Vec<_>>();
        for _ in 0..5 {
            let mut before = sizes();
            eventually("every thread writes", || sizes().iter().zip(&before).all(|(now, then)| now > then));
            f.slot.freeze().unwrap();
            before = sizes();
            sys::pause(Duration::from_millis(20));
            assert_eq!(sizes(), before);
            f.slot.thaw().unwrap();
        }
        f.slot.kill_all().unwrap();
    }
}

#[test]
fn a_parent_that_waits_for_its_vfork_child_counts_as_standing_still() {
    for f in Fixture::each() {
        helper::spawn_in(&f, "vfork");
        eventually("the vfork child runs", || f.path("vforked").exists());
        f.slot.freeze().unwrap();
        f.slot.thaw().unwrap();
        assert_eq!(f.slot.kill_all().unwrap().survivors, 0);
    }
}

#[test]
fn an_empty_slot_freezes_thaws_and_kills() {
    for f in Fixture::each() {
        f.slot.freeze().unwrap();
        f.slot.thaw().unwrap();
        assert!(!f.slot.kill_all().unwrap().was_alive);
    }
}
