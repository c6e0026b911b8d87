//! Progress: a live matrix in a terminal, plain lines elsewhere. What is said is made in [`state`], without a terminal
//! and without a clock; here it is only put in front of somebody.

mod state;

use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use killpoint::model::TrialRecord;
use killpoint::{Job, Progress, Running};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::show;
use state::State;

/// How often a terminal is drawn at most, per second.
const DRAWN_PER_SECOND: u8 = 4;
/// Columns and lines where the terminal does not tell.
const SIZE_DEFAULT: (usize, usize) = (80, 24);

/// Where progress goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A terminal, drawn again and again.
    Terminal,
    /// A log, line by line.
    Log,
    /// Nowhere.
    Nowhere,
}

/// The progress of one run.
#[derive(Debug)]
pub(crate) struct Bar {
    drawn: ProgressBar,
    place: Place,
    begun: Instant,
    state: Mutex<State>,
    cancel: watch::Sender<bool>,
}

impl Bar {
    /// The progress of a run that begins now; shown nowhere where `shown` is false.
    pub(crate) fn new(shown: bool) -> Self {
        let place = match (shown, io::stderr().is_terminal()) {
            (false, _) => Place::Nowhere,
            (true, true) => Place::Terminal,
            (true, false) => Place::Log,
        };
        let target = if place == Place::Terminal {
            ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND)
        } else {
            ProgressDrawTarget::hidden()
        };
        let drawn = ProgressBar::with_draw_target(None, target);
        // The template is ours and was tried: it can't fail.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            drawn.set_style(style);
        }
        Self {
            drawn,
            place,
            begun: Instant::now(),
            state: Mutex::default(),
            cancel: watch::Sender::new(false),
        }
    }

    /// From now on Ctrl-C and SIGTERM end the run in order: trees killed, what was recorded kept.
    pub(crate) fn watch_signals(&self) {
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let Ok(mut stream) = signal(kind) else { continue };
            let cancel = self.cancel.clone();
            tokio::spawn(async move {
                if stream.recv().await.is_some() {
                    cancel.send_replace(true);
                }
            });
        }
    }

    /// Whether the user asked to stop.
    pub(crate) fn was_cancelled(&self) -> bool {
        *self.cancel.borrow()
    }

    /// Takes away what is drawn.
    pub(crate) fn clear(&self) {
        self.drawn.finish_and_clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what came, and shows what follows from it.
    fn note_and_show(&self, note: impl FnOnce(&mut State, Duration)) {
        let now = self.begun.elapsed();
        let mut state = self.state();
        note(&mut state, now);
        match self.place {
            Place::Nowhere => {}
            Place::Log => {
                for line in state.lines(now) {
                    show::lines_to_stderr(&line);
                }
            }
            Place::Terminal => {
                let (width, height) = size();
                self.drawn.set_message(state.frame(now, width, height).join("\n"));
            }
        }
    }
}

fn size() -> (usize, usize) {
    terminal_size::terminal_size_of(io::stderr())
        .map_or(SIZE_DEFAULT, |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

impl Progress for Bar {
    fn planned(&self, trials: usize) {
        self.note_and_show(|state, _| state.planned(trials));
    }

    fn scheduled(&self, jobs: &[Job]) {
        self.note_and_show(|state, now| {
            state.scheduled(jobs.iter().map(|job| (job.index, &job.plan)), now);
        });
    }

    fn running(&self, trials: &[Running]) {
        self.note_and_show(|state, _| state.running(trials));
    }

    fn started(&self, _: &str) {}

    fn finished(&self, trial: &TrialRecord) {
        self.note_and_show(|state, _| state.finished(trial));
    }

    fn note(&self, text: &str) {
        self.drawn.suspend(|| show::note(text));
    }

    async fn cancelled(&self) {
        let mut cancelled = self.cancel.subscribe();
        // The sender lives as long as we do.
        let _ = cancelled.wait_for(|cancelled| *cancelled).await;
    }
}
