//! The provider's wire as a source of boundaries.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use fake_provider::{Moment, Observer, Passage, Point};
use killpoint_model::event::EventKind;
use killpoint_model::provider::ProviderEvent;
use killpoint_model::{Entry, HitName, Source};
use tokio::sync::{mpsc, oneshot};

use super::{BoundarySource, Signal};
use crate::recorder::Recorder;
use crate::trial::WireTally;

/// The `provider` source.
#[derive(Debug)]
pub struct Provider;

static ENTRY: Entry = Entry {
    name: "provider",
    summary: "a request's way through the fake provider; nothing is needed from the worker",
    explanation: "Points: connected, received (the whole request is read, nothing is committed), committed (the effect exists, no \
        reply byte was sent), replying (part of the reply was sent), replied (all of it was sent; the worker's tree stands still, \
        so it has not read it), dropped (the exchange ended without a whole reply; the tree stands still), lookup (a reconciling \
        read was evaluated). The exchange waits for the harness at each, so the moment is exact.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"",
};

impl BoundarySource for Provider {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// The boundary that a moment is, if it is one.
pub fn hit_of(moment: &Moment) -> Option<HitName> {
    let point = match moment.point {
        Point::Connected => "connected",
        Point::Received => "received",
        Point::Committed => "committed",
        Point::Replying => "replying",
        Point::Replied => "replied",
        Point::Dropped => "dropped",
        Point::Lookup => "lookup",
        Point::Finishing | Point::Ended => return None,
    };
    Some(HitName::new(Source::Provider, point, 1))
}

/// Puts the provider's log into the history and its moments into the inbox.
#[derive(Debug)]
pub struct Watch {
    recorder: Arc<Recorder>,
    inbox: mpsc::UnboundedSender<Signal>,
    tally: WireTally,
}

impl Watch {
    /// Watches on behalf of one trial.
    pub(crate) fn new(
        recorder: Arc<Recorder>,
        inbox: mpsc::UnboundedSender<Signal>,
        tally: WireTally,
    ) -> Self {
        Self { recorder, inbox, tally }
    }
}

impl Observer for Watch {
    fn record(&self, event: &ProviderEvent) {
        self.tally.note(event);
        self.recorder.append(EventKind::Provider(event.clone()));
    }

    fn reach(&self, moment: Moment) -> Pin<Box<dyn Future<Output = Passage> + Send>> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inbox.send(Signal::Provider { moment, answer });
        Box::pin(async move {
            match sent {
                Ok(()) => answered.await.unwrap_or(Passage::Abandon),
                // The trial is over: nobody is left for whom the exchange could go on.
                Err(_) => Passage::Abandon,
            }
        })
    }
}
