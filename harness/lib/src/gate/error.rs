//! Why a gate gave no verdict.

use std::fmt;
use std::io;
use std::path::PathBuf;

use killpoint_model::Diagnostic;

use crate::code::Code;
use crate::error::RunError;
use crate::text_file::Unreadable;

/// A gate that could not be carried through. Its `Debug` is the same text as its `Display`, because that is what
/// `unwrap` and a test that returns a `Result` print.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The current folder can't be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The operating system's words.
        error: io::Error,
    },
    /// The configuration, a scenario or a boundary is invalid: everything that is wrong, a line each.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
    /// The run gave no verdict, such as where the worker can't be started.
    #[error(transparent)]
    Run(RunError),
    /// The threads in which trials run can't be started.
    #[error("can't start threads: {0}")]
    Threads(io::Error),
}

impl fmt::Debug for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<RunError> for GateError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Invalid(diagnostics) => Self::Invalid(problems(diagnostics, "")),
            other => Self::Run(other),
        }
    }
}

/// One thing that is wrong in what the test asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What, in which file, and what to do.
    pub diagnostic: Diagnostic,
    /// Line and column in that file, from 1; absent where it is about the whole or about no file.
    pub place: Option<(usize, usize)>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { code, message, file, help, .. } = &self.diagnostic;
        if let Some(file) = file {
            write!(f, "{file}:")?;
            if let Some((line, column)) = self.place {
                write!(f, "{line}:{column}:")?;
            }
            write!(f, " ")?;
        }
        write!(f, "{message} [{code}]")?;
        help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// Diagnostics with their lines in the text that they point into.
pub(super) fn problems(diagnostics: Vec<Diagnostic>, text: &str) -> Vec<Problem> {
    let place = |diagnostic: &Diagnostic| {
        let before = text.get(..diagnostic.span?.start)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Some((before.matches('\n').count() + 1, before[line_start..].chars().count() + 1))
    };
    diagnostics.into_iter().map(|diagnostic| Problem { place: place(&diagnostic), diagnostic }).collect()
}

/// A file that gives no text.
pub(super) fn unreadable(Unreadable { problem, text }: Unreadable) -> GateError {
    GateError::Invalid(problems(vec![problem], &text))
}

/// One problem that points into no file.
pub(super) fn one(code: Code, message: &str) -> GateError {
    GateError::Invalid(problems(vec![Diagnostic::error(code, message)], ""))
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::Span;

    #[test]
    fn a_problem_names_file_line_and_advice() {
        let text = "é = 1\n[worker]\nößcomand = 1\n";
        let start = text.find("comand").unwrap();
        let diagnostic = Diagnostic::error(killpoint_scenarios::Code::UnknownKey, "unknown key `comand`")
            .with_help("did you mean `command`?")
            .at("k.toml", Some(Span { start, end: start + 6 }));
        let error = GateError::Invalid(problems(vec![diagnostic], text));
        assert_eq!(
            error.to_string(),
            "k.toml:3:3: unknown key `comand` [unknown-key]; did you mean `command`?"
        );
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn what_the_run_refuses_is_shown_in_full() {
        let refused = RunError::Invalid(vec![
            Diagnostic::error(Code::BadParameter, "late: fault `x`: no"),
            Diagnostic::error(Code::UnknownBoundary, "no such mark"),
        ]);
        assert_eq!(
            GateError::from(refused).to_string(),
            "late: fault `x`: no [bad-parameter]\nno such mark [unknown-boundary]"
        );
    }
}
