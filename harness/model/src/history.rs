//! The history of one trial: JSON Lines, a versioned header line and then events. Pure: text in, text out.
//!
//! Version rules: a higher `major` can't be read; a higher `minor` of the same major can't be read
//! either, because it may hold events that this program would overlook, and an overlooked event is a
//! wrong verdict. Older minors of the same major can.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind};
use crate::ledger::{LedgerRow, LedgerView};
use crate::provider::{Attempt, Counters, Effect, ProviderEvent};

/// Version of the format: major, minor.
pub const FORMAT_VERSION: (u32, u32) = (1, 2);

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
}

impl History {
    /// Reads a history. A last line that is cut short is dropped and noted in `truncated`; any other
    /// unreadable line is an error.
    pub fn parse(text: &str) -> Result<Self, HistoryError> {
        let mut lines = text.split_inclusive('\n').enumerate();
        let first = lines.next().map_or("", |(_, line)| line);
        let header: Header =
            serde_json::from_str(first.trim_end()).map_err(|e| HistoryError::NoHeader(e.to_string()))?;
        if header.format != "killpoint-history" {
            return Err(HistoryError::NoHeader(format!("the format is `{}`", header.format)));
        }
        if header.version.0 != FORMAT_VERSION.0 || header.version.1 > FORMAT_VERSION.1 {
            return Err(HistoryError::Newer(header.version));
        }
        let mut events = Vec::new();
        let mut cut = false;
        for (index, line) in lines {
            match serde_json::from_str::<Event>(line.trim_end()) {
                Ok(event) if event.seq == events.len() as u64 + 1 => events.push(event),
                Ok(event) => {
                    let why = format!("event {} follows event {}", event.seq, events.len());
                    return Err(HistoryError::BadLine { line: index + 1, why });
                }
                Err(_) if !line.ends_with('\n') => cut = true,
                Err(e) => return Err(HistoryError::BadLine { line: index + 1, why: e.to_string() }),
            }
        }
        let ended = matches!(events.last().map(|event| &event.event), Some(EventKind::TrialEnded));
        Ok(Self { header, events, truncated: cut || !ended })
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
