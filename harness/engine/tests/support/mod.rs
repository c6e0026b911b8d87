//! What the tests with real processes share: a small outbox in Python, and readers of its histories.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use killpoint_engine::{TrialResult, TrialSpec, run_trial};
use killpoint_model::event::{EventKind, SettledBy};
use killpoint_model::settings::{CommandSettings, LedgerSettings};
use killpoint_model::{History, Plan, RowState, Settings};

pub(crate) fn command(words: &[&str]) -> CommandSettings {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/outbox.py");
    let argv = ["python3".to_owned(), script.display().to_string()];
    CommandSettings {
        argv: argv.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect(),
        env: [("PROVIDER_URL", "{provider.rest}"), ("STATE_DIR", "{state}")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cwd: PathBuf::from("/"),
        inherit: None,
    }
}

pub(crate) fn settings(mode: &str, items: &str) -> Settings {
    let mut settings = Settings::default();
    settings.worker.command = command(&[mode]);
    settings.state.enqueue = Some(command(&["enqueue", items]));
    settings.settle.quiet_ms = 400;
    settings.ledger = Some(LedgerSettings {
        kind: "sqlite".into(),
        path: Some("{state}/ledger.db".into()),
        query: Some("select id as action, state from items".into()),
        command: None,
        states: [
            ("new", RowState::Created),
            ("sending", RowState::Dispatching),
            ("sent", RowState::Confirmed),
        ]
        .map(|(word, state)| (word.to_owned(), state))
        .into(),
        executions: std::collections::BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 20,
    });
    settings
}

pub(crate) async fn run(settings: Settings, plan: Plan) -> TrialResult {
    let folder = tempfile::tempdir().unwrap();
    let spec =
        TrialSpec { settings: Arc::new(settings), plan, folder: folder.path().join("trial"), pulse: None };
    run_trial(spec).await.unwrap()
}

pub(crate) async fn history_of(settings: Settings, plan: Plan) -> History {
    let result = run(settings, plan).await;
    assert!(result.error.is_none(), "{:?}", result.error);
    result.history
}

pub(crate) fn position(history: &History, wanted: impl Fn(&EventKind) -> bool) -> usize {
    history
        .events
        .iter()
        .position(|event| wanted(&event.event))
        .unwrap_or_else(|| panic!("not there: {}", history.to_text()))
}

pub(crate) fn settled_by(history: &History) -> Option<SettledBy> {
    history.events.iter().find_map(|event| match event.event {
        EventKind::Settled { by, .. } => Some(by),
        _ => None,
    })
}

pub(crate) fn final_states(history: &History) -> Vec<RowState> {
    history.final_rows().map(|(_, rows)| rows.iter().map(|row| row.state).collect()).unwrap_or_default()
}

/// The workers that were started, by number, in order.
pub(crate) fn spawned(history: &History) -> Vec<u32> {
    let spawned = history.events.iter().filter_map(|event| match &event.event {
        EventKind::Spawned { worker, .. } => Some(*worker),
        _ => None,
    });
    spawned.collect()
}
