//! Shows a run: a computed [`View`], then one file per format.
//!
//! Pure: everything is written into a given [`Write`]. A format works on the view and never on raw
//! events, so that all formats say the same. A further format is one new file plus one line in
//! [`FORMATS`].
//!
//! Whatever a worker wrote (names, messages, bodies) is hostile text. The view keeps it as it is, only
//! shortened; each format makes it harmless for its own medium.

mod annotations;
mod html;
mod json;
mod junit;
mod markdown;
mod outcome;
mod sanitise;
mod sarif;
mod terminal;
mod view;

use std::io::{self, Write};

use killpoint_model::Entry;

pub use json::{JsonReport, REPORT_FORMAT, REPORT_VERSION, json_schema};
pub use sanitise::clean;
pub use view::{
    Boundary, ContainmentUse, Detail, EvidencePiece, Generation, Judged, NotShown, Precision, Reading,
    Repetition, Row, ShardPart, Step, StepKind, Tally, Timeline, TrialNote, View, is_bad,
};

/// How a report is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether the medium shows colour. Nothing is said by colour alone.
    pub color: bool,
    /// Columns of the medium. Down to 40 stays readable; less is taken as 40.
    pub width: usize,
    /// Where the run is recorded, as the user should read it.
    pub run_dir: Option<String>,
    /// What the invariants are about, for formats that explain them; empty where nobody needs it.
    pub invariants: Vec<Entry>,
}

impl Default for Options {
    fn default() -> Self {
        Self { color: false, width: 100, run_dir: None, invariants: Vec::new() }
    }
}

/// A report format.
pub trait Format: Sync + std::fmt::Debug {
    /// Name and texts, for help and `list formats`.
    fn entry(&self) -> &'static Entry;

    /// Writes the whole report. Only `out` can fail.
    fn write(&self, view: &View, options: &Options, out: &mut dyn Write) -> io::Result<()>;
}

/// Every report format.
pub static FORMATS: &[&dyn Format] = &[
    &terminal::Terminal,
    &json::Json,
    &junit::Junit,
    &markdown::Markdown,
    &annotations::Annotations,
    &sarif::Sarif,
    &html::Html,
];

/// Finds a format by its name.
pub fn find(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.entry().name == name)
}

/// Names and texts of all formats.
pub fn entries() -> Vec<Entry> {
    FORMATS.iter().map(|format| *format.entry()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_is_well_formed() {
        assert_eq!(killpoint_model::catalog::slice_problems(&entries()), Vec::<String>::new());
    }

    #[test]
    fn formats_are_found_by_name() {
        assert_eq!(find("json").map(|format| format.entry().name), Some("json"));
        assert!(find("carrier-pigeon").is_none());
    }
}
