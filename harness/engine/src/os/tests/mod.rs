//! Real processes, in both tiers.

mod cage;
mod death;
mod freeze;
mod helper;
mod kill;
mod limit;
mod spawn;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use killpoint_model::event::Containment;
use tempfile::TempDir;

use super::{OsError, Slot, SlotEvent, SlotSpec, SpawnSpec, sys};

const BOTH: [Containment; 2] = [Containment::PidNamespace, Containment::Subreaper];

/// Generous: the machine may be busy. Nothing waits that long unless it is broken.
const LIMIT: Duration = Duration::from_secs(20);

/// A slot with its events and a directory.
#[derive(Debug)]
struct Fixture {
    slot: Slot,
    events: Receiver<SlotEvent>,
    dir: TempDir,
}

impl Fixture {
    /// `None`, with a printed line, where the machine does not permit the tier.
    fn open(containment: Containment) -> Option<Self> {
        Self::with(SlotSpec { processes_max: 256, pid_base: 1000, force: Some(containment) })
    }

    #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
    fn with(spec: SlotSpec) -> Option<Self> {
        let (sender, events) = mpsc::channel();
        let on_event = move |event| {
            // The test may be over.
            let _ = sender.send(event);
        };
        match Slot::open(&spec, Box::new(on_event)) {
            Ok(slot) => Some(Self { slot, events, dir: tempfile::tempdir().unwrap() }),
            Err(OsError::ContainmentRefused { containment, reason }) => {
                eprintln!("skipped: no {containment} here: {reason}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn spawn(&self, argv: &[&str]) -> Result<u32, OsError> {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let path = std::env::var("PATH").unwrap();
        let env = BTreeMap::from([("PATH".to_owned(), path), ("MARKED".to_owned(), "yes".to_owned())]);
        let (stdout, stderr) = (self.path("out"), self.path("err"));
        self.slot.spawn(SpawnSpec {
            argv: &argv,
            env: &env,
            cwd: self.dir.path(),
            stdout: File::create(stdout).unwrap().into(),
            stderr: File::create(stderr).unwrap().into(),
        })
    }

    fn sh(&self, script: &str) -> u32 {
        self.spawn(&["sh", "-c", script]).unwrap()
    }

    fn out(&self) -> String {
        fs::read_to_string(self.path("out")).unwrap()
    }

    fn event(&self) -> SlotEvent {
        self.events.recv_timeout(LIMIT).expect("an event")
    }

    /// Runs a script to its end and returns what it printed.
    fn output_of(&self, script: &str) -> String {
        let pid = self.sh(script);
        assert_eq!(self.event(), SlotEvent::RootExited { pid, code: Some(0), signal: None });
        assert_eq!(self.event(), SlotEvent::Emptied);
        self.out()
    }
}

/// Rechecks until it holds.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "did not happen in time: {what}");
        sys::pause(Duration::from_millis(2));
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Whether a process runs: not gone and not a zombie.
fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with(['Z', 'X']))
}
