//! Progress: a bar with the time left in a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use killpoint::Progress;
use killpoint::model::{TrialRecord, Verdict};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Trials after which a line is printed where there is no terminal.
const LINE_EVERY: u64 = 25;

/// The progress of one run.
#[derive(Debug)]
pub(crate) struct Bar {
    drawn: ProgressBar,
    is_terminal: bool,
    verdicts: Mutex<BTreeMap<Verdict, u32>>,
    cancel: watch::Sender<bool>,
}

impl Bar {
    /// A bar; a hidden one where `shown` is false.
    pub(crate) fn new(shown: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = if shown && is_terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        // The template is ours and was tried: it can't fail.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} trials, {eta} left  {wide_msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { drawn: bar, is_terminal, verdicts: Mutex::default(), cancel: watch::Sender::new(false) }
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

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.drawn.finish_and_clear();
    }

    fn summary(&self, latest: Verdict) -> String {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        *verdicts.entry(latest).or_default() += 1;
        let words: Vec<String> =
            verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        words.join(", ")
    }
}

impl Progress for Bar {
    fn planned(&self, trials: usize) {
        self.drawn.set_length(trials as u64);
    }

    fn started(&self, name: &str) {
        if self.is_terminal {
            self.drawn.set_message(name.to_owned());
        }
    }

    fn finished(&self, trial: &TrialRecord) {
        let verdict = trial.verdict.as_ref().map_or(Verdict::Inconclusive, |judged| judged.verdict);
        let summary = self.summary(verdict);
        self.drawn.inc(1);
        if !self.is_terminal && self.drawn.position().is_multiple_of(LINE_EVERY) {
            crate::show::lines_to_stderr(&format!("{} trials: {summary}", self.drawn.position()));
        }
    }

    fn note(&self, text: &str) {
        self.drawn.suspend(|| crate::show::note(text));
    }

    async fn cancelled(&self) {
        let mut cancelled = self.cancel.subscribe();
        // The sender lives as long as we do.
        let _ = cancelled.wait_for(|cancelled| *cancelled).await;
    }
}
