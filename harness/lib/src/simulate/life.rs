//! One life of a modelled worker: what the reference worker does, act by act. A coroutine: each `await` is a
//! durable or visible act, after which the world may stop it, or drop it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use killpoint_model::RowState;

use super::act::{Answer, Desk, Found, Letter};
use super::ledger::{Begin, HORIZON_MS, Ledger, Seen, Settlement};
use super::workers::{Doubt, Policy};

/// Limit of one request, in milliseconds.
pub(super) const TIMEOUT_MS: i64 = 400;
/// How long a claim of a run lasts, in milliseconds.
const RUN_LEASE_MS: i64 = 400;
/// How long a claim of an item lasts: longer than a request, in milliseconds.
pub(super) const LEASE_MS: i64 = 500;
/// How long a claim lasts while the provider is asked: longer than a lookup that hangs and the pause after it, so that
/// two workers don't take it from each other for ever, in milliseconds.
const ASKING_LEASE_MS: i64 = 900;
/// How long lookups must find nothing before that is believed, in milliseconds.
pub(super) const RECONCILE_MS: i64 = 600;
const ATTEMPTS_MAX: u32 = 5;
/// Where the bug of endless attempts ends.
const HOT_ATTEMPTS_MAX: u32 = 14;
const INTERRUPTIONS_MAX: u32 = 8;
const POLL_MS: i64 = 50;
const LOOKUP_PAUSE_MS: i64 = 200;
const LOOKUP_FAILURES_MAX: u32 = 6;
const RATE_PAUSE_MS: i64 = 100;

/// What the provider's answers add up to.
enum Conclusion {
    Accepted { id: String },
    Resend { absent: bool },
    Stopping,
    Unanswered,
    LostClaim,
}

/// A life: what it was started with, and what it knows and a kill wipes.
pub(super) struct Life {
    desk: Rc<Desk>,
    ledger: Rc<RefCell<Ledger>>,
    policy: Policy,
    marks: bool,
    /// How long the provider dedupes by key; `None` where it does not.
    dedupe_ms: Option<i64>,
    identity: u32,
    number: u32,
    /// Claims of others, and since when they have been as they are.
    sightings: BTreeMap<usize, ((u64, i64), i64)>,
}

impl Life {
    pub(super) fn new(
        desk: Rc<Desk>,
        ledger: Rc<RefCell<Ledger>>,
        (policy, marks): (Policy, bool),
        dedupe_ms: Option<i64>,
        identity: u32,
    ) -> Self {
        let sightings = BTreeMap::new();
        Self { desk, ledger, policy, marks, dedupe_ms, identity, number: 0, sightings }
    }

    /// Lives until nothing is left to do, or until it was asked to end. Gives the exit code.
    pub(super) async fn live(mut self) -> i32 {
        self.number = self.ledger.borrow_mut().begin_life(self.identity);
        self.desk.commit().await;
        if self.number > 1 {
            self.restart().await;
        }
        while !self.desk.stop.get() {
            if self.execute_next().await || self.deliver_next().await {
                continue;
            }
            if !self.ledger.borrow().owes(!self.policy.skip_delivery, !self.policy.never_takes_over) {
                self.clean_up().await;
                return 0;
            }
            self.desk.sleep(POLL_MS).await;
        }
        0
    }

    fn now(&self) -> i64 {
        self.desk.now_ms.get()
    }

    async fn mark(&self, name: &'static str) {
        if self.marks {
            self.desk.mark(name).await;
        }
    }

    /// What only wrong workers do in a life after the first.
    async fn restart(&self) {
        if self.policy.re_execute {
            self.ledger.borrow_mut().reopen_undelivered_runs();
            self.desk.commit().await;
        }
        if self.policy.recompute_recipients {
            self.ledger.borrow_mut().add_destination(&self.addition(), self.now());
            self.desk.commit().await;
        }
        if self.policy.reopen_failed {
            self.ledger.borrow_mut().reopen_failed(self.now());
            self.desk.commit().await;
        }
    }

    fn addition(&self) -> String {
        format!("joined-before-life-{}@example.test", self.number)
    }

    async fn clean_up(&self) {
        self.mark("before-cleanup").await;
        self.ledger.borrow_mut().clean_up(self.policy.cleanup_erases);
        self.desk.commit().await;
        self.mark("cleanup-done").await;
    }

    async fn execute_next(&self) -> bool {
        let Some(mut run) = self.ledger.borrow().next_run(self.now()) else { return false };
        let until = self.now() + RUN_LEASE_MS;
        if !self.ledger.borrow_mut().start_run(&mut run, self.identity, until) {
            return true;
        }
        self.desk.commit().await;
        self.mark("execution-started").await;
        self.mark("before-result-commit").await;
        let more = (self.policy.recompute_recipients && self.number > 1).then(|| self.addition());
        let start = (!self.policy.intent_after_send, self.policy.done_with_execution);
        let items = self.ledger.borrow_mut().commit_result(run, more, start, self.now());
        let Some(items) = items else { return true };
        self.desk.commit().await;
        self.mark("result-committed").await;
        for _ in &items {
            self.mark("item-enqueued").await;
        }
        if self.policy.done_with_execution {
            for item in items {
                self.send_from_memory(item).await;
            }
        }
        true
    }

    async fn send_from_memory(&self, item: usize) {
        let seen = self.ledger.borrow().read(item);
        self.mark("dispatch-started").await;
        let key = self.ledger.borrow().items[item].own_key.clone();
        if let Answer::Accepted { id } = self.send(item, key, self.now()).await {
            self.settle(&seen, Settlement::Delivered { id: Some(id), found: false }).await;
            self.mark("ack-committed").await;
        }
    }

    async fn send(&self, item: usize, key: String, sure_at_ms: i64) -> Answer {
        let body = self.ledger.borrow().items[item].payload.clone();
        self.desk.send(Letter { item, key, body, sure_at_ms }).await
    }

    async fn deliver_next(&mut self) -> bool {
        if self.policy.skip_delivery {
            return false;
        }
        let claimed = self.ledger.borrow().claimed();
        let next = self.first_orphan(&claimed).or_else(|| self.ledger.borrow().next_due(self.now()));
        let Some(mut seen) = next else { return false };
        match seen.state {
            RowState::Dispatching => self.give_up_on_owner(&mut seen).await,
            RowState::Created if seen.first_sent_at.is_none() => {
                self.mark("before-claim").await;
                if self.claim(&mut seen, LEASE_MS).await {
                    self.mark("item-claimed").await;
                    self.dispatch(&mut seen, false).await;
                }
            }
            _ => self.reconcile(&mut seen).await,
        }
        true
    }

    /// The first item whose claim was seen unchanged for as long as it lasts.
    fn first_orphan(&mut self, claimed: &[Seen]) -> Option<Seen> {
        let now = self.now();
        self.sightings.retain(|item, _| claimed.iter().any(|seen| seen.item == *item));
        let mut orphan = None;
        for seen in claimed {
            let claim = (seen.token, seen.lease_until);
            let since = self.sightings.entry(seen.item).or_insert((claim, now));
            if since.0 != claim {
                *since = (claim, now);
            }
            if !self.policy.never_takes_over && now - since.1 >= seen.lease_ms && orphan.is_none() {
                orphan = Some(*seen);
            }
        }
        orphan
    }

    async fn claim(&self, seen: &mut Seen, lease_ms: i64) -> bool {
        let compares = !self.policy.claim_unconditionally;
        let claimed = self.ledger.borrow_mut().claim(seen, self.identity, lease_ms, self.now(), compares);
        if claimed {
            self.desk.commit().await;
        }
        claimed
    }

    async fn settle(&self, seen: &Seen, settlement: Settlement) -> bool {
        let held = self.ledger.borrow_mut().settle(seen, &settlement, !self.policy.unfenced);
        self.desk.commit().await;
        held
    }

    async fn give_up_on_owner(&self, seen: &mut Seen) {
        self.mark("recovery-scanned").await;
        if self.claim(seen, LEASE_MS).await {
            self.settle_doubt(seen, None, true).await;
        }
    }

    fn key_of(&self, seen: &Seen) -> String {
        let ledger = self.ledger.borrow();
        let key = &ledger.items[seen.item].own_key;
        if self.policy.key_per_attempt { format!("{key}-{}", seen.attempts + 1) } else { key.clone() }
    }

    async fn dispatch(&self, seen: &mut Seen, after_absence: bool) {
        let attempts_max = if self.policy.retry_hot { HOT_ATTEMPTS_MAX } else { ATTEMPTS_MAX };
        if seen.attempts.saturating_sub(seen.interruptions) >= attempts_max
            || seen.interruptions >= INTERRUPTIONS_MAX
        {
            let settlement = if seen.doubts == 0 { Settlement::Failed } else { Settlement::Review };
            self.settle(seen, settlement).await;
            return;
        }
        let key = self.key_of(seen);
        let begin = Begin { after_absence, confirmed: self.policy.confirm_before_send };
        let fenced = !self.policy.unfenced;
        let commit_intent = |seen: &mut Seen| {
            self.ledger.borrow_mut().begin_dispatch(seen, &key, LEASE_MS, self.now(), begin, fenced)
        };
        if self.policy.intent_after_send {
            self.mark("dispatch-started").await;
            let answer = self.send(seen.item, key.clone(), self.now()).await;
            commit_intent(seen);
            self.desk.commit().await;
            self.settle_answer(seen, answer).await;
            return;
        }
        if !commit_intent(seen) {
            return;
        }
        self.desk.commit().await;
        self.mark("dispatch-started").await;
        let sure_at_ms = self.now();
        let renewed = self.ledger.borrow_mut().renew(seen, LEASE_MS, sure_at_ms, fenced);
        if renewed {
            self.desk.commit().await;
            let answer = self.send(seen.item, key.clone(), sure_at_ms).await;
            self.settle_answer(seen, answer).await;
        }
    }

    fn asked_pause_ms(&self, retry_after_ms: Option<u64>) -> i64 {
        if self.policy.ignore_retry_after {
            return 0;
        }
        retry_after_ms.map_or(0, |ms| ms as i64).min(HORIZON_MS)
    }

    async fn settle_answer(&self, seen: &Seen, answer: Answer) {
        if self.policy.confirm_before_send && !matches!(answer, Answer::Accepted { .. }) {
            return;
        }
        let answer = match answer {
            Answer::Refused if self.policy.retry_refused => Answer::RateLimited { retry_after_ms: None },
            other => other,
        };
        match answer {
            Answer::Accepted { id } => {
                self.mark("answer-read").await;
                if self.settle(seen, Settlement::Delivered { id: Some(id), found: false }).await {
                    self.mark("ack-committed").await;
                }
            }
            Answer::Refused => {
                let settlement = if seen.doubts == 0 { Settlement::Failed } else { Settlement::Review };
                self.settle(seen, settlement).await;
            }
            Answer::RateLimited { retry_after_ms } => {
                let growing = if self.policy.retry_hot { 0 } else { RATE_PAUSE_MS << seen.attempts.min(8) };
                let asked = if self.policy.retry_hot { 0 } else { self.asked_pause_ms(retry_after_ms) };
                let pause_ms = growing.max(asked);
                self.settle(seen, Settlement::Pending { next_at: Some(self.now() + pause_ms) }).await;
            }
            Answer::Doubtful { retry_after_ms } => self.settle_doubt(seen, retry_after_ms, false).await,
        }
    }

    async fn settle_doubt(&self, seen: &Seen, retry_after_ms: Option<u64>, interrupted: bool) {
        let ask_at = self.now() + self.asked_pause_ms(retry_after_ms);
        let settlement = match self.policy.doubt {
            Doubt::Explicit => Settlement::Unknown { ask_at, interrupted },
            Doubt::TakenAsDelivered => Settlement::Delivered { id: None, found: false },
            Doubt::TakenAsFailed => Settlement::Failed,
            Doubt::PostponedForever => Settlement::Pending { next_at: None },
        };
        if self.settle(seen, settlement).await {
            self.mark("outcome-unknown").await;
        }
    }

    async fn reconcile(&self, seen: &mut Seen) {
        self.mark("before-reconcile").await;
        if !self.claim(seen, ASKING_LEASE_MS).await {
            return;
        }
        let trusts_key = self.policy.trust_key_for_ever && self.dedupe_ms.is_some();
        if self.policy.resend_without_lookup || trusts_key {
            self.dispatch(seen, false).await;
            return;
        }
        let settlement = match self.ask(seen).await {
            Conclusion::Resend { absent } => {
                self.dispatch(seen, absent).await;
                return;
            }
            Conclusion::Stopping => {
                self.ledger.borrow_mut().release(seen, !self.policy.unfenced);
                self.desk.commit().await;
                return;
            }
            Conclusion::LostClaim => return,
            Conclusion::Accepted { id } => Settlement::Delivered { id: Some(id), found: true },
            Conclusion::Unanswered => Settlement::Review,
        };
        if self.settle(seen, settlement).await {
            self.mark("reconciled").await;
        }
    }

    /// Asks until the message is found, or was absent in every answer of a whole window.
    async fn ask(&self, seen: &mut Seen) -> Conclusion {
        let answered = seen.state == RowState::Created;
        let believes_at_once = answered || self.provider_dedupes(seen);
        let hasty = self.policy.trust_first_lookup || self.policy.retry_hot;
        let window_ms = if believes_at_once || hasty { 0 } else { RECONCILE_MS };
        let mut absent_since = None;
        let mut failures = 0;
        loop {
            let asked_at = self.now();
            let pause_ms = match self.desk.ask(seen.item, self.key_of(seen)).await {
                Found::One { id } => return Conclusion::Accepted { id },
                Found::None => {
                    failures = 0;
                    if asked_at - *absent_since.get_or_insert(asked_at) >= window_ms {
                        return Conclusion::Resend { absent: true };
                    }
                    LOOKUP_PAUSE_MS
                }
                Found::Failed if self.provider_dedupes(seen) => return Conclusion::Resend { absent: false },
                Found::Failed => {
                    failures += 1;
                    if failures == LOOKUP_FAILURES_MAX {
                        return Conclusion::Unanswered;
                    }
                    LOOKUP_PAUSE_MS << failures.min(1)
                }
            };
            self.desk.sleep(pause_ms).await;
            if self.desk.stop.get() {
                return Conclusion::Stopping;
            }
            let renewed =
                self.ledger.borrow_mut().renew(seen, ASKING_LEASE_MS, self.now(), !self.policy.unfenced);
            if !renewed {
                return Conclusion::LostClaim;
            }
            self.desk.commit().await;
        }
    }

    fn provider_dedupes(&self, seen: &Seen) -> bool {
        let age = seen.first_sent_at.map(|sent_at| self.now() - sent_at);
        self.dedupe_ms.zip(age).is_some_and(|(dedupe_ms, age)| (0..dedupe_ms).contains(&age))
    }
}
