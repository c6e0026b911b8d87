//! A worker's output: drained to a file, with a cap, never in the worker's way.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::os::{OsError, wait_readable};

/// A line longer than this is handed over in pieces of this many bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Called with each complete line, without its end, from the capture's own thread.
pub type OnLine = Box<dyn Fn(&str) + Send>;

/// An output stream that is being drained.
#[derive(Debug)]
pub struct Capture {
    activity: Arc<AtomicU64>,
    /// Dropping it tells the thread to stop.
    stop: PipeWriter,
    done: Receiver<Captured>,
}

/// What became of an output stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Bytes written by the worker, as far as they were read.
    pub bytes: u64,
    /// Of these, bytes that are not in the file.
    pub dropped: u64,
    /// Whether the stream ended; otherwise some process still held it when the wait was over.
    pub ended: bool,
    /// Why bytes could not be kept, other than by the cap.
    pub error: Option<String>,
}

impl Capture {
    /// Begins to drain a pipe to `dir/name`, keeping the first `bytes_max` bytes. Returns the pipe's other end,
    /// for the worker. Lines are reported beyond the cap, too.
    pub fn start(
        dir: &Path,
        name: &str,
        bytes_max: u64,
        on_line: Option<OnLine>,
    ) -> Result<(OwnedFd, Self), OsError> {
        let path = dir.join(name);
        let file = File::create(&path)
            .map_err(|error| OsError::from_io(format!("creating `{}`", path.display()), &error))?;
        let pipe =
            || io::pipe().map_err(|error| OsError::from_io("making a pipe for a worker's output", &error));
        let (reader, writer) = pipe()?;
        let (stopped, stop) = pipe()?;
        let activity = Arc::new(AtomicU64::new(0));
        let (sender, done) = mpsc::channel();
        let drain = Drain {
            reader,
            stopped,
            sink: Sink { file, left: bytes_max, captured: Captured::nothing() },
            lines: on_line.map(|on_line| Lines { on_line, partial: Vec::new() }),
            activity: Arc::clone(&activity),
        };
        thread::Builder::new()
            .name("killpoint-output".to_owned())
            .spawn(move || {
                let captured = drain.run();
                // Nobody may be interested any more.
                let _ = sender.send(captured);
            })
            .map_err(|error| OsError::from_io("starting a thread for a worker's output", &error))?;
        Ok((writer.into(), Self { activity, stop, done }))
    }

    /// A counter of the bytes read so far: while it moves, the worker is doing something.
    pub fn activity(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.activity)
    }

    /// Waits for the stream's end, at most for `limit` (a daemon may hold it), and says what became of it.
    pub fn finish(self, limit: Duration) -> Captured {
        let Self { activity, stop, done } = self;
        done.recv_timeout(limit).unwrap_or_else(|_| {
            drop(stop);
            // The thread now reads what is there, and ends; only a callback that hangs could keep it.
            done.recv_timeout(Duration::from_secs(1)).unwrap_or_else(|_| {
                let bytes = activity.load(Ordering::Relaxed);
                Captured {
                    bytes,
                    error: Some("the thread that reads it did not end".to_owned()),
                    ..Captured::nothing()
                }
            })
        })
    }
}

impl Captured {
    fn nothing() -> Self {
        Self { bytes: 0, dropped: 0, ended: false, error: None }
    }
}

struct Drain {
    reader: PipeReader,
    stopped: PipeReader,
    sink: Sink,
    lines: Option<Lines>,
    activity: Arc<AtomicU64>,
}

impl Drain {
    /// Drains until the stream's end. Our end is closed when this returns: whoever still writes is told.
    fn run(mut self) -> Captured {
        self.drain();
        self.sink.captured
    }

    fn drain(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let [readable, stopped] = match wait_readable([self.reader.as_fd(), self.stopped.as_fd()], None) {
                Ok(ready) => ready,
                Err(errno) => return self.sink.fail(&errno),
            };
            if !readable && stopped {
                return;
            }
            match self.reader.read(&mut buffer) {
                Ok(0) => {
                    self.sink.captured.ended = true;
                    if let Some(lines) = &mut self.lines {
                        lines.end();
                    }
                    return;
                }
                Ok(length) => {
                    let bytes = &buffer[..length];
                    self.activity.fetch_add(length as u64, Ordering::Relaxed);
                    self.sink.keep(bytes);
                    if let Some(lines) = &mut self.lines {
                        lines.take(bytes);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.sink.fail(&error),
            }
        }
    }
}

/// The file, and what it still takes.
struct Sink {
    file: File,
    left: u64,
    captured: Captured,
}

impl Sink {
    fn keep(&mut self, bytes: &[u8]) {
        self.captured.bytes += bytes.len() as u64;
        let mut rest = &bytes[..bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))];
        self.captured.dropped += (bytes.len() - rest.len()) as u64;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return self.lose(rest, &io::Error::from(io::ErrorKind::WriteZero)),
                Ok(length) => {
                    rest = &rest[length..];
                    self.left -= length as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.lose(rest, &error),
            }
        }
    }

    /// A gap in the middle would mislead, so nothing more is kept.
    fn lose(&mut self, rest: &[u8], error: &io::Error) {
        self.captured.dropped += rest.len() as u64;
        self.left = 0;
        self.fail(error);
    }

    fn fail(&mut self, error: &dyn std::fmt::Display) {
        self.captured.error.get_or_insert_with(|| error.to_string());
    }
}

struct Lines {
    on_line: OnLine,
    partial: Vec<u8>,
}

impl Lines {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.add(&bytes[..end]);
            self.report();
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            let (fits, rest) = bytes.split_at(LINE_BYTES_MAX - self.partial.len());
            self.partial.extend_from_slice(fits);
            self.report();
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
    }

    /// The last line counts as complete when the stream ends without a line end.
    fn end(&mut self) {
        if !self.partial.is_empty() {
            self.report();
        }
    }

    fn report(&mut self) {
        (self.on_line)(&String::from_utf8_lossy(&self.partial));
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn run(script: &str, output: OwnedFd) -> std::process::Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::from(output)).spawn().unwrap()
    }

    #[test]
    fn what_is_above_the_cap_is_counted_and_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (output, capture) = Capture::start(dir.path(), "out", 1_000_001, None).unwrap();
        let activity = capture.activity();
        let mut child = run("yes | head -c 100000000", output);
        let captured = capture.finish(LIMIT);
        assert!(child.wait().unwrap().success());
        let expected = Captured { bytes: 100_000_000, dropped: 98_999_999, ended: true, error: None };
        assert_eq!(captured, expected);
        assert_eq!(activity.load(Ordering::Relaxed), 100_000_000);
        let kept = std::fs::read(dir.path().join("out")).unwrap();
        assert_eq!(kept.len(), 1_000_001);
        assert!(kept.chunks(2).all(|pair| pair == b"y\n" || pair == b"y"));
    }

    #[test]
    fn lines_are_reported_whole_also_above_the_cap() {
        let dir = tempfile::tempdir().unwrap();
        let (sender, lines) = mpsc::channel();
        let on_line: OnLine = Box::new(move |line| sender.send(line.to_owned()).unwrap());
        let (output, capture) = Capture::start(dir.path(), "out", 4, Some(on_line)).unwrap();
        let mut child = run(r"printf 'on'; sleep 0.01; printf 'e\n\ntw\377o\nlast'", output);
        let captured = capture.finish(LIMIT);
        child.wait().unwrap();
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["one", "", "tw\u{fffd}o", "last"]);
        assert_eq!((captured.bytes, captured.dropped), (14, 10));
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), b"one\n");
    }

    #[test]
    fn an_endless_line_comes_in_pieces() {
        let (sender, pieces) = mpsc::channel();
        let on_line: OnLine = Box::new(move |line| sender.send(line.len()).unwrap());
        let mut lines = Lines { on_line, partial: Vec::new() };
        for _ in 0..5 {
            lines.take(&vec![b'x'; LINE_BYTES_MAX / 2]);
        }
        lines.take(b"\n");
        drop(lines);
        assert_eq!(pieces.iter().collect::<Vec<_>>(), [LINE_BYTES_MAX, LINE_BYTES_MAX, LINE_BYTES_MAX / 2]);
    }

    #[test]
    fn a_stream_that_stays_open_does_not_hold_the_harness() {
        let dir = tempfile::tempdir().unwrap();
        let (output, capture) = Capture::start(dir.path(), "out", 100, None).unwrap();
        let mut held = File::from(output);
        held.write_all(b"early").unwrap();
        let captured = capture.finish(Duration::from_millis(20));
        assert_eq!(captured, Captured { bytes: 5, dropped: 0, ended: false, error: None });
        assert!(held.write_all(b"late").is_err());
    }

    #[test]
    fn a_full_disk_is_reported_and_the_worker_goes_on() {
        let (output, capture) = Capture::start(Path::new("/dev"), "full", 1000, None).unwrap();
        let mut child = run("head -c 300000 /dev/zero && echo end >&2", output);
        let captured = capture.finish(LIMIT);
        assert!(child.wait().unwrap().success());
        assert_eq!((captured.bytes, captured.dropped, captured.ended), (300_000, 300_000, true));
        assert!(captured.error.unwrap().contains("No space left"));
    }

    #[test]
    fn a_directory_that_is_missing_is_named() {
        let error = Capture::start(Path::new("/nowhere"), "out", 1, None).unwrap_err();
        assert_eq!(error.to_string(), "creating `/nowhere/out`: ENOENT: No such file or directory");
    }
}
