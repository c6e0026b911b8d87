//! The kill trials of a sweep to those of the second level: a further kill at each moment of the recovery.
//!
//! Many first kills leave the same crash behind: what recovery finds is the same ledger and the same world. Of those
//! only the first is followed. Two crashes are the same only where everything that a later life or a check could tell
//! apart is the same, as far as the history shows it:
//!
//! - the rows of the ledger and the values of its queries. Keys, the provider's ids, owners and times differ in each
//!   trial, so that only these count: whether they are there, and which attempt or effect a key or an id belongs to;
//! - each write that reached the provider, because checks look at it, and each effect, its body without what differs
//!   between the two baselines;
//! - what the inbound feed gave and what was acknowledged to it, because the feed goes on from there;
//! - which life of the worker it was.
//!
//! Replies and lookups don't count: only the dead worker's memory knew them, and what it did not write down is lost.
//! Nothing is merged where the history can't tell: no mapped ledger, one that could not be read or was read while the
//! worker ran, several workers, a provider that answers by rules or acts of its own accord, or baselines that differ.
//! What a worker keeps outside of its mapped ledger is not seen.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::event::{Event, EventKind};
use killpoint_model::plan::FaultAt;
use killpoint_model::provider::{Effect, ProviderEvent};
use killpoint_model::{Fault, History, HitName, LedgerRow, LedgerView, Plan, Settings};
use serde_json::Value;

use crate::sweep::kill_plan;

/// The trials of the second level, in the order in which they are run, and what is not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DepthPlan {
    /// Two kills each: one trial of each first crash, then the next one of each.
    pub trials: Vec<Plan>,
    /// First crashes, those included that were merged.
    pub crashes: usize,
    /// First crashes that are the same as an earlier one.
    pub merged: usize,
    /// First crashes after which no live worker reached any boundary.
    pub silent: usize,
    /// Boundaries in recoveries that are beyond the limit for each series.
    pub hits_left_out: usize,
}

/// Plans the second level from the trials of the first one that did nothing but kill once. `volatile` is where bodies
/// differ between the baselines, as JSON pointers; where the baselines can't be compared, no crashes are merged.
pub fn second_level(
    settings: &Settings,
    firsts: &[(&HitName, &History)],
    volatile: Option<&BTreeSet<String>>,
) -> DepthPlan {
    let mut plan = DepthPlan::default();
    let mut states = Vec::new();
    let mut queues = Vec::new();
    for (first, history) in firsts {
        let Some(death) = Death::of(history) else { continue };
        plan.crashes += 1;
        let state = volatile.and_then(|volatile| CrashState::at(&death, settings, history, volatile));
        if let Some(state) = state {
            if states.contains(&state) {
                plan.merged += 1;
                continue;
            }
            states.push(state);
        }
        let (hits, left_out) = death.recovery_hits(settings.sweep.hits_per_series_max);
        plan.hits_left_out += left_out;
        plan.silent += usize::from(hits.is_empty());
        queues.push(hits.into_iter().map(|second| two_kills(first, second)).collect::<Vec<_>>().into_iter());
    }
    while !queues.is_empty() {
        queues.retain_mut(|queue| queue.next().map(|trial| plan.trials.push(trial)).is_some());
    }
    plan
}

/// The trial that kills at one hit, and at another one in the recovery.
fn two_kills(first: &HitName, second: HitName) -> Plan {
    let mut plan = kill_plan(first.clone());
    plan.name = format!("{}, then at {second}", plan.name);
    plan.faults.push(FaultAt { at: second, fault: Fault::named("kill") });
    plan
}

/// The first death of a trial, with the events on both sides of it.
struct Death<'a> {
    generation: u32,
    /// Until the next life begins.
    before: &'a [Event],
    recovery: &'a [Event],
}

impl<'a> Death<'a> {
    /// `None` where nobody was killed, or nobody was started again.
    fn of(history: &'a History) -> Option<Self> {
        let killed =
            history.events.iter().position(|event| matches!(event.event, EventKind::Killed { .. }))?;
        let spawned = |event: &Event| matches!(event.event, EventKind::Spawned { .. });
        let restarted = killed + history.events[killed..].iter().position(spawned)?;
        let (before, recovery) = history.events.split_at(restarted);
        Some(Self { generation: history.events[killed].generation, before, recovery })
    }

    /// The first `max` hits of each series that a live worker reached after the death, and how many more there are.
    fn recovery_hits(&self, max: u32) -> (Vec<HitName>, usize) {
        let mut seen = BTreeSet::new();
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let (mut chosen, mut left_out) = (Vec::new(), 0);
        for event in self.recovery {
            let EventKind::Hit { hit, live: true, .. } = &event.event else { continue };
            if !seen.insert(hit) {
                continue;
            }
            let count = counts.entry(hit.series()).or_default();
            *count += 1;
            if *count <= max {
                chosen.push(hit.clone());
            } else {
                left_out += 1;
            }
        }
        (chosen, left_out)
    }
}

/// What a crash leaves behind, without what differs in each trial.
#[derive(Debug, PartialEq)]
struct CrashState {
    generation: u32,
    rows: Vec<LedgerRow>,
    values: BTreeMap<String, String>,
    wire: Vec<Trace>,
}

/// What happened at the provider and can be told from something else later.
#[derive(Debug, PartialEq)]
enum Trace {
    /// A write: dialect, operation, recipient, action, key.
    Attempt([Option<String>; 5]),
    /// An effect, without ids and times.
    Effect(Box<Effect>),
    /// What is compared as it is.
    Event(ProviderEvent),
}

impl CrashState {
    /// `None` where the history can't tell.
    fn at(
        death: &Death<'_>,
        settings: &Settings,
        history: &History,
        volatile: &BTreeSet<String>,
    ) -> Option<Self> {
        if history.truncated || !settings.provider.rules.is_empty() || !is_alone(death.before) {
            return None;
        }
        let view = last_view(death.before)?;
        let rows = view.rows.as_ref().filter(|_| view.exact && view.error.is_none())?;
        let mut names = Names::default();
        let mut wire = Vec::new();
        for event in death.before {
            if let EventKind::Provider(event) = &event.event {
                if may_act_again(event) {
                    return None;
                }
                names.learn(event);
                wire.extend(trace(event, &names, volatile));
            }
        }
        let mut rows: Vec<LedgerRow> = rows.iter().map(|row| names.in_row(row)).collect();
        rows.sort();
        Some(Self { generation: death.generation, rows, values: view.values.clone(), wire })
    }
}

/// Whether one worker was started, and nothing was done beside the one kill.
fn is_alone(before: &[Event]) -> bool {
    let mut kills = 0;
    before.iter().all(|event| match &event.event {
        EventKind::Spawned { worker, .. } => *worker == 1,
        EventKind::Killed { .. } => {
            kills += 1;
            kills == 1
        }
        EventKind::StoreFault { .. }
        | EventKind::WorkerClock { .. }
        | EventKind::Changed { .. }
        | EventKind::Limitation { .. }
        | EventKind::ProducerHeld => false,
        _ => true,
    })
}

fn last_view(before: &[Event]) -> Option<&LedgerView> {
    before.iter().rev().find_map(|event| match &event.event {
        EventKind::Ledger { view, .. } => Some(view),
        _ => None,
    })
}

/// Whether the provider may still do something by itself after this.
fn may_act_again(event: &ProviderEvent) -> bool {
    use ProviderEvent as P;
    matches!(event, P::RuleFired { .. } | P::Redelivered { .. } | P::Receipt { .. } | P::ClockStepped { .. })
}

/// What counts of a provider's event, where anything does.
fn trace(event: &ProviderEvent, names: &Names, volatile: &BTreeSet<String>) -> Option<Trace> {
    use ProviderEvent as P;
    match event {
        P::Received(attempt) => Some(Trace::Attempt([
            Some(attempt.dialect.clone()),
            Some(attempt.operation.clone()),
            Some(attempt.recipient.clone()),
            attempt.action.clone(),
            attempt.key.as_ref().map(|key| names.of_key(key)),
        ])),
        P::Committed(effect) => Some(Trace::Effect(Box::new(names.in_effect(effect, volatile)))),
        P::NotExecuted { attempt, replay, effect } => Some(Trace::Event(P::NotExecuted {
            attempt: *attempt,
            replay: *replay,
            effect: effect.as_ref().map(|id| names.of_effect(id)),
        })),
        P::Fed { .. } | P::FeedAcknowledged { .. } => Some(Trace::Event(event.clone())),
        P::RuleFired { .. }
        | P::Redelivered { .. }
        | P::Receipt { .. }
        | P::ClockStepped { .. }
        | P::Connected { .. }
        | P::Partial { .. }
        | P::Held { .. }
        | P::Replying { .. }
        | P::Replied { .. }
        | P::Unread { .. }
        | P::Unanswered { .. }
        | P::LookedUp(_)
        | P::LookupReplied { .. }
        | P::LookupUnanswered { .. } => None,
    }
}

/// Keys and ids by the order in which the provider saw them.
#[derive(Default)]
struct Names {
    keys: Vec<String>,
    effects: Vec<String>,
}

impl Names {
    fn learn(&mut self, event: &ProviderEvent) {
        match event {
            ProviderEvent::Received(attempt) => {
                let new = attempt.key.iter().filter(|key| !self.keys.contains(key));
                let new: Vec<String> = new.cloned().collect();
                self.keys.extend(new);
            }
            ProviderEvent::Committed(effect) => self.effects.push(effect.id.clone()),
            _ => {}
        }
    }

    fn of_key(&self, key: &str) -> String {
        place(&self.keys, key)
    }

    fn of_effect(&self, id: &str) -> String {
        place(&self.effects, id)
    }

    fn in_row(&self, row: &LedgerRow) -> LedgerRow {
        LedgerRow {
            key: row.key.as_ref().map(|key| self.of_key(key)),
            provider_id: row.provider_id.as_ref().map(|id| self.of_effect(id)),
            owner: row.owner.as_ref().map(|_| String::new()),
            due_at_ms: row.due_at_ms.map(|_| 0),
            ..row.clone()
        }
    }

    fn in_effect(&self, effect: &Effect, volatile: &BTreeSet<String>) -> Effect {
        let mut body = effect.body.clone();
        for pointer in volatile {
            if let Some(value) = body.pointer_mut(pointer) {
                *value = Value::Null;
            }
        }
        let since_commit = |at: Option<u64>| at.map(|at| at.saturating_sub(effect.committed_at_ms));
        let mut recognizers = effect.recognizers.clone();
        for recognizer in &mut recognizers {
            // Where a sender would find it counts; its value is a key or part of the body.
            recognizer.value.clear();
        }
        Effect {
            id: self.of_effect(&effect.id),
            key: effect.key.as_ref().map(|key| self.of_key(key)),
            body,
            recognizers,
            committed_at_ms: 0,
            visible_at_ms: since_commit(effect.visible_at_ms),
            bounced_at_ms: since_commit(effect.bounced_at_ms),
            ..effect.clone()
        }
    }
}

/// The place of a word, from 1; 0 where the provider never saw it.
fn place(words: &[String], word: &str) -> String {
    words.iter().position(|known| known == word).map_or(0, |place| place + 1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::RowState;
    use killpoint_model::event::{Containment, KillProof};
    use killpoint_model::history::Header;
    use killpoint_model::plan::ProviderPlan;
    use killpoint_model::provider::Attempt;
    use serde_json::json;

    /// A trial with a ledger of one row, one attempt and its effect, killed once. `salt` is in all that differs in
    /// each trial.
    struct Sample {
        row: LedgerRow,
        view_error: Option<String>,
        exact: bool,
        effect_text: &'static str,
        committed: bool,
        more: Vec<EventKind>,
        recovery: Vec<(&'static str, bool)>,
        salt: u64,
    }

    fn sample(salt: u64) -> Sample {
        let row = LedgerRow {
            key: Some(format!("key-{salt}")),
            owner: Some(format!("host-{salt}")),
            due_at_ms: Some(salt),
            ..LedgerRow::new("a1", RowState::Dispatching)
        };
        Sample {
            row,
            view_error: None,
            exact: true,
            effect_text: "hello",
            committed: true,
            more: Vec::new(),
            recovery: vec![("provider:lookup#1", true), ("mark:done#2", true)],
            salt,
        }
    }

    impl Sample {
        fn history(self) -> History {
            let spawned = || EventKind::Spawned { worker: 1, pid: 1, argv: Vec::new() };
            let view = LedgerView {
                exact: self.exact,
                rows: Some(vec![self.row]),
                values: BTreeMap::new(),
                error: self.view_error,
            };
            let mut events =
                vec![spawned(), EventKind::Provider(ProviderEvent::Received(attempt(self.salt)))];
            if self.committed {
                let effect = effect(self.salt, self.effect_text);
                events.push(EventKind::Provider(ProviderEvent::Committed(effect)));
            }
            events.extend(self.more);
            events.push(EventKind::Ledger { at: None, view });
            events.push(EventKind::Killed { worker: 1, proof: proof() });
            let deaths = events.len();
            events.push(spawned());
            events.extend(self.recovery.into_iter().map(|(name, live)| EventKind::Hit {
                hit: name.parse().unwrap(),
                exact: true,
                live,
                subject: None,
                worker: 1,
            }));
            let event = |(index, event)| Event {
                seq: index as u64 + 1,
                at_us: 0,
                generation: if index < deaths { 1 } else { 2 },
                event,
            };
            let events = events.into_iter().enumerate().map(event).collect();
            History { header: Header::new("t"), events, truncated: false }
        }
    }

    fn proof() -> KillProof {
        KillProof {
            signal: Some(9),
            code: None,
            was_alive: true,
            reaped: 1,
            survivors: 0,
            containment: Containment::Subreaper,
        }
    }

    fn attempt(salt: u64) -> Attempt {
        Attempt {
            id: 1,
            connection: salt as u32,
            dialect: "rest".into(),
            operation: "create".into(),
            target: String::new(),
            key: Some(format!("key-{salt}")),
            recipient: "ann".into(),
            action: None,
            body_sha256: salt.to_string(),
            body: json!({"at": salt}),
            at_ms: salt,
        }
    }

    fn effect(salt: u64, text: &str) -> Effect {
        Effect {
            id: format!("msg-{salt}"),
            attempt: 1,
            dialect: "rest".into(),
            operation: "create".into(),
            recipient: "ann".into(),
            text: text.into(),
            body: json!({"body": text, "at": salt}),
            key: Some(format!("key-{salt}")),
            action: None,
            recognizers: Vec::new(),
            copies: 1,
            committed_at_ms: salt,
            visible_at_ms: Some(salt),
            bounced_at_ms: None,
        }
    }

    fn hit(name: &str) -> HitName {
        name.parse().unwrap()
    }

    fn plan_of(settings: &Settings, histories: &[History]) -> DepthPlan {
        let at: Vec<HitName> = (1..=histories.len()).map(|n| hit(&format!("mark:step#{n}"))).collect();
        let firsts: Vec<_> = at.iter().zip(histories).collect();
        second_level(settings, &firsts, Some(&BTreeSet::from(["/at".to_owned()])))
    }

    fn merged(one: Sample, other: Sample) -> bool {
        plan_of(&Settings::default(), &[one.history(), other.history()]).merged == 1
    }

    fn names(plan: &DepthPlan) -> Vec<&str> {
        plan.trials.iter().map(|trial| trial.name.as_str()).collect()
    }

    #[test]
    fn crashes_that_differ_in_keys_ids_times_and_owner_alone_are_one() {
        assert!(merged(sample(1), sample(2)));
        let replied = ProviderEvent::Replied { attempt: 1, status: 200, retry_after_ms: None };
        let answered = Sample { more: vec![EventKind::Provider(replied)], ..sample(2) };
        assert!(merged(sample(1), answered), "only the dead worker had read the answer");
    }

    #[test]
    fn whatever_a_later_life_could_tell_apart_keeps_crashes_apart() {
        let row = |change: fn(&mut LedgerRow)| {
            let mut other = sample(2);
            change(&mut other.row);
            other
        };
        let others = [
            row(|row| row.state = RowState::Confirmed),
            row(|row| row.attempts = Some(1)),
            row(|row| row.owner = None),
            row(|row| row.due_at_ms = None),
            row(|row| row.key = Some("another than was sent".into())),
            row(|row| row.provider_id = Some("msg-2".into())),
            Sample { effect_text: "hello again", ..sample(2) },
            Sample { committed: false, ..sample(2) },
        ];
        for other in others {
            let told = format!("{:?} {} {}", other.row, other.effect_text, other.committed);
            assert!(!merged(sample(1), other), "{told}");
        }
    }

    #[test]
    fn what_the_history_can_not_tell_keeps_equal_crashes_apart() {
        let fired = ProviderEvent::RuleFired {
            rule: "r".into(),
            attempt: 1,
            lookup: false,
            plan: ProviderPlan::default(),
        };
        let second = EventKind::Spawned { worker: 2, pid: 2, argv: Vec::new() };
        let unsure: [fn(EventKind) -> Sample; 3] = [
            |_| Sample { exact: false, ..sample(1) },
            |_| Sample { view_error: Some("locked".into()), ..sample(1) },
            |event| Sample { more: vec![event], ..sample(1) },
        ];
        for (make, event) in [(0, &second), (1, &second), (2, &second), (2, &EventKind::Provider(fired))] {
            assert!(!merged(unsure[make](event.clone()), unsure[make](event.clone())), "{make} {event:?}");
        }
        let pair = [sample(1).history(), sample(1).history()];
        let at = hit("mark:step#1");
        let firsts = [(&at, &pair[0]), (&at, &pair[1])];
        assert_eq!(second_level(&Settings::default(), &firsts, None).merged, 0, "the baselines differ");
        let mut unmapped = sample(1).history();
        for event in &mut unmapped.events {
            if let EventKind::Ledger { view, .. } = &mut event.event {
                view.rows = None;
            }
        }
        assert_eq!(plan_of(&Settings::default(), &[unmapped.clone(), unmapped]).merged, 0);
    }

    #[test]
    fn first_crashes_take_turns_and_only_what_a_live_worker_reached_is_killed_at() {
        let first = Sample {
            recovery: vec![
                ("mark:begun#2", true),
                ("mark:begun#2", true),
                ("mark:sent#1", true),
                ("ledger:confirmed#1", false),
                ("mark:done#1", true),
            ],
            ..sample(1)
        };
        let second =
            Sample { effect_text: "other", recovery: vec![("provider:lookup#1", true)], ..sample(2) };
        let third = Sample { effect_text: "third", recovery: Vec::new(), ..sample(3) };
        let histories = [first.history(), second.history(), sample(1).history(), third.history()];
        let plan = plan_of(&Settings::default(), &histories);
        assert_eq!(
            names(&plan),
            [
                "kill at mark:step#1, then at mark:begun#2",
                "kill at mark:step#2, then at provider:lookup#1",
                "kill at mark:step#1, then at mark:sent#1",
                "kill at mark:step#1, then at mark:done#1",
            ]
        );
        assert_eq!((plan.crashes, plan.merged, plan.silent, plan.hits_left_out), (4, 1, 1, 0));
        let faults: Vec<String> =
            plan.trials[1].faults.iter().map(|at| format!("{} {}", at.fault.name, at.at)).collect();
        assert_eq!(faults, ["kill mark:step#2", "kill provider:lookup#1"]);
    }

    #[test]
    fn hits_beyond_the_limit_of_their_series_are_counted() {
        let mut settings = Settings::default();
        settings.sweep.hits_per_series_max = 1;
        let recovery = vec![("mark:a#2", true), ("mark:a#3", true), ("mark:b#1", true), ("mark:a#4", true)];
        let plan = plan_of(&settings, &[Sample { recovery, ..sample(1) }.history()]);
        assert_eq!(
            names(&plan),
            ["kill at mark:step#1, then at mark:a#2", "kill at mark:step#1, then at mark:b#1"]
        );
        assert_eq!(plan.hits_left_out, 2);
    }

    #[test]
    fn a_trial_without_a_death_or_without_another_life_is_no_first_crash() {
        let mut history = sample(1).history();
        history.events.retain(|event| !matches!(event.event, EventKind::Killed { .. }));
        assert_eq!(plan_of(&Settings::default(), &[history]), DepthPlan::default());
        let mut history = sample(1).history();
        history.events.retain(|event| event.generation == 1);
        assert_eq!(plan_of(&Settings::default(), &[history]), DepthPlan::default());
    }
}
