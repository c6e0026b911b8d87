//! The one place where events get their order: every part of a trial appends here, and an event is in
//! the file before the act that it announces.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use killpoint_model::event::{Event, EventKind};
use killpoint_model::history::{Header, History, line_of};

/// Appends events to a trial's history file and keeps them in memory.
#[derive(Debug)]
pub struct Recorder {
    started: Instant,
    generation: AtomicU32,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    history: History,
    failure: Option<String>,
}

impl Recorder {
    /// Creates the file with its header line.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(path: &Path, trial: &str) -> std::io::Result<Self> {
        let header = Header::new(trial);
        let mut file = File::create_new(path)?;
        file.write_all(line_of(&header).as_bytes())?;
        Ok(Self {
            started: Instant::now(),
            generation: AtomicU32::new(0),
            inner: Mutex::new(Inner {
                file,
                history: History { header, events: Vec::new(), truncated: true },
                failure: None,
            }),
        })
    }

    /// Appends one event and hands it to the operating system. Returns its sequence number. A write that
    /// fails is remembered (see [`Recorder::failure`]): a trial with a lost event is never green.
    pub fn append(&self, event: EventKind) -> u64 {
        let mut inner = self.lock();
        let seq = inner.history.events.len() as u64 + 1;
        let ended = matches!(event, EventKind::TrialEnded);
        let event = Event {
            seq,
            at_us: self.started.elapsed().as_micros() as u64,
            generation: self.generation.load(Ordering::SeqCst),
            event,
        };
        // One write per event: a SIGKILL of the harness then loses at most an event that was never announced.
        if let Err(error) = inner.file.write_all(line_of(&event).as_bytes()) {
            inner.failure.get_or_insert_with(|| error.to_string());
        }
        inner.history.events.push(event);
        inner.history.truncated = !ended;
        seq
    }

    /// The next generation begins.
    pub fn next_generation(&self) -> u32 {
        self.generation.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The current generation.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Why an event could not be written, if one could not.
    pub fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// What was recorded so far.
    pub fn history(&self) -> History {
        self.lock().history.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while holding the lock leaves whole events behind: each is pushed in one step.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_on_disk_at_once() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("history.jsonl");
        let recorder = Recorder::create(&path, "baseline")?;
        recorder.append(EventKind::FaultsOver);
        let half = History::parse(&std::fs::read_to_string(&path)?).map(|h| (h.events.len(), h.truncated));
        assert_eq!(half, Ok((1, true)));
        recorder.append(EventKind::TrialEnded);
        assert_eq!(History::parse(&std::fs::read_to_string(&path)?), Ok(recorder.history()));
        assert!(!recorder.history().truncated);
        Ok(())
    }
}
