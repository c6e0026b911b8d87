//! What `--help` prints, for every command that there is: a new one is shown here without being listed.

use clap::{Command, CommandFactory};

/// Columns of the narrowest terminal that the help is laid out for.
const COLUMNS: usize = 80;

/// The help of a command and of all below it, by their names.
fn helps(command: &mut Command) -> Vec<(String, String)> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let text = command.render_long_help().to_string();
    let mut all = vec![(name, text)];
    all.extend(command.get_subcommands_mut().filter(|sub| sub.get_name() != "help").flat_map(helps));
    all
}

fn all() -> Vec<(String, String)> {
    let mut command = crate::Arguments::command().term_width(COLUMNS);
    command.build();
    helps(&mut command)
}

#[test]
fn the_help_of_every_command() {
    for (name, text) in all() {
        let text: Vec<&str> = text.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(name, text.join("\n"));
    }
}

#[test]
fn no_help_is_wider_than_its_terminal() {
    for (name, text) in all() {
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= COLUMNS, "{name}: {widest}");
    }
}

#[test]
fn no_snapshot_is_of_a_command_that_is_gone() {
    let known: Vec<String> =
        all().into_iter().map(|(name, _)| format!("killpoint__help__{name}.snap")).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/snapshots");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        assert!(!file.starts_with("killpoint__help__") || known.contains(&file), "{file}: remove it");
    }
}
