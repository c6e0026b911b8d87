//! Where named moments come from. Every source turns what it sees into a [`Signal`] in the trial's inbox;
//! the trial alone decides what it means, so there is one order of events.
//!
//! A source is one file in this folder plus one line in [`BOUNDARIES`].

pub mod ledger;
pub mod mark;
pub mod provider;

use std::collections::BTreeMap;

use fake_provider::{Moment, Passage};
use killpoint_model::{Entry, HitName};
use tokio::sync::oneshot;

use crate::os::SlotEvent;

/// Every source of boundaries.
pub static BOUNDARIES: &[&dyn BoundarySource] = &[&provider::Provider, &ledger::Ledger, &mark::Mark];

/// One source of boundaries.
pub trait BoundarySource: Sync + std::fmt::Debug {
    /// Name, which is the word before the colon, and texts.
    fn entry(&self) -> &'static Entry;

    /// Whether the worker waits for our answer at a hit, so that the moment needs no sampling.
    fn is_exact(&self) -> bool;
}

/// Something that happened, on its way to the trial.
#[derive(Debug)]
pub enum Signal {
    /// An exchange at the provider waits at a point.
    Provider {
        /// Where.
        moment: Moment,
        /// How it goes on.
        answer: oneshot::Sender<Passage>,
    },
    /// A worker waits at a mark.
    Mark {
        /// Which worker, from 1; 0 for the enqueuer.
        worker: u32,
        /// Which of its lives: a mark of a life that is over is nobody's.
        life: u32,
        /// The mark's name.
        name: String,
        /// Lets it go on; dropped, the worker sees a closed connection.
        answer: oneshot::Sender<()>,
    },
    /// A worker's process tree changed.
    Worker {
        /// Which worker, from 1; 0 for the enqueuer.
        worker: u32,
        /// What happened.
        event: SlotEvent,
    },
    /// A worker printed its alarm.
    Alarm {
        /// Which worker.
        worker: u32,
        /// The line.
        text: String,
    },
    /// The enqueuer printed the line after which it is killed.
    EnqueuerLine,
}

/// Counts hits per series, over the whole process tree of a trial.
#[derive(Debug, Default)]
pub struct HitCounter(BTreeMap<String, u32>);

impl HitCounter {
    /// Gives a hit its ordinal.
    pub fn count(&mut self, mut hit: HitName) -> HitName {
        let ordinal = self.0.entry(hit.series()).or_default();
        *ordinal += 1;
        hit.ordinal = *ordinal;
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::Source;

    #[test]
    fn the_slice_is_well_formed() {
        let entries: Vec<Entry> = BOUNDARIES.iter().map(|source| *source.entry()).collect();
        assert_eq!(killpoint_model::catalog::slice_problems(&entries), Vec::<String>::new());
    }

    #[test]
    fn ordinals_count_per_series() {
        let mut counter = HitCounter::default();
        let mut next = |hit: HitName| counter.count(hit).to_string();
        let received = || HitName::new(Source::Provider, "received", 1);
        assert_eq!(next(received()), "provider:received#1");
        assert_eq!(next(received().select("create")), "provider:received[create]#1");
        assert_eq!(next(received()), "provider:received#2");
    }
}
