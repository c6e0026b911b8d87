//! `killpoint man`: manual pages, made from the same command line as `--help`.

use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};
use killpoint::model::ExitCode;

use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::show;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for the program and one for each subcommand into this folder, which is made if it is not there
    /// [default: the program's page, to standard output]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Variables that the program reads, and what they do.
const READ: &[(&str, &str)] = &[
    ("NO_COLOR", "If it is set, nothing is coloured."),
    ("COLUMNS", "How wide the help is where no terminal says so."),
];

/// Variables that a worker is given, and what they hold. Templates of the configuration hold the same.
const GIVEN: &[(&str, &str)] = &[
    ("PROVIDER_URL", "The fake provider's address; without a configuration only."),
    ("STATE_DIR", "The folder that is fresh for each trial; without a configuration only."),
    ("WORKER_DB", "A path for a database in that folder; without a configuration only."),
    ("KILLPOINT_SOCKET", "Where the worker's marks go. Without it a mark does nothing."),
    (
        "KILLPOINT_CLOCK_OFFSET_MS",
        "What the worker adds to its clock, in milliseconds, where the configuration says that it moves its clock itself.",
    ),
];

/// Files, and what they are.
const FILES: &[(&str, &str)] = &[
    ("killpoint.toml", "The configuration, unless --config names another one."),
    ("killpoint-runs/", "Where runs are stored, unless --run-dir names a folder."),
    ("killpoint/regressions/", "Counterexamples that exploring found. Each sweep tries them first."),
];

impl Man {
    pub(crate) fn run(self) -> ExitCode {
        // Exit codes have a section of their own, and `help` has no page.
        let mut command =
            crate::Arguments::command().after_help(Resettable::Reset).disable_help_subcommand(true);
        command.build();
        let Some(folder) = self.out else {
            return match page(&command, true) {
                Ok(text) => show::lines_to_stdout(text.trim_end()).err().unwrap_or(ExitCode::Holds),
                Err(error) => unwritten("the manual page", &error),
            };
        };
        match write_all(&command, &folder) {
            Ok(()) => ExitCode::Holds,
            Err(error) => unwritten(&folder.display().to_string(), &error),
        }
    }
}

fn unwritten(what: &str, error: &std::io::Error) -> ExitCode {
    Diagnosed::one(Code::FileUnwritten, &format!("{what} can't be written: {error}")).complain();
    ExitCode::SetupFailed
}

/// Writes the page of a command and those of its subcommands.
fn write_all(command: &Command, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let is_program = command.get_display_name().is_none_or(|name| name == command.get_name());
    let name = command.get_display_name().unwrap_or(command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), page(command, is_program)?)?;
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    subcommands.into_iter().try_for_each(|sub| write_all(sub, folder))
}

/// One page. The program's own has what holds for all commands.
fn page(command: &Command, is_program: bool) -> std::io::Result<String> {
    let page = Page::new(command.clone()).manual("killpoint");
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if is_program {
        page.render_subcommands_section(&mut out)?;
    }
    let mut roff = Roff::new();
    let codes: Vec<(String, &str)> =
        ExitCode::ALL.iter().map(|code| (code.code().to_string(), code.meaning())).collect();
    section(&mut roff, "EXIT STATUS", "", codes.iter().map(|(code, meaning)| (code.as_str(), *meaning)));
    if is_program {
        section(&mut roff, "ENVIRONMENT", "The program reads:", READ.iter().copied());
        let given = "A worker is given, beside the variables of its configuration:";
        paragraphs(&mut roff, given, GIVEN.iter().copied());
        section(&mut roff, "FILES", "", FILES.iter().copied());
    }
    roff.to_writer(&mut out)?;
    if is_program {
        page.render_version_section(&mut out)?;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn section<'a>(
    roff: &mut Roff,
    title: &str,
    introduction: &str,
    terms: impl Iterator<Item = (&'a str, &'a str)>,
) {
    roff.control("SH", [title]);
    paragraphs(roff, introduction, terms);
}

/// Terms, each with its meaning.
fn paragraphs<'a>(roff: &mut Roff, introduction: &str, terms: impl Iterator<Item = (&'a str, &'a str)>) {
    if !introduction.is_empty() {
        roff.control("PP", []);
        roff.text([roman(introduction)]);
    }
    for (term, meaning) in terms {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_program_has_what_holds_for_all_commands() {
        let mut command = crate::Arguments::command();
        command.build();
        let text = page(&command, true).unwrap();
        for title in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "SUBCOMMANDS",
            "\"EXIT STATUS\"",
            "ENVIRONMENT",
            "FILES",
        ] {
            assert!(text.contains(&format!("\n.SH {title}\n")), "{title}\n{text}");
        }
        for (term, _) in READ.iter().chain(GIVEN) {
            assert!(text.contains(&format!("\\fB{term}\\fR")), "{term}");
        }
        for code in ExitCode::ALL {
            assert!(text.contains(&format!("\n.TP\n\\fB{}\\fR\n", code.code())), "{}", code.code());
        }
    }
}
