//! One trial: fresh state, prepare, enqueue, start the worker, hits and faults, death, restart on the same
//! ledger, …, settle, last look. One task owns all of a trial's state and decides; the provider, the marks
//! and the process trees send it signals.
//!
//! What this assumes of the operating system: a stopped tree writes nothing, and a process reaped after
//! SIGKILL is gone. What it does not claim: a SIGKILL keeps the page cache, so nothing here says anything
//! about power loss.

mod barrier;
mod control;
mod drive;
mod hits;
mod lives;
mod observe;
mod settle;
mod setup;
mod start_up;
mod tally;
mod waiting;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fake_provider::{Server, ServerConfig};
use killpoint_model::event::{EventKind, Leak};
use killpoint_model::ledger::LedgerView;
use killpoint_model::plan::FaultAt;
use killpoint_model::{Clock, History, HitName, Plan, Settings, SystemClock};
use tokio::sync::mpsc;

use crate::boundaries::provider::Watch;
use crate::boundaries::{HitCounter, Signal};
use crate::error::TrialError;
use crate::ledgers::LedgerReader;
use crate::observe::secrets::Canaries;
use crate::pulse::Pulse;
use crate::recorder::Recorder;
use crate::state::Signature;
use crate::template::Templates;
use start_up::StartUp;
use tally::Exchange;
use worker::Worker;

pub use control::ActiveFault;
pub(crate) use control::{CLOCK_FAULT, PRODUCER_MARK};
pub use drive::Goal;
pub(crate) use tally::WireTally;

/// What one trial is given.
#[derive(Debug, Clone)]
pub struct TrialSpec {
    /// The user's settings.
    pub settings: Arc<Settings>,
    /// What to do. Canonical names are bound already.
    pub plan: Plan,
    /// An empty folder of its own, absolute.
    pub folder: PathBuf,
    /// Where it says what it waits for, if somebody watches.
    pub pulse: Option<Pulse>,
}

/// What one trial left.
#[derive(Debug)]
pub struct TrialResult {
    /// The events, as on disk.
    pub history: History,
    /// Why the harness could not carry the trial through, where it could not. Such a trial is never green.
    pub error: Option<TrialError>,
}

/// A trial under way.
#[derive(Debug)]
pub struct Trial {
    settings: Arc<Settings>,
    plan: Plan,
    folder: PathBuf,
    state: PathBuf,
    sockets: tempfile::TempDir,
    recorder: Arc<Recorder>,
    server: Arc<Server>,
    tally: WireTally,
    /// Exchanges that wait for us at a hit: of one fault, and of others that come while it lasts.
    held: Vec<Exchange>,
    outbox: mpsc::UnboundedSender<Signal>,
    inbox: mpsc::UnboundedReceiver<Signal>,
    workers: BTreeMap<u32, Worker>,
    templates: Templates,
    ledger: Option<Arc<LedgerReader>>,
    view: LedgerView,
    settle_value: Option<String>,
    seen: Signature,
    counter: HitCounter,
    pending: Vec<FaultAt>,
    /// Hits of the ledger whose faults wait until the request at which they were seen is accepted or refused.
    postponed: Vec<HitName>,
    /// Since when we hold the workers' trees stopped.
    frozen_since: Option<Instant>,
    /// Connections whose exchange is between its last bytes and its end.
    finishing: BTreeSet<u32>,
    faults_over: bool,
    restarts: u32,
    lives: u32,
    last_activity: Instant,
    start_up: StartUp,
    deadline: Instant,
    state_at_death: Option<Signature>,
    /// What differs from the configuration at the next start of a worker.
    next_life: control::NextLife,
    /// Faults that last, such as a competing writer.
    active: Vec<Box<dyn ActiveFault>>,
    /// Workers that were asked to end and have not yet.
    terminations: Vec<control::Termination>,
    barrier: Option<barrier::Barrier>,
    /// The hit at which a fault is being done.
    at: Option<HitName>,
    canaries: Canaries,
    /// Places scanned so far, and what was found.
    scanned: (u32, Vec<Leak>),
    pulse: Option<Pulse>,
}

/// Runs one trial to its end and records everything on the way.
///
/// # Errors
/// Only when not even the history file can be made; anything later is in the result.
pub async fn run_trial(spec: TrialSpec) -> Result<TrialResult, TrialError> {
    let io = |error: std::io::Error| TrialError::from_io("making the trial's folder", &error);
    std::fs::create_dir_all(&spec.folder).map_err(io)?;
    let recorder = Recorder::create(&spec.folder.join("history.jsonl"), &spec.plan.name).map_err(io)?;
    let recorder = Arc::new(recorder);
    let mut error = match Trial::open(&spec, &recorder).await {
        Ok(mut trial) => {
            let outcome = trial.run().await;
            trial.close().await;
            outcome.err()
        }
        Err(error) => Some(error),
    };
    if let Some(error) = &error {
        let (doing, error) = match error {
            TrialError::Setup { what, why } => (what.clone(), why.clone()),
            TrialError::Infrastructure { doing, error } => (doing.clone(), error.clone()),
        };
        recorder.append(EventKind::Infrastructure { doing, error });
    }
    recorder.append(EventKind::TrialEnded);
    if let Some(failure) = recorder.failure() {
        error.get_or_insert(TrialError::Infrastructure {
            doing: "writing the history".into(),
            error: failure,
        });
    }
    Ok(TrialResult { history: recorder.history(), error })
}

impl Trial {
    async fn open(spec: &TrialSpec, recorder: &Arc<Recorder>) -> Result<Self, TrialError> {
        let io = |error: std::io::Error| TrialError::from_io("making the trial's folder", &error);
        let canaries = Canaries::plant(&spec.settings.secrets)
            .map_err(|error| TrialError::from_io("making canary credentials", &error))?;
        let (outbox, inbox) = mpsc::unbounded_channel();
        let tally = WireTally::default();
        let watch = Watch::new(Arc::clone(recorder), outbox.clone(), tally.clone());
        let config = ServerConfig {
            provider: spec.settings.provider.clone(),
            rules: spec.plan.rules.clone(),
            snapshot: setup::provider_snapshot(&spec.settings)?,
            inbound: spec.settings.inbound.clone(),
            watch_for: canaries.pairs(),
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let server = Server::start(config, Arc::new(watch), clock).await.map_err(|error| {
            TrialError::Infrastructure {
                doing: "starting the fake provider".into(),
                error: error.to_string(),
            }
        })?;
        let state = spec.folder.join("state");
        let now = Instant::now();
        let mut trial = Self {
            settings: Arc::clone(&spec.settings),
            plan: spec.plan.clone(),
            folder: spec.folder.clone(),
            state,
            // A socket's path has 107 bytes at most, so it can't be below the run's folder.
            sockets: tempfile::Builder::new().prefix("killpoint-").tempdir().map_err(io)?,
            recorder: Arc::clone(recorder),
            server: Arc::new(server),
            tally,
            held: Vec::new(),
            outbox,
            inbox,
            workers: BTreeMap::new(),
            templates: Templates::default(),
            ledger: None,
            view: LedgerView { exact: true, rows: None, values: BTreeMap::new(), error: None },
            settle_value: None,
            seen: Signature::default(),
            counter: HitCounter::default(),
            pending: spec.plan.faults.clone(),
            postponed: Vec::new(),
            frozen_since: None,
            finishing: BTreeSet::new(),
            faults_over: false,
            restarts: 0,
            lives: 0,
            last_activity: now,
            start_up: StartUp::default(),
            deadline: now + Duration::from_millis(spec.settings.settle.deadline_ms),
            state_at_death: None,
            next_life: control::NextLife::default(),
            active: Vec::new(),
            terminations: Vec::new(),
            barrier: None,
            at: None,
            canaries,
            scanned: (0, Vec::new()),
            pulse: spec.pulse.clone(),
        };
        trial.fill_templates();
        Ok(trial)
    }

    fn fill_templates(&mut self) {
        self.templates.set("state", self.state.display().to_string());
        let address = format!("provider.{}", self.settings.provider.dialect);
        self.templates.set(&address, self.canaries.url(&self.server.base_url()));
        let planted = self.canaries.env().map(|(name, value)| (name.clone(), value.clone()));
        self.next_life.env.extend(planted);
        self.templates.set("actions", self.actions().len().to_string());
        self.templates.set("producer.file", self.folder.join("producer.jsonl").display().to_string());
        self.templates.set("actions.file", self.folder.join("actions.jsonl").display().to_string());
        if let Some(settings) = &self.settings.ledger {
            let query = self.settings.settle.query.as_deref();
            let scratch = self.folder.join("ledger-copy");
            self.ledger = LedgerReader::new(settings, query, &self.templates, &scratch).map(Arc::new);
        }
    }

    fn actions(&self) -> &[killpoint_model::plan::ActionSpec] {
        if self.plan.actions.is_empty() { &self.settings.actions } else { &self.plan.actions }
    }

    async fn run(&mut self) -> Result<(), TrialError> {
        self.set_up().await?;
        self.run_producer().await?;
        for number in 1..=self.plan.workers.max(1) {
            self.start_if_new(number).await?;
        }
        self.drive(Goal::Settled).await?;
        self.last_look().await
    }

    /// Ends everything that may still be there, whatever happened before.
    async fn close(&mut self) {
        self.end_active(true);
        for worker in self.workers.values_mut() {
            worker.stop(&self.recorder).await;
        }
    }

    /// The worker's own final state, read when it is dead.
    async fn last_look(&mut self) -> Result<(), TrialError> {
        self.scan_children();
        self.read_metrics().await?;
        for worker in self.workers.values_mut() {
            worker.stop(&self.recorder).await;
        }
        self.drain_provider().await;
        let mut view = LedgerView { exact: true, rows: None, values: BTreeMap::new(), error: None };
        let mut words = Vec::new();
        if self.ledger.is_some() {
            (view, _) = self.read_ledger(true).await?;
        } else {
            words = self.state_words().await?;
        }
        let state_changed =
            self.state_at_death.as_ref().is_some_and(|at_death| *at_death != Signature::of_tree(&self.state));
        self.scan_secrets().await?;
        self.recorder.append(EventKind::Final { view, words, state_changed });
        Ok(())
    }

    async fn state_words(&self) -> Result<Vec<String>, TrialError> {
        let (state, copy) = (self.state.clone(), self.folder.join("ledger-copy"));
        blocking(move || {
            crate::state::copy_tree(&state, &copy)
                .map(|()| crate::state::words(&copy))
                .map_err(|error| TrialError::from_io("copying the state directory", &error))
        })
        .await
    }
}

/// Runs something that blocks for milliseconds away from the event loop.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TrialError> + Send + 'static,
) -> Result<T, TrialError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(TrialError::Infrastructure { doing: "running a helper thread".into(), error: error.to_string() })
    })
}
