//! What a trial must know of the provider's log at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fake_provider::Moment;
use killpoint_model::Rule;
use killpoint_model::provider::ProviderEvent;

/// A request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exchange {
    /// A write, by its number.
    Attempt(u32),
    /// A read, by its number.
    Lookup(u32),
}

impl Exchange {
    /// The exchange that is at this moment, where a request was read already.
    pub(super) fn at(moment: &Moment) -> Option<Self> {
        moment.attempt.map(Self::Attempt).or(moment.lookup.map(Self::Lookup))
    }
}

/// Exchanges that are between their request and their end, and how often each rule fired.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireTally {
    shared: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    in_flight: BTreeSet<Exchange>,
    fired: BTreeMap<String, u32>,
}

impl WireTally {
    pub(crate) fn note(&self, event: &ProviderEvent) {
        let mut counts = self.counts();
        match event {
            ProviderEvent::Received(attempt) => {
                counts.in_flight.insert(Exchange::Attempt(attempt.id));
            }
            ProviderEvent::LookedUp(lookup) => {
                counts.in_flight.insert(Exchange::Lookup(lookup.id));
            }
            ProviderEvent::Replied { attempt, .. } | ProviderEvent::Unanswered { attempt, .. } => {
                counts.in_flight.remove(&Exchange::Attempt(*attempt));
            }
            ProviderEvent::LookupReplied { lookup, .. } | ProviderEvent::LookupUnanswered { lookup, .. } => {
                counts.in_flight.remove(&Exchange::Lookup(*lookup));
            }
            ProviderEvent::RuleFired { rule, .. } => *counts.fired.entry(rule.clone()).or_default() += 1,
            _ => {}
        }
    }

    /// Whether no exchange is under way, but for those that we hold ourselves.
    pub(super) fn is_idle_beside(&self, held: &[Exchange]) -> bool {
        self.counts().in_flight.iter().all(|exchange| held.contains(exchange))
    }

    /// Whether a rule can't fire any more.
    pub(super) fn is_used_up(&self, rule: &Rule) -> bool {
        let fired = self.counts().fired.get(&rule.id).copied().unwrap_or(0);
        let times = rule.matches.nth.map(|_| 1).or(rule.times);
        times.is_some_and(|times| fired >= times)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::provider::Unanswered;

    use super::*;

    #[test]
    fn an_exchange_that_we_hold_does_not_make_the_wire_busy() {
        let tally = WireTally::default();
        let end = |attempt| ProviderEvent::Unanswered { attempt, how: Unanswered::Fin };
        let mut counts = tally.counts();
        counts.in_flight.extend([Exchange::Attempt(1), Exchange::Lookup(1)]);
        drop(counts);
        assert!(!tally.is_idle_beside(&[]));
        assert!(!tally.is_idle_beside(&[Exchange::Attempt(1)]), "the lookup is still under way");
        tally.note(&ProviderEvent::LookupUnanswered { lookup: 1, how: Unanswered::Fin });
        assert!(tally.is_idle_beside(&[Exchange::Attempt(1)]));
        assert!(!tally.is_idle_beside(&[Exchange::Lookup(1)]), "numbers of writes and reads are apart");
        tally.note(&end(1));
        assert!(tally.is_idle_beside(&[]));
        tally.note(&end(1));
        assert!(tally.is_idle_beside(&[]), "an end that is told twice counts once");
    }
}
