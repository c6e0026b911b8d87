//! `killpoint demo`: the gate on the built-in worker, which is this program started again.

use std::path::PathBuf;

use clap::Args;
use killpoint::model::plan::ActionSpec;
use killpoint::model::settings::{CommandSettings, LedgerSettings};
use killpoint::model::{ExitCode, Settings};
use killpoint::{RunRequest, Strategy};

use crate::diagnostics::Diagnosed;
use crate::invocation::{Selection, Shown};

/// First word after the program's name that makes it the demo's worker.
const WORKER_WORD: &str = "built-in-worker";

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seed a bug; `killpoint selftest` lists them
    #[arg(long, value_name = "NAME")]
    bug: Option<String>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    shown: Shown,
}

/// Runs as the demo's worker if this process was started as that. Gives its exit code.
pub(crate) fn built_in_worker() -> Option<u8> {
    let mut words = std::env::args().skip(1);
    (words.next().as_deref() == Some(WORKER_WORD)).then(|| {
        let rest: Vec<String> = words.collect();
        u8::try_from(outbox_worker::main(&rest)).unwrap_or(u8::MAX)
    })
}

impl Demo {
    pub(crate) fn run(self) -> ExitCode {
        match self.request() {
            Ok(request) => self.shown.run(request),
            Err(problems) => problems.complain(),
        }
    }

    fn request(&self) -> Result<RunRequest, Diagnosed> {
        let settings = settings(self.bug.as_deref())?;
        let strategy = self.selection.strategy()?;
        let bug = self.bug.as_ref().map(|bug| format!(" --bug {bug}")).unwrap_or_default();
        Ok(RunRequest {
            strategy: strategy.unwrap_or(Strategy::Sweep),
            jobs: self.selection.jobs(),
            repeat: self.selection.repeat(),
            folder: self.selection.folder(),
            command_line: std::env::args().skip(1).collect(),
            replay: (format!("killpoint demo{bug}"), String::new()),
            ..RunRequest::sweep(settings, "")
        })
    }
}

/// The built-in worker's settings, right or with one bug.
pub(crate) fn settings(bug: Option<&str>) -> Result<Settings, Diagnosed> {
    if let Some(name) = bug
        && outbox_worker::bug_named(name).is_none()
    {
        let names = outbox_worker::BUGS.iter().map(|bug| bug.name);
        let what = killpoint::model::diagnostic::UnknownWord::new(name, names);
        return Err(Diagnosed::one("unknown-bug", &format!("--bug: {what}")));
    }
    let program = std::env::current_exe()
        .map_err(|error| Diagnosed::one("no-program", &format!("this program can't find itself: {error}")))?;
    let db = "{state}/outbox.db";
    let mut run =
        vec!["run", "--db", db, "--provider", "{provider.rest}", "--worker-id", "host-{worker}", "--drain"];
    run.extend(bug.iter().flat_map(|name| ["--bug", name]));
    let mut settings = Settings::default();
    settings.worker.command = worker_command(&program, &run);
    settings.state.enqueue =
        Some(worker_command(&program, &["enqueue", "--db", db, "--actions", "{actions.file}"]));
    settings.actions = (1..=2)
        .map(|number| ActionSpec {
            id: format!("action-{number}"),
            to: vec![format!("user{number}@example.com")],
            body: format!("hello {number}"),
        })
        .collect();
    settings.ledger = Some(ledger(db));
    Ok(settings)
}

fn worker_command(program: &std::path::Path, words: &[&str]) -> CommandSettings {
    let argv = [program.display().to_string(), WORKER_WORD.to_owned()];
    CommandSettings {
        argv: argv.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect(),
        cwd: PathBuf::from("/"),
        ..CommandSettings::default()
    }
}

fn ledger(db: &str) -> LedgerSettings {
    let states = outbox_worker::LEDGER_STATES.iter();
    LedgerSettings {
        kind: "sqlite".into(),
        path: Some(db.to_owned()),
        query: Some(outbox_worker::LEDGER_QUERY.to_owned()),
        command: None,
        // The worker's own tests hold its words to the canonical ones.
        states: states
            .filter_map(|(own, canonical)| Some(((*own).to_owned(), canonical.parse().ok()?)))
            .collect(),
        executions: std::collections::BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 20,
    }
}
