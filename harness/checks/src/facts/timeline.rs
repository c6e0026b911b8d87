//! What was done to the workers and their store, and when: lives, stops, faults, roll-backs.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::History;
use killpoint_model::event::{Event, EventKind};
use killpoint_model::provider::ProviderEvent;

/// Faults that put an earlier state of the store in place: what a row said before is not what it became.
const ROLLBACKS: [&str; 3] = ["store-restore", "store-rollback", "power-cut"];
/// The fault that puts back what was remembered: a backup, not a power cut.
const RESTORE: &str = "store-restore";
/// The fault that starts a worker on a copy of the store.
const COPY: &str = "store-second";

/// Harness actions by sequence number, each list in order.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// Deaths of workers while the trial was going on: kills, and exits with an error.
    pub(crate) deaths: Vec<u64>,
    /// Every end of a worker's life, with the worker.
    ends: Vec<(u64, u32)>,
    /// Where the trial was found to be at rest, or not to be.
    pub(crate) rest: Option<u64>,
    /// Stops and goings-on, with the worker and whether it stands still from there.
    stops: Vec<(u64, u32, bool)>,
    /// SIGTERMs.
    pub(crate) terminations: Vec<u64>,
    /// Where an earlier state of the store was put in place.
    pub(crate) rollbacks: Vec<u64>,
    /// The last of them that was a backup.
    pub(crate) restored: Option<u64>,
    /// Whether a worker ran on a copy of the store.
    pub(crate) copied: bool,
    /// Faults that were announced, with where they were over.
    faults: Vec<(u64, u64)>,
    /// Deaths, stops, signals and steps of clocks.
    disturbances: Vec<u64>,
    /// Store faults from begin to end.
    store_faults: Vec<(u64, u64)>,
}

impl Timeline {
    /// Reads the rare events of a history, in one pass.
    pub(crate) fn read(rare: &[&Event]) -> Self {
        let mut timeline = Self::default();
        let mut open: BTreeMap<&str, u64> = BTreeMap::new();
        let mut going_on = true;
        let mut clocks_due: BTreeSet<u32> = BTreeSet::new();
        for event in rare {
            let seq = event.seq;
            match &event.event {
                EventKind::Settled { .. } | EventKind::NotSettled { .. } => {
                    going_on = false;
                    timeline.rest.get_or_insert(seq);
                }
                EventKind::Exited { worker, code: Some(0), .. } if going_on => {
                    timeline.ends.push((seq, *worker));
                }
                EventKind::Killed { worker, .. } | EventKind::Exited { worker, .. } if going_on => {
                    timeline.ends.push((seq, *worker));
                    timeline.deaths.push(seq);
                    timeline.disturbances.push(seq);
                }
                EventKind::Signalled { signal, .. } => {
                    if *signal == 15 {
                        timeline.terminations.push(seq);
                    }
                    timeline.disturbances.push(seq);
                }
                EventKind::Stopped { worker } | EventKind::Resumed { worker } => {
                    let still = matches!(event.event, EventKind::Stopped { .. });
                    timeline.stops.push((seq, *worker, still));
                    timeline.disturbances.push(seq);
                }
                EventKind::PartKilled { .. } => timeline.disturbances.push(seq),
                EventKind::WorkerClock { worker, .. } => {
                    timeline.disturbances.push(seq);
                    clocks_due.insert(*worker);
                }
                // A clock is off from the next start on.
                EventKind::Spawned { worker, .. } if clocks_due.remove(worker) => {
                    timeline.disturbances.push(seq);
                }
                EventKind::FaultAnnounced { .. } => timeline.faults.push((seq, u64::MAX)),
                EventKind::FaultDone { .. } => {
                    // Faults nest: one is done while the worker runs on under another.
                    if let Some(fault) = timeline.faults.iter_mut().rev().find(|(_, end)| *end == u64::MAX) {
                        fault.1 = seq;
                    }
                }
                EventKind::StoreFault { name, begins: true, .. } => {
                    timeline.store(name, seq);
                    open.entry(name).or_insert(seq);
                }
                EventKind::StoreFault { name, .. } => {
                    if let Some(from) = open.remove(name.as_str()) {
                        timeline.store_faults.push((from, seq));
                    }
                }
                _ => {}
            }
        }
        // One that is done in a step only begins.
        let steps = timeline.rollbacks.iter().map(|seq| (*seq, *seq));
        timeline.store_faults.extend(open.into_values().map(|from| (from, from)).chain(steps));
        timeline
    }

    fn store(&mut self, name: &str, seq: u64) {
        if ROLLBACKS.contains(&name) {
            self.rollbacks.push(seq);
        }
        if name == RESTORE {
            self.restored = Some(seq);
        }
        self.copied |= name == COPY;
    }

    /// Whether an earlier state of the store was put in place between two events.
    pub(crate) fn rolled_back_between(&self, after: u64, before: u64) -> bool {
        let from = self.rollbacks.partition_point(|seq| *seq <= after);
        self.rollbacks.get(from).is_some_and(|seq| *seq < before)
    }

    /// Whether something was done between two events after which a worker may not know what it knew, or
    /// could not write it down: a death, a stop, a step of its clock, a fault of its store. Whoever stood still at
    /// the first one did not know it either.
    pub(crate) fn disturbed_between(&self, after: u64, before: u64) -> bool {
        let from = self.disturbances.partition_point(|seq| *seq <= after);
        self.disturbances.get(from).is_some_and(|seq| *seq < before)
            || self.stops.iter().any(|(_, worker, _)| self.stopped_at(*worker, after))
            || self.store_faults.iter().any(|(begin, end)| *begin < before && *end > after)
    }

    /// The first death after an event.
    pub(crate) fn first_death_after(&self, seq: u64) -> Option<u64> {
        self.deaths.get(self.deaths.partition_point(|death| *death <= seq)).copied()
    }

    /// Whether the life of one worker ended between two events.
    pub(crate) fn ended_between(&self, worker: u32, after: u64, before: u64) -> bool {
        let from = self.ends.partition_point(|(end, _)| *end <= after);
        self.ends[from..].iter().take_while(|(end, _)| *end < before).any(|(_, ended)| *ended == worker)
    }

    /// Whether a worker was stopped and had not gone on at an event.
    pub(crate) fn stopped_at(&self, worker: u32, seq: u64) -> bool {
        let upto = self.stops.partition_point(|(at, _, _)| *at < seq);
        let last = self.stops[..upto].iter().rev().find(|(_, stopped, _)| *stopped == worker);
        last.is_some_and(|(_, _, still)| *still)
    }

    /// Whether a fault of the harness, or one of the store, was in force at an event.
    pub(crate) fn in_a_fault(&self, seq: u64) -> bool {
        self.faults.iter().chain(&self.store_faults).any(|(begin, end)| *begin < seq && seq < *end)
    }

    /// How many things were done that can end an attempt between its count and its request.
    pub(crate) fn interruptions(&self) -> usize {
        self.disturbances.len() + self.store_faults.len()
    }
}

/// Which worker sent each attempt, as far as that can be told: the only one that could, or else the one
/// that made the latest mark.
pub(crate) fn senders(history: &History, rare: &[&Event], attempts: usize) -> Vec<Option<Sender>> {
    let mut senders = Vec::new();
    let others = |event: &&Event| matches!(event.event, EventKind::Spawned { worker, .. } if worker > 1);
    if !rare.iter().any(others) {
        senders.resize(attempts, None);
        return senders;
    }
    let mut watch = Watch::default();
    for event in &history.events {
        if let EventKind::Provider(ProviderEvent::Received(_)) = &event.event {
            senders.push(watch.sender());
        } else {
            watch.see(event.seq, &event.event);
        }
    }
    senders
}

/// A worker that sent an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) worker: u32,
    /// Its latest mark before.
    pub(crate) mark: Option<u64>,
    /// Whether another worker was alive beside it.
    pub(crate) beside: bool,
}

/// Who is alive, who stands still, who was active last.
#[derive(Debug, Default)]
struct Watch {
    alive: BTreeSet<u32>,
    /// Stopped, or held at a hit by a fault.
    still: BTreeSet<u32>,
    marks: BTreeMap<u32, u64>,
    at_hit: Option<u32>,
    held: Vec<Option<u32>>,
}

impl Watch {
    fn see(&mut self, seq: u64, event: &EventKind) {
        match event {
            EventKind::Spawned { worker, .. } => {
                self.alive.insert(*worker);
                self.still.remove(worker);
            }
            EventKind::Killed { worker, .. } | EventKind::Exited { worker, .. } => {
                self.alive.remove(worker);
            }
            EventKind::Stopped { worker } => {
                self.still.insert(*worker);
            }
            EventKind::Resumed { worker } => {
                self.still.remove(worker);
            }
            EventKind::Hit { worker, .. } => {
                self.at_hit = (*worker > 0).then_some(*worker);
                if *worker > 0 {
                    self.marks.insert(*worker, seq);
                }
            }
            EventKind::FaultAnnounced { .. } => {
                self.held.push(self.at_hit);
                self.still.extend(self.at_hit);
            }
            EventKind::FaultDone { .. } => {
                if let Some(Some(worker)) = self.held.pop() {
                    self.still.remove(&worker);
                }
            }
            _ => {}
        }
    }

    fn sender(&self) -> Option<Sender> {
        let mut able = self.alive.difference(&self.still);
        let worker = match (able.next(), able.next()) {
            (Some(only), None) => *only,
            (Some(_), Some(_)) => {
                let latest = self.marks.iter().filter(|(worker, _)| self.alive.contains(worker));
                *latest.filter(|(worker, _)| !self.still.contains(worker)).max_by_key(|(_, seq)| **seq)?.0
            }
            (None, _) => return None,
        };
        let mark = self.marks.get(&worker).copied();
        Some(Sender { worker, mark, beside: self.alive.len() > 1 })
    }
}
