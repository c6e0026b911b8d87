//! How fast a history is judged: builds one of a million events, or of as many as the first argument says, and
//! prints events per second and the peak of memory. Parsing is not measured.

use std::collections::BTreeMap;
use std::time::Instant;

use killpoint_checks::{Case, judge};
use killpoint_model::event::{Containment, Event, EventKind, ProcessLimit, SettledBy};
use killpoint_model::history::Header;
use killpoint_model::provider::{Attempt, Effect, Lookup, ProviderEvent};
use killpoint_model::run::TrialRole;
use killpoint_model::settings::LedgerSettings;
use killpoint_model::{History, HitName, LedgerRow, LedgerView, Plan, RowState, Settings, Source};
use serde_json::json;

/// Events of the measured history unless told otherwise.
const EVENTS_DEFAULT: usize = 1_000_000;
/// Looks at the ledger while the actions are sent.
const LOOKS: usize = 2;
/// The marks that a worker makes for an action before its request, and after it.
const MARKS: [&[&str]; 2] = [
    &["result-committed", "item-enqueued", "before-claim", "item-claimed", "dispatch-started"],
    &["answer-read", "ack-committed"],
];
/// One action in this many is lost, looked up and sent again.
const LOST_ONE_IN: usize = 10;

/// Collects events.
struct Builder {
    events: Vec<Event>,
    attempts: u32,
    hits: BTreeMap<&'static str, u32>,
}

impl Builder {
    fn push(&mut self, event: EventKind) {
        let seq = self.events.len() as u64 + 1;
        self.events.push(Event { seq, at_us: seq * 10, generation: 1, event });
    }

    fn provider(&mut self, event: ProviderEvent) {
        self.push(EventKind::Provider(event));
    }

    fn hit(&mut self, point: &'static str, subject: u32) {
        let ordinal = self.hits.entry(point).or_default();
        *ordinal += 1;
        let hit = HitName::new(Source::Provider, point, *ordinal);
        self.push(EventKind::Hit {
            hit,
            exact: true,
            live: true,
            subject: Some(subject.to_string()),
            worker: 0,
        });
    }

    fn mark(&mut self, point: &'static str) {
        let ordinal = self.hits.entry(point).or_default();
        *ordinal += 1;
        let hit = HitName::new(Source::Mark, point, *ordinal);
        self.push(EventKind::Hit { hit, exact: true, live: true, subject: None, worker: 1 });
    }

    /// One request of an action; delivered and answered, or lost without a trace.
    fn send(&mut self, action: usize, delivered: bool) {
        self.attempts += 1;
        let id = self.attempts;
        let body = json!({ "id": name(action), "to": recipient(action), "text": text(action) });
        self.provider(ProviderEvent::Connected { connection: id });
        self.hit("received", id);
        let attempt = Attempt {
            id,
            connection: id,
            dialect: "rest".into(),
            operation: "create".into(),
            target: "POST /v1/messages".into(),
            key: Some(key(action)),
            recipient: recipient(action),
            action: Some(name(action)),
            body_sha256: format!("{action:064x}"),
            body: body.clone(),
            at_ms: u64::from(id),
        };
        self.provider(ProviderEvent::Received(attempt));
        if !delivered {
            let how = killpoint_model::provider::Unanswered::Fin;
            self.provider(ProviderEvent::Unanswered { attempt: id, how });
            self.hit("dropped", id);
            return;
        }
        let effect = Effect {
            id: format!("msg_{id}"),
            attempt: id,
            dialect: "rest".into(),
            operation: "create".into(),
            recipient: recipient(action),
            text: text(action),
            body,
            key: Some(key(action)),
            action: Some(name(action)),
            recognizers: Vec::new(),
            copies: 1,
            committed_at_ms: u64::from(id),
            visible_at_ms: Some(u64::from(id)),
            bounced_at_ms: None,
        };
        self.provider(ProviderEvent::Committed(effect));
        self.hit("committed", id);
        self.provider(ProviderEvent::Replying { attempt: id, bytes: 100 });
        self.provider(ProviderEvent::Replied { attempt: id, status: 201, retry_after_ms: None });
        self.hit("replied", id);
    }

    fn look_up(&mut self, action: usize) {
        let id = action as u32 + 1;
        self.provider(ProviderEvent::LookedUp(Lookup {
            id,
            connection: id,
            operation: "lookup".into(),
            target: "GET /v1/messages".into(),
            subject: key(action),
            found: Vec::new(),
            at_ms: u64::from(id),
        }));
        self.provider(ProviderEvent::LookupReplied { lookup: id, status: 404 });
    }
}

fn name(action: usize) -> String {
    format!("action-{action}")
}

fn key(action: usize) -> String {
    format!("key-{action}")
}

fn recipient(action: usize) -> String {
    format!("user{action}@example.com")
}

fn text(action: usize) -> String {
    format!("hello {action}")
}

fn view(actions: usize, done: usize) -> LedgerView {
    let row = |action: usize| LedgerRow {
        destination: Some(recipient(action)),
        key: Some(key(action)),
        text: Some(text(action)),
        attempts: Some(if action >= done { 0 } else { 1 + u32::from(action.is_multiple_of(LOST_ONE_IN)) }),
        ..LedgerRow::new(name(action), if action < done { RowState::Confirmed } else { RowState::Created })
    };
    let rows = Some((0..actions).map(row).collect());
    LedgerView { exact: true, rows, values: BTreeMap::new(), error: None }
}

/// A history of about that many events: actions that are sent, some of them lost, looked up and sent again, and a
/// few looks at a ledger of all of them.
fn sample_history(events: usize) -> History {
    // Fifteen events for an action, and seven more for one that is lost.
    let actions = (events * LOST_ONE_IN / (15 * LOST_ONE_IN + 7)).max(1);
    let mut builder = Builder { events: Vec::with_capacity(events + 16), attempts: 0, hits: BTreeMap::new() };
    builder.push(EventKind::TrialStarted {
        plan: Plan::default(),
        containment: Containment::PidNamespace,
        containment_reason: None,
        process_limit: ProcessLimit::Watch,
    });
    builder.push(EventKind::Spawned { worker: 1, pid: 100, argv: vec!["worker".into()] });
    for action in 0..actions {
        if action.is_multiple_of(actions.div_ceil(LOOKS)) {
            builder.push(EventKind::Ledger { at: None, view: view(actions, action) });
        }
        if action.is_multiple_of(LOST_ONE_IN) {
            builder.send(action, false);
            builder.look_up(action);
        }
        MARKS[0].iter().for_each(|mark| builder.mark(mark));
        builder.send(action, true);
        MARKS[1].iter().for_each(|mark| builder.mark(mark));
    }
    builder.push(EventKind::Exited { worker: 1, code: Some(0), signal: None });
    builder.push(EventKind::Settled { by: SettledBy::Exit, window_complete: true });
    builder.push(EventKind::Final { view: view(actions, actions), words: Vec::new(), state_changed: true });
    builder.push(EventKind::TrialEnded);
    History { header: Header::new("bench"), events: builder.events, truncated: false }
}

fn settings() -> Settings {
    let ledger = LedgerSettings {
        kind: "sqlite".into(),
        path: None,
        query: Some("select …".into()),
        command: None,
        states: BTreeMap::new(),
        executions: BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 20,
    };
    Settings { ledger: Some(ledger), ..Settings::default() }
}

/// Peak of resident memory in mebibytes, where the system tells.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

/// Time that this thread has had a processor, where the system tells: other programs' load is not in it.
fn on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<u64>().ok().map(|ns| ns as f64 / 1e9)
}

#[expect(clippy::print_stdout, reason = "its output is the result")]
fn main() {
    let events = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(EVENTS_DEFAULT);
    let history = sample_history(events);
    let built_mib = peak_mib().unwrap_or_default();
    let settings = settings();
    let case = Case { settings: &settings, role: TrialRole::Baseline, history: &history, baselines: &[] };
    let (start, on_processor_before) = (Instant::now(), on_processor());
    let verdict = judge(&case);
    let seconds = start.elapsed().as_secs_f64();
    let busy = on_processor().zip(on_processor_before).map_or(seconds, |(after, before)| after - before);
    println!("events          {}", history.events.len());
    println!("verdict         {}", verdict.verdict);
    println!("seconds         {seconds:.3}, of which {busy:.3} on a processor");
    let per_second = |seconds: f64| history.events.len() as f64 / seconds;
    println!("events/s        {:.0}, on a processor {:.0}", per_second(seconds), per_second(busy));
    println!("peak memory     {} MiB, of which the history {built_mib} MiB", peak_mib().unwrap_or_default());
}
