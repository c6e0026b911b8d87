//! Diagnostics as data: what, where, why, what to do. Drawing them is the caller's business.

use serde::{Deserialize, Serialize};

use crate::code::DiagnosticCode;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing; the run goes on.
    Warning,
    /// The run can't go on.
    Error,
}

/// A byte range in a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// One problem in something that the user wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Stable kebab-case code, such as `unknown-key`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, a lower-case fragment.
    pub message: String,
    /// The file, as the user named it.
    pub file: Option<String>,
    /// Where in the file.
    pub span: Option<Span>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(code: impl DiagnosticCode, message: impl Into<String>) -> Self {
        Self {
            code: code.entry().name.to_owned(),
            severity: Severity::Error,
            message: message.into(),
            file: None,
            span: None,
            help: None,
        }
    }

    /// The same as a warning: the run goes on.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// The same, with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, at a place.
    #[must_use]
    pub fn at(mut self, file: &str, span: Option<Span>) -> Self {
        self.file = Some(file.to_owned());
        self.span = span;
        self
    }
}

/// A word that is not in a closed list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word `{word}`{}", suggestion_text(.nearest.as_deref(), .known))]
pub struct UnknownWord {
    /// What was written.
    pub word: String,
    /// The known word that is nearest, if any is near.
    pub nearest: Option<String>,
    /// All the known words.
    pub known: Vec<String>,
}

fn suggestion_text(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(word) => format!("; did you mean `{word}`?"),
        None => format!("; one of: {}", known.join(", ")),
    }
}

impl UnknownWord {
    /// Finds the nearest of `known` to `word`.
    pub fn new<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
        Self { word: word.to_owned(), nearest: nearest(word, known.iter().map(String::as_str)), known }
    }
}

/// The candidate that the user most likely meant, if one is near enough to be worth naming.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(score, _)| *score >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_a_typo_and_is_silent_on_nonsense() {
        assert_eq!(nearest("comitted", ["committed", "received"]), Some("committed".into()));
        assert_eq!(nearest("zzz", ["committed", "received"]), None);
    }
}
