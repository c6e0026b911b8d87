//! Draws diagnostics: file, line, what is wrong, what to do.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use killpoint::model::{Diagnostic, ExitCode, Severity};
use killpoint::scenarios::Loaded;

use crate::show;

/// Problems in what the user wrote, with the text that they point into.
#[derive(Debug)]
pub(crate) struct Diagnosed {
    problems: Vec<Diagnostic>,
    text: String,
}

impl Diagnosed {
    /// One problem of the command line.
    pub(crate) fn one(code: &str, message: &str) -> Self {
        Self::plain(vec![Diagnostic::error(code, message)])
    }

    /// One problem of the command line, with advice.
    pub(crate) fn helped(code: &str, message: &str, help: &str) -> Self {
        Self::plain(vec![Diagnostic::error(code, message).with_help(help)])
    }

    /// Problems that point into no text.
    pub(crate) fn plain(problems: Vec<Diagnostic>) -> Self {
        Self { problems, text: String::new() }
    }

    /// Prints all of them.
    pub(crate) fn complain(&self) -> ExitCode {
        for problem in &self.problems {
            show::lines_to_stderr(&draw(problem, &self.text));
        }
        ExitCode::InvalidConfig
    }
}

/// Reads a file and what is in it. Warnings are printed; errors are returned.
pub(crate) fn load<T>(path: &Path, read: impl FnOnce(&str, &str) -> Loaded<T>) -> Result<T, Diagnosed> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let help = "name another file with --config or --scenario, or give the worker's command after `--`";
        Diagnosed::plain(vec![
            Diagnostic::error("unreadable-file", format!("{file}: {error}")).with_help(help),
        ])
    })?;
    value_of(read(&text, &file), &text)
}

/// The value of something that was loaded. Warnings are printed; errors are returned.
pub(crate) fn value_of<T>(loaded: Loaded<T>, text: &str) -> Result<T, Diagnosed> {
    let (errors, warnings): (Vec<_>, Vec<_>) =
        loaded.diagnostics.into_iter().partition(|problem| problem.severity == Severity::Error);
    for warning in warnings {
        show::lines_to_stderr(&draw(&warning, text));
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
    let title = level.primary_title(problem.message.as_str()).id(problem.code.as_str());
    let mut group = annotate_snippets::Group::with_title(title);
    if let (Some(file), Some(span)) = (&problem.file, problem.span)
        && span.end <= text.len()
        && span.start <= span.end
    {
        let mark = AnnotationKind::Primary.span(span.start..span.end);
        group = group.element(Snippet::source(text).path(file.as_str()).annotation(mark));
    }
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    Renderer::plain().render(&[group]).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint::model::Span;

    #[test]
    fn a_diagnostic_shows_file_line_and_advice() {
        let problem = Diagnostic::error("unknown-key", "unknown key `comand`")
            .with_help("did you mean `command`?")
            .at("killpoint.toml", Some(Span { start: 9, end: 15 }));
        let drawn = draw(&problem, "[worker]\ncomand = 1\n");
        for part in ["unknown-key", "killpoint.toml:2:1", "did you mean `command`?"] {
            assert!(drawn.contains(part), "{drawn}");
        }
    }
}
