//! The workers' processes: their turns, starts and deaths.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use killpoint_model::event::{Containment, EventKind, KillProof};

use super::act::{Act, Answer, Desk, Found, Outcome};
use super::life::{Life, TIMEOUT_MS};
use super::world::World;

/// Where a worker is in its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Running,
    Killed,
    /// It ended by itself and is to be started again.
    Again,
    Done,
}

/// What a living worker waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Its turn.
    Thinking,
    /// The harness's answer at a mark.
    AtMark(&'static str),
    /// A commit to be durable.
    Committing,
    /// An answer over the wire, or its own time-out.
    Calling { exchange: u32, asks: bool },
    /// The harness, which does something at its hit.
    Held,
}

/// One worker.
pub(super) struct Process {
    pub(super) stage: Stage,
    pub(super) doing: Doing,
    /// When it goes on, in microseconds.
    pub(super) wake: Option<u64>,
    pub(super) stopped: bool,
    pub(super) lives: u32,
    pub(super) desk: Rc<Desk>,
    life: Option<Pin<Box<dyn Future<Output = i32>>>>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("stage", &self.stage)
            .field("doing", &self.doing)
            .finish_non_exhaustive()
    }
}

impl Process {
    pub(super) fn is_live(&self) -> bool {
        self.stage == Stage::Running
    }

    /// Its life is over.
    pub(super) fn drop_life(&mut self, stage: Stage) {
        self.life = None;
        (self.stage, self.wake, self.stopped) = (stage, None, false);
    }
}

impl World<'_> {
    pub(super) fn act_process(&mut self, number: u32) {
        let Some(process) = self.processes.get_mut(&number) else { return };
        process.wake = None;
        if process.stage == Stage::Again {
            return self.start(number);
        }
        match process.doing {
            Doing::Thinking => self.think(number),
            Doing::AtMark(name) => self.pass_mark(number, name),
            Doing::Committing => {
                let life = process.lives;
                self.go_on(number, life, Outcome::Done);
                self.plan_sample();
            }
            Doing::Calling { exchange, asks } => {
                // Its own time-out: it goes away from the exchange.
                self.leave(exchange);
                let outcome = if asks {
                    Outcome::Asked(Found::Failed)
                } else {
                    Outcome::Sent(Answer::Doubtful { retry_after_ms: None })
                };
                let life = self.processes.get(&number).map_or(0, |process| process.lives);
                self.go_on(number, life, outcome);
            }
            Doing::Held => {}
        }
    }

    /// A life goes on with what came of its act, unless it is over.
    pub(super) fn go_on(&mut self, number: u32, life: u32, outcome: Outcome) {
        let wake = self.soon();
        let Some(process) = self.processes.get_mut(&number) else { return };
        if process.lives == life && process.is_live() {
            *process.desk.outcome.borrow_mut() = Some(outcome);
            (process.doing, process.wake) = (Doing::Thinking, Some(wake));
        }
    }

    /// The life goes on to its next act.
    fn think(&mut self, number: u32) {
        let now = self.record.wall_ms();
        let offset = self.clocks.get(&number).copied().unwrap_or(0);
        let Some(process) = self.processes.get_mut(&number) else { return };
        process.desk.now_ms.set(now + offset);
        let Some(life) = process.life.as_mut() else { return };
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(code) = life.as_mut().poll(&mut context) {
            return self.exited(number, code);
        }
        let Some(act) = process.desk.act.borrow_mut().take() else { return };
        let (soon, now_us) = (self.soon(), self.record.now_us);
        let timeout = now_us + TIMEOUT_MS as u64 * 1000;
        let (doing, wake) = match act {
            Act::Mark(name) => (Doing::AtMark(name), soon),
            Act::Commit => (Doing::Committing, soon),
            Act::Sleep(ms) => (Doing::Thinking, now_us + ms.max(1) as u64 * 1000),
            Act::Send(letter) => {
                (Doing::Calling { exchange: self.call(number, Ok(letter)), asks: false }, timeout)
            }
            Act::Ask { item, key } => {
                (Doing::Calling { exchange: self.call(number, Err((item, key))), asks: true }, timeout)
            }
        };
        let Some(process) = self.processes.get_mut(&number) else { return };
        if doing == Doing::Thinking {
            *process.desk.outcome.borrow_mut() = Some(Outcome::Done);
        }
        (process.doing, process.wake) = (doing, Some(wake));
    }

    fn exited(&mut self, number: u32, code: i32) {
        self.record.push(EventKind::Exited { worker: number, code: Some(code), signal: None });
        let before = self.terminations.len();
        self.terminations.retain(|(asked, _)| *asked != number);
        let again = self.terminations.len() < before;
        // It was asked more than once, and ends once.
        self.trace.overtaken += (before - self.terminations.len()).saturating_sub(1) as u32;
        let delay_us = self.settings.worker.restart_delay_ms * 1000;
        if let Some(process) = self.processes.get_mut(&number) {
            process.drop_life(if again { Stage::Again } else { Stage::Done });
            process.wake = again.then_some(self.record.now_us + delay_us);
        }
        self.look_at_dead_ledger();
    }

    /// Starts a worker, for the first time or again. The generation advances.
    pub(super) fn start(&mut self, number: u32) {
        self.record.generation += 1;
        let pid = 300 + self.record.generation;
        let argv = vec!["worker".to_owned()];
        let lives = self.processes.get(&number).map_or(0, |process| process.lives) + 1;
        if lives > 1 {
            self.close_output(number);
        }
        self.record.push(EventKind::Spawned { worker: number, pid, argv });
        if let Some(offset_ms) = self.clocks_to_come.get(&number) {
            self.clocks.insert(number, *offset_ms);
        }
        let desk: Rc<Desk> = Rc::default();
        let identity = self.identities.get(&number).copied().unwrap_or(number);
        let idempotency = &self.settings.provider.idempotency;
        let dedupe_ms = idempotency.dedupe.then_some(idempotency.window_ms as i64);
        let decisions = (self.worker.policy, self.worker.marks);
        let life = Life::new(Rc::clone(&desk), Rc::clone(&self.ledger), decisions, dedupe_ms, identity);
        let process = Process {
            stage: Stage::Running,
            doing: Doing::Thinking,
            // An interpreter takes its time.
            wake: Some(self.record.now_us + 2000 + self.dice.below(8000)),
            stopped: false,
            lives,
            desk,
            life: Some(Box::pin(life.live())),
        };
        self.processes.insert(number, process);
        self.touch();
        self.extend_deadline();
    }

    pub(super) fn close_output(&mut self, number: u32) {
        for stream in ["stdout", "stderr"] {
            let stream = stream.to_owned();
            self.record.push(EventKind::Output { worker: number, stream, bytes: 0, dropped: 0 });
        }
    }

    /// Kills one worker, or all that live where it is 0. Whether signal 9 landed.
    pub(super) fn kill(&mut self, worker: u32) -> bool {
        let live = self.processes.iter().filter(|(_, process)| process.is_live()).map(|(number, _)| *number);
        let numbers: Vec<u32> = live.filter(|number| worker == 0 || *number == worker).collect();
        for number in &numbers {
            self.close_output(*number);
            if let Some(process) = self.processes.get_mut(number) {
                process.drop_life(Stage::Killed);
            }
            self.bereave(*number);
            if self.terminations.iter().any(|(asked, _)| asked == number) {
                // It was asked to end, and something else ended it.
                self.trace.overtaken += 1;
            }
            let proof = KillProof {
                signal: Some(9),
                code: None,
                was_alive: true,
                reaped: 1,
                survivors: 0,
                containment: Containment::PidNamespace,
            };
            self.record.push(EventKind::Killed { worker: *number, proof });
        }
        self.version_at_death = Some(self.ledger.borrow().version);
        !numbers.is_empty()
    }

    /// Starts every killed worker again, once nothing of the old life is left at the provider.
    pub(super) fn revive(&mut self) {
        if !self.has_live_worker() {
            self.drain();
            self.look_at_dead_ledger();
            if self.settings.ledger.is_some() {
                self.record.push(EventKind::Integrity { sound: true, detail: "ok".into() });
            }
        }
        let killed = self.processes.iter().filter(|(_, process)| process.stage == Stage::Killed);
        let killed: Vec<u32> = killed.map(|(number, _)| *number).collect();
        for number in killed {
            self.start(number);
        }
    }

    /// Starts workers again that were killed while others live.
    pub(super) fn revive_others(&mut self) {
        if self.processes.values().any(|process| process.stage == Stage::Killed) {
            self.revive();
        }
    }

    pub(super) fn end_terminations(&mut self) {
        let now = self.record.now_us;
        let due = self.terminations.iter().filter(|(_, deadline_us)| *deadline_us <= now);
        let due: Vec<u32> = due.map(|(number, _)| *number).collect();
        for number in due {
            let before = self.terminations.len();
            self.terminations.retain(|(asked, _)| *asked != number);
            self.trace.overtaken += (before - self.terminations.len()).saturating_sub(1) as u32;
            self.kill(number);
            self.revive();
        }
    }
}
