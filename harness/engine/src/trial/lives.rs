//! Starting workers, and what else runs in a slot: which number, with which words, in which surroundings.

use std::sync::Arc;

use killpoint_model::event::{ClockMethod, EventKind};
use killpoint_model::settings::CommandSettings;

use super::Trial;
use super::control::CLOCK_VARIABLE;
use super::worker::{Life, Start, Worker};
use crate::error::TrialError;

/// Starts of one trial, whatever asked for them.
const LIVES_MAX: u32 = 1000;

impl Trial {
    /// Starts a worker, for the first time or again. The generation advances.
    pub(crate) async fn start_worker(&mut self, number: u32) -> Result<(), TrialError> {
        if self.workers.get(&number).is_some_and(Worker::is_live) {
            return Err(TrialError::Infrastructure {
                doing: "starting the worker".into(),
                error: format!("worker {number} lives"),
            });
        }
        self.lives += 1;
        if self.lives > LIVES_MAX {
            return Err(TrialError::Infrastructure {
                doing: "starting the worker".into(),
                error: format!("it was started {LIVES_MAX} times in one trial"),
            });
        }
        if !self.workers.contains_key(&number) {
            let worker = self.open_worker(number).await?;
            self.workers.insert(number, worker);
        }
        let recorder = Arc::clone(&self.recorder);
        let settings = Arc::clone(&self.settings);
        let generation = recorder.next_generation();
        let Some(worker) = self.workers.get_mut(&number) else { return Ok(()) };
        if matches!(worker.life, Life::Again(_)) && !std::mem::take(&mut worker.keep_rest) {
            // What the last life left behind (a child, a daemon) must not live beside the next.
            worker.kill(&recorder).await?;
        }
        let name = format!("worker{number}-generation{generation}");
        let (pid, argv) = self.start_life(number, &settings.worker.command, name).await?;
        recorder.append(EventKind::Spawned { worker: number, pid, argv });
        self.touch();
        self.start_up.begin();
        self.extend_deadline();
        Ok(())
    }

    /// Starts something that is no worker under test; returns its words.
    pub(super) async fn start_other(
        &mut self,
        number: u32,
        command: &CommandSettings,
        name: &str,
    ) -> Result<Vec<String>, TrialError> {
        self.extend_deadline();
        self.start_life(number, command, name.to_owned()).await.map(|(_, argv)| argv)
    }

    async fn start_life(
        &mut self,
        number: u32,
        command: &CommandSettings,
        name: String,
    ) -> Result<(u32, Vec<String>), TrialError> {
        let mut templates = self.templates.clone();
        let identity = self.next_life.identities.get(&number).copied().unwrap_or(number);
        templates.set("worker", identity.to_string());
        templates.set("generation", self.recorder.generation().to_string());
        if let Some(state) = self.next_life.states.get(&number) {
            templates.set("state", state.display().to_string());
        }
        let mut env = self.next_life.env.clone();
        let mut clock_offset_ms = self.next_life.clocks.get(&number).copied().unwrap_or_default();
        if clock_offset_ms != 0 && self.settings.worker.clock == ClockMethod::Environment {
            env.insert(CLOCK_VARIABLE.to_owned(), clock_offset_ms.to_string());
            clock_offset_ms = 0;
        }
        let output_bytes_max = self.settings.worker.output_bytes_max;
        let folder = self.folder.clone();
        let on_line = [self.alarm_watch(number), self.alarm_watch(number)];
        let templates = &templates;
        let folder = &folder;
        let start =
            Start { command, templates, folder, env, clock_offset_ms, output_bytes_max, name, on_line };
        match self.workers.get_mut(&number) {
            Some(worker) => {
                let started = worker.start(start).await?;
                worker.report_clock(&self.recorder);
                Ok(started)
            }
            None => Err(TrialError::Setup {
                what: "starting a worker".into(),
                why: format!("there is no {number}"),
            }),
        }
    }
}
