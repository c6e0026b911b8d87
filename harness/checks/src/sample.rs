//! Small histories for tests: what happened, said in the order in which it happened.

use killpoint_model::event::{Containment, Event, EventKind, KillProof, ProcessLimit, SettledBy};
use killpoint_model::finding::{InvariantOutcome, InvariantStatus};
use killpoint_model::history::Header;
use killpoint_model::plan::{Commit, Fault, FaultAt, Plan, ProviderPlan, Reply, Rule};
use killpoint_model::provider::{Attempt, Effect, Lookup, ProviderEvent, Replay, Unanswered};
use killpoint_model::run::TrialRole;
use killpoint_model::settings::LedgerSettings;
use killpoint_model::verdict::TrialVerdict;
use killpoint_model::{History, LedgerRow, LedgerView, RowState, Settings};
use serde_json::{Value, json};

use crate::judge::{Case, judge};

/// Builds one history.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    events: Vec<Event>,
    pub(crate) plan: Plan,
    generation: u32,
    attempts: Vec<Attempt>,
    effects: u32,
    lookups: u32,
    pub(crate) clock_ms: u64,
    /// The connection over which requests come.
    pub(crate) connection: u32,
    pub(crate) words: Vec<String>,
    settled: bool,
    /// What time passed beside one millisecond per event.
    passed_us: u64,
}

impl Trial {
    pub(crate) fn new() -> Self {
        let mut trial = Self {
            events: Vec::new(),
            plan: Plan { name: "a trial".into(), ..Plan::default() },
            generation: 0,
            attempts: Vec::new(),
            effects: 0,
            lookups: 0,
            clock_ms: 0,
            connection: 1,
            words: Vec::new(),
            settled: false,
            passed_us: 0,
        };
        trial.push(EventKind::FaultsOver); // replaced by the plan at the end
        trial.spawn();
        trial
    }

    pub(crate) fn push(&mut self, event: EventKind) -> u64 {
        let seq = self.events.len() as u64 + 1;
        self.events.push(Event {
            seq,
            at_us: seq * 1000 + self.passed_us,
            generation: self.generation,
            event,
        });
        seq
    }

    pub(crate) fn provider(&mut self, event: ProviderEvent) -> u64 {
        self.push(EventKind::Provider(event))
    }

    pub(crate) fn spawn(&mut self) -> &mut Self {
        self.spawn_worker(1)
    }

    pub(crate) fn spawn_worker(&mut self, worker: u32) -> &mut Self {
        self.generation += 1;
        let pid = 100 + self.generation;
        self.push(EventKind::Spawned { worker, pid, argv: vec!["worker".into()] });
        self
    }

    /// A mark that a worker makes.
    pub(crate) fn mark_by(&mut self, name: &str, worker: u32) -> &mut Self {
        let hit = format!("mark:{name}#{worker}").parse().unwrap();
        self.push(EventKind::Hit { hit, exact: true, live: true, subject: None, worker });
        self
    }

    /// Time in which nothing happens.
    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.passed_us += ms * 1000;
        self.clock_ms += ms;
    }

    /// One request with a text and an id in its body.
    pub(crate) fn send(&mut self, recipient: &str, key: Option<&str>, text: &str) -> u32 {
        self.send_body(recipient, key, json!({ "to": recipient, "text": text }))
    }

    pub(crate) fn send_body(&mut self, recipient: &str, key: Option<&str>, body: Value) -> u32 {
        self.send_action(recipient, None, key, body)
    }

    pub(crate) fn send_action(
        &mut self,
        recipient: &str,
        action: Option<&str>,
        key: Option<&str>,
        body: Value,
    ) -> u32 {
        self.clock_ms += 10;
        let attempt = Attempt {
            id: self.attempts.len() as u32 + 1,
            connection: self.connection,
            dialect: "rest".into(),
            operation: "create".into(),
            target: "POST /messages".into(),
            key: key.map(str::to_owned),
            recipient: recipient.into(),
            action: action.map(str::to_owned),
            body_sha256: body.to_string(),
            body,
            at_ms: self.clock_ms,
        };
        self.attempts.push(attempt.clone());
        self.provider(ProviderEvent::Received(attempt));
        self.attempts.len() as u32
    }

    pub(crate) fn commit(&mut self, attempt: u32) -> String {
        self.commit_copies(attempt, 1)
    }

    pub(crate) fn commit_copies(&mut self, attempt: u32, copies: u32) -> String {
        self.effects += 1;
        let from = self.attempts[attempt as usize - 1].clone();
        let id = format!("msg_{}", self.effects);
        let text = from.body.get("text").or(Some(&from.body)).and_then(Value::as_str).unwrap_or_default();
        self.provider(ProviderEvent::Committed(Effect {
            id: id.clone(),
            attempt,
            dialect: from.dialect,
            operation: from.operation,
            recipient: from.recipient,
            text: text.into(),
            body: from.body.clone(),
            key: from.key,
            action: from.action,
            recognizers: Vec::new(),
            copies,
            committed_at_ms: self.clock_ms,
            visible_at_ms: Some(self.clock_ms),
            bounced_at_ms: None,
        }));
        id
    }

    pub(crate) fn reply(&mut self, attempt: u32, status: u16) -> &mut Self {
        self.provider(ProviderEvent::Replied { attempt, status, retry_after_ms: None });
        self
    }

    pub(crate) fn drop_reply(&mut self, attempt: u32) -> &mut Self {
        self.provider(ProviderEvent::Unanswered { attempt, how: Unanswered::Fin });
        self
    }

    pub(crate) fn replay(&mut self, attempt: u32, replay: Replay, effect: &str) -> &mut Self {
        let effect = Some(effect.to_owned());
        self.provider(ProviderEvent::NotExecuted { attempt, replay, effect });
        self
    }

    /// Sent, committed and answered.
    pub(crate) fn deliver(&mut self, recipient: &str, key: Option<&str>, text: &str) -> &mut Self {
        let attempt = self.send(recipient, key, text);
        self.commit(attempt);
        self.reply(attempt, 200)
    }

    /// Sent and dropped without a byte; with or without an effect.
    pub(crate) fn lose(&mut self, recipient: &str, key: Option<&str>, text: &str, commit: bool) -> &mut Self {
        let attempt = self.send(recipient, key, text);
        let plan = ProviderPlan {
            commit: if commit { Commit::Now } else { Commit::Never },
            reply: Reply::Fin,
            ..ProviderPlan::default()
        };
        self.rule("lose", attempt, plan);
        if commit {
            self.commit(attempt);
        }
        self.drop_reply(attempt)
    }

    pub(crate) fn rule(&mut self, rule: &str, attempt: u32, plan: ProviderPlan) -> &mut Self {
        if self.plan.rules.iter().all(|known| known.id != rule) {
            let matches = killpoint_model::plan::Match::default();
            self.plan.rules.push(Rule { id: rule.into(), matches, plan, times: Some(1) });
        }
        self.provider(ProviderEvent::RuleFired { rule: rule.into(), attempt, lookup: false, plan });
        self
    }

    /// A lookup that was answered.
    pub(crate) fn look_up(&mut self, subject: &str, found: &[&str]) -> &mut Self {
        let lookup = self.ask(subject, found);
        let status = if found.is_empty() && !subject.is_empty() { 404 } else { 200 };
        self.provider(ProviderEvent::LookupReplied { lookup, status });
        self
    }

    /// A lookup without an answer.
    pub(crate) fn ask(&mut self, subject: &str, found: &[&str]) -> u32 {
        self.lookups += 1;
        self.provider(ProviderEvent::LookedUp(Lookup {
            id: self.lookups,
            connection: 1,
            operation: if subject.is_empty() { "list".into() } else { "get".into() },
            target: format!("GET /messages/{subject}"),
            subject: subject.into(),
            found: found.iter().map(|id| (*id).to_owned()).collect(),
            at_ms: self.clock_ms,
        }));
        self.lookups
    }

    /// An exact reading of the ledger, at a hit where one is given.
    pub(crate) fn view(&mut self, at: Option<&str>, rows: Vec<LedgerRow>) -> u64 {
        let at = at.map(|name| name.parse().unwrap());
        self.push(EventKind::Ledger { at, view: view(Some(rows)) })
    }

    pub(crate) fn hit(&mut self, name: &str) -> &mut Self {
        let hit = name.parse().unwrap();
        self.push(EventKind::Hit { hit, exact: true, live: true, subject: None, worker: 1 });
        self
    }

    /// A kill at a hit, proven, and the restart.
    pub(crate) fn kill(&mut self, at: &str) -> &mut Self {
        self.die(at).spawn()
    }

    /// A kill at a hit, proven.
    pub(crate) fn die(&mut self, at: &str) -> &mut Self {
        let proof = KillProof {
            signal: Some(9),
            code: None,
            was_alive: true,
            reaped: 1,
            survivors: 0,
            containment: Containment::Subreaper,
        };
        self.die_with(at, proof)
    }

    pub(crate) fn die_with(&mut self, at: &str, proof: KillProof) -> &mut Self {
        self.hit(at);
        let (at, fault) = (at.parse().unwrap(), Fault::named("kill"));
        self.plan.faults.push(FaultAt { at, fault: fault.clone() });
        let at = self.plan.faults.last().unwrap().at.clone();
        self.push(EventKind::FaultAnnounced { at, fault });
        self.push(EventKind::Killed { worker: 1, proof });
        self
    }

    pub(crate) fn not_settled(&mut self) -> &mut Self {
        self.settled = true;
        self.push(EventKind::FaultsOver);
        self.push(EventKind::NotSettled { why: "the deadline of 30 s passed".into() });
        self
    }

    /// Ends without a ledger.
    pub(crate) fn end(&mut self) -> History {
        self.end_with(view(None))
    }

    /// Ends with final rows.
    pub(crate) fn end_rows(&mut self, rows: Vec<LedgerRow>) -> History {
        self.end_with(view(Some(rows)))
    }

    pub(crate) fn end_with(&mut self, view: LedgerView) -> History {
        let mut trial = self.clone();
        if !trial.settled {
            trial.push(EventKind::Exited { worker: 1, code: Some(0), signal: None });
            trial.push(EventKind::FaultsOver);
            trial.push(EventKind::Settled { by: SettledBy::Exit, window_complete: true });
        }
        let words = trial.words.clone();
        trial.push(EventKind::Final { view, words, state_changed: false });
        trial.push(EventKind::TrialEnded);
        trial.events[0].event = EventKind::TrialStarted {
            plan: trial.plan.clone(),
            containment: Containment::Subreaper,
            containment_reason: None,
            process_limit: ProcessLimit::Watch,
        };
        History { header: Header::new("a trial"), events: trial.events, truncated: false }
    }
}

/// An exact view.
pub(crate) fn view(rows: Option<Vec<LedgerRow>>) -> LedgerView {
    LedgerView { exact: true, rows, values: std::collections::BTreeMap::new(), error: None }
}

/// A row with key and destination; the action is the key without its first letter pair.
pub(crate) fn row(action: &str, destination: &str, state: RowState) -> LedgerRow {
    LedgerRow {
        destination: Some(destination.into()),
        key: Some(format!("k-{action}")),
        ..LedgerRow::new(action, state)
    }
}

/// Settings with a ledger mapping.
pub(crate) fn mapped() -> Settings {
    let ledger = LedgerSettings {
        kind: "sqlite".into(),
        path: None,
        query: Some("SELECT …".into()),
        command: None,
        states: std::collections::BTreeMap::new(),
        executions: std::collections::BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 100,
    };
    Settings { ledger: Some(ledger), ..Settings::default() }
}

/// The fault-free trial of one message, without a ledger.
pub(crate) fn plain_baseline() -> History {
    Trial::new().deliver("bob@x", Some("k-deploy-42"), "deployed").end()
}

/// The fault-free trial of one message, with a ledger.
pub(crate) fn mapped_baseline() -> History {
    let done = vec![row("deploy-42", "bob@x", RowState::Confirmed)];
    Trial::new().deliver("bob@x", Some("k-deploy-42"), "deployed").end_rows(done)
}

/// Judges a trial against one baseline, taken twice.
pub(crate) fn judged(settings: &Settings, history: &History, baseline: &History) -> TrialVerdict {
    let baselines = [baseline.clone(), baseline.clone()];
    judge(&Case { settings, role: TrialRole::Faulted, history, baselines: &baselines })
}

/// One invariant's outcome.
pub(crate) fn outcome<'v>(verdict: &'v TrialVerdict, invariant: &str) -> &'v InvariantOutcome {
    verdict.outcomes.iter().find(|outcome| outcome.invariant == invariant).unwrap()
}

/// The status of one invariant on a trial of one message.
pub(crate) fn status(settings: &Settings, history: &History, invariant: &str) -> InvariantStatus {
    let baseline = if settings.ledger.is_some() { mapped_baseline() } else { plain_baseline() };
    let verdict = judged(settings, history, &baseline);
    let found = outcome(&verdict, invariant);
    let known: std::collections::BTreeSet<u64> = history.events.iter().map(|event| event.seq).collect();
    for finding in found.findings.iter().chain(&found.notes) {
        assert!(!finding.events.is_empty(), "{finding:?} shows nothing");
        assert!(finding.events.iter().all(|seq| known.contains(seq)), "{finding:?}");
    }
    found.status
}

/// Names of the invariants that are violated.
pub(crate) fn violated(verdict: &TrialVerdict) -> Vec<&str> {
    let violated = verdict.outcomes.iter().filter(|outcome| outcome.status == InvariantStatus::Violated);
    violated.map(|outcome| outcome.invariant.as_str()).collect()
}
