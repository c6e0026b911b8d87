//! The seam to whoever watches: every event as it is recorded, and every point as it is reached.

use std::future::Future;
use std::pin::Pin;

use killpoint_model::provider::ProviderEvent;

/// A point that an exchange passes, in the order in which a request passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// A connection was accepted; nothing was read.
    Connected,
    /// A whole write request was read; nothing is committed.
    Received,
    /// The effect exists; no byte of a reply was sent.
    Committed,
    /// Part of the reply was sent.
    Replying,
    /// Just before the last bytes are written. Not a boundary: it lets the harness stop the worker, so
    /// that [`Point::Replied`] is exact.
    Finishing,
    /// The whole reply was written.
    Replied,
    /// The exchange ended without a whole reply, by the provider's doing; comes in place of
    /// [`Point::Replied`]. A reset is sent right after it.
    Dropped,
    /// An exchange that was at [`Point::Finishing`] ended because its client had left. Not a
    /// boundary.
    Ended,
    /// A lookup was read and evaluated; its answer follows.
    Lookup,
}

/// One exchange at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Where it is.
    pub point: Point,
    /// The dialect's operation; empty where no request was read yet.
    pub operation: String,
    /// The TCP connection, from 1.
    pub connection: u32,
    /// The attempt, for a write.
    pub attempt: Option<u32>,
    /// The lookup, for a read.
    pub lookup: Option<u32>,
}

/// What an exchange does after a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// Go on.
    Go,
    /// The worker is dead: end without doing more.
    Abandon,
}

/// The answer to [`Observer::reach`], to be waited for.
pub type Crossing = Pin<Box<dyn Future<Output = Passage> + Send>>;

/// Watches a provider.
pub trait Observer: Send + Sync + 'static {
    /// Called under the state's lock, in log order, before the act that the event announces. It must
    /// not call back into the server.
    fn record(&self, event: &ProviderEvent);

    /// Called at each point by the exchange that is there; the exchange waits for the answer.
    fn reach(&self, moment: Moment) -> Crossing;
}

/// Nobody watches: records nothing, and every exchange goes on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn record(&self, _: &ProviderEvent) {}

    fn reach(&self, _: Moment) -> Crossing {
        Box::pin(std::future::ready(Passage::Go))
    }
}
