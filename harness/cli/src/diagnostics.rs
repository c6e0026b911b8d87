//! Draws diagnostics: file, line, what is wrong, what to do.

use std::path::Path;

use annotate_snippets::{Level, Renderer};
use killpoint::RunError;
use killpoint::model::{Diagnostic, DiagnosticCode, ExitCode, Severity};
use killpoint::scenarios::Loaded;

use crate::excerpt::Excerpt;
use crate::show;

/// Problems shown at once: what follows so many is noise.
const PROBLEMS_MAX: usize = 50;
/// Characters of a message or of advice, which may quote what the user wrote.
const TEXT_MAX: usize = 1000;

/// Problems in what the user wrote, with the text that they point into.
#[derive(Debug)]
pub(crate) struct Diagnosed {
    problems: Vec<Diagnostic>,
    text: String,
}

impl Diagnosed {
    /// One problem of the command line.
    pub(crate) fn one(code: impl DiagnosticCode, message: &str) -> Self {
        Self::plain(vec![Diagnostic::error(code, message)])
    }

    /// One problem of the command line, with advice.
    pub(crate) fn helped(code: impl DiagnosticCode, message: &str, help: &str) -> Self {
        Self::plain(vec![Diagnostic::error(code, message).with_help(help)])
    }

    /// One warning: the run goes on.
    pub(crate) fn warning(code: impl DiagnosticCode, message: &str) -> Self {
        Self::plain(vec![Diagnostic::error(code, message).as_warning()])
    }

    /// Problems that point into no text.
    pub(crate) fn plain(problems: Vec<Diagnostic>) -> Self {
        Self { problems, text: String::new() }
    }

    /// Prints all of them.
    pub(crate) fn complain(&self) -> ExitCode {
        for problem in self.problems.iter().take(PROBLEMS_MAX) {
            show::lines_to_stderr(&draw(problem, &self.text));
        }
        let left_out = self.problems.len().saturating_sub(PROBLEMS_MAX);
        if left_out > 0 {
            show::note(&format!("{left_out} more problems are not shown; correct these first"));
        }
        ExitCode::InvalidConfig
    }
}

/// Says why a run gave no verdict.
pub(crate) fn complain_of_run(error: &RunError) -> ExitCode {
    Diagnosed::plain(error.diagnostics()).complain();
    error.exit_code()
}

/// Reads a file and what is in it. Warnings are printed; errors are returned.
pub(crate) fn load<T>(path: &Path, read: impl FnOnce(&str, &str) -> Loaded<T>) -> Result<T, Diagnosed> {
    let text = killpoint::read_text(path).map_err(|unreadable| {
        let killpoint::Unreadable { mut problem, text } = *unreadable;
        problem.help.get_or_insert_with(|| {
            "name another file with --config or --scenario, give the worker's command after `--`, or let `killpoint init` \
             propose a configuration"
                .to_owned()
        });
        Diagnosed { problems: vec![problem], text }
    })?;
    value_of(read(&text, &path.display().to_string()), &text)
}

/// The value of something that was loaded. Warnings are printed; errors are returned.
pub(crate) fn value_of<T>(loaded: Loaded<T>, text: &str) -> Result<T, Diagnosed> {
    let (errors, warnings): (Vec<_>, Vec<_>) =
        loaded.diagnostics.into_iter().partition(|problem| problem.severity == Severity::Error);
    for warning in warnings.iter().take(PROBLEMS_MAX) {
        show::lines_to_stderr(&draw(warning, text));
    }
    match loaded.value {
        Some(value) if errors.is_empty() => Ok(value),
        _ => Err(Diagnosed { problems: errors, text: text.to_owned() }),
    }
}

fn draw(problem: &Diagnostic, text: &str) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let (message, help) = advised(problem);
    let title = level.primary_title(harmless(&message)).id(problem.code.as_str());
    let mut group = annotate_snippets::Group::with_title(title);
    let place = problem.file.as_ref().zip(problem.span.and_then(|span| Excerpt::of(text, span)));
    if let Some((file, excerpt)) = &place {
        group = group.element(excerpt.snippet(file));
    }
    let drawn = Renderer::plain().render(&[group.element(Level::HELP.message(harmless(&help)))]);
    match place {
        Some((file, excerpt)) => excerpt.placed(drawn, file),
        None => drawn,
    }
}

/// What is wrong, and what to do: the advice that came with it, or that is part of the message, or else the command that
/// explains the code.
fn advised(problem: &Diagnostic) -> (String, String) {
    let message = problem.message.clone();
    if let Some(help) = &problem.help {
        return (message, help.clone());
    }
    match message.split_once("; ") {
        Some((what, help)) => (what.to_owned(), help.to_owned()),
        None => (message, format!("`killpoint explain {}` says more", problem.code)),
    }
}

/// The text on one line, without what a terminal would obey, and of a bounded length. Of the system's errors the words
/// are kept, not the numbers.
fn harmless(text: &str) -> String {
    let text = without_numbers(text);
    let mut shown: String =
        text.chars().take(TEXT_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(TEXT_MAX).is_some() {
        shown.push('…');
    }
    shown
}

fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += part.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(')');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint::model::Span;
    use killpoint::scenarios::Code;

    #[test]
    fn a_diagnostic_shows_file_line_and_advice() {
        let problem = Diagnostic::error(Code::UnknownKey, "unknown key `comand`")
            .with_help("did you mean `command`?")
            .at("killpoint.toml", Some(Span { start: 9, end: 15 }));
        let drawn = draw(&problem, "[worker]\ncomand = 1\n");
        for part in ["error[unknown-key]: unknown", "killpoint.toml:2:1", "did you mean `command`?"] {
            assert!(drawn.contains(part), "{drawn}");
        }
        assert!(!drawn.contains("killpoint explain"), "{drawn}");
    }

    #[test]
    fn the_column_is_that_of_the_line_though_only_a_piece_is_drawn() {
        let text = format!("a = \"{}\", comand = 1\n", "x".repeat(1000));
        let start = text.find("comand").unwrap();
        let problem = Diagnostic::error(Code::UnknownKey, "unknown key `comand`")
            .at("a.toml", Some(Span { start, end: start + 6 }));
        let drawn = draw(&problem, &text);
        assert!(drawn.contains(&format!(" --> a.toml:1:{}\n", start + 1)), "{drawn}");
        assert!(drawn.lines().all(|line| line.chars().count() < 140), "{drawn}");
    }

    #[test]
    fn of_an_error_of_the_system_its_words_are_kept() {
        let error = std::io::Error::from_raw_os_error(2);
        assert_eq!(
            harmless(&format!("a: {error}; b: {error}.")),
            "a: No such file or directory; b: No such file or directory."
        );
    }

    #[test]
    fn where_nothing_is_advised_the_explanation_is_named() {
        let drawn = draw(&Diagnostic::error(Code::Syntax, "no TOML").as_warning(), "");
        assert_eq!(drawn, "warning[syntax]: no TOML\n |\n = help: `killpoint explain syntax` says more");
    }

    #[test]
    fn advice_that_is_part_of_a_message_is_set_apart() {
        let drawn = draw(&Diagnostic::error(Code::BadText, "a is bad; write b; or c"), "");
        assert_eq!(drawn, "error[bad-text]: a is bad\n |\n = help: write b; or c");
    }

    #[test]
    fn what_a_user_wrote_is_quoted_without_harm_and_in_bounds() {
        let text = format!("`a\u{1b}[31mb\n{}`", "x".repeat(1_000_000));
        let drawn = draw(&Diagnostic::error(Code::BadText, &text).with_help(&text), "");
        assert!(drawn.len() < 2500 && !drawn.contains('\u{1b}'), "{}", drawn.len());
        assert_eq!(drawn.lines().count(), 3, "{drawn}");
    }
}
