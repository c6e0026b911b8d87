//! The events of a history by what reads them, so that a long one is gone through once.

use killpoint_model::History;
use killpoint_model::event::{Event, EventKind};
use killpoint_model::provider::ProviderEvent;

/// Events by kind, each list in order.
#[derive(Debug, Default)]
pub(crate) struct Sorted<'a> {
    /// What the provider saw and did.
    pub(crate) provider: Vec<(u64, &'a ProviderEvent)>,
    /// Looks at the ledger, the final one included.
    pub(crate) looks: Vec<&'a Event>,
    /// Every event but those of which there are many: of the provider, hits, looks at the ledger, output.
    pub(crate) rare: Vec<&'a Event>,
}

impl<'a> Sorted<'a> {
    /// Sorts the events of a history.
    pub(crate) fn of(history: &'a History) -> Self {
        let provider = Vec::with_capacity(history.events.len());
        let mut sorted = Self { provider, ..Self::default() };
        for event in &history.events {
            match &event.event {
                EventKind::Provider(provider) => sorted.provider.push((event.seq, provider)),
                EventKind::Ledger { .. } => sorted.looks.push(event),
                EventKind::Final { .. } => {
                    sorted.looks.push(event);
                    sorted.rare.push(event);
                }
                EventKind::Hit { .. } | EventKind::Output { .. } => {}
                _ => sorted.rare.push(event),
            }
        }
        sorted
    }
}
