//! `killpoint completions SHELL`: a script for a shell to load.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use killpoint::model::ExitCode;

use crate::names::{Named, everything};
use crate::show;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell that loads the script
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments that take the name of a thing of some kind, by their ids.
const NAMES: &[(&str, &str)] = &[("scenario", "scenarios"), ("profile", "profiles")];

/// Arguments that take a path or a command, by what their value is called.
const PATHS: &[(&str, ValueHint)] = &[
    ("FILE", ValueHint::FilePath),
    ("DIR", ValueHint::DirPath),
    ("RUN", ValueHint::DirPath),
    ("CMD", ValueHint::CommandWithArguments),
];

impl Completions {
    pub(crate) fn run(self) -> ExitCode {
        let mut command = completed(crate::Arguments::command(), &everything());
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "killpoint", &mut script);
        show::lines_to_stdout(String::from_utf8_lossy(&script).trim_end()).err().unwrap_or(ExitCode::Holds)
    }
}

/// The command line with all the values that can be named. The program itself takes more: a name that nobody knows has
/// an error of its own, and a scenario may be a file.
fn completed(command: Command, all: &[Named]) -> Command {
    let bugs: Vec<String> = outbox_worker::BUGS.iter().map(|bug| bug.name.to_owned()).collect();
    let command = command.mut_subcommands(|sub| sub.mut_args(|arg| with_values(arg, all, &bugs)));
    let names = all.iter().map(|named| named.name.clone());
    let mut kinds: Vec<&str> = all.iter().map(|named| named.kind).collect();
    kinds.dedup();
    command
        .mut_subcommand("explain", |sub| sub.mut_arg("name", |arg| values(arg, names)))
        .mut_subcommand("list", |sub| sub.mut_arg("kind", |arg| values(arg, kinds)))
}

fn with_values(arg: Arg, all: &[Named], bugs: &[String]) -> Arg {
    let id = arg.get_id().as_str();
    if id == "bug" {
        return values(arg, bugs.to_vec());
    }
    if let Some((_, kind)) = NAMES.iter().find(|(name, _)| *name == id) {
        let names = all.iter().filter(|named| named.kind == *kind).map(|named| named.name.clone());
        return values(arg, names);
    }
    let called = arg.get_value_names().and_then(|names| names.first()).map_or(id, |name| name.as_str());
    match PATHS.iter().find(|(name, _)| name.eq_ignore_ascii_case(called)) {
        Some((_, hint)) => arg.value_hint(*hint),
        None => arg,
    }
}

fn values<T: Into<clap::builder::PossibleValue>>(arg: Arg, values: impl IntoIterator<Item = T>) -> Arg {
    arg.value_parser(PossibleValuesParser::new(values))
}
