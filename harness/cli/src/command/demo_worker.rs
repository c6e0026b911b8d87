//! The built-in worker: this program started again, in the variants that show what it can do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use killpoint::model::Settings;
use killpoint::model::diagnostic::UnknownWord;
use killpoint::model::event::ClockMethod;
use killpoint::model::plan::ActionSpec;
use killpoint::model::settings::{
    AlarmSettings, CANONICAL_METRICS, CommandSettings, InboundSettings, LedgerSettings, Lifecycle,
    MetricsSettings, SecretSettings, SettleBy,
};

use crate::code::Code;
use crate::diagnostics::Diagnosed;

/// First word after the program's name that makes it the demo's worker.
const WORKER_WORD: &str = "built-in-worker";
/// The worker's ledger.
const DB: &str = "{state}/outbox.db";
/// The variable of the worker's environment that holds a credential.
const TOKEN_VARIABLE: &str = "OUTBOX_API_TOKEN";

/// How the built-in worker is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Two actions, done and exit.
    Plain,
    /// The provider dedupes by key, and the worker knows it.
    Deduping,
    /// Its actions come from a schedule that began before it was started.
    Scheduled,
    /// Its actions come from the provider's feed.
    Inbound,
    /// It runs until it is stopped.
    Forever,
}

impl Variant {
    /// The variant in which a bug can show; without a bug, the plain one.
    pub(crate) fn showing(bug: Option<&str>) -> Self {
        match bug {
            Some("client-retries" | "trust-key-for-ever") => Self::Deduping,
            Some("reregister-schedules") => Self::Scheduled,
            Some("cursor-first") => Self::Inbound,
            Some("idle-for-ever") => Self::Forever,
            _ => Self::Plain,
        }
    }
}

/// Runs as the demo's worker if this process was started as that. Gives its exit code.
pub(crate) fn built_in_worker() -> Option<u8> {
    let mut words = std::env::args().skip(1);
    (words.next().as_deref() == Some(WORKER_WORD)).then(|| {
        let rest: Vec<String> = words.collect();
        u8::try_from(outbox_worker::main(&rest)).unwrap_or(u8::MAX)
    })
}

/// The built-in worker's settings, right or with one bug.
pub(crate) fn settings(bug: Option<&str>, variant: Variant) -> Result<Settings, Diagnosed> {
    if let Some(name) = bug
        && outbox_worker::bug_named(name).is_none()
    {
        let names = outbox_worker::BUGS.iter().map(|bug| bug.name);
        return Err(Diagnosed::one(Code::UnknownBug, &format!("--bug: {}", UnknownWord::new(name, names))));
    }
    let program = std::env::current_exe().map_err(|error| {
        Diagnosed::one(Code::NoProgram, &format!("this program can't find itself: {error}"))
    })?;
    let command = |words: &[&str]| {
        let bug = bug.iter().flat_map(|name| ["--bug", name]);
        worker_command(&program, words.iter().copied().chain(bug))
    };
    let mut settings = Settings::default();
    let mut run = vec!["run", "--db", DB, "--provider", "{provider.rest}", "--worker-id", "host-{worker}"];
    run.extend(match variant {
        Variant::Plain | Variant::Scheduled => &["--drain"][..],
        Variant::Deduping => &["--drain", "--provider-dedupes"],
        Variant::Inbound => &["--drain", "--feed"],
        Variant::Forever => &[],
    });
    // It stops loudly while its ledger can't be written; a service manager waits before it starts it again.
    settings.worker.restart_delay_ms = 300;
    settings.worker.restarts_max = 12;
    settings.worker.clock = ClockMethod::Environment;
    settings.worker.command = command(&run);
    settings.state.enqueue = match variant {
        Variant::Inbound => None,
        Variant::Scheduled => {
            let begun = ["--every-ms", "1000", "--occurrences", "3", "--start-ms", "-2500"];
            Some(command(&[&["schedule", "--db", DB], &begun[..]].concat()))
        }
        _ => Some(command(&["enqueue", "--db", DB, "--actions", "{actions.file}"])),
    };
    settings.actions = (1..=2).map(action).collect();
    settings.producer = Some(command(&["produce", "--db", DB, "--actions", "{producer.file}"]));
    settings.cleanup = Some(worker_command(&program, ["cleanup", "--db", DB]));
    settings.ledger = Some(ledger());
    settings.metrics = Some(metrics());
    settings.alarm = AlarmSettings { output: Some("ALARM".into()), exit_codes: vec![74], metric: None };
    settings.secrets = SecretSettings {
        env: vec![TOKEN_VARIABLE.into()],
        url: false,
        declared: vec!["requests:header:authorization".into()],
    };
    settings.provider.idempotency.dedupe = variant == Variant::Deduping;
    if variant == Variant::Inbound {
        settings.inbound = Some(InboundSettings { items: 3, page: 2, ..InboundSettings::default() });
    }
    if variant == Variant::Forever {
        settings.worker.lifecycle = Lifecycle::RunsForever;
        settings.settle.by = SettleBy::Quiet;
    }
    Ok(settings)
}

fn action(number: u32) -> ActionSpec {
    ActionSpec {
        id: format!("action-{number}"),
        to: vec![format!("user{number}@example.com")],
        body: format!("hello {number}"),
    }
}

fn worker_command<'w>(program: &Path, words: impl IntoIterator<Item = &'w str>) -> CommandSettings {
    let argv = [program.display().to_string(), WORKER_WORD.to_owned()];
    CommandSettings {
        argv: argv.into_iter().chain(words.into_iter().map(str::to_owned)).collect(),
        cwd: PathBuf::from("/"),
        ..CommandSettings::default()
    }
}

fn ledger() -> LedgerSettings {
    let states = outbox_worker::LEDGER_STATES.iter();
    LedgerSettings {
        kind: "sqlite".into(),
        path: Some(DB.to_owned()),
        query: Some(outbox_worker::LEDGER_QUERY.to_owned()),
        command: None,
        // The worker's own tests hold its words to the canonical ones.
        states: states
            .filter_map(|(own, canonical)| Some(((*own).to_owned(), canonical.parse().ok()?)))
            .collect(),
        executions: BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 20,
    }
}

fn metrics() -> MetricsSettings {
    MetricsSettings {
        query: Some(outbox_worker::METRICS_QUERY.to_owned()),
        names: CANONICAL_METRICS.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect(),
        ..MetricsSettings::default()
    }
}
