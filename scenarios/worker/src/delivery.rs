//! Delivering one item: claim, commit the intent, send once, commit what came back.

use std::time::Instant;

use killpoint_mark::mark;

use crate::clock::now_ms;
use crate::error::WorkerError;
use crate::policy::Doubt;
use crate::provider::Answer;
use crate::store::{Begin, HORIZON_MS, Item, Settlement, Status};
use crate::worker::{Worker, note_lost_claim};

/// Pause before an item that was refused for its rate is taken up again, in milliseconds; doubles each time.
const RATE_PAUSE_MS: i64 = 100;
/// Attempts of one item that may end with their owner, beside those that the budget is for.
const INTERRUPTIONS_MAX: u32 = 8;

impl Worker {
    /// Takes up the next item that nobody holds any more, or that is due. Says whether there was one.
    pub(crate) fn deliver_next(&mut self) -> Result<bool, WorkerError> {
        if self.policy.skip_delivery {
            return Ok(false);
        }
        let orphan = self.sightings.first_orphan(self.store.claimed()?, self.policy.recovery);
        let next = match orphan {
            None if self.is_paced() => None,
            None => self.store.next_due(self.oldest_due())?,
            orphan => orphan,
        };
        let Some(mut item) = next else { return Ok(false) };
        match item.status {
            Status::Dispatching if self.policy.lease_too_short => {
                if self.claim(&mut item)? {
                    self.dispatch(&mut item, false)?;
                }
            }
            Status::Dispatching => self.give_up_on_owner(&mut item)?,
            Status::Pending if item.first_sent_at.is_none() && !item.suspect => {
                mark("before-claim")?;
                if self.claim(&mut item)? {
                    mark("item-claimed")?;
                    self.dispatch(&mut item, false)?;
                }
            }
            // Whatever was sent before, or may have been, is asked for before it is sent.
            Status::Pending | Status::Unknown => self.reconcile(&mut item)?,
            Status::Decided => {}
        }
        Ok(true)
    }

    /// Claims an item. Says whether it is ours.
    pub(crate) fn claim(&self, item: &mut Item) -> Result<bool, WorkerError> {
        let (owner, lease_ms) = (&self.settings.worker_id, self.request_lease_ms());
        if self.policy.claim_unconditionally {
            self.store.claim_unconditionally(item, owner, lease_ms)?;
            return Ok(true);
        }
        self.store.claim(item, owner, lease_ms, self.policy.claims_count)
    }

    /// An item was in flight when its owner's lease ended: nobody knows what became of it.
    fn give_up_on_owner(&self, item: &mut Item) -> Result<(), WorkerError> {
        let owner = item.owner.clone().unwrap_or_default();
        mark("recovery-scanned")?;
        let claimed = if self.policy.take_over_unconditionally {
            self.store.claim_anyway(item, &self.settings.worker_id, self.request_lease_ms())?
        } else {
            self.claim(item)?
        };
        if claimed {
            let why = format!("the lease of {owner} ended in attempt {}", item.attempts);
            self.settle_doubt(item, &why, None, true)?;
        }
        Ok(())
    }

    /// Sends a claimed item, once.
    pub(crate) fn dispatch(&self, item: &mut Item, after_absence: bool) -> Result<(), WorkerError> {
        if self.is_budget_spent(item) {
            return self.stop_attempts(item);
        }
        let (key, payload) = (self.key_of(item), self.payload_of(item));
        let lease_ms = self.request_lease_ms();
        let begin = Begin {
            counted: !self.policy.claims_count,
            after_absence,
            confirmed: self.policy.confirm_before_send,
        };
        self.last_send.set(Some(Instant::now()));
        if self.policy.intent_after_send {
            mark("dispatch-started")?;
            let answer = self.provider.send(&payload, &key);
            self.store.begin_dispatch(item, &key, lease_ms, begin)?;
            return self.settle_answer(item, answer);
        }
        if !self.store.begin_dispatch(item, &key, lease_ms, begin)? {
            note_lost_claim(item);
            return Ok(());
        }
        mark("dispatch-started")?;
        // No byte may be sent under a claim that somebody else has taken, or that could end before the request does.
        if !self.store.renew(item, lease_ms)? {
            note_lost_claim(item);
            return Ok(());
        }
        self.send_and_settle(item, &payload, &key)
    }

    /// The budget is for attempts whose end was seen. Crashes are bounded too, yet apart: they are no answer.
    fn is_budget_spent(&self, item: &Item) -> bool {
        item.attempts.saturating_sub(item.interruptions) >= self.settings.attempts_max
            || item.interruptions >= INTERRUPTIONS_MAX
    }

    /// Writes what an answer means.
    pub(crate) fn settle_answer(&self, item: &Item, answer: Answer) -> Result<(), WorkerError> {
        let attempt = item.attempts;
        if self.policy.confirm_before_send && !matches!(answer, Answer::Accepted { .. }) {
            return Ok(());
        }
        match self.taken(answer) {
            Answer::Accepted { id } => {
                mark("answer-read")?;
                let evidence =
                    format!("attempt {attempt}: accepted as {id}, with {}", self.provider.credential());
                if self
                    .settle(item, &Settlement::Delivered { provider_id: Some(id), found: false, evidence })?
                {
                    mark("ack-committed")?;
                }
                Ok(())
            }
            Answer::Refused { why } => {
                self.note_setback(item)?;
                let evidence = format!("attempt {attempt}: {why}; {}", self.request_evidence(item));
                // A refusal of this attempt says nothing about an earlier one that may have been accepted.
                let settlement = if item.doubts == 0 {
                    Settlement::Failed { evidence }
                } else {
                    Settlement::Review { evidence }
                };
                self.settle(item, &settlement).map(drop)
            }
            Answer::RateLimited { retry_after_ms } => {
                self.note_setback(item)?;
                let pause_ms = self.rate_pause_ms(attempt, retry_after_ms);
                let evidence = format!("attempt {attempt}: answered 429, again in {pause_ms} ms");
                let next_attempt_at = Some(now_ms() + pause_ms);
                self.settle(item, &Settlement::Pending { next_attempt_at, evidence }).map(drop)
            }
            Answer::Doubtful { why, retry_after_ms } => {
                self.settle_doubt(item, &format!("attempt {attempt}: {why}"), retry_after_ms, false)
            }
        }
    }

    /// What an answer is taken for.
    fn taken(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Refused { .. } if self.policy.retry_refused => {
                Answer::RateLimited { retry_after_ms: None }
            }
            other => other,
        }
    }

    /// A destination was refused or postponed; the others have nothing to do with it.
    fn note_setback(&self, item: &Item) -> Result<(), WorkerError> {
        if self.policy.retry_whole_run { self.store.reopen_siblings(item) } else { Ok(()) }
    }

    fn rate_pause_ms(&self, attempt: u32, retry_after_ms: Option<u64>) -> i64 {
        if self.policy.retry_hot {
            return 0;
        }
        let growing = RATE_PAUSE_MS << attempt.min(8);
        growing.max(self.asked_pause_ms(retry_after_ms)).min(HORIZON_MS)
    }

    /// How long the provider asks to be left alone.
    fn asked_pause_ms(&self, retry_after_ms: Option<u64>) -> i64 {
        if self.policy.ignore_retry_after {
            return 0;
        }
        retry_after_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0).min(HORIZON_MS)
    }

    /// The outcome of an attempt is unknown.
    fn settle_doubt(
        &self,
        item: &Item,
        why: &str,
        retry_after_ms: Option<u64>,
        interrupted: bool,
    ) -> Result<(), WorkerError> {
        let evidence = why.to_owned();
        let ask_at = now_ms() + self.asked_pause_ms(retry_after_ms);
        let settlement = match self.policy.doubt {
            Doubt::Explicit => Settlement::Unknown { ask_at, interrupted, evidence },
            Doubt::TakenAsDelivered => Settlement::Delivered { provider_id: None, found: false, evidence },
            Doubt::TakenAsFailed => Settlement::Failed { evidence },
            Doubt::PostponedForever => Settlement::Pending { next_attempt_at: None, evidence },
        };
        if self.settle(item, &settlement)? {
            mark("outcome-unknown")?;
        }
        Ok(())
    }

    /// No attempt is left. Only where every one was refused for certain is that a failure.
    fn stop_attempts(&self, item: &Item) -> Result<(), WorkerError> {
        let evidence = format!("no attempt is left after {}; {}", item.attempts, self.request_evidence(item));
        let settlement = if item.doubts == 0 || self.policy.claims_count {
            Settlement::Failed { evidence }
        } else {
            Settlement::Review { evidence }
        };
        self.settle(item, &settlement).map(drop)
    }

    /// What an operator needs to find the request at the provider.
    pub(crate) fn request_evidence(&self, item: &Item) -> String {
        format!(
            "POST {} with key {} and {}",
            self.provider.messages_url(),
            item.key(),
            self.provider.credential()
        )
    }

    /// Sends an item that counts as done already; what comes back changes nothing but the id.
    pub(crate) fn send_from_memory(&self, id: &str) -> Result<(), WorkerError> {
        let item = self.store.item(id)?;
        mark("dispatch-started")?;
        if let Answer::Accepted { id } = self.provider.send(&item.payload, item.key()) {
            let evidence = format!("accepted as {id}");
            self.settle(&item, &Settlement::Delivered { provider_id: Some(id), found: false, evidence })?;
            mark("ack-committed")?;
        }
        Ok(())
    }
}
