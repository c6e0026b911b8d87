//! One worker: its slot, its marks, its lives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use killpoint_model::event::{EventKind, KillProof};
use killpoint_model::settings::CommandSettings;
use tokio::sync::mpsc;

use super::blocking;
use super::control::{CLOCK_FAULT, CLOCK_HELP, PRODUCER};
use super::setup::COMMANDS;
use crate::boundaries::Signal;
use crate::boundaries::mark::{MarkServer, SOCKET_VARIABLE};
use crate::capture::{Capture, OnLine};
use crate::error::TrialError;
use crate::os::{Slot, SlotSpec, SpawnSpec};
use crate::recorder::Recorder;
use crate::template::Templates;

/// How long output may still flow after the tree is dead.
const OUTPUT_LIMIT: Duration = Duration::from_secs(2);

/// Process ids below are never given again once a namespace's numbers wrap around.
const PID_BASE: u32 = 300;
/// Workers of one trial see process ids that differ, so that none takes another's lease for its own.
const PIDS_PER_WORKER: u32 = 200;

/// Where a worker is in its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Not started yet.
    New,
    /// Its tree is alive, as far as is known.
    Running,
    /// We killed it; it is to be started again.
    Killed,
    /// It ended by itself and is to be started again at this time.
    Again(Instant),
    /// It ended by itself and needs no more starts.
    Done,
}

/// One worker of a trial.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) number: u32,
    pub(super) life: Life,
    /// The first process of the life that runs or ran last.
    pub(super) pid: u32,
    /// The exit code of the life that just ended by itself.
    pub(super) last_code: Option<i32>,
    /// We hold its tree stopped by a fault; letting the others go on does not concern it.
    pub(super) stopped: bool,
    /// At its next start what is left of its tree stays alive: only a part was killed.
    pub(super) keep_rest: bool,
    /// How many lives were started.
    pub(super) lives: u32,
    slot: Arc<Slot>,
    sockets: PathBuf,
    outbox: mpsc::UnboundedSender<Signal>,
    /// Of the life that runs, and of earlier ones of which a part was left alive.
    marks: Vec<MarkServer>,
    /// The life of which only the first process was killed.
    pub(super) orphaned_life: Option<u32>,
    /// Behind locks only because a worker is shared between awaits; nobody waits for them.
    captures: Vec<(String, Mutex<Capture>)>,
}

/// What a worker is started with.
pub(super) struct Start<'a> {
    pub(super) command: &'a CommandSettings,
    pub(super) templates: &'a Templates,
    pub(super) folder: &'a Path,
    /// Variables that win over the command's own.
    pub(super) env: BTreeMap<String, String>,
    /// How far the harness moves its wall clock.
    pub(super) clock_offset_ms: i64,
    pub(super) output_bytes_max: u64,
    /// Prefix of the output files, such as `worker1-generation2`.
    pub(super) name: String,
    /// Called for each whole line of standard output and of standard error.
    pub(super) on_line: [Option<OnLine>; 2],
}

impl Worker {
    /// Makes the slot; nothing runs yet. Mark sockets go into `sockets`.
    pub(super) async fn open(
        number: u32,
        processes_max: u32,
        sockets: &Path,
        outbox: &mpsc::UnboundedSender<Signal>,
    ) -> Result<Self, TrialError> {
        let signals = outbox.clone();
        // The trial may be over when the last event comes; then nobody needs it.
        let on_event = Box::new(move |event| drop(signals.send(Signal::Worker { worker: number, event })));
        let spec = SlotSpec { processes_max, pid_base: PID_BASE + PIDS_PER_WORKER * number, force: None };
        let slot = blocking(move || {
            Slot::open(&spec, on_event)
                .map_err(|error| TrialError::from_os("making the worker's slot", &error))
        })
        .await?;
        Ok(Self {
            number,
            life: Life::New,
            pid: 0,
            last_code: None,
            stopped: false,
            keep_rest: false,
            lives: 0,
            slot: Arc::new(slot),
            sockets: sockets.to_owned(),
            outbox: outbox.clone(),
            marks: Vec::new(),
            orphaned_life: None,
            captures: Vec::new(),
        })
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(super) fn shared_slot(&self) -> Arc<Slot> {
        Arc::clone(&self.slot)
    }

    pub(super) fn is_live(&self) -> bool {
        self.life == Life::Running
    }

    pub(super) fn is_done(&self) -> bool {
        self.life == Life::Done
    }

    /// Whether it is a worker under test, and not a command of the configuration or the producer.
    pub(super) fn is_worker(&self) -> bool {
        self.number != COMMANDS && self.number != PRODUCER
    }

    /// Starts one life. Returns the process id and the words that were run.
    pub(super) async fn start(&mut self, start: Start<'_>) -> Result<(u32, Vec<String>), TrialError> {
        let fill = |word: &String| start.templates.fill(word);
        let argv: Vec<String> = start.command.argv.iter().map(fill).collect();
        let mut env = crate::environment::inherited(start.command);
        env.extend(start.command.env.iter().map(|(name, value)| (name.clone(), fill(value))));
        env.extend(start.env);
        self.lives += 1;
        let socket = self.sockets.join(format!("{}-{}", self.number, self.lives));
        let marks = MarkServer::listen(&socket, (self.number, self.lives), self.outbox.clone())
            .map_err(|error| TrialError::from_io("opening the mark socket", &error))?;
        env.insert(SOCKET_VARIABLE.to_owned(), marks.path());
        if self.orphaned_life.is_none() {
            self.marks.clear();
        }
        self.marks.push(marks);
        let mut on_line = start.on_line.into_iter();
        let mut pipes = Vec::new();
        for stream in ["stdout", "stderr"] {
            let output = format!("{}.{stream}", start.name);
            let (end, capture) =
                Capture::start(start.folder, &output, start.output_bytes_max, on_line.next().flatten())
                    .map_err(|error| TrialError::from_os("capturing the worker's output", &error))?;
            self.captures.push((stream.to_owned(), Mutex::new(capture)));
            pipes.push(end);
        }
        let (Some(stderr), Some(stdout)) = (pipes.pop(), pipes.pop()) else {
            unreachable!("two pipes were made")
        };
        let (slot, cwd) = (Arc::clone(&self.slot), start.command.cwd.clone());
        let clock_offset_ms = start.clock_offset_ms;
        let words = argv.clone();
        let what = format!("starting `{}`", argv.first().map(String::as_str).unwrap_or_default());
        let pid = blocking(move || {
            slot.spawn(SpawnSpec { argv: &words, env: &env, cwd: &cwd, clock_offset_ms, stdout, stderr })
                .map_err(|error| TrialError::from_os(&what, &error))
        })
        .await?;
        self.life = Life::Running;
        self.pid = pid;
        // They go on record.
        Ok((pid, killpoint_model::credential::masked_words(&argv)))
    }

    /// Kills the whole tree and proves it dead.
    pub(super) async fn kill(&mut self, recorder: &Recorder) -> Result<KillProof, TrialError> {
        let slot = Arc::clone(&self.slot);
        let proof = blocking(move || {
            slot.kill_all().map_err(|error| TrialError::from_os("killing the worker's tree", &error))
        })
        .await?;
        self.life = Life::Killed;
        self.stopped = false;
        self.orphaned_life = None;
        self.report_clock(recorder);
        self.close_output(recorder).await;
        Ok(proof)
    }

    /// Ends a worker at the end of a trial: nothing of it may stay. Failures are recorded, not returned,
    /// because the next worker must be ended too.
    pub(super) async fn stop(&mut self, recorder: &Recorder) {
        if let Err(error) = self.kill(recorder).await {
            recorder.append(EventKind::Infrastructure {
                doing: "ending the trial".into(),
                error: error.to_string(),
            });
        }
        self.life = Life::Done;
    }

    /// Says which of its programs have the machine's clock though they were to have another.
    pub(super) fn report_clock(&self, recorder: &Recorder) {
        for failure in self.slot.take_clock_report().failures {
            recorder.append(EventKind::Limitation {
                what: CLOCK_FAULT.to_owned(),
                why: format!("the clock of {failure}; {CLOCK_HELP}"),
            });
        }
    }

    /// Closes the output of the life that ended.
    pub(super) async fn close_output(&mut self, recorder: &Recorder) {
        for (stream, capture) in self.captures.drain(..) {
            let capture = capture.into_inner().unwrap_or_else(PoisonError::into_inner);
            let Ok(captured) = tokio::task::spawn_blocking(move || capture.finish(OUTPUT_LIMIT)).await else {
                continue;
            };
            if let Some(error) = captured.error {
                let doing = format!("keeping the worker's {stream}");
                recorder.append(EventKind::Infrastructure { doing, error });
            }
            recorder.append(EventKind::Output {
                worker: self.number,
                stream,
                bytes: captured.bytes,
                dropped: captured.dropped,
            });
        }
    }
}

/// The last lines of a captured stream, for messages.
pub(super) fn tail(folder: &Path, name: &str) -> String {
    let read = |stream: &str| {
        std::fs::read(PathBuf::from(folder).join(format!("{name}.{stream}"))).unwrap_or_default()
    };
    let bytes = [read("stdout"), read("stderr")].concat();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}
