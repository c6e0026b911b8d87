//! The program `killpoint`: reads the command line, calls the façade, prints what it says.
//!
//! Data goes to standard output, everything else to standard error. Exit codes are those of
//! `killpoint::model::ExitCode`.

mod code;
mod command;
mod diagnostics;
mod excerpt;
mod gate;
#[cfg(test)]
mod help;
mod invocation;
mod names;
mod preamble;
mod progress;
mod report_file;
mod show;
mod usage;

use std::process::ExitCode as ProcessExitCode;

use clap::Parser;
use command::Command;

/// Kill a worker at named boundaries, restart it on the same database, and count what recipients really
/// received.
#[derive(Debug, Parser)]
#[command(name = "killpoint", version, after_help = command::after_help(), max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ProcessExitCode {
    // The demo's worker is this program again: it must not read killpoint's own command line.
    if let Some(code) = command::demo_worker::built_in_worker() {
        return ProcessExitCode::from(code);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::complain(&error),
    };
    ProcessExitCode::from(arguments.command.run().code())
}
