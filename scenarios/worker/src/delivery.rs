//! Delivering one item: claim, commit the intent, send once, commit what came back.

use killpoint_mark::mark;

use crate::bugs::Doubt;
use crate::clock::now_ms;
use crate::error::WorkerError;
use crate::provider::Answer;
use crate::store::{HORIZON_MS, Item, Settlement, Status};
use crate::worker::{Worker, note_lost_claim};

/// Pause before an item that was refused for its rate is taken up again, in milliseconds; doubles each time.
const RATE_PAUSE_MS: i64 = 100;

impl Worker {
    /// Takes up the next item that is due. Says whether there was one.
    pub(crate) fn deliver_next(&mut self) -> Result<bool, WorkerError> {
        if self.policy.skip_delivery {
            return Ok(false);
        }
        let Some(mut item) = self.store.next_due()? else { return Ok(false) };
        match item.status {
            Status::Dispatching => self.give_up_on_owner(&mut item)?,
            Status::Pending if item.attempts == 0 => {
                mark("before-claim")?;
                if self.claim(&mut item)? {
                    mark("item-claimed")?;
                    self.dispatch(&mut item)?;
                }
            }
            // Whatever was sent before is asked for before it is sent again.
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
        self.store.claim(item, owner, lease_ms)
    }

    /// An item was in flight when its owner's lease ended: nobody knows what became of it.
    fn give_up_on_owner(&self, item: &mut Item) -> Result<(), WorkerError> {
        let owner = item.owner.clone().unwrap_or_default();
        if self.claim(item)? {
            let why = format!("the lease of {owner} ended in attempt {}", item.attempts);
            self.settle_doubt(item, &why)?;
        }
        Ok(())
    }

    /// Sends a claimed item, once.
    pub(crate) fn dispatch(&self, item: &mut Item) -> Result<(), WorkerError> {
        if item.attempts >= self.settings.attempts_max {
            return self.stop_attempts(item);
        }
        let key = self.key_of(item);
        if self.policy.intent_after_send {
            mark("dispatch-started")?;
            let answer = self.provider.send(&item.payload, &key);
            self.begin_dispatch(item, &key)?;
            return self.settle_answer(item, answer);
        }
        if !self.begin_dispatch(item, &key)? {
            note_lost_claim(item);
            return Ok(());
        }
        mark("dispatch-started")?;
        if !self.lease_covers_request(item)? {
            note_lost_claim(item);
            return Ok(());
        }
        let answer = self.provider.send(&item.payload, &key);
        self.settle_answer(item, answer)
    }

    fn begin_dispatch(&self, item: &mut Item, key: &str) -> Result<bool, WorkerError> {
        self.store.begin_dispatch(item, key, self.request_lease_ms(), self.policy.confirm_before_send)
    }

    /// No byte may be sent under a lease that could end before the request does: another worker would take
    /// the item over while the provider is still reading it.
    fn lease_covers_request(&self, item: &mut Item) -> Result<bool, WorkerError> {
        if item.lease_until - now_ms() >= self.settings.timeout_ms {
            return Ok(true);
        }
        self.store.renew(item, self.request_lease_ms())
    }

    fn settle_answer(&self, item: &Item, answer: Answer) -> Result<(), WorkerError> {
        let attempt = item.attempts;
        if self.policy.confirm_before_send && !matches!(answer, Answer::Accepted { .. }) {
            return Ok(());
        }
        match answer {
            Answer::Accepted { id } => {
                mark("answer-read")?;
                let evidence = format!("attempt {attempt}: accepted as {id}");
                if self.settle(item, &Settlement::Delivered { provider_id: Some(id), evidence })? {
                    mark("ack-committed")?;
                }
                Ok(())
            }
            Answer::Refused { why } => {
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
                let pause_ms = self.rate_pause_ms(attempt, retry_after_ms);
                let evidence = format!("attempt {attempt}: answered 429, again in {pause_ms} ms");
                let next_attempt_at = Some(now_ms() + pause_ms);
                self.settle(item, &Settlement::Pending { next_attempt_at, evidence }).map(drop)
            }
            Answer::Doubtful { why } => self.settle_doubt(item, &format!("attempt {attempt}: {why}")),
        }
    }

    fn rate_pause_ms(&self, attempt: u32, retry_after_ms: Option<u64>) -> i64 {
        if self.policy.retry_hot {
            return 0;
        }
        let growing = RATE_PAUSE_MS << attempt.min(8);
        let asked = retry_after_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
        growing.max(asked).min(HORIZON_MS)
    }

    /// The outcome of an attempt is unknown.
    fn settle_doubt(&self, item: &Item, why: &str) -> Result<(), WorkerError> {
        let evidence = why.to_owned();
        let settlement = match self.policy.doubt {
            Doubt::Explicit => Settlement::Unknown { evidence },
            Doubt::TakenAsDelivered => Settlement::Delivered { provider_id: None, evidence },
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
        let settlement =
            if item.doubts == 0 { Settlement::Failed { evidence } } else { Settlement::Review { evidence } };
        self.settle(item, &settlement).map(drop)
    }

    /// What an operator needs to find the request at the provider.
    pub(crate) fn request_evidence(&self, item: &Item) -> String {
        format!("POST {} with key {}", self.provider.messages_url(), item.key())
    }

    /// Sends an item that counts as done already; what comes back changes nothing but the id.
    pub(crate) fn send_from_memory(&self, id: &str) -> Result<(), WorkerError> {
        let item = self.store.item(id)?;
        mark("dispatch-started")?;
        if let Answer::Accepted { id } = self.provider.send(&item.payload, &item.key()) {
            let evidence = format!("accepted as {id}");
            self.settle(&item, &Settlement::Delivered { provider_id: Some(id), evidence })?;
            mark("ack-committed")?;
        }
        Ok(())
    }
}
