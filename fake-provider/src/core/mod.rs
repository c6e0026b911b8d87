//! The provider as a pure state machine: no I/O, no clock (`now_ms` is passed in).
//!
//! [`Core`] is what servers drive. Its [`State`] is a fold over the append-only log of
//! [`ProviderEvent`]s, so a snapshot is a length, and [`Core::replay`] makes the same state again.
//! [`content`](self) reads what a request says, [`keys`](self) holds the idempotency contract,
//! [`rules`](self) chooses the plan, [`schedule`](self) holds what is due later, [`feed`](self) is the inbound
//! side.

mod content;
mod contract;
mod feed;
mod keys;
mod lookups;
mod rules;
mod schedule;
mod state;

use std::collections::BTreeSet;

use killpoint_model::plan::{Commit, ProviderPlan, Rule};
use killpoint_model::provider::{Attempt, Counters, Effect, ProviderEvent, Unanswered};
use killpoint_model::settings::{InboundSettings, ProviderSettings};

pub(crate) use content::lower_hex;
pub use content::{BODY_STORED_BYTES_MAX, text_of};
pub use contract::{Execution, Outcome, Ruling};
pub use feed::{FeedItem, FeedPage};
pub use keys::Stored;
pub use lookups::{LIST_MAX, Looked, Query};
pub use rules::{RuleError, RuleStatus};
pub use state::{AttemptState, LookupState, State};

use rules::Facts;

/// A write request that was read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The connection that brought it.
    pub connection: u32,
    /// The dialect's operation.
    pub operation: String,
    /// Method and path, without the query.
    pub target: String,
    /// Headers as sent.
    pub headers: Vec<(String, String)>,
    /// Body as sent.
    pub body: Vec<u8>,
}

/// A write that was recorded and is not executed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Its number.
    pub attempt: u32,
    /// What happens to it.
    pub plan: ProviderPlan,
}

/// The provider's state machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Core {
    settings: ProviderSettings,
    inbound: Option<InboundSettings>,
    rules_at_start: Vec<Rule>,
    state: State,
    log: Vec<ProviderEvent>,
    /// Attempts that were received and not let through yet: nothing of theirs may land meanwhile.
    undecided: BTreeSet<u32>,
}

impl Core {
    /// A provider to which nothing has happened. `rules` come before those of the settings.
    pub fn new(settings: ProviderSettings, rules: Vec<Rule>) -> Result<Self, RuleError> {
        let rules_at_start = [rules, settings.rules.clone()].concat();
        let state = State::new(&rules_at_start)?;
        Ok(Self {
            settings,
            inbound: None,
            rules_at_start,
            state,
            log: Vec::new(),
            undecided: BTreeSet::new(),
        })
    }

    /// The provider as it was after `log`. Exchanges that were open are still open: see
    /// [`Core::close_open_exchanges`].
    pub fn replay(
        settings: ProviderSettings,
        rules: Vec<Rule>,
        log: &[ProviderEvent],
    ) -> Result<Self, RuleError> {
        let mut core = Self::new(settings, rules)?;
        for event in log {
            core.append(event.clone(), None);
        }
        Ok(core)
    }

    /// Forgets all that happened; the rules are those of the start.
    pub fn reset(&mut self) {
        if let Ok(state) = State::new(&self.rules_at_start) {
            self.state = state;
        }
        self.log.clear();
        self.undecided.clear();
    }

    /// What it was configured with.
    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    /// All that happened, in order.
    pub fn log(&self) -> &[ProviderEvent] {
        &self.log
    }

    /// What follows from the log.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The three numbers.
    pub fn counters(&self) -> Counters {
        self.state.counters
    }

    /// The rules in force, in order, with how often each matched and fired.
    pub fn rules(&self) -> Vec<RuleStatus> {
        self.state.rules.statuses()
    }

    /// Adds a rule after the others. It counts requests from now on.
    pub fn add_rule(&mut self, rule: Rule) -> Result<(), RuleError> {
        self.state.rules.add(rule)
    }

    /// Removes a rule; whether there was one.
    pub fn remove_rule(&mut self, id: &str) -> bool {
        self.state.rules.remove(id)
    }

    /// A connection was accepted: its number.
    pub fn connect(&mut self) -> u32 {
        let connection = self.state.connections + 1;
        self.append(ProviderEvent::Connected { connection }, None);
        connection
    }

    /// A connection ended before a whole request was read.
    pub fn partial(&mut self, connection: u32, bytes: u64) {
        self.append(ProviderEvent::Partial { connection, bytes }, None);
    }

    /// A whole write was read. Nothing is committed; the rule that takes it, if any, has fired.
    pub fn receive(&mut self, arrival: &Arrival, now_ms: u64) -> Admission {
        let (attempt, value) =
            content::read_attempt(&self.settings, arrival, self.state.next_attempt(), now_ms);
        let id = attempt.id;
        let facts = Facts {
            dialect: attempt.dialect.clone(),
            operation: attempt.operation.clone(),
            write: true,
            key: attempt.key.clone(),
            headers: arrival.headers.clone(),
            body: value,
        };
        self.undecided.insert(id);
        self.append(ProviderEvent::Received(attempt), Some(&facts));
        let plan = self.fire_rule(&facts, id, false);
        Admission { attempt: id, plan: plan.unwrap_or_default() }
    }

    fn fire_rule(&mut self, facts: &Facts, id: u32, lookup: bool) -> Option<ProviderPlan> {
        let rule = self.state.rules.choose(facts)?;
        let (rule, plan) = (rule.id.clone(), rule.plan);
        self.append(ProviderEvent::RuleFired { rule, attempt: id, lookup, plan }, None);
        Some(plan)
    }

    /// The attempt is parked at the committed point.
    pub fn hold(&mut self, attempt: u32) {
        self.append(ProviderEvent::Held { attempt }, None);
    }

    /// Part of the reply was written.
    pub fn replying(&mut self, attempt: u32, bytes: u64) {
        self.append(ProviderEvent::Replying { attempt, bytes }, None);
    }

    /// The whole reply was written; `retry_after_ms` is what it said about another try.
    pub fn replied(&mut self, attempt: u32, status: u16, retry_after_ms: Option<u64>) {
        self.append(ProviderEvent::Replied { attempt, status, retry_after_ms }, None);
    }

    /// The client reset the connection after the whole reply was written.
    pub fn unread(&mut self, attempt: u32) {
        self.append(ProviderEvent::Unread { attempt }, None);
    }

    /// The exchange ends without a whole reply. Abandoned before it was executed, it never will be.
    pub fn unanswered(&mut self, attempt: u32, how: Unanswered) {
        self.undecided.remove(&attempt);
        self.append(ProviderEvent::Unanswered { attempt, how }, None);
    }

    /// The clock was stepped.
    pub fn step_clock(&mut self, by_ms: u64) {
        self.append(ProviderEvent::ClockStepped { by_ms }, None);
    }

    /// Ends every exchange that the log leaves open, for a state whose connections are gone. A commit
    /// that was due later is still due.
    pub fn close_open_exchanges(&mut self) {
        let open: Vec<(u32, Unanswered)> = self
            .state
            .attempts
            .values()
            .filter(|state| state.is_open())
            .map(|state| {
                let late = matches!(state.plan.commit, Commit::After { .. });
                (state.attempt.id, if late { Unanswered::Hang } else { Unanswered::Abandoned })
            })
            .collect();
        for (attempt, how) in open {
            self.unanswered(attempt, how);
        }
        let open: Vec<u32> =
            self.state.lookups.values().filter(|it| it.is_open()).map(|it| it.lookup.id).collect();
        for lookup in open {
            self.lookup_unanswered(lookup, Unanswered::Abandoned);
        }
    }

    /// An attempt by number.
    pub fn attempt(&self, id: u32) -> Option<&Attempt> {
        self.state.attempts.get(&id).map(|state| &state.attempt)
    }

    /// An effect by the provider's id.
    pub fn effect(&self, id: &str) -> Option<&Effect> {
        self.state.effects.iter().find(|effect| effect.id == id)
    }

    /// The id that an attempt's effect has or would have: the same whether it is committed or not, so
    /// that a reply never tells.
    pub fn effect_id(attempt: u32) -> String {
        format!("msg_{attempt:06}")
    }

    fn append(&mut self, event: ProviderEvent, facts: Option<&Facts>) {
        self.state.apply(&event, facts, &self.settings);
        self.log.push(event);
    }
}
