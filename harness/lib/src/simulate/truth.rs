//! What really happened in a model, told by the model itself: nothing here comes from the checks.

use std::collections::BTreeMap;

use fake_provider::core::AttemptState;
use killpoint_model::RowState;
use killpoint_model::profile::{KeyScope, WindowAnchor};
use killpoint_model::provider::Counters;
use killpoint_model::settings::Promise;

use super::life::TIMEOUT_MS;
use super::workers::ModelWorker;
use super::world::{World, actions};

/// A request, as it was made.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) item: usize,
    pub(super) attempt: u32,
    pub(super) key: String,
    pub(super) at_ms: u64,
    /// When the worker began the call.
    pub(super) called_seq: u64,
    /// The same in microseconds of the trial.
    pub(super) called_us: u64,
    /// Whether the worker was stopped between its last look at its claim and this request.
    pub(super) is_stale: bool,
    /// Whether the harness held it up before it was read.
    pub(super) is_held_up: bool,
    /// When it was read whole.
    pub(super) seq: u64,
}

/// A lookup, as it was made.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) item: usize,
    pub(super) key: String,
    pub(super) lookup: u32,
    /// When it was evaluated.
    pub(super) seq: u64,
    /// When its answer, one that says something, was on its way.
    pub(super) answered: Option<u64>,
}

/// What is noted while a model runs.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) sent: Vec<Sent>,
    pub(super) asked: Vec<Asked>,
    /// When workers stopped waiting for attempts, in microseconds of the trial.
    pub(super) left_us: BTreeMap<u32, u64>,
    /// When attempts made their effects, in microseconds of the trial.
    pub(super) committed_us: BTreeMap<u32, u64>,
    /// Faults that were not done, or did not take hold.
    pub(super) undone: Vec<String>,
    /// Faults that another one overtook: whether they were shown is a matter of opinion.
    pub(super) overtaken: u32,
    pub(super) settled: bool,
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The action.
    pub action: String,
    /// Where it goes.
    pub destination: String,
    /// What a human reads.
    pub text: String,
    /// Whether somebody asked for it.
    pub is_owed: bool,
    /// Requests for it that reached the wire.
    pub requests: u32,
    /// Requests that made an effect, and were not refused in a whole answer.
    pub effects: u32,
    /// Requests that made an effect and were refused all the same: the provider's lie.
    pub lies: u32,
    /// Keys on the effects.
    pub effect_keys: u32,
    /// Requests that followed one that may have been accepted, without a lookup that was answered in between and
    /// without a key that protects.
    pub blind_resends: u32,
    /// Whether each of these bore the key of the one before.
    pub blind_with_one_key: bool,
    /// The row's last state; `None` where it is gone, or was never made.
    pub row: Option<RowState>,
    /// Whether a worker was stopped between its last look at its claim and a request for it: nothing but the
    /// provider can tell that it has lost its claim meanwhile.
    pub was_stale: bool,
    /// After how long a lookup could see an effect of it, from when the worker stopped waiting, in milliseconds;
    /// `u64::MAX` where one can never be seen.
    pub hidden_ms: u64,
}

/// What happened in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// Who was at work.
    pub worker: &'static str,
    /// Whether that one is right.
    pub is_right: bool,
    /// What it claims.
    pub promise: Promise,
    /// Whether the ledger's rows can be seen.
    pub is_mapped: bool,
    /// Whether the provider dedupes by key.
    pub dedupes: bool,
    /// One per action and destination that was asked for, sent, or made.
    pub messages: Vec<Message>,
    /// Whether the trial came to rest.
    pub is_settled: bool,
    /// Parts of the plan that did not come about.
    pub undone: Vec<String>,
    /// Parts of the plan that another one overtook: whether they came about is a matter of opinion.
    pub overtaken: u32,
    /// Whether the provider's clock was stepped.
    pub clock_was_stepped: bool,
    /// Whether a worker's clock was off.
    pub clocks_differ: bool,
    /// How often a run was executed at most.
    pub executions_max: u32,
    /// The provider's three numbers.
    pub counters: Counters,
}

impl Truth {
    pub(super) fn of(world: &World<'_>, worker: &ModelWorker) -> Self {
        let ledger = world.ledger.borrow();
        let mut messages: BTreeMap<(String, String), Message> = BTreeMap::new();
        for action in actions(world.plan, world.settings) {
            for to in &action.to {
                let message = Message::new(&action.id, to, &action.body, true);
                messages.insert((action.id.clone(), to.clone()), message);
            }
        }
        for (index, item) in ledger.items.iter().enumerate() {
            let (action, text) = (ledger.action_of(item).to_owned(), ledger.text_of(item));
            let place = (action, item.destination.clone());
            let unplanned = Message::new(&place.0, &place.1, text, false);
            let message = messages.entry(place).or_insert(unplanned);
            message.row = (!item.erased).then_some(item.state);
            message.count(world, index);
        }
        for row in ledger.rows() {
            // A run that was never executed has a row per destination all the same.
            if let Some(message) = messages.get_mut(&(row.action, row.destination.unwrap_or_default())) {
                message.row.get_or_insert(row.state);
            }
        }
        Self {
            worker: worker.name,
            is_right: worker.is_right(),
            promise: world.settings.promise,
            is_mapped: world.settings.ledger.is_some(),
            dedupes: world.settings.provider.idempotency.dedupe,
            messages: messages.into_values().collect(),
            is_settled: world.trace.settled,
            undone: world.trace.undone.iter().cloned().chain(world.silent_rules()).collect(),
            overtaken: world.trace.overtaken,
            clock_was_stepped: world.stepped_ms > 0,
            clocks_differ: !world.clocks_to_come.is_empty(),
            executions_max: ledger.most_executions(),
            counters: world.core.counters(),
        }
    }
}

/// Whether a whole answer said that it was not taken.
fn is_refused(state: &AttemptState) -> bool {
    state.replied.is_some_and(|status| (400..500).contains(&status) && ![408, 409, 425].contains(&status))
}

impl Message {
    fn new(action: &str, destination: &str, text: &str, is_owed: bool) -> Self {
        Self {
            action: action.to_owned(),
            destination: destination.to_owned(),
            text: text.to_owned(),
            is_owed,
            requests: 0,
            effects: 0,
            lies: 0,
            effect_keys: 0,
            blind_resends: 0,
            blind_with_one_key: true,
            row: None,
            was_stale: false,
            hidden_ms: 0,
        }
    }

    fn count(&mut self, world: &World<'_>, item: usize) {
        let state = world.core.state();
        let mut keys: Vec<&str> = Vec::new();
        let mut last: Option<&Sent> = None;
        let mut windows: BTreeMap<&str, u64> = BTreeMap::new();
        let profile = &world.settings.provider.idempotency;
        let ledger = world.ledger.borrow();
        // Where the rows can't be seen, a key that was never sent is nobody's.
        let row_keys = if world.settings.ledger.is_some() { ledger.items[item].keys.as_slice() } else { &[] };
        for sent in world.trace.sent.iter().filter(|sent| sent.item == item) {
            let Some(attempt) = state.attempts.get(&sent.attempt) else { continue };
            self.requests += 1;
            self.was_stale |= sent.is_stale;
            if let Some(effect) = attempt.effect.as_deref().and_then(|id| world.core.effect(id)) {
                let refused = is_refused(attempt);
                self.effects += u32::from(!refused);
                self.lies += u32::from(refused);
                keys.push(&sent.key);
                let landed_us = world.trace.committed_us.get(&sent.attempt).copied().unwrap_or(u64::MAX);
                let left_us = world.trace.left_us.get(&sent.attempt).copied().unwrap_or(sent.called_us);
                // Who was stopped meanwhile did not wait longer than its time-out.
                let left_us = left_us.min(sent.called_us + TIMEOUT_MS as u64 * 1000);
                let late_ms = landed_us.saturating_sub(left_us) / 1000;
                let lag_ms = effect.visible_at_ms.map(|at_ms| at_ms.saturating_sub(effect.committed_at_ms));
                self.hidden_ms = self.hidden_ms.max(late_ms.saturating_add(lag_ms.unwrap_or(u64::MAX)));
            }
            let live = |key: &str| {
                windows.get(key).is_some_and(|anchor| sent.at_ms < anchor.saturating_add(profile.window_ms))
            };
            let inside = live(&sent.key);
            if let Some(before) = last {
                // All requests go to one path, so that the scope of a key changes nothing.
                debug_assert!(matches!(profile.scope, KeyScope::Account | KeyScope::Path));
                let protected = profile.dedupe && before.key == sent.key && inside;
                // One that the harness held up may arrive after one that was made later: it repeats nothing.
                let is_earlier = sent.is_held_up && sent.called_seq < before.seq;
                if !protected && !is_earlier && !world.trace.was_asked(before, sent, row_keys) {
                    self.blind_resends += 1;
                    self.blind_with_one_key &= before.key == sent.key;
                }
            }
            if !inside || profile.anchor == WindowAnchor::LastRequest {
                windows.insert(&sent.key, sent.at_ms);
            }
            if !is_refused(attempt) {
                last = Some(sent);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        self.effect_keys = keys.len() as u32;
    }
}

impl Trace {
    /// Whether a lookup for the item was evaluated after one request had arrived and answered before another did.
    /// A key that nobody has ever used asks about nothing.
    fn was_asked(&self, before: &Sent, next: &Sent, row_keys: &[String]) -> bool {
        let used = |key: &String| {
            row_keys.contains(key) || self.sent.iter().any(|sent| sent.item == next.item && sent.key == *key)
        };
        let after = self.asked.iter().filter(|asked| asked.item == next.item && asked.seq > before.seq);
        let of_item = after.filter(|asked| used(&asked.key));
        of_item.filter_map(|asked| asked.answered).any(|answered| answered < next.seq)
    }
}
