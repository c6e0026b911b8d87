//! The worker's loop: execute what is owed, deliver what is due, wait for what belongs to others.

use std::io::Write;

use crate::bugs::Policy;
use crate::cleanup::clean_up;
use crate::clock::pause;
use crate::error::WorkerError;
use crate::provider::Provider;
use crate::store::{Item, ItemStart, Settlement, Store};

/// Pause between two looks at a ledger in which nothing is due, in milliseconds.
const POLL_MS: u64 = 10;
/// What a lease allows beside the request itself: commits and marks, in milliseconds.
const SEND_MARGIN_MS: i64 = 100;
/// Where the bug of endless attempts ends, so that a trial does too.
const HOT_ATTEMPTS_MAX: u32 = 40;

/// How one worker runs.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Who it is in leases.
    pub(crate) worker_id: String,
    /// How long a claim lasts, in milliseconds.
    pub(crate) lease_ms: i64,
    /// Limit of one request, in milliseconds.
    pub(crate) timeout_ms: i64,
    /// How long lookups must find nothing before that is believed, in milliseconds.
    pub(crate) reconcile_ms: i64,
    /// Attempts per item.
    pub(crate) attempts_max: u32,
    /// How long the provider dedupes by key, in milliseconds; `None` where it does not.
    pub(crate) dedupe_ms: Option<i64>,
    /// Whether to end when nothing is left to do.
    pub(crate) drain: bool,
}

/// A worker at work.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) store: Store,
    pub(crate) provider: Provider,
    pub(crate) settings: Settings,
    pub(crate) policy: Policy,
    /// Which life of this worker id it is, from 1.
    pub(crate) life: u32,
}

impl Worker {
    /// Takes over a ledger. A bug may change the settings, because they are decisions too.
    pub(crate) fn new(
        store: Store,
        provider: Provider,
        mut settings: Settings,
        policy: Policy,
    ) -> Result<Self, WorkerError> {
        if policy.retry_hot {
            settings.attempts_max = HOT_ATTEMPTS_MAX;
        }
        if policy.retry_hot || policy.trust_first_lookup {
            settings.reconcile_ms = 0;
        }
        let life = store.begin_life(&settings.worker_id)?;
        Ok(Self { store, provider, settings, policy, life })
    }

    /// Works until nothing is left where it drains, and for ever where it does not.
    pub(crate) fn run(&mut self) -> Result<(), WorkerError> {
        self.restart_anew()?;
        loop {
            if self.execute_next()? || self.deliver_next()? {
                continue;
            }
            if self.settings.drain && !self.owes_anything()? {
                return clean_up(&mut self.store, self.policy);
            }
            pause(POLL_MS);
        }
    }

    fn owes_anything(&self) -> Result<bool, WorkerError> {
        Ok(self.store.owes_execution()? || !self.policy.skip_delivery && self.store.owes_delivery()?)
    }

    /// A lease that outlasts a request and what is written after it, in milliseconds.
    pub(crate) fn request_lease_ms(&self) -> i64 {
        self.settings.lease_ms.max(self.settings.timeout_ms + SEND_MARGIN_MS)
    }

    /// How items begin under this worker's policy.
    pub(crate) fn item_start(&self) -> ItemStart {
        ItemStart { with_key: !self.policy.intent_after_send, delivered: self.policy.done_with_execution }
    }

    /// The key under which an item is asked for and sent.
    pub(crate) fn key_of(&self, item: &Item) -> String {
        let key = item.key();
        if self.policy.key_per_attempt { format!("{key}-{}", item.attempts + 1) } else { key }
    }

    /// Settles an item. Says whether it was still ours.
    pub(crate) fn settle(&self, item: &Item, settlement: &Settlement) -> Result<bool, WorkerError> {
        let held = self.store.settle(item, settlement)?;
        if !held {
            note_lost_claim(item);
        }
        Ok(held)
    }
}

/// Says on stderr that a claim was lost: the item is its new owner's business now.
pub(crate) fn note_lost_claim(item: &Item) {
    // Nothing can be done about a closed stderr.
    let _ = writeln!(
        std::io::stderr(),
        "outbox-worker: {} was taken over by another worker; left to it",
        item.id
    );
}
