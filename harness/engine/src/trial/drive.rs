//! The event loop of a trial: one signal at a time, and a clock tick between.

use std::time::{Duration, Instant};

use fake_provider::{Moment, Passage, Point};
use killpoint_model::event::{AlarmSource, EventKind};
use killpoint_model::{HitName, Source};

use super::Trial;
use super::hits::{Onward, Reached};
use super::settle::{AfterExit, Rest, after_exit};
use super::setup::COMMANDS;
use super::tally::Exchange;
use super::worker::{Life, Worker};
use crate::boundaries::{Signal, provider};
use crate::error::TrialError;
use crate::os::SlotEvent;

/// How long the provider may take to see that a dead worker's connections are closed.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// The longest pause between two looks at the clock.
const TICK_MAX: Duration = Duration::from_millis(50);
/// The pause while a fault waits for something that only sampling shows.
const TICK_FOR_LEDGER_FAULT: Duration = Duration::from_millis(1);

/// What a drive waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// A command of the configuration, or the producer, ends.
    Ended(u32),
    /// Enough workers are at the barrier, or none will come any more.
    BarrierFull {
        /// How long to wait.
        until: Instant,
    },
    /// A time has passed.
    Elapsed {
        /// When.
        until: Instant,
    },
    /// This worker ended, or a time has passed.
    Gone {
        /// Which worker.
        worker: u32,
        /// How long to wait.
        until: Instant,
    },
    /// This worker ended by itself, or nothing happened for this long.
    WorkerRests {
        /// Which worker.
        worker: u32,
        /// How long nothing may happen.
        quiet: Duration,
    },
    /// The trial is at rest, or can't come to rest.
    Settled,
}

impl Trial {
    /// Handles signals until the goal is reached.
    pub(crate) async fn drive(&mut self, goal: Goal) -> Result<(), TrialError> {
        loop {
            if self.is_reached(goal)? {
                return Ok(());
            }
            let tick = self.tick_pause();
            tokio::select! {
                biased;
                signal = self.inbox.recv() => {
                    // We hold a sender ourselves, so the channel never closes.
                    if let Some(signal) = signal {
                        self.handle(signal).await?;
                    }
                }
                () = tokio::time::sleep(tick) => {
                    self.tell(goal);
                    self.tick().await?;
                }
            }
        }
    }

    fn tick_pause(&self) -> Duration {
        let Some(ledger) = &self.settings.ledger else { return TICK_MAX.min(Duration::from_millis(10)) };
        if self.pending.iter().any(|fault| fault.at.source == Some(Source::Ledger)) {
            return TICK_FOR_LEDGER_FAULT;
        }
        Duration::from_millis(ledger.sample_ms).clamp(TICK_FOR_LEDGER_FAULT, TICK_MAX)
    }

    async fn tick(&mut self) -> Result<(), TrialError> {
        if self.has_live_worker() {
            let onward = self.sample_ledger().await?;
            self.revive_if(onward).await?;
        }
        self.end_active(false);
        self.end_terminations().await?;
        let now = Instant::now();
        let due: Vec<u32> = self
            .workers
            .values()
            .filter(|worker| matches!(worker.life, Life::Again(at) if at <= now))
            .map(|worker| worker.number)
            .collect();
        for number in due {
            self.start_worker(number).await?;
        }
        Ok(())
    }

    fn is_reached(&mut self, goal: Goal) -> Result<bool, TrialError> {
        match goal {
            Goal::Ended(number) => {
                let running = self.workers.get(&number).is_some_and(|worker| worker.life == Life::Running);
                if running && Instant::now() >= self.deadline {
                    return Err(TrialError::Setup {
                        what: "a command of the configuration".into(),
                        why: format!("it did not end within {} ms", self.settings.settle.deadline_ms),
                    });
                }
                Ok(!running)
            }
            Goal::BarrierFull { until } => {
                let full = self.barrier.as_ref().is_none_or(super::barrier::Barrier::is_full);
                Ok(full || Instant::now() >= until)
            }
            Goal::Elapsed { until } => Ok(Instant::now() >= until),
            Goal::Gone { worker, until } => {
                let lives = self.workers.get(&worker).is_some_and(super::worker::Worker::is_live);
                Ok(!lives || Instant::now() >= until)
            }
            Goal::WorkerRests { worker, quiet } => {
                let done = self.workers.get(&worker).is_none_or(|worker| worker.life == Life::Done);
                let quiet = quiet.max(self.start_up.least_quiet());
                let quiet = self.last_activity.elapsed() >= quiet && !self.provider_busy();
                // A worker that ends again and again never rests: each start would move the deadline.
                let gave_up = self.restarts > self.settings.worker.restarts_max;
                Ok(done || quiet || gave_up || Instant::now() >= self.deadline)
            }
            Goal::Settled => Ok(self.is_settled()),
        }
    }

    fn is_settled(&mut self) -> bool {
        if !self.faults_over
            && self.pending.is_empty()
            && self.nothing_lasts()
            && self.plan.rules.iter().all(|rule| self.tally.is_used_up(rule))
        {
            self.end_faults();
        }
        let mut workers = self.workers.values().filter(|worker| worker.is_worker());
        let rest = Rest {
            settings: &self.settings.settle,
            all_done: workers.clone().all(|worker| worker.life == Life::Done),
            restart_due: workers.any(|worker| matches!(worker.life, Life::Again(_) | Life::Killed)),
            provider_busy: self.provider_busy(),
            plan_pending: !self.faults_over,
            idle: self.last_activity.elapsed(),
            start_up: self.start_up.least_quiet(),
            view: &self.view,
            settle_value: self.settle_value.as_deref(),
        };
        let (settled, all_done) = (rest.settled(), rest.all_done);
        if let Some(by) = settled {
            if !self.faults_over {
                // Whatever of the plan is still in force must be over before the last look; a worker that
                // still runs gets the whole window once more.
                self.end_faults();
                if !all_done {
                    self.touch();
                    return false;
                }
            }
            self.recorder.append(EventKind::Settled { by, window_complete: true });
            return true;
        }
        let why = if self.restarts > self.settings.worker.restarts_max {
            let last = self.workers.values().rev().find_map(|worker| worker.last_code);
            let how = last.map_or("by a signal".to_owned(), |code| format!("with exit code {code}"));
            format!("the worker ended by itself {} times, last {how}", self.restarts)
        } else if Instant::now() >= self.deadline {
            format!("the trial was not at rest after {} ms", self.settings.settle.deadline_ms)
        } else {
            return false;
        };
        self.end_faults();
        self.recorder.append(EventKind::NotSettled { why });
        true
    }

    /// Lifts what is left of the plan: only recovery follows.
    fn end_faults(&mut self) {
        if !self.faults_over {
            self.pending.clear();
            self.terminations.clear();
            self.end_active(true);
            for rule in &self.plan.rules {
                self.server.remove_rule(&rule.id);
            }
            self.recorder.append(EventKind::FaultsOver);
            self.faults_over = true;
        }
    }

    pub(super) fn provider_busy(&self) -> bool {
        !self.tally.is_idle_beside(&self.held) || self.server.pending_commits() > 0
    }

    async fn handle(&mut self, signal: Signal) -> Result<(), TrialError> {
        match signal {
            Signal::Provider { moment, answer } => {
                self.touch();
                self.note_finishing(&moment).await?;
                let exchange = Exchange::at(&moment);
                let onward = match provider::hit_of(&moment) {
                    Some(name) => {
                        let subject = moment.attempt.or(moment.lookup).or(Some(moment.connection));
                        let operation = Some(moment.operation);
                        let subject = subject.map(|id| id.to_string());
                        self.held.extend(exchange);
                        let reached = Reached { name, operation, subject, worker: 0, exact: true };
                        let onward = self.reach(reached).await?;
                        self.held.retain(|held| Some(*held) != exchange);
                        onward
                    }
                    None => Onward::Go,
                };
                // The exchange may have ended because its client went away: then nobody waits.
                let _ = answer.send(if onward == Onward::Dead { Passage::Abandon } else { Passage::Go });
                self.revive_if(onward).await
            }
            Signal::Mark { worker, life, .. } if !self.is_current(worker, life) => Ok(()),
            Signal::Mark { worker, name, answer, .. } => {
                self.touch();
                let Ok(name) = format!("mark:{name}").parse::<HitName>() else { return Ok(()) };
                if let Some(barrier) = self.barrier.as_mut().filter(|barrier| barrier.is_for(&name, worker)) {
                    barrier.hold(worker, answer);
                    self.pass(Reached { name, operation: None, subject: None, worker, exact: true });
                    return Ok(());
                }
                let onward =
                    self.reach(Reached { name, operation: None, subject: None, worker, exact: true }).await?;
                // A fault at a mark of a command concerns the workers; the command goes on.
                if onward == Onward::Go || worker == COMMANDS {
                    // The worker may have been ended meanwhile by something else than us.
                    let _ = answer.send(());
                }
                self.revive_if(onward).await
            }
            Signal::Worker { worker, event } => self.worker_event(worker, event).await,
            Signal::Alarm { worker, text } => {
                self.record(EventKind::Alarm { worker, source: AlarmSource::Output, text });
                Ok(())
            }
            Signal::EnqueuerLine => {
                let recorder = std::sync::Arc::clone(&self.recorder);
                if let Some(enqueuer) = self.workers.get_mut(&COMMANDS).filter(|worker| worker.is_live()) {
                    enqueuer.last_code = None;
                    enqueuer.kill(&recorder).await?;
                }
                Ok(())
            }
        }
    }

    async fn worker_event(&mut self, number: u32, event: SlotEvent) -> Result<(), TrialError> {
        let Some(worker) = self.workers.get_mut(&number) else { return Ok(()) };
        // Exits that we caused ourselves are told by the kill's proof; what comes late is of an earlier life.
        let (code, signal, empty) = match event {
            SlotEvent::RootExited { pid, .. } if !worker.is_live() || worker.pid != pid => return Ok(()),
            SlotEvent::RootExited { code, signal, .. } => (code, signal, false),
            SlotEvent::Emptied if !worker.is_live() || !worker.slot().processes().is_empty() => return Ok(()),
            SlotEvent::Emptied => (None, None, true),
            SlotEvent::LimitExceeded { .. } => {
                let limit = self.settings.worker.processes_max;
                return Err(TrialError::Infrastructure {
                    doing: "counting the worker's processes".into(),
                    error: format!("its tree had more than `processes-max` = {limit}; it was ended"),
                });
            }
        };
        if empty && self.settings.worker.lifecycle != killpoint_model::settings::Lifecycle::Daemonises {
            return Ok(());
        }
        worker.last_code = code;
        if !worker.is_worker() {
            worker.life = Life::Done;
            return Ok(());
        }
        let settings = std::sync::Arc::clone(&self.settings);
        let after = after_exit(
            settings.worker.lifecycle,
            settings.settle.by,
            &settings.worker.again_codes,
            code,
            empty,
        );
        if !empty {
            self.recorder.append(EventKind::Exited { worker: number, code, signal });
            self.note_exit(number, code);
        }
        let delay = Duration::from_millis(settings.worker.restart_delay_ms);
        // Who was asked to end is started again, however it ended: that is a deployment.
        let after = if self.ended_as_asked(number) { AfterExit::Again } else { after };
        let Some(worker) = self.workers.get_mut(&number) else { return Ok(()) };
        worker.life = match after {
            AfterExit::Done => Life::Done,
            AfterExit::Nothing => return Ok(()),
            AfterExit::Again | AfterExit::Restart => Life::Again(Instant::now() + delay),
        };
        if after == AfterExit::Restart {
            self.restarts += 1;
            self.touch();
        }
        self.look_at_dead_ledger().await
    }

    /// From `Finishing` to the end of the exchange the tree stands still where a fault waits for that end, so
    /// that what the worker was sent is in its socket and has not been read.
    async fn note_finishing(&mut self, moment: &Moment) -> Result<(), TrialError> {
        match moment.point {
            Point::Finishing if self.needs_exact_end() && self.has_live_worker() => {
                self.finishing.insert(moment.connection);
                self.freeze().await
            }
            Point::Replied | Point::Dropped => {
                // The hit itself stops the tree for what is to be done there, and lets it go on.
                self.finishing.remove(&moment.connection);
                Ok(())
            }
            Point::Ended => {
                self.finishing.remove(&moment.connection);
                self.thaw().await
            }
            _ => Ok(()),
        }
    }

    /// Whether a mark comes from a life that still is.
    fn is_current(&self, worker: u32, life: u32) -> bool {
        self.workers.get(&worker).is_some_and(|worker| {
            worker.is_live() && worker.lives == life || worker.orphaned_life == Some(life)
        })
    }

    /// Starts again whom the hit's fault killed, be it who waits at the hit or another one.
    async fn revive_if(&mut self, onward: Onward) -> Result<(), TrialError> {
        let killed = |worker: &Worker| worker.is_worker() && worker.life == Life::Killed;
        if onward == Onward::Dead || self.workers.values().any(killed) {
            return self.revive().await;
        }
        Ok(())
    }

    /// Starts every killed worker again, on the same ledger, once nothing of the old life is left at the
    /// provider either.
    pub(super) async fn revive(&mut self) -> Result<(), TrialError> {
        if !self.has_live_worker() {
            self.drain_provider().await;
            self.look_at_dead_ledger().await?;
            self.check_integrity().await?;
        }
        let killed: Vec<u32> = self
            .workers
            .values()
            .filter(|worker| worker.life == Life::Killed && worker.is_worker())
            .map(|worker| worker.number)
            .collect();
        for number in killed {
            self.start_worker(number).await?;
        }
        Ok(())
    }

    /// Lets exchanges of dead workers end: a request that was read whole is still carried out, as a real
    /// provider would.
    pub(super) async fn drain_provider(&mut self) {
        let server = std::sync::Arc::clone(&self.server);
        let drained = server.drain(DRAIN_LIMIT);
        tokio::pin!(drained);
        loop {
            tokio::select! {
                _ = &mut drained => return,
                signal = self.inbox.recv() => match signal {
                    Some(Signal::Provider { moment, answer }) => {
                        if let Some(name) = provider::hit_of(&moment) {
                            let hit = self.counter.count(name);
                            let subject = moment.attempt.or(moment.lookup).map(|id| id.to_string());
                            self.recorder.append(EventKind::Hit { hit, exact: true, live: false, subject, worker: 0 });
                        }
                        // As above: the client is gone for sure here.
                        let _ = answer.send(Passage::Go);
                    }
                    // Marks of the dead are never answered, and their exits are told by the proof.
                    Some(Signal::Mark { .. } | Signal::Worker { .. } | Signal::Alarm { .. } | Signal::EnqueuerLine) | None => {}
                },
            }
        }
    }

    /// Something happened: the quiet time begins anew.
    pub(super) fn touch(&mut self) {
        self.last_activity = Instant::now();
        self.start_up.end();
    }

    /// The deadline runs from the last start or fault: recovery gets its whole time.
    pub(super) fn extend_deadline(&mut self) {
        self.deadline = Instant::now() + Duration::from_millis(self.settings.settle.deadline_ms);
    }
}
