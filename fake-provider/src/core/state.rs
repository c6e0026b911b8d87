//! The fold: what follows from the log.

use std::collections::BTreeMap;

use killpoint_model::plan::{Commit, ProviderPlan, Reply, Rule};
use killpoint_model::provider::{Attempt, Counters, Effect, Lookup, ProviderEvent, Replay, Unanswered};
use killpoint_model::settings::ProviderSettings;
use serde::Serialize;

use super::feed::Feed;
use super::keys::{KeyTable, Stored};
use super::rules::{Facts, RuleBook, RuleError};
use super::schedule::Schedule;

/// One attempt and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptState {
    /// As it was received.
    pub attempt: Attempt,
    /// The rule that took it.
    pub rule: Option<String>,
    /// What happens to it.
    pub plan: ProviderPlan,
    /// Whether its key was free when it arrived.
    #[serde(skip)]
    pub(super) key_was_free: bool,
    /// The effect that it made.
    pub effect: Option<String>,
    /// Why the contract made no new effect of it.
    pub not_executed: Option<Replay>,
    /// Whether it was parked at the committed point.
    pub held: bool,
    /// Bytes of the reply after its first part, once that was written.
    pub reply_bytes: Option<u64>,
    /// Status of the reply that was fully written.
    pub replied: Option<u16>,
    /// How it ended without a whole reply.
    pub unanswered: Option<Unanswered>,
}

impl AttemptState {
    /// Whether its exchange has not ended.
    pub fn is_open(&self) -> bool {
        self.replied.is_none() && self.unanswered.is_none()
    }

    /// Whether it certainly got past the received point.
    fn went_on(&self) -> bool {
        self.effect.is_some() || self.not_executed.is_some() || self.held || self.reply_bytes.is_some()
    }
}

/// One lookup and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookupState {
    /// As it was read and evaluated.
    pub lookup: Lookup,
    /// Status of the answer that was fully written.
    pub replied: Option<u16>,
    /// How it ended without a whole answer.
    pub unanswered: Option<Unanswered>,
}

impl LookupState {
    /// Whether its exchange has not ended.
    pub fn is_open(&self) -> bool {
        self.replied.is_none() && self.unanswered.is_none()
    }
}

/// All that follows from the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Connections accepted.
    pub connections: u32,
    /// Attempts by number.
    pub attempts: BTreeMap<u32, AttemptState>,
    /// Effects in the order of their commits; `copies` counts the provider's own redeliveries too.
    pub effects: Vec<Effect>,
    /// Lookups by number.
    pub lookups: BTreeMap<u32, LookupState>,
    /// The three numbers.
    pub counters: Counters,
    /// By how much the clock was stepped, in milliseconds.
    pub stepped_ms: u64,
    pub(super) rules: RuleBook,
    pub(super) keys: KeyTable,
    pub(super) schedule: Schedule,
    pub(super) feed: Feed,
}

impl State {
    pub(super) fn new(rules: &[Rule]) -> Result<Self, RuleError> {
        Ok(Self { rules: RuleBook::new(rules)?, ..Self::default() })
    }

    pub(super) fn next_attempt(&self) -> u32 {
        self.attempts.last_key_value().map_or(1, |(id, _)| id + 1)
    }

    pub(super) fn next_lookup(&self) -> u32 {
        self.lookups.last_key_value().map_or(1, |(id, _)| id + 1)
    }

    /// Takes one event into account. `facts` is what was known of a request beyond what the log keeps.
    pub(super) fn apply(
        &mut self,
        event: &ProviderEvent,
        facts: Option<&Facts>,
        settings: &ProviderSettings,
    ) {
        match event {
            ProviderEvent::Connected { connection } => self.connections = self.connections.max(*connection),
            ProviderEvent::Received(attempt) => self.received(attempt, facts, settings),
            ProviderEvent::RuleFired { rule, attempt, lookup, plan } => {
                self.rules.fire(rule);
                if !lookup {
                    self.rule_fired(*attempt, rule, *plan, settings);
                }
            }
            ProviderEvent::Committed(effect) => self.committed(effect, settings),
            ProviderEvent::NotExecuted { attempt, replay, .. } => {
                self.schedule.cancel_commit(*attempt);
                self.change(*attempt, |state| state.not_executed = Some(*replay));
            }
            ProviderEvent::Held { attempt } => self.change(*attempt, |state| state.held = true),
            ProviderEvent::Replying { attempt, bytes } => {
                self.change(*attempt, |state| state.reply_bytes = Some(*bytes));
            }
            ProviderEvent::Replied { attempt, status, .. } => {
                self.counters.acknowledged += 1;
                self.change(*attempt, |state| state.replied = Some(*status));
            }
            ProviderEvent::Unanswered { attempt, how } => self.unanswered(*attempt, *how, settings),
            ProviderEvent::LookedUp(lookup) => self.looked_up(lookup, facts, settings),
            ProviderEvent::LookupReplied { lookup, status } => {
                if let Some(state) = self.lookups.get_mut(lookup) {
                    state.replied = Some(*status);
                }
            }
            ProviderEvent::LookupUnanswered { lookup, how } => {
                if let Some(state) = self.lookups.get_mut(lookup) {
                    state.unanswered = Some(*how);
                }
            }
            ProviderEvent::Redelivered { effect } => self.redelivered(effect),
            ProviderEvent::Receipt { effect, .. } => self.schedule.receipted(effect),
            ProviderEvent::Fed { poll, items, .. } => self.feed.fed(*poll, items),
            ProviderEvent::FeedAcknowledged { items, .. } => self.feed.acknowledged(items),
            ProviderEvent::ClockStepped { by_ms } => self.stepped_ms = self.stepped_ms.saturating_add(*by_ms),
            ProviderEvent::Partial { .. } | ProviderEvent::Unread { .. } => {}
        }
    }

    fn change(&mut self, attempt: u32, change: impl FnOnce(&mut AttemptState)) {
        if let Some(state) = self.attempts.get_mut(&attempt) {
            change(state);
        }
    }

    fn received(&mut self, attempt: &Attempt, facts: Option<&Facts>, settings: &ProviderSettings) {
        self.counters.attempts += 1;
        match facts {
            Some(facts) => self.rules.see(facts),
            None => self.rules.see(&Facts::recorded_write(attempt, &settings.idempotency.header)),
        }
        let state = AttemptState {
            key_was_free: self.keys.arrive(&settings.idempotency, attempt),
            attempt: attempt.clone(),
            rule: None,
            plan: ProviderPlan::default(),
            effect: None,
            not_executed: None,
            held: false,
            reply_bytes: None,
            replied: None,
            unanswered: None,
        };
        self.attempts.insert(attempt.id, state);
    }

    fn rule_fired(&mut self, attempt: u32, rule: &str, plan: ProviderPlan, settings: &ProviderSettings) {
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        state.rule = Some(rule.to_owned());
        state.plan = plan;
        self.schedule.commit_later(attempt, state.attempt.at_ms, &plan);
        if plan.commit != Commit::Never || !state.key_was_free {
            return;
        }
        match error_of(plan.reply) {
            // Execution began and failed: such an answer is stored. A refusal comes before execution.
            Some(code) if code >= 500 => {
                let stored = Stored { error: Some(code), effect: None };
                self.keys.settle(&settings.idempotency, &state.attempt, stored);
            }
            _ => self.keys.release(&settings.idempotency, &state.attempt),
        }
    }

    fn committed(&mut self, effect: &Effect, settings: &ProviderSettings) {
        self.counters.effects += effect.copies;
        self.effects.push(effect.clone());
        self.schedule.cancel_commit(effect.attempt);
        let Some(state) = self.attempts.get_mut(&effect.attempt) else { return };
        state.effect = Some(effect.id.clone());
        self.schedule.follow(&effect.id, effect.committed_at_ms, state.plan.aftermath);
        let stored = Stored { error: error_of(state.plan.reply), effect: Some(effect.id.clone()) };
        self.keys.settle(&settings.idempotency, &state.attempt, stored);
    }

    fn unanswered(&mut self, attempt: u32, how: Unanswered, settings: &ProviderSettings) {
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        state.unanswered = Some(how);
        if how == Unanswered::Abandoned && !state.went_on() {
            self.schedule.cancel_commit(attempt);
            self.keys.release(&settings.idempotency, &state.attempt);
        }
    }

    fn looked_up(&mut self, lookup: &Lookup, facts: Option<&Facts>, settings: &ProviderSettings) {
        match facts {
            Some(facts) => self.rules.see(facts),
            None => self.rules.see(&Facts::recorded_lookup(lookup, &settings.dialect)),
        }
        let state = LookupState { lookup: lookup.clone(), replied: None, unanswered: None };
        self.lookups.insert(lookup.id, state);
    }

    fn redelivered(&mut self, effect: &str) {
        self.counters.effects += 1;
        self.schedule.redelivered(effect);
        if let Some(known) = self.effects.iter_mut().find(|known| known.id == effect) {
            known.copies += 1;
        }
    }
}

fn error_of(reply: Reply) -> Option<u16> {
    match reply {
        Reply::Status { code } => Some(code),
        _ => None,
    }
}
