//! Reconciling: before an item that was sent is sent again, the provider is asked for it, long enough for a late
//! commit to show.

use killpoint_mark::mark;

use crate::clock::{now_ms, pause};
use crate::error::WorkerError;
use crate::provider::Lookup;
use crate::store::{Item, Settlement, Status};
use crate::worker::{Worker, note_lost_claim};

/// Pause between two lookups, in milliseconds; doubles after each one that failed.
const LOOKUP_PAUSE_MS: u64 = 100;
/// Lookups in a row that may fail before an operator is asked.
const LOOKUP_FAILURES_MAX: u32 = 6;

/// What the provider's answers add up to.
enum Conclusion {
    Accepted {
        id: String,
    },
    /// It may be sent, under the same key: because it was `absent`, or because the provider dedupes.
    Resend {
        absent: bool,
    },
    /// SIGTERM came first; the next life asks again.
    Stopping,
    /// The question was not answered.
    Unanswered {
        why: String,
    },
    /// The item has a new owner.
    LostClaim,
}

impl Worker {
    /// Finds out what became of an item that was sent, and acts on it.
    pub(crate) fn reconcile(&self, item: &mut Item) -> Result<(), WorkerError> {
        mark("before-reconcile")?;
        if !self.claim(item)? {
            return Ok(());
        }
        let trusts_key = self.policy.trust_key_for_ever && self.settings.dedupe_ms.is_some();
        if self.policy.resend_without_lookup || trusts_key {
            return self.dispatch(item, false);
        }
        let settlement = match self.ask(item)? {
            Conclusion::Resend { .. } if self.must_hold(item) => Settlement::Review {
                evidence: format!(
                    "this ledger is a copy or was restored, and the provider has no message: whoever has the original \
                     may still send it (run with --adopt where there is none); {}",
                    self.request_evidence(item)
                ),
            },
            Conclusion::Resend { absent } => return self.dispatch(item, absent),
            Conclusion::Stopping => return self.store.release(item),
            Conclusion::LostClaim => {
                note_lost_claim(item);
                return Ok(());
            }
            Conclusion::Accepted { id } => {
                let evidence = format!("reconciled: a lookup with {} found {id}", self.provider.credential());
                Settlement::Delivered { provider_id: Some(id), found: true, evidence }
            }
            Conclusion::Unanswered { why } => Settlement::Review {
                evidence: format!(
                    "{LOOKUP_FAILURES_MAX} lookups failed, the last: {why}; {}",
                    self.request_evidence(item)
                ),
            },
        };
        if self.settle(item, &settlement)? {
            mark("reconciled")?;
        }
        Ok(())
    }

    /// Asks until the message is found, or was absent in every answer of a whole window.
    fn ask(&self, item: &mut Item) -> Result<Conclusion, WorkerError> {
        let window_ms = self.window_ms(item);
        let mut absent_since = None;
        let mut failures = 0;
        loop {
            let asked_at = now_ms();
            let pause_ms = match self.provider.look_up(&self.key_of(item)) {
                Lookup::Found { id } => return Ok(Conclusion::Accepted { id }),
                Lookup::Absent => {
                    failures = 0;
                    if asked_at - *absent_since.get_or_insert(asked_at) >= window_ms {
                        return Ok(Conclusion::Resend { absent: true });
                    }
                    LOOKUP_PAUSE_MS
                }
                Lookup::Failed { .. } if self.provider_dedupes(item) => {
                    return Ok(Conclusion::Resend { absent: false });
                }
                Lookup::Failed { why } => {
                    failures += 1;
                    if failures == LOOKUP_FAILURES_MAX {
                        return Ok(Conclusion::Unanswered { why });
                    }
                    LOOKUP_PAUSE_MS << failures.min(2)
                }
            };
            pause(pause_ms);
            if self.stop.is_asked_for() {
                return Ok(Conclusion::Stopping);
            }
            if !self.store.renew(item, self.request_lease_ms())? {
                return Ok(Conclusion::LostClaim);
            }
        }
    }

    /// Whether another instance may be about to send the same item, and nobody would merge the two.
    fn must_hold(&self, item: &Item) -> bool {
        item.suspect && !self.settings.adopt && self.settings.dedupe_ms.is_none()
    }

    /// How long absence must last. An answered refusal leaves no commit that could come late, and a provider that
    /// dedupes makes a late one harmless.
    fn window_ms(&self, item: &Item) -> i64 {
        let answered = item.status == Status::Pending && !item.suspect;
        if answered || self.provider_dedupes(item) { 0 } else { self.settings.reconcile_ms }
    }

    /// Whether the provider still knows the key. Counted from the first attempt, which is never after the accept.
    fn provider_dedupes(&self, item: &Item) -> bool {
        match (self.settings.dedupe_ms, item.first_sent_at) {
            (Some(dedupe_ms), Some(sent_at)) => (0..dedupe_ms).contains(&(now_ms() - sent_at)),
            _ => false,
        }
    }
}
