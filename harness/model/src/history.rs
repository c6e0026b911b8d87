//! The history of one trial: JSON Lines, a versioned header line and then events. Pure: lines in, lines out.
//!
//! Version rules: a higher `major` can't be read; a higher `minor` of the same major can't be read
//! either, because it may hold events that this program would overlook, and an overlooked event is a
//! wrong verdict. Older minors of the same major can.

use std::io::{BufRead, Read};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind};
use crate::json_words::json_words;
use crate::ledger::{LedgerRow, LedgerView};
use crate::provider::{Attempt, Counters, Effect, ProviderEvent};

/// Version of the format: major, minor.
pub const FORMAT_VERSION: (u32, u32) = (1, 2);

/// Longest line that is read, in bytes. The longest that is written holds a ledger of as many rows as are ever
/// read of one.
const LINE_BYTES_MAX: usize = 256 << 20;

/// The first line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `killpoint-history`.
    pub format: String,
    /// Major and minor.
    pub version: (u32, u32),
    /// The trial's name, unique within its run.
    pub trial: String,
}

impl Header {
    /// A header of the version that this program writes.
    pub fn new(trial: &str) -> Self {
        Self { format: "killpoint-history".into(), version: FORMAT_VERSION, trial: trial.to_owned() }
    }
}

/// The ordered events of one trial: the only truth that checks and reports read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// First line.
    pub header: Header,
    /// The rest.
    pub events: Vec<Event>,
    /// Whether the file ended inside a line or before the end of the trial.
    pub truncated: bool,
}

/// Why a text is no history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// No header.
    #[error("no killpoint history: {0}")]
    NoHeader(String),
    /// Written by a newer program.
    #[error(
        "history format {}.{} is newer than {}.{}, which this killpoint reads; read it with the killpoint that wrote it",
        .0.0, .0.1, FORMAT_VERSION.0, FORMAT_VERSION.1
    )]
    Newer((u32, u32)),
    /// A line in the middle can't be read.
    #[error("line {line}: {why}")]
    BadLine {
        /// From 1.
        line: usize,
        /// What the parser said.
        why: String,
    },
    /// What holds it can't be read.
    #[error("{0}")]
    Unreadable(String),
}

impl History {
    /// Reads a history. A last line that is cut short is dropped and noted in `truncated`; any other
    /// unreadable line is an error.
    pub fn parse(text: &str) -> Result<Self, HistoryError> {
        Self::read(text.as_bytes())
    }

    /// Reads a history as [`parse`](Self::parse) does, from what holds its lines.
    pub fn read(input: impl BufRead) -> Result<Self, HistoryError> {
        let mut reader = HistoryReader::new(input)?;
        let mut events = Vec::new();
        while let Some(event) = reader.next_event()? {
            events.push(event);
        }
        Ok(Self { truncated: reader.truncated(), header: reader.header, events })
    }

    /// Writes the whole history as the recorder would have.
    pub fn to_text(&self) -> String {
        let mut text = line_of(&self.header);
        for event in &self.events {
            text.push_str(&line_of(event));
        }
        text
    }

    /// Provider events with their sequence numbers.
    pub fn provider(&self) -> impl Iterator<Item = (u64, &ProviderEvent)> {
        self.events.iter().filter_map(|event| match &event.event {
            EventKind::Provider(provider) => Some((event.seq, provider)),
            _ => None,
        })
    }

    /// Committed effects with their sequence numbers.
    pub fn effects(&self) -> impl Iterator<Item = (u64, &Effect)> {
        self.provider().filter_map(|(seq, event)| match event {
            ProviderEvent::Committed(effect) => Some((seq, effect)),
            _ => None,
        })
    }

    /// Write attempts with their sequence numbers.
    pub fn attempts(&self) -> impl Iterator<Item = (u64, &Attempt)> {
        self.provider().filter_map(|(seq, event)| match event {
            ProviderEvent::Received(attempt) => Some((seq, attempt)),
            _ => None,
        })
    }

    /// Every reading of the ledger, the final one included, with sequence numbers.
    pub fn ledger_views(&self) -> impl Iterator<Item = (u64, &LedgerView)> {
        self.events.iter().filter_map(|event| match &event.event {
            EventKind::Ledger { view, .. } | EventKind::Final { view, .. } => Some((event.seq, view)),
            _ => None,
        })
    }

    /// The worker's own final rows, where a mapping is configured and could be read.
    pub fn final_rows(&self) -> Option<(u64, &[LedgerRow])> {
        self.events.iter().rev().find_map(|event| match &event.event {
            EventKind::Final { view, .. } => view.rows.as_deref().map(|rows| (event.seq, rows)),
            _ => None,
        })
    }

    /// The provider's three numbers.
    pub fn counters(&self) -> Counters {
        Counters::count(self.provider().map(|(_, event)| event))
    }

    /// How many lives the worker had.
    pub fn generations(&self) -> u32 {
        self.events.iter().map(|event| event.generation).max().unwrap_or(0)
    }
}

/// Reads a history event by event, so that memory does not grow with it. It refuses what [`History::parse`]
/// refuses.
#[derive(Debug)]
pub struct HistoryReader<R> {
    input: R,
    header: Header,
    /// The line that was read last.
    line: Vec<u8>,
    lines: usize,
    events: u64,
    /// The last line was cut short.
    cut: bool,
    /// The last event was the end of the trial.
    ended: bool,
}

impl<R: BufRead> HistoryReader<R> {
    /// Reads the header.
    pub fn new(input: R) -> Result<Self, HistoryError> {
        let header = Header { format: String::new(), version: (0, 0), trial: String::new() };
        let mut reader =
            Self { input, header, line: Vec::new(), lines: 0, events: 0, cut: false, ended: false };
        reader.read_line()?;
        let header: Header = serde_json::from_str(String::from_utf8_lossy(&reader.line).trim_end())
            .map_err(|error| HistoryError::NoHeader(json_words(&error)))?;
        if header.format != "killpoint-history" {
            return Err(HistoryError::NoHeader(format!("the format is `{}`", header.format)));
        }
        if header.version.0 != FORMAT_VERSION.0 || header.version.1 > FORMAT_VERSION.1 {
            return Err(HistoryError::Newer(header.version));
        }
        reader.header = header;
        Ok(reader)
    }

    /// The first line.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The next event; `None` after the last whole one.
    pub fn next_event(&mut self) -> Result<Option<Event>, HistoryError> {
        if self.cut || !self.read_line()? {
            return Ok(None);
        }
        let bad = |why: String| HistoryError::BadLine { line: self.lines, why };
        // A worker's bytes are JSON-escaped: what is no UTF-8 is damage, and shows as text that was replaced.
        match serde_json::from_str::<Event>(String::from_utf8_lossy(&self.line).trim_end()) {
            Ok(event) if event.seq == self.events + 1 => {
                self.events = event.seq;
                self.ended = matches!(event.event, EventKind::TrialEnded);
                Ok(Some(event))
            }
            Ok(event) => Err(bad(format!("event {} follows event {}", event.seq, self.events))),
            Err(_) if self.line.last() != Some(&b'\n') => {
                self.cut = true;
                Ok(None)
            }
            Err(error) => Err(bad(json_words(&error))),
        }
    }

    /// After the last event: whether the file ended inside a line or before the end of the trial.
    pub const fn truncated(&self) -> bool {
        self.cut || !self.ended
    }

    /// Reads one line with its newline; `false` at the end.
    fn read_line(&mut self) -> Result<bool, HistoryError> {
        self.line.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1);
        let read = limited
            .read_until(b'\n', &mut self.line)
            .map_err(|error| HistoryError::Unreadable(error.to_string()))?;
        self.lines += 1;
        if read > LINE_BYTES_MAX {
            let why = format!("longer than {} MiB, which no history has", LINE_BYTES_MAX >> 20);
            return Err(HistoryError::BadLine { line: self.lines, why });
        }
        Ok(read > 0)
    }
}

/// One line with its newline.
pub fn line_of<T: Serialize>(value: &T) -> String {
    // Serialising our own types to a string cannot fail: no maps with non-string keys, no custom errors.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> History {
        let event = |seq, event| Event { seq, at_us: seq * 10, generation: 1, event };
        History {
            header: Header::new("baseline"),
            events: vec![event(1, EventKind::FaultsOver), event(2, EventKind::TrialEnded)],
            truncated: false,
        }
    }

    #[test]
    fn a_history_round_trips() {
        assert_eq!(History::parse(&sample().to_text()), Ok(sample()));
    }

    #[test]
    fn a_cut_last_line_is_truncation_not_an_error() {
        let text = sample().to_text();
        let cut =
            History::parse(&text[..text.len() - 5]).map(|history| (history.events.len(), history.truncated));
        assert_eq!(cut, Ok((1, true)));
    }

    #[test]
    fn a_bad_line_in_the_middle_and_a_gap_are_errors() {
        let text = sample().to_text().replace("faults-over", "nonsense");
        assert!(matches!(History::parse(&text), Err(HistoryError::BadLine { line: 2, .. })));
        let text = sample().to_text().replace("\"seq\":2", "\"seq\":3");
        assert!(matches!(History::parse(&text), Err(HistoryError::BadLine { line: 3, .. })));
    }

    /// Counts how many bytes were asked for so far.
    struct Counting<'a>(&'a [u8], &'a std::cell::Cell<usize>);

    impl Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }

    #[test]
    fn events_are_read_one_at_a_time_and_no_further_than_needed() {
        let mut long = sample();
        let last = long.events.pop().unwrap();
        for seq in 2..=1000 {
            long.events.push(Event { seq, ..long.events[0].clone() });
        }
        long.events.push(Event { seq: 1001, ..last });
        let text = long.to_text();
        let count = std::cell::Cell::new(0);
        let input = std::io::BufReader::with_capacity(256, Counting(text.as_bytes(), &count));
        let mut reader = HistoryReader::new(input).unwrap();
        let (mut passed, mut read) = (line_of(&long.header).len(), Vec::new());
        while let Some(event) = reader.next_event().unwrap() {
            passed += line_of(&event).len();
            assert!(count.get() <= passed + 256, "{} of {passed}", count.get());
            read.push(event);
        }
        assert_eq!((read, reader.truncated()), (long.events, false));
        assert_eq!(reader.next_event(), Ok(None));
    }

    #[test]
    fn bytes_that_are_no_text_are_damage_and_no_panic() {
        let mut bytes = sample().to_text().into_bytes();
        let at = bytes.len() - 3;
        bytes[at] = 0xff;
        assert!(matches!(History::read(&*bytes), Err(HistoryError::BadLine { line: 3, .. })));
        assert!(matches!(History::read(&[0xff_u8, 0xfe][..]), Err(HistoryError::NoHeader(_))));
        assert!(matches!(History::read(&[][..]), Err(HistoryError::NoHeader(_))));
    }

    #[test]
    fn an_older_minor_of_the_same_major_is_read() {
        let text = sample().to_text().replace(&written(FORMAT_VERSION), &written((1, 0)));
        assert!(History::parse(&text).is_ok());
    }

    fn written(version: (u32, u32)) -> String {
        serde_json::to_string(&version).unwrap()
    }

    #[test]
    fn newer_versions_are_refused() {
        for version in [(FORMAT_VERSION.0, FORMAT_VERSION.1 + 1), (FORMAT_VERSION.0 + 1, 0)] {
            let text = sample().to_text().replace(&written(FORMAT_VERSION), &written(version));
            assert_eq!(History::parse(&text), Err(HistoryError::Newer(version)));
        }
    }
}
