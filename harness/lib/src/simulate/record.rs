//! The history under way, and the one clock that all of a model's time comes from.

use killpoint_model::History;
use killpoint_model::event::{Event, EventKind};
use killpoint_model::history::Header;

/// When every model begins, in milliseconds since the Unix epoch.
const EPOCH_MS: i64 = 1_700_000_000_000;
/// What it takes to put one event on record, in microseconds.
const EVENT_US: u64 = 100;

/// Events so far.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) events: Vec<Event>,
    pub(super) generation: u32,
    /// Microseconds since the trial began.
    pub(super) now_us: u64,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { events: Vec::with_capacity(128), generation: 0, now_us: 0 }
    }

    pub(super) fn push(&mut self, event: EventKind) -> u64 {
        self.now_us += EVENT_US;
        let seq = self.seq() + 1;
        self.events.push(Event { seq, at_us: self.now_us, generation: self.generation, event });
        seq
    }

    /// The number of the last event.
    pub(super) fn seq(&self) -> u64 {
        self.events.len() as u64
    }

    /// The wall clock of the machine, in milliseconds since the Unix epoch.
    pub(super) fn wall_ms(&self) -> i64 {
        EPOCH_MS + (self.now_us / 1000) as i64
    }

    /// Microseconds of the trial at a wall clock's time.
    pub(super) fn us_at(wall_ms: i64) -> u64 {
        (wall_ms - EPOCH_MS).max(0) as u64 * 1000
    }

    pub(super) fn into_history(self, name: &str) -> History {
        History { header: Header::new(name), events: self.events, truncated: false }
    }
}
