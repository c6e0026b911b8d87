//! Fresh state, prepare, enqueue.

use std::fs;

use killpoint_model::event::{CommandRole, EventKind};
use killpoint_model::history::line_of;
use killpoint_model::plan::ActionSpec;
use killpoint_model::provider::ProviderEvent;
use killpoint_model::settings::CommandSettings;
use killpoint_model::{Settings, json_words};

use super::drive::Goal;
use super::worker::{Start, Worker, tail};
use super::{Trial, blocking};
use crate::boundaries::Signal;
use crate::capture::OnLine;
use crate::error::TrialError;
use crate::faults;

/// The number of the slot in which commands of the configuration run.
pub(super) const COMMANDS: u32 = 0;

/// Reads the provider snapshot that a trial starts from, if one is configured.
pub(super) fn provider_snapshot(settings: &Settings) -> Result<Vec<ProviderEvent>, TrialError> {
    let Some(path) = &settings.state.provider else { return Ok(Vec::new()) };
    let setup = |why: String| TrialError::Setup { what: format!("reading {}", path.display()), why };
    let text = fs::read_to_string(path).map_err(|error| setup(error.to_string()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line)
                .map_err(|error| setup(format!("line {}: {}", index + 1, json_words(&error))))
        })
        .collect()
}

/// The action that the producer commits: none of the trial's own.
fn produced() -> ActionSpec {
    ActionSpec { id: "produced-1".into(), to: vec!["produced@example.com".into()], body: "produced".into() }
}

impl Trial {
    pub(super) async fn set_up(&mut self) -> Result<(), TrialError> {
        // A mount over the state directory must be there before a slot takes over the mounts.
        let prepared: Vec<_> = self
            .plan
            .faults
            .iter()
            .filter_map(|due| {
                Some((due.fault.name.clone(), faults::find(&due.fault.name)?.prepare(&self.state)))
            })
            .collect();
        let commands = self.open_worker(COMMANDS).await?;
        self.recorder.append(EventKind::TrialStarted {
            plan: self.plan.clone(),
            containment: commands.slot().containment(),
            containment_reason: commands.slot().containment_reason().map(str::to_owned),
            process_limit: commands.slot().process_limit(),
        });
        for (name, prepared) in prepared {
            match prepared {
                Ok(active) => self.active.extend(active),
                Err(why) => drop(self.limitation(&name, why)),
            }
        }
        self.make_state().await?;
        let from =
            self.settings.state.from.as_ref().map_or("fresh".into(), |path| path.display().to_string());
        self.recorder.append(EventKind::StateReady { from });
        self.workers.insert(COMMANDS, commands);
        let settings = std::sync::Arc::clone(&self.settings);
        for (index, command) in settings.state.prepare.iter().enumerate() {
            self.run_command(CommandRole::Prepare, command, &format!("prepare{}", index + 1)).await?;
        }
        if let Some(enqueue) = &settings.state.enqueue {
            self.run_command(CommandRole::Enqueue, enqueue, "enqueue").await?;
        }
        self.look_at_dead_ledger().await
    }

    async fn make_state(&mut self) -> Result<(), TrialError> {
        let io = |error: std::io::Error| TrialError::from_io("making the state directory", &error);
        let lines: String = self.actions().iter().map(line_of).collect();
        fs::write(self.folder.join("actions.jsonl"), lines).map_err(io)?;
        fs::write(self.folder.join("producer.jsonl"), line_of(&produced())).map_err(io)?;
        let (from, state) = (self.settings.state.from.clone(), self.state.clone());
        blocking(move || match from {
            Some(from) => crate::state::copy_tree(&from, &state).map_err(|error| TrialError::Setup {
                what: format!("copying the state directory {}", from.display()),
                why: error.to_string(),
            }),
            None => fs::create_dir_all(&state).map_err(io),
        })
        .await
    }

    pub(super) async fn open_worker(&self, number: u32) -> Result<Worker, TrialError> {
        Worker::open(number, self.settings.worker.processes_max, self.sockets.path(), &self.outbox).await
    }

    pub(super) async fn run_command(
        &mut self,
        role: CommandRole,
        command: &CommandSettings,
        name: &str,
    ) -> Result<(), TrialError> {
        let kill_line =
            self.settings.state.enqueue_kill_after.clone().filter(|_| role == CommandRole::Enqueue);
        let outbox = self.outbox.clone();
        let on_line = kill_line.clone().map(|wanted| -> OnLine {
            Box::new(move |line| {
                if line.contains(&wanted) {
                    // The trial may be over already; then nobody needs the line.
                    let _ = outbox.send(Signal::EnqueuerLine);
                }
            })
        });
        let templates = self.templates.clone();
        let start = Start {
            command,
            templates: &templates,
            folder: &self.folder.clone(),
            env: std::collections::BTreeMap::new(),
            clock_offset_ms: 0,
            output_bytes_max: self.settings.worker.output_bytes_max,
            name: name.to_owned(),
            on_line: [on_line, None],
        };
        let Some(worker) = self.workers.get_mut(&COMMANDS) else { return Ok(()) };
        let (_, argv) = worker.start(start).await?;
        self.drive(Goal::Ended(COMMANDS)).await?;
        let recorder = std::sync::Arc::clone(&self.recorder);
        let Some(worker) = self.workers.get_mut(&COMMANDS) else { return Ok(()) };
        let code = worker.last_code;
        // Whatever the command left behind must not live beside the worker.
        worker.kill(&recorder).await?;
        self.recorder.append(EventKind::CommandRan { role, argv: argv.clone(), code });
        if code == Some(0) || (kill_line.is_some() && code.is_none()) {
            return Ok(());
        }
        let how = code.map_or("it was ended by a signal".to_owned(), |code| format!("it exited with {code}"));
        Err(TrialError::Setup {
            what: format!("{role} command `{}`", argv.join(" ")),
            why: format!("{how}: {}", tail(self.folder(), name)),
        })
    }
}
