//! The worker's loop: take in what is new, execute what is owed, deliver what is due, wait for what belongs to
//! others.

use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::alarm::{self, Overdue};
use crate::cleanup::clean_up;
use crate::clock::{now_ms, pause};
use crate::error::WorkerError;
use crate::feed::FeedProgress;
use crate::leases::Sightings;
use crate::patience::patiently;
use crate::policy::{Policy, Recovery};
use crate::provider::Provider;
use crate::stop::Stop;
use crate::store::{Item, ItemStart, Settlement, Store};

/// Pause between two looks at a ledger in which nothing is due, in milliseconds.
const POLL_MS: u64 = 10;
/// What a lease allows beside the request itself: commits and marks, in milliseconds.
const SEND_MARGIN_MS: i64 = 100;
/// Where the bug of endless attempts ends, so that a trial does too.
const HOT_ATTEMPTS_MAX: u32 = 40;
/// The budget of the bug that counts claims, so that two crashes are enough to show it.
const COUNTED_CLAIMS_MAX: u32 = 2;
/// How far back the bug looks that passes over a backlog, in milliseconds.
const BACKLOG_MS: i64 = 3_600_000;
/// The claim of the bug that does not look how long the work takes, in milliseconds.
const SHORT_LEASE_MS: i64 = 50;

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
    /// Between two first sends, in milliseconds; 0 is no limit.
    pub(crate) send_gap_ms: u64,
    /// How long an item may be due before that is an alarm, in milliseconds.
    pub(crate) overdue_ms: i64,
    /// Whether a copied or restored ledger is the only one: what the provider does not have is sent.
    pub(crate) adopt: bool,
    /// Whether the provider's feed is polled.
    pub(crate) feed: bool,
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
    pub(crate) stop: Stop,
    /// Which life of this worker id it is, from 1.
    pub(crate) life: u32,
    pub(crate) sightings: Sightings,
    pub(crate) feed: FeedProgress,
    pub(crate) last_send: Cell<Option<Instant>>,
    overdue: Overdue,
}

impl Worker {
    /// Takes over a ledger. A bug may change the settings, because they are decisions too.
    pub(crate) fn new(
        mut store: Store,
        provider: Provider,
        mut settings: Settings,
        policy: Policy,
        stop: Stop,
    ) -> Result<Self, WorkerError> {
        if policy.retry_hot {
            settings.attempts_max = HOT_ATTEMPTS_MAX;
        }
        if policy.claims_count {
            settings.attempts_max = COUNTED_CLAIMS_MAX;
        }
        if policy.retry_hot || policy.trust_first_lookup {
            settings.reconcile_ms = 0;
        }
        if policy.unfenced {
            store.unfence();
        }
        if policy.resend_unwritten {
            store.wait_for_nobody()?;
        }
        let life = patiently(|| store.begin_life(&settings.worker_id))?;
        let overdue = Overdue::new(settings.overdue_ms);
        let (sightings, feed, last_send) = (Sightings::default(), FeedProgress::default(), Cell::new(None));
        Ok(Self { store, provider, settings, policy, stop, life, sightings, feed, last_send, overdue })
    }

    /// Works until nothing is left where it drains, and until it is stopped where it does not.
    pub(crate) fn run(&mut self) -> Result<(), WorkerError> {
        patiently(|| self.begin())?;
        while !self.stop.is_asked_for() {
            if self.policy.idle_for_ever && !self.settings.drain {
                pause(POLL_MS);
                continue;
            }
            if patiently(|| self.step())? {
                continue;
            }
            if self.settings.drain && !self.owes_anything()? {
                return clean_up(&mut self.store, self.policy);
            }
            self.overdue.look(&self.store)?;
            pause(POLL_MS);
        }
        Ok(())
    }

    /// Does one thing. Says whether there was one to do.
    fn step(&mut self) -> Result<bool, WorkerError> {
        let again = format!("-again-{}", self.life);
        let again = self.policy.reregister_schedules.then_some(again.as_str());
        Ok(self.store.fire(again)? || self.execute_next()? || self.deliver_next()? || self.take_feed()?)
    }

    fn owes_anything(&self) -> Result<bool, WorkerError> {
        let takes_over = !matches!(self.policy.recovery, Recovery::AtStartOnly | Recovery::Never);
        Ok(self.settings.feed && !self.feed.is_drained
            || self.store.owes_occurrence()?
            || self.store.owes_execution()?
            || !self.policy.skip_delivery && self.store.owes_delivery(takes_over, self.oldest_due())?)
    }

    /// What has been due since before this time is passed over.
    pub(crate) fn oldest_due(&self) -> i64 {
        if self.policy.forget_missed { now_ms() - BACKLOG_MS } else { i64::MIN }
    }

    /// A lease that outlasts a request and what is written after it, in milliseconds.
    pub(crate) fn request_lease_ms(&self) -> i64 {
        if self.policy.lease_too_short {
            return SHORT_LEASE_MS;
        }
        self.settings.lease_ms.max(self.settings.timeout_ms + SEND_MARGIN_MS)
    }

    /// Whether the next first send has to wait for its turn.
    pub(crate) fn is_paced(&self) -> bool {
        let gap = Duration::from_millis(self.settings.send_gap_ms);
        self.last_send.get().is_some_and(|at| at.elapsed() < gap)
    }

    /// How items begin under this worker's policy.
    pub(crate) fn item_start(&self) -> ItemStart {
        ItemStart { with_key: !self.policy.intent_after_send, delivered: self.policy.done_with_execution }
    }

    /// The key under which an item is asked for and sent.
    pub(crate) fn key_of(&self, item: &Item) -> String {
        let key = item.key();
        if self.policy.key_per_attempt { format!("{key}-{}", item.attempts + 1) } else { key.to_owned() }
    }

    /// Settles an item. Says whether it was still ours.
    pub(crate) fn settle(&self, item: &Item, settlement: &Settlement) -> Result<bool, WorkerError> {
        let accepted = match settlement {
            Settlement::Delivered { provider_id, found, .. } => {
                provider_id.is_some() && (!found || self.policy.fold_counters)
            }
            Settlement::Unknown { .. } => self.policy.fold_counters,
            Settlement::Failed { .. } | Settlement::Review { .. } | Settlement::Pending { .. } => false,
        };
        let write = || self.store.settle(item, settlement, accepted);
        let held = if self.policy.resend_unwritten { write() } else { patiently(write) }?;
        if !held {
            note_lost_claim(item);
        } else if matches!(settlement, Settlement::Failed { .. } | Settlement::Review { .. }) {
            alarm::raise(&format!("{} is not delivered: {}", item.id, settlement.evidence()));
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
