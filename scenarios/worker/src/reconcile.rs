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
    /// It may be sent again, under the same key.
    Resend,
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
        if self.policy.resend_without_lookup {
            return self.dispatch(item);
        }
        let settlement = match self.ask(item)? {
            Conclusion::Resend => return self.dispatch(item),
            Conclusion::LostClaim => {
                note_lost_claim(item);
                return Ok(());
            }
            Conclusion::Accepted { id } => {
                let evidence = format!("reconciled: a lookup found {id}");
                Settlement::Delivered { provider_id: Some(id), evidence }
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
                        return Ok(Conclusion::Resend);
                    }
                    LOOKUP_PAUSE_MS
                }
                Lookup::Failed { .. } if self.provider_dedupes(item) => return Ok(Conclusion::Resend),
                Lookup::Failed { why } => {
                    failures += 1;
                    if failures == LOOKUP_FAILURES_MAX {
                        return Ok(Conclusion::Unanswered { why });
                    }
                    LOOKUP_PAUSE_MS << failures.min(2)
                }
            };
            pause(pause_ms);
            if !self.store.renew(item, self.request_lease_ms())? {
                return Ok(Conclusion::LostClaim);
            }
        }
    }

    /// How long absence must last. An answered refusal leaves no commit that could come late, and a provider that
    /// dedupes makes a late one harmless.
    fn window_ms(&self, item: &Item) -> i64 {
        if item.status == Status::Pending || self.provider_dedupes(item) {
            0
        } else {
            self.settings.reconcile_ms
        }
    }

    /// Whether the provider still knows the key. Counted from the first attempt, which is never after the accept.
    fn provider_dedupes(&self, item: &Item) -> bool {
        match (self.settings.dedupe_ms, item.first_sent_at) {
            (Some(dedupe_ms), Some(sent_at)) => (0..dedupe_ms).contains(&(now_ms() - sent_at)),
            _ => false,
        }
    }
}
