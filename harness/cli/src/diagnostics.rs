//! Draws diagnostics: file, line, what is wrong, what to do.

use std::path::Path;

use annotate_snippets::{Level, Renderer};
use killpoint::RunError;
use killpoint::model::{Diagnostic, DiagnosticCode, ExitCode, Severity};
use killpoint::scenarios::Loaded;

use crate::excerpt;
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
            "name another file with --config or --scenario, or give the worker's command after `--`"
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
    let message = harmless(&problem.message);
    // Where nothing is said of what to do, the explanation says it.
    let help = match &problem.help {
        Some(help) => harmless(help),
        None => format!("`killpoint explain {}` says more", problem.code),
    };
    let mut group =
        annotate_snippets::Group::with_title(level.primary_title(message).id(problem.code.as_str()));
    if let (Some(file), Some(span)) = (&problem.file, problem.span) {
        group = excerpt::add(group, file, text, span);
    }
    Renderer::plain().render(&[group.element(Level::HELP.message(help))])
}

/// The text on one line, without what a terminal would obey, and of a bounded length.
fn harmless(text: &str) -> String {
    let mut shown: String =
        text.chars().take(TEXT_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(TEXT_MAX).is_some() {
        shown.push('…');
    }
    shown
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
    fn where_nothing_is_advised_the_explanation_is_named() {
        let drawn = draw(&Diagnostic::error(Code::Syntax, "no TOML").as_warning(), "");
        assert_eq!(drawn, "warning[syntax]: no TOML\n |\n = help: `killpoint explain syntax` says more");
    }

    #[test]
    fn what_a_user_wrote_is_quoted_without_harm_and_in_bounds() {
        let text = format!("`a\u{1b}[31mb\n{}`", "x".repeat(1_000_000));
        let drawn = draw(&Diagnostic::error(Code::BadText, &text).with_help(&text), "");
        assert!(drawn.len() < 2500 && !drawn.contains('\u{1b}'), "{}", drawn.len());
        assert_eq!(drawn.lines().count(), 3, "{drawn}");
    }
}
