//! Real processes, in both tiers.

mod cage;
mod clock;
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

use super::{OsError, Slot, SlotEvent, SlotSpec, SpawnSpec, probe_clock, sys};

const BOTH: [Containment; 2] = [Containment::PidNamespace, Containment::Subreaper];

/// How far clocks are off in tests that are not about clocks.
const OFFSET_MS: i64 = 7_200_000;

/// Generous: the machine may be busy. Nothing waits that long unless it is broken.
const LIMIT: Duration = Duration::from_secs(20);

/// A slot with its events and a directory.
#[derive(Debug)]
struct Fixture {
    slot: Slot,
    events: Receiver<SlotEvent>,
    dir: TempDir,
    /// What workers are started with.
    clock_offset_ms: i64,
}

impl Fixture {
    /// In both tiers, untraced and traced: nothing but the clock may differ.
    fn each() -> impl Iterator<Item = Self> {
        let offsets = if traces() { &[0, OFFSET_MS][..] } else { &[0] };
        BOTH.into_iter().flat_map(move |containment| {
            offsets.iter().filter_map(move |offset| Some(Self::open(containment)?.off_by(*offset)))
        })
    }

    /// Workers of a fixture whose clock is off.
    fn off_by(mut self, clock_offset_ms: i64) -> Self {
        self.clock_offset_ms = clock_offset_ms;
        self
    }

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
            Ok(slot) => Some(Self { slot, events, dir: tempfile::tempdir().unwrap(), clock_offset_ms: 0 }),
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
            clock_offset_ms: self.clock_offset_ms,
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

/// Whether clocks can be moved here; prints a line if not.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn traces() -> bool {
    probe_clock().inspect_err(|reason| eprintln!("skipped: no clock can be moved here: {reason}")).is_ok()
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
