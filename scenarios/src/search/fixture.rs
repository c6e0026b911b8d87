//! A worker with everything that can be configured, and its fault-free trial.

use std::collections::BTreeMap;

use killpoint_model::event::{Event, EventKind};
use killpoint_model::history::Header;
use killpoint_model::provider::{Attempt, ProviderEvent};
use killpoint_model::settings::{CommandSettings, LedgerSettings};
use killpoint_model::{Catalog, Entry, Fault, FaultAt, History, Plan, Settings};

use super::space::Space;

/// What each of two actions makes, in order.
const MOMENTS: &[&str] = &[
    "mark:before-claim",
    "ledger:dispatching",
    "provider:connected",
    "provider:received",
    "provider:committed",
    "provider:replying",
    "provider:replied",
    "ledger:confirmed",
];

pub(super) fn settings() -> Settings {
    let command = |words: &[&str]| CommandSettings {
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        ..CommandSettings::default()
    };
    let mut settings = Settings::default();
    settings.worker.command = command(&["worker", "--id", "host-{worker}"]);
    settings.state.enqueue = Some(command(&["enqueue", "{actions.file}"]));
    settings.cleanup = Some(command(&["cleanup"]));
    settings.producer = Some(command(&["produce"]));
    settings.ledger = Some(LedgerSettings {
        kind: "sqlite".into(),
        path: Some("{state}/a.db".into()),
        query: None,
        command: None,
        states: BTreeMap::new(),
        executions: BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 20,
    });
    settings
}

/// A history of these events, each in its generation.
pub(super) fn history(events: Vec<(u32, EventKind)>) -> History {
    let event = |(index, (generation, event)): (usize, (u32, EventKind))| Event {
        seq: index as u64 + 1,
        at_us: 0,
        generation,
        event,
    };
    History {
        header: Header::new("a"),
        events: events.into_iter().enumerate().map(event).collect(),
        truncated: false,
    }
}

pub(super) fn hit(name: &str, subject: Option<u32>, live: bool) -> EventKind {
    let subject = subject.map(|id| id.to_string());
    EventKind::Hit { hit: name.parse().unwrap(), exact: true, live, subject, worker: 1 }
}

pub(super) fn received(id: u32) -> EventKind {
    EventKind::Provider(ProviderEvent::Received(Attempt {
        id,
        connection: id,
        dialect: "rest".into(),
        operation: "create".into(),
        target: "POST /v1/messages".into(),
        key: None,
        recipient: "a".into(),
        action: None,
        body_sha256: String::new(),
        body: serde_json::Value::Null,
        at_ms: 0,
    }))
}

pub(super) fn baseline() -> History {
    let mut events = vec![(1, hit("mark:producer-open#1", None, true))];
    for number in 1..=2 {
        for moment in MOMENTS {
            if *moment == "provider:received" {
                events.push((1, received(number)));
            }
            let subject = moment.starts_with("provider").then_some(number);
            events.push((1, hit(&format!("{moment}#{number}"), subject, true)));
        }
    }
    events.push((1, hit("ledger:removed#1", None, false)));
    history(events)
}

pub(super) fn space() -> Space {
    Space::of(&settings(), &baseline())
}

pub(super) fn fault(name: &str, at: &str) -> FaultAt {
    FaultAt { at: at.parse().unwrap(), fault: Fault::named(name) }
}

pub(super) fn kills(at: &[&str]) -> Plan {
    Plan { faults: at.iter().map(|at| fault("kill", at)).collect(), ..Plan::default() }
}

/// The names that the reader of scenario files needs.
pub(super) fn catalog() -> Catalog {
    let names = [
        "barrier",
        "cleanup",
        "hold-producer",
        "kill",
        "power-cut",
        "provider-clock",
        "second-worker",
        "stop",
        "store-busy",
        "store-busy-snapshot",
        "store-copy",
        "store-lock",
        "store-no-space",
        "store-read-only",
        "store-restore",
        "store-rollback",
        "store-second",
        "terminate",
        "worker-clock",
    ];
    let entry = |name| Entry { name, summary: "", explanation: "", example: "" };
    Catalog { faults: names.map(entry).into(), dialects: vec![entry("rest")], ..Catalog::default() }
}
