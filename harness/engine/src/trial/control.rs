//! What faults can do with a trial: its workers, its clocks, its configuration, and things that last.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use killpoint_model::HitName;
use killpoint_model::event::{ClockMethod, CommandRole, EventKind};

use super::barrier::Barrier;
use super::drive::Goal;
use super::setup::COMMANDS;
use super::worker::Life;
use super::{Trial, blocking};
use crate::error::TrialError;
use crate::faults::Landing;
use crate::os::probe_clock;

/// The environment variable by which a cooperating worker is told how far its clock is off, in milliseconds.
pub(super) const CLOCK_VARIABLE: &str = "KILLPOINT_CLOCK_OFFSET_MS";
/// The fault that moves a worker's clock.
pub(crate) const CLOCK_FAULT: &str = "worker-clock";
/// What to do where the harness can't move it.
pub(super) const CLOCK_HELP: &str = "let the worker add KILLPOINT_CLOCK_OFFSET_MS to its clock, and write `clock = \"environment\"` under `[worker]`";
/// The mark inside the producer's open transaction.
pub(crate) const PRODUCER_MARK: &str = "producer-open";
/// The number of the producer's slot.
pub(super) const PRODUCER: u32 = 90;
/// Added to a worker's number where it is to have another identity.
const NEW_IDENTITY: u32 = 100;

/// A fault that lasts: it ends by itself, with the faults, or with the trial.
pub trait ActiveFault: Send + Sync + Debug {
    /// The fault's name.
    fn name(&self) -> &'static str;
    /// What it is done to.
    fn path(&self) -> String;
    /// Whether its time is over.
    fn is_over(&self, now: Instant) -> bool;
    /// Undoes it, in a few words for the record. May be called again.
    fn end(&mut self) -> String;
    /// Whether it is only what a fault needs to be there: nothing waits for its end, and it ends with the
    /// trial, when it is dropped.
    fn is_set_up(&self) -> bool {
        false
    }
}

/// What differs from the configuration at the next start of a worker.
#[derive(Debug, Default)]
pub(super) struct NextLife {
    /// Environment that was changed.
    pub(super) env: BTreeMap<String, String>,
    /// What `{worker}` is, by number.
    pub(super) identities: BTreeMap<u32, u32>,
    /// Clock offsets in milliseconds, by number.
    pub(super) clocks: BTreeMap<u32, i64>,
    /// State directories other than the trial's, by number.
    pub(super) states: BTreeMap<u32, PathBuf>,
}

/// A worker that was asked to end.
#[derive(Debug)]
pub(super) struct Termination {
    pub(super) worker: u32,
    pub(super) deadline: Instant,
}

impl Trial {
    /// The trial's state directory.
    pub(crate) fn state_dir(&self) -> &Path {
        &self.state
    }

    /// The trial's folder, for scratch files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The worker's SQLite database, where one is configured.
    pub(crate) fn ledger_path(&self) -> Option<PathBuf> {
        let path = self.settings.ledger.as_ref()?.path.as_ref()?;
        Some(PathBuf::from(self.templates.fill(path)))
    }

    /// The hit at which a fault is being done.
    pub(crate) fn at(&self) -> Option<HitName> {
        self.at.clone()
    }

    /// Puts an event on record.
    pub(crate) fn record(&self, event: EventKind) {
        self.recorder.append(event);
    }

    /// Says that something is not to be had here.
    pub(crate) fn limitation(&mut self, what: &str, why: String) -> Landing {
        self.record(EventKind::Limitation { what: what.to_owned(), why: why.clone() });
        Landing { landed: false, note: why }
    }

    /// Keeps a fault until it is over.
    pub(crate) fn keep_active(&mut self, active: Box<dyn ActiveFault>) {
        self.active.push(active);
    }

    /// Ends faults whose time is over, or all of them.
    pub(super) fn end_active(&mut self, all: bool) {
        let now = Instant::now();
        let (over, going_on) =
            self.active.drain(..).partition(|active| !active.is_set_up() && (all || active.is_over(now)));
        self.active = going_on;
        let over: Vec<Box<dyn ActiveFault>> = over;
        for mut active in over {
            let detail = active.end();
            let name = active.name().to_owned();
            self.record(EventKind::StoreFault { name, path: active.path(), begins: false, detail });
            self.touch();
        }
    }

    /// Whether nothing that a fault began is still going on.
    pub(super) fn nothing_lasts(&self) -> bool {
        self.active.iter().all(|active| active.is_set_up()) && self.terminations.is_empty()
    }

    /// Stops one worker's whole tree; the others go on.
    pub(crate) async fn stop_worker(&mut self, number: u32) -> Result<bool, TrialError> {
        self.let_go_on().await?;
        let Some(worker) = self.workers.get_mut(&number).filter(|worker| worker.is_live()) else {
            return Ok(false);
        };
        let slot = worker.shared_slot();
        blocking(move || {
            slot.freeze().map_err(|error| TrialError::from_os("stopping the worker's tree", &error))
        })
        .await?;
        worker.stopped = true;
        self.record(EventKind::Stopped { worker: number });
        Ok(true)
    }

    /// Lets a stopped worker go on.
    pub(crate) async fn resume_worker(&mut self, number: u32) -> Result<(), TrialError> {
        let Some(worker) = self.workers.get_mut(&number).filter(|worker| worker.stopped) else {
            return Ok(());
        };
        worker.stopped = false;
        let slot = worker.shared_slot();
        blocking(move || {
            slot.thaw().map_err(|error| TrialError::from_os("letting the worker's tree go on", &error))
        })
        .await?;
        self.record(EventKind::Resumed { worker: number });
        self.touch();
        Ok(())
    }

    /// Asks a worker to end; after `grace` it is killed. Either way it is started again. Whoever waits at the
    /// hit goes on `answer_after` later, or when the worker has ended.
    pub(crate) async fn terminate(
        &mut self,
        number: u32,
        grace: Duration,
        answer_after: Duration,
    ) -> Result<bool, TrialError> {
        self.let_go_on().await?;
        let Some(worker) = self.workers.get(&number).filter(|worker| worker.is_live()) else {
            return Ok(false);
        };
        let slot = worker.shared_slot();
        let sent = blocking(move || {
            slot.signal_root(libc::SIGTERM).map_err(|error| TrialError::from_os("sending SIGTERM", &error))
        })
        .await?;
        if sent {
            self.record(EventKind::Signalled { worker: number, signal: libc::SIGTERM });
            let asked_at = Instant::now();
            self.terminations.push(Termination { worker: number, deadline: asked_at + grace });
            self.drive(Goal::Gone { worker: number, until: asked_at + answer_after.min(grace) }).await?;
        }
        Ok(sent)
    }

    /// Kills workers whose grace is over.
    pub(super) async fn end_terminations(&mut self) -> Result<(), TrialError> {
        let now = Instant::now();
        let due: Vec<u32> = self
            .terminations
            .iter()
            .filter(|asked| asked.deadline <= now)
            .map(|asked| asked.worker)
            .collect();
        for number in due {
            self.terminations.retain(|asked| asked.worker != number);
            self.kill(number).await?;
            self.revive().await?;
        }
        Ok(())
    }

    /// Takes a worker off the list of those that were asked to end; whether it was there.
    pub(super) fn ended_as_asked(&mut self, number: u32) -> bool {
        let before = self.terminations.len();
        self.terminations.retain(|asked| asked.worker != number);
        self.terminations.len() < before
    }

    /// Kills a part of a worker's tree: its first process, or all the others. What is left stays alive, also
    /// when the first process is started again. Returns how many were killed.
    pub(crate) async fn kill_part(&mut self, number: u32, root: bool) -> Result<u32, TrialError> {
        let Some(worker) = self.workers.get_mut(&number).filter(|worker| worker.is_live()) else {
            return Ok(0);
        };
        worker.keep_rest = root;
        worker.orphaned_life = root.then_some(worker.lives);
        let first = worker.pid;
        let slot = worker.shared_slot();
        let killed = blocking(move || {
            let part = slot.processes().into_iter().filter(|pid| (*pid == first) == root);
            let kill = |pid: u32| {
                nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid as i32),
                    nix::sys::signal::Signal::SIGKILL,
                )
            };
            Ok(part.filter(|pid| kill(*pid).is_ok()).count() as u32)
        })
        .await?;
        let part = if root { "root" } else { "children" };
        self.record(EventKind::PartKilled { worker: number, part: part.to_owned(), processes: killed });
        self.let_go_on().await?;
        Ok(killed)
    }

    /// From its next start on, `{worker}` is another value for this worker.
    pub(crate) fn new_identity(&mut self, number: u32) {
        let identity = self.next_life.identities.entry(number).or_insert(number);
        *identity += NEW_IDENTITY;
    }

    /// From its next start on, a worker has the identity of another one.
    pub(crate) fn same_identity(&mut self, number: u32, other: u32) {
        self.next_life.identities.insert(number, other);
    }

    /// From the next start on, workers have another environment.
    pub(crate) fn change_env(&mut self, name: &str, value: &str) {
        self.next_life.env.insert(name.to_owned(), value.to_owned());
        self.record(EventKind::Changed { what: format!("env {name}") });
    }

    /// From its next start on, a worker's `{state}` is another directory.
    pub(crate) fn move_state(&mut self, number: u32, state: PathBuf) {
        self.next_life.states.insert(number, state);
    }

    /// From its next start on, a worker's clock is off.
    pub(crate) async fn set_clock(&mut self, number: u32, offset_ms: i64) -> Result<Landing, TrialError> {
        let method = self.settings.worker.clock;
        if method == ClockMethod::Vdso
            && let Err(why) = blocking(|| Ok(probe_clock())).await?
        {
            return Ok(self.limitation(CLOCK_FAULT, format!("{why}; {CLOCK_HELP}")));
        }
        self.next_life.clocks.insert(number, offset_ms);
        self.record(EventKind::WorkerClock { worker: number, offset_ms, method });
        Ok(Landing { landed: true, note: format!("{offset_ms:+} ms from the next start on") })
    }

    /// Steps the provider's own clock.
    pub(crate) fn step_provider_clock(&mut self, by: Duration) {
        self.server.step_clock(by);
    }

    /// Holds workers at a mark until `wanted` are there, or `limit` has passed. Returns how many came.
    pub(crate) async fn gather(
        &mut self,
        at: &HitName,
        first: u32,
        wanted: u32,
        limit: Duration,
    ) -> Result<u32, TrialError> {
        self.let_go_on().await?;
        // Who stands at another barrier can't come to this one, nor the other way round: nobody waits for that.
        if self.barrier.is_some() {
            return Ok(0);
        }
        self.barrier = Some(Barrier::new(at, first, wanted));
        self.drive(Goal::BarrierFull { until: Instant::now() + limit }).await?;
        let Some(barrier) = self.barrier.take() else { return Ok(0) };
        let arrived = barrier.arrived();
        barrier.release();
        Ok(arrived)
    }

    /// Runs the worker's own cleanup command to its end. `false` where none is configured.
    pub(crate) async fn clean_up(&mut self) -> Result<bool, TrialError> {
        let settings = Arc::clone(&self.settings);
        let Some(command) = &settings.cleanup else { return Ok(false) };
        self.let_go_on().await?;
        self.run_command(CommandRole::Cleanup, command, &format!("cleanup{}", self.lives)).await?;
        Ok(true)
    }

    /// Starts the producer, where the plan holds its transaction open; its mark is the hit.
    pub(super) async fn run_producer(&mut self) -> Result<(), TrialError> {
        if !self.plan.faults.iter().any(|fault| fault.fault.name == "hold-producer") {
            return Ok(());
        }
        let settings = Arc::clone(&self.settings);
        let Some(command) = &settings.producer else {
            let why = "the plan holds a producer's transaction open; configure `[producer] command`";
            self.limitation("producer", why.into());
            return Ok(());
        };
        let producer = self.open_worker(PRODUCER).await?;
        self.workers.insert(PRODUCER, producer);
        let argv = self.start_other(PRODUCER, command, "producer").await?;
        self.drive(Goal::Ended(PRODUCER)).await?;
        let code = self.workers.get(&PRODUCER).and_then(|worker| worker.last_code);
        self.record(EventKind::CommandRan { role: CommandRole::Producer, argv, code });
        // Whatever became of its transaction, workers go on.
        let done: Vec<u32> =
            self.workers.values().filter(|w| w.is_done() && w.is_worker()).map(|w| w.number).collect();
        for number in done {
            self.start_worker(number).await?;
        }
        Ok(())
    }

    /// With the producer's transaction open: the worker runs until it rests, then the transaction ends.
    pub(crate) async fn hold_producer(&mut self, commit: bool, quiet: Duration) -> Result<(), TrialError> {
        self.record(EventKind::ProducerHeld);
        self.let_go_on().await?;
        self.start_if_new(1).await?;
        let restarts = self.restarts;
        self.drive(Goal::WorkerRests { worker: 1, quiet }).await?;
        // A worker that ends because it can't write while we hold the ledger, and is started again, does what it should:
        // only what it needs afterwards is held against it.
        self.restarts = restarts;
        if !commit {
            let recorder = Arc::clone(&self.recorder);
            if let Some(producer) = self.workers.get_mut(&PRODUCER) {
                producer.kill(&recorder).await?;
                producer.life = Life::Done;
            }
        }
        self.record(EventKind::ProducerEnded { committed: commit });
        Ok(())
    }

    /// The worker that a fault means: the one that it names, the one at the hit, or the first that lives.
    pub(crate) fn target(&self, named: Option<u32>, at_hit: u32) -> u32 {
        let first = || self.workers.values().find(|worker| worker.is_worker() && worker.is_live());
        named
            .or(Some(at_hit).filter(|number| *number != COMMANDS))
            .or_else(|| first().map(|worker| worker.number))
            .unwrap_or(1)
    }

    /// So many numbers after `first` that no worker has which lives or is to be started again, nor one that had another's
    /// name or a state of its own.
    pub(crate) fn free_numbers(&self, first: u32, count: u32) -> Vec<u32> {
        let is_free = |number: &u32| {
            let worker = self.workers.get(number);
            worker.is_none_or(|worker| matches!(worker.life, Life::New | Life::Done))
                && !self.next_life.identities.contains_key(number)
                && !self.next_life.states.contains_key(number)
        };
        (first + 1..PRODUCER).filter(is_free).take(count as usize).collect()
    }

    /// Starts a worker unless it was started before.
    pub(super) async fn start_if_new(&mut self, number: u32) -> Result<(), TrialError> {
        let is_new = self.workers.get(&number).is_none_or(|worker| worker.life == Life::New);
        if is_new && number != COMMANDS { self.start_worker(number).await } else { Ok(()) }
    }
}
