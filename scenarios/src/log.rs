//! Collects the diagnostics of one file.

use killpoint_model::diagnostic::nearest;
use killpoint_model::{Diagnostic, Severity, Span};

use crate::code::Code;

/// Syntax errors shown at most: what follows the first few of a broken file is noise.
const SYNTAX_ERRORS_MAX: usize = 20;

/// What was read from a file, and all that is to be said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<T> {
    /// The value; `None` where any diagnostic is an error.
    pub value: Option<T>,
    /// All problems, in the order of their places in the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// A text with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Log<'f> {
    file: &'f str,
    diagnostics: Vec<Diagnostic>,
}

impl<'f> Log<'f> {
    pub(crate) fn new(file: &'f str) -> Self {
        Self { file, diagnostics: Vec::new() }
    }

    pub(crate) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Error, code, Some(span), message.into(), Some(help.into()));
    }

    pub(crate) fn warning(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Warning, code, Some(span), message.into(), Some(help.into()));
    }

    fn push(
        &mut self,
        severity: Severity,
        code: Code,
        span: Option<Span>,
        message: String,
        help: Option<String>,
    ) {
        let mut diagnostic = Diagnostic::error(code, message).at(self.file, span);
        diagnostic.severity = severity;
        diagnostic.help = help;
        self.diagnostics.push(diagnostic);
    }

    /// Notes a word that is none of `known`.
    pub(crate) fn unknown_word(&mut self, what: &str, word: &Placed<&str>, known: &[&str]) {
        let message = format!("`{}` is no {what}", word.value);
        self.error(Code::UnknownWord, word.span, message, did_you_mean(word.value, known));
    }

    /// Notes what the parser says of `text`.
    pub(crate) fn syntax(&mut self, text: &str, errors: &[toml::de::Error]) {
        for error in errors.iter().take(SYNTAX_ERRORS_MAX) {
            let span = error
                .span()
                .map_or(Span { start: 0, end: 0 }, |range| Span { start: range.start, end: range.end });
            let message = error.message().trim_end().replace('\n', ", ");
            if message.contains("recursion") {
                let help = "write deep data as a text, or in a file of the worker's own";
                self.error(Code::Syntax, span, "lists and tables are nested too deeply to be read", help);
            } else if message == "duplicate key" {
                let key = text.get(span.start..span.end).unwrap_or_default();
                self.error(Code::Duplicate, span, format!("`{key}` is there twice"), "keep one of them");
            } else {
                self.push(Severity::Error, Code::Syntax, Some(span), message, None);
            }
        }
    }

    pub(crate) fn finish<T>(mut self, value: Option<T>) -> Loaded<T> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
        let failed = self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        Loaded { value: value.filter(|_| !failed), diagnostics: self.diagnostics }
    }
}

/// The help for a word that is none of `known`.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("one of: {}", known.join(", ")),
    }
}
