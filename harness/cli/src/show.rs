//! Writing to the two streams and to files. A closed pipe ends the program quietly.

use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice};
use killpoint::model::ExitCode;
use killpoint::reports::{Format, Options, View};

use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::invocation::Color;

/// Columns where there is no terminal to ask.
const WIDTH_DEFAULT: usize = 100;

/// Columns of the terminal on standard output.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0))
}

/// Whether a report on standard output is coloured. `--color` comes first; then, as everywhere, NO_COLOR before
/// CLICOLOR_FORCE, and last whether there is a terminal that shows colour.
pub(crate) fn is_colored(color: Color) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
    }
}

/// Writes a report to standard output.
pub(crate) fn write_stdout(format: &dyn Format, view: &View, options: &Options) -> Result<(), ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    written(format.write(view, options, &mut out).and_then(|()| out.flush()))
}

/// Prints data.
pub(crate) fn lines_to_stdout(text: &str) -> Result<(), ExitCode> {
    let mut out = io::stdout().lock();
    written(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Prints what is no data.
pub(crate) fn lines_to_stderr(text: &str) {
    // There is no place left to say that standard error can't be written.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints advice.
pub(crate) fn note(text: &str) {
    lines_to_stderr(&format!("note: {text}"));
}

fn written(result: io::Result<()>) -> Result<(), ExitCode> {
    match result {
        Ok(()) => Ok(()),
        // `killpoint … | head` is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let what = format!("standard output can't be written: {error}");
            Diagnosed::one(Code::OutputUnwritten, &what).complain();
            Err(ExitCode::SetupFailed)
        }
    }
}
