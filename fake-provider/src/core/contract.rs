//! Execution: what the contract makes of an attempt, commits, and what is due later.

use killpoint_model::plan::{Aftermath, Commit, Visible};
use killpoint_model::profile::{Concurrent, MissingKey};
use killpoint_model::provider::{Attempt, Effect, ProviderEvent, Replay};

use super::Core;
use super::content::{recognizers, rendered};
use super::keys::{Standing, Stored};
use super::schedule::Due;
use super::state::AttemptState;

/// What the contract says to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It is executed: the ordinary answer.
    Execute,
    /// The stored answer comes back.
    Replay(Stored),
    /// The first request with the key is in flight.
    Concurrent,
    /// The key is known with another body.
    Mismatch,
    /// No key, and one is needed.
    MissingKey,
}

/// The end of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the contract said.
    pub ruling: Ruling,
    /// The effect that exists now because of it.
    pub committed: Option<String>,
}

/// What [`Core::execute`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Execution {
    /// It waits for the first request with its key: ask again when something changed.
    Wait,
    /// It is decided.
    Done(Outcome),
}

impl Core {
    /// Lets an attempt through: commits what its plan commits now. With `patient`, the answer may be to
    /// wait; without, a wait becomes a conflict.
    pub fn execute(&mut self, attempt: u32, now_ms: u64, patient: bool) -> Execution {
        let Some(state) = self.state.attempts.get(&attempt) else {
            // Forgotten by a reset: turned down, and nothing is recorded.
            return Execution::Done(Outcome { ruling: Ruling::MissingKey, committed: None });
        };
        let plan = state.plan;
        let Some(ruling) = self.ruling(state, patient) else { return Execution::Wait };
        self.undecided.remove(&attempt);
        let not_executed = match &ruling {
            Ruling::Execute => None,
            Ruling::Replay(stored) => Some((Replay::Replayed, stored.effect.clone())),
            Ruling::Concurrent => Some((Replay::Concurrent, None)),
            Ruling::Mismatch => Some((Replay::Mismatch, None)),
            Ruling::MissingKey => Some((Replay::MissingKey, None)),
        };
        if let Some((replay, effect)) = not_executed {
            self.append(ProviderEvent::NotExecuted { attempt, replay, effect }, None);
            return Execution::Done(Outcome { ruling, committed: None });
        }
        match plan.commit {
            Commit::Never => {}
            Commit::Now | Commit::Twice => self.commit(attempt, now_ms),
            Commit::After { .. } => self.land_due(now_ms),
        }
        let committed = self.state.attempts.get(&attempt).and_then(|state| state.effect.clone());
        Execution::Done(Outcome { ruling, committed })
    }

    /// Whether [`Core::execute`] would have it wait.
    pub fn waits(&self, attempt: u32) -> bool {
        self.state.attempts.get(&attempt).is_some_and(|state| self.ruling(state, true).is_none())
    }

    /// `None`: it waits.
    fn ruling(&self, state: &AttemptState, patient: bool) -> Option<Ruling> {
        let profile = &self.settings.idempotency;
        if profile.dedupe && profile.missing == MissingKey::Refuse && state.attempt.key.is_none() {
            return Some(Ruling::MissingKey);
        }
        if state.key_was_free {
            return Some(Ruling::Execute);
        }
        match self.state.keys.standing(profile, &state.attempt) {
            Standing::Free => Some(Ruling::Execute),
            Standing::Stored(stored) => Some(Ruling::Replay(stored)),
            Standing::Mismatch => Some(Ruling::Mismatch),
            Standing::InFlight => match profile.concurrent {
                Concurrent::Run => Some(Ruling::Execute),
                Concurrent::Wait if patient => None,
                Concurrent::Wait | Concurrent::Conflict => Some(Ruling::Concurrent),
            },
        }
    }

    fn commit(&mut self, attempt: u32, at_ms: u64) {
        let Some(state) = self.state.attempts.get(&attempt).filter(|state| state.effect.is_none()) else {
            return;
        };
        let effect = self.effect_of(state, at_ms);
        self.append(ProviderEvent::Committed(effect), None);
    }

    fn effect_of(&self, state: &AttemptState, at_ms: u64) -> Effect {
        let (attempt, plan): (&Attempt, _) = (&state.attempt, &state.plan);
        Effect {
            id: Self::effect_id(attempt.id),
            attempt: attempt.id,
            dialect: attempt.dialect.clone(),
            operation: attempt.operation.clone(),
            recipient: attempt.recipient.clone(),
            text: rendered(&self.settings, attempt),
            body: attempt.body.clone(),
            key: attempt.key.clone(),
            action: attempt.action.clone(),
            recognizers: recognizers(&self.settings, attempt),
            copies: if plan.commit == Commit::Twice { 2 } else { 1 },
            committed_at_ms: at_ms,
            visible_at_ms: match plan.visible {
                Visible::Now => Some(at_ms),
                Visible::After { ms } => Some(at_ms.saturating_add(ms)),
                Visible::Never => None,
            },
            bounced_at_ms: match plan.aftermath {
                Aftermath::Bounce { after_ms } => Some(at_ms.saturating_add(after_ms)),
                _ => None,
            },
        }
    }

    /// When the next thing is due, in milliseconds on the provider's clock.
    pub fn next_due(&self) -> Option<u64> {
        self.first_due().map(|(at_ms, _)| at_ms)
    }

    fn first_due(&self) -> Option<(u64, Due)> {
        let waits = |due: &Due| matches!(due, Due::Commit { attempt } if self.undecided.contains(attempt));
        self.state.schedule.first(waits).cloned()
    }

    /// Late commits and copies that are still to come.
    pub fn pending_commits(&self) -> usize {
        self.state.schedule.effects_to_come()
    }

    /// Does all that is due by now, in order of time.
    pub fn land_due(&mut self, now_ms: u64) {
        while let Some((at_ms, due)) = self.first_due().filter(|(at_ms, _)| *at_ms <= now_ms) {
            match due {
                Due::Commit { attempt } => self.land_commit(attempt, at_ms),
                Due::Redelivery { effect } => self.append(ProviderEvent::Redelivered { effect }, None),
                Due::Receipt { effect, copies, late } => {
                    self.append(ProviderEvent::Receipt { effect, copies, late }, None);
                }
            }
        }
    }

    fn land_commit(&mut self, attempt: u32, at_ms: u64) {
        // After a replayed log the contract may not have spoken yet.
        let ruling = self.state.attempts.get(&attempt).and_then(|state| self.ruling(state, false));
        match ruling {
            Some(Ruling::Execute) => self.commit(attempt, at_ms),
            Some(Ruling::Replay(stored)) => self.refuse(attempt, Replay::Replayed, stored.effect),
            Some(Ruling::Mismatch) => self.refuse(attempt, Replay::Mismatch, None),
            Some(Ruling::MissingKey) => self.refuse(attempt, Replay::MissingKey, None),
            Some(Ruling::Concurrent) | None => self.refuse(attempt, Replay::Concurrent, None),
        }
    }

    fn refuse(&mut self, attempt: u32, replay: Replay, effect: Option<String>) {
        self.append(ProviderEvent::NotExecuted { attempt, replay, effect }, None);
    }
}
