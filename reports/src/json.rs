//! The `json` format: the whole view, versioned, for programs.

use std::fmt::Write as _;
use std::io::{self, Write};

use killpoint_model::Entry;
use schemars::JsonSchema;
use serde::Serialize;

use crate::sanitise::is_hazard;
use crate::{Format, Options, View};

/// What `format` says in every JSON report.
pub const REPORT_FORMAT: &str = "killpoint-report";

/// Version of the JSON report: major, minor. A higher minor adds fields; a higher major changes or
/// removes some.
pub const REPORT_VERSION: (u32, u32) = (1, 3);

/// A JSON report: the view, with what a reader needs to know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JsonReport<'a> {
    /// Always `killpoint-report`.
    #[schemars(extend("const" = REPORT_FORMAT))]
    pub format: &'static str,
    /// Major and minor.
    pub version: (u32, u32),
    /// Where the run is recorded.
    pub run_dir: Option<&'a str>,
    /// The exit code of the run.
    pub exit_code: u8,
    /// What the exit code means.
    pub exit_meaning: String,
    /// Everything else.
    #[serde(flatten)]
    pub view: &'a View,
}

impl<'a> JsonReport<'a> {
    /// The report of a view.
    pub fn new(view: &'a View, options: &'a Options) -> Self {
        let exit_code = view.exit_code();
        Self {
            format: REPORT_FORMAT,
            version: REPORT_VERSION,
            run_dir: options.run_dir.as_deref(),
            exit_code: exit_code.code(),
            exit_meaning: view.exit_meaning(),
            view,
        }
    }
}

/// The JSON schema of the JSON report.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(JsonReport<'static>).to_value()
}

/// The format.
#[derive(Debug)]
pub(crate) struct Json;

static ENTRY: Entry = Entry {
    name: "json",
    summary: "the whole result as one versioned JSON document",
    explanation: "Everything that a run shows: verdicts, rows, findings with the numbers of the events \
                  that show them, actions, timelines, replay commands. `format` is `killpoint-report`, and \
                  `version` is major and minor: a higher minor only adds fields. Texts of the worker are in \
                  it as they were, with invisible and control characters escaped; they are not to be \
                  trusted.",
    example: "killpoint run --report json=killpoint.json",
};

impl Format for Json {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn write(&self, view: &View, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&JsonReport::new(view, options))?;
        writeln!(out, "{}", escape_hazards(&text))
    }
}

/// Escapes what serde_json leaves as it is though a terminal might obey it. Outside of strings JSON
/// has only ASCII and line feeds, so that this can work on the whole text.
pub(crate) fn escape_hazards(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_hazard(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_hazards_read_back_as_the_same_text() {
        let text = "a\u{9b}b\u{202e}c\u{e0041}d\u{7f}\n";
        let json = escape_hazards(&serde_json::to_string(text).unwrap());
        assert!(!json.chars().any(is_hazard), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
