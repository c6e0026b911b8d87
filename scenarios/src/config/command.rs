//! Commands and variables.

use std::collections::BTreeMap;

use killpoint_model::Span;
use killpoint_model::settings::CommandSettings;

use super::Context;
use crate::code::Code;
use crate::item::Item;
use crate::log::{Log, Placed};
use crate::table::Table;
use crate::template::{self, Place};

/// How the names of database files end.
const DATABASE_ENDS: &[&str] = &[".db", ".db3", ".sqlite", ".sqlite3"];

/// Reads the words of a command. `base` gives the variables and the working directory.
pub(super) fn read(
    item: &Item,
    base: &CommandSettings,
    place: Place,
    context: Context,
    log: &mut Log,
) -> Option<CommandSettings> {
    let words = item.texts(log)?;
    if words.first().is_none_or(|word| word.value.trim().is_empty()) {
        // Words that are no texts were noted already, and leave the list short.
        if item.elements().is_some_and(|elements| elements.len() == words.len()) {
            let help = "write the program and its arguments: `[\"python3\", \"worker.py\"]`";
            log.error(Code::EmptyValue, item.span, format!("`{}` names no program", item.path), help);
        }
        return None;
    }
    for word in &words {
        template::check(word.value, word.span, place, context.dialect, log);
        check_outside(word.value, word.span, context, log);
    }
    Some(CommandSettings { argv: words.iter().map(|word| word.value.to_owned()).collect(), ..base.clone() })
}

/// Reads a section that holds one command and nothing else.
pub(super) fn read_section(
    mut table: Table,
    example: &str,
    base: &CommandSettings,
    context: Context,
    log: &mut Log,
) -> Option<CommandSettings> {
    let words = table.required("command", &format!("write the command: `command = {example}`"), log);
    table.close(log);
    words.and_then(|item| read(&item, base, Place::Command, context, log))
}

/// Reads variables.
pub(super) fn read_env(item: &Item, context: Context, log: &mut Log) -> BTreeMap<String, String> {
    let Some(table) = item.table(log) else { return BTreeMap::new() };
    let mut env = BTreeMap::new();
    for (name, span, item) in table.entries() {
        check_variable(&Placed { value: name, span }, log);
        if let Some(text) = item.any_text(log) {
            template::check(text.value, text.span, Place::Command, context.dialect, log);
            check_outside(text.value, text.span, context, log);
            env.insert(name.to_owned(), text.value.to_owned());
        }
    }
    env
}

/// Notes a database file that is not in the trial's state: trials would share it, and it may be a real one. Whoever
/// means that names it under `[state]`.
fn check_outside(text: &str, span: Span, context: Context, log: &mut Log) {
    if text.contains('{') {
        return;
    }
    let pieces = text.split(|c: char| c == '=' || c == ';' || c == ',' || c.is_whitespace());
    let files = pieces.map(|piece| piece.rsplit_once("://").map_or(piece, |(_, path)| path));
    for file in files.filter(|file| DATABASE_ENDS.iter().any(|end| file.ends_with(end))) {
        if !context.outside.contains(&file) && !context.outside.contains(&text) {
            let name = file.rsplit('/').next().unwrap_or(file);
            let message =
                format!("`{file}` is outside `{{state}}`: trials share it, and it may be a real one");
            let help = format!(
                "write `{{state}}/{name}`; or, if it is meant, `outside = [\"{file}\"]` under `[state]`"
            );
            log.error(Code::StateOutside, span, message, help);
        }
    }
}

/// Notes a name of a variable that can't be set.
pub(super) fn check_variable(name: &Placed<&str>, log: &mut Log) {
    let Placed { value, span } = *name;
    if !is_variable(value) {
        let help = "write letters, digits and `_`, and no digit first";
        log.error(Code::BadEnvironment, span, format!("`{value}` is no name of a variable"), help);
    } else if value.starts_with("KILLPOINT_") {
        let message = format!("`{value}` is set by the harness");
        log.error(Code::BadEnvironment, span, message, "leave it out, or choose another name");
    }
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
