//! The idempotency contract: which key protects what, and for how long.

use std::collections::BTreeMap;

use killpoint_model::profile::{Cached, Fingerprint, IdempotencyProfile, KeyScope, WindowAnchor};
use killpoint_model::provider::Attempt;

/// The answer that is stored under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The status of an error; `None` for the ordinary answer.
    pub error: Option<u16>,
    /// The effect, where one was made.
    pub effect: Option<String>,
}

impl Stored {
    fn keeps(&self, cached: Cached) -> bool {
        cached == Cached::All || self.error.is_none()
    }
}

/// A key in force.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    /// The attempt that executes, or executed, under it.
    owner: u32,
    anchor_ms: u64,
    body_sha256: String,
    /// `None` while the first request is in flight.
    stored: Option<Stored>,
}

/// What a key means for an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing stands in the way.
    Free,
    /// An answer is stored.
    Stored(Stored),
    /// The first request is in flight.
    InFlight,
    /// The key is known with another body.
    Mismatch,
}

/// The keys in force, by scope and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyTable {
    claims: BTreeMap<String, Claim>,
}

impl KeyTable {
    /// An attempt arrives: it takes its key where that is free. Whether it may execute as far as keys go.
    pub(super) fn arrive(&mut self, profile: &IdempotencyProfile, attempt: &Attempt) -> bool {
        let Some(slot) = slot(profile, attempt) else { return true };
        let held = self.claims.get_mut(&slot).filter(|claim| is_live(profile, claim, attempt.at_ms));
        if let Some(claim) = held {
            if profile.anchor == WindowAnchor::LastRequest {
                claim.anchor_ms = claim.anchor_ms.max(attempt.at_ms);
            }
            return false;
        }
        self.claims.insert(slot, claim(attempt, None));
        true
    }

    /// How the attempt's key stands for it.
    pub(super) fn standing(&self, profile: &IdempotencyProfile, attempt: &Attempt) -> Standing {
        let claim = slot(profile, attempt)
            .and_then(|slot| self.claims.get(&slot))
            .filter(|claim| claim.owner != attempt.id && is_live(profile, claim, attempt.at_ms));
        match claim {
            None => Standing::Free,
            Some(claim)
                if profile.fingerprint == Fingerprint::Body && claim.body_sha256 != attempt.body_sha256 =>
            {
                Standing::Mismatch
            }
            Some(Claim { stored: Some(stored), .. }) => Standing::Stored(stored.clone()),
            Some(_) => Standing::InFlight,
        }
    }

    /// The attempt was executed: its answer is stored, or frees the key.
    pub(super) fn settle(&mut self, profile: &IdempotencyProfile, attempt: &Attempt, stored: Stored) {
        let Some(slot) = slot(profile, attempt) else { return };
        let other_holds = self
            .claims
            .get(&slot)
            .is_some_and(|claim| claim.owner != attempt.id && is_live(profile, claim, attempt.at_ms));
        if other_holds {
            return;
        }
        if !stored.keeps(profile.cached) {
            self.claims.remove(&slot);
            return;
        }
        match self.claims.get_mut(&slot).filter(|claim| claim.owner == attempt.id) {
            Some(claim) => claim.stored = Some(stored),
            None => {
                self.claims.insert(slot, claim(attempt, Some(stored)));
            }
        }
    }

    /// The attempt will not execute: its key is free again.
    pub(super) fn release(&mut self, profile: &IdempotencyProfile, attempt: &Attempt) {
        let Some(slot) = slot(profile, attempt) else { return };
        if self.claims.get(&slot).is_some_and(|claim| claim.owner == attempt.id) {
            self.claims.remove(&slot);
        }
    }
}

fn claim(attempt: &Attempt, stored: Option<Stored>) -> Claim {
    Claim { owner: attempt.id, anchor_ms: attempt.at_ms, body_sha256: attempt.body_sha256.clone(), stored }
}

fn is_live(profile: &IdempotencyProfile, claim: &Claim, at_ms: u64) -> bool {
    at_ms < claim.anchor_ms.saturating_add(profile.window_ms)
}

/// Where the attempt's key is kept; `None` where no key is honoured.
fn slot(profile: &IdempotencyProfile, attempt: &Attempt) -> Option<String> {
    let key = attempt.key.as_ref().filter(|_| profile.dedupe)?;
    Some(match profile.scope {
        KeyScope::Account => key.clone(),
        KeyScope::Path => format!("{}\n{key}", attempt.target),
    })
}
