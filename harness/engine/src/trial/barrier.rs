//! A barrier: workers that reach the same mark are held until enough of them are there, and are then let go
//! on together, so that a race is really run.

use killpoint_model::HitName;
use tokio::sync::oneshot;

/// Workers that are held at one mark.
#[derive(Debug)]
pub(super) struct Barrier {
    point: String,
    /// The worker whose arrival set it up; it is held by its own hit.
    first: u32,
    wanted: u32,
    held: Vec<(u32, oneshot::Sender<()>)>,
}

impl Barrier {
    /// A barrier for `wanted` workers at a mark; the first has arrived.
    pub(super) fn new(at: &HitName, first: u32, wanted: u32) -> Self {
        Self { point: at.point.clone(), first, wanted, held: Vec::new() }
    }

    /// Whether a worker that reached a mark must be held.
    pub(super) fn is_for(&self, mark: &HitName, worker: u32) -> bool {
        let known = worker == self.first || self.held.iter().any(|(held, _)| *held == worker);
        mark.point == self.point && !known && !self.is_full()
    }

    /// Holds a worker.
    pub(super) fn hold(&mut self, worker: u32, answer: oneshot::Sender<()>) {
        self.held.push((worker, answer));
    }

    /// How many are there, the first included.
    pub(super) fn arrived(&self) -> u32 {
        self.held.len() as u32 + 1
    }

    /// Whether all are there.
    pub(super) fn is_full(&self) -> bool {
        self.arrived() >= self.wanted
    }

    /// Lets all go on.
    pub(super) fn release(self) {
        for (_, answer) in self.held {
            // A worker that was ended meanwhile needs no answer.
            let _ = answer.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_is_held_once_until_all_are_there() -> Result<(), Box<dyn std::error::Error>> {
        let mark: HitName = "mark:before-claim#1".parse()?;
        let mut barrier = Barrier::new(&mark, 1, 3);
        assert!(!barrier.is_for(&mark, 1), "the first is held by its own hit");
        assert!(!barrier.is_for(&"mark:other#1".parse()?, 2));
        let (answer, mut released) = oneshot::channel();
        assert!(barrier.is_for(&mark, 2));
        barrier.hold(2, answer);
        assert!(!barrier.is_for(&mark, 2) && !barrier.is_full());
        let (answer, _gone) = oneshot::channel();
        barrier.hold(3, answer);
        assert!(barrier.is_full() && !barrier.is_for(&mark, 4));
        assert!(released.try_recv().is_err());
        barrier.release();
        assert_eq!(released.try_recv(), Ok(()));
        Ok(())
    }
}
