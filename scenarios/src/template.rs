//! Templates in commands, variables and paths: `{state}` and its like. Checked here, filled in by the
//! engine, which leaves unknown braces alone: a worker's arguments may well be JSON.

use killpoint_model::Span;
use killpoint_model::diagnostic::nearest;

use crate::code::Code;
use crate::log::Log;

/// Where a text with templates stands: not every template has a value everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The worker's and the other commands' words and variables.
    Command,
    /// The ledger's command, which runs on a copy: the live ledger is never opened by another process.
    LedgerCommand,
    /// The ledger's path.
    LedgerPath,
}

/// The names in `text` that are templates by form: braces around small letters, digits, `.`, `-`, `_`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        let first_is_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
        let form = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c);
        (first_is_letter && name.chars().all(form)).then_some(name)
    })
}

/// Whether `text` hands over the actions.
pub(crate) fn names_actions(text: &str) -> bool {
    names(text).any(|name| name == "actions" || name == "actions.file")
}

/// Whether `text` tells one worker from another.
pub(crate) fn names_worker(text: &str) -> bool {
    names(text).any(|name| name == "worker")
}

/// Notes every template in `text` that has no value at `place`.
pub(crate) fn check(text: &str, span: Span, place: Place, dialect: &str, log: &mut Log) {
    let provider = format!("provider.{dialect}");
    let known: &[&str] = match place {
        Place::Command => {
            &["state", &provider, "actions", "actions.file", "producer.file", "worker", "generation"]
        }
        Place::LedgerCommand => &["copy", &provider, "actions", "actions.file"],
        Place::LedgerPath => &["state"],
    };
    for name in names(text).filter(|name| !known.contains(name)) {
        let help = match (name, place) {
            ("state", Place::LedgerCommand) => {
                "write `{copy}`: this command reads a copy, never the live ledger".to_owned()
            }
            ("copy", _) => "only `ledger.command` has a copy; write `{state}`".to_owned(),
            _ if name.starts_with("provider.") && place != Place::LedgerPath => {
                format!("the provider speaks `{dialect}`; write `{{{provider}}}`")
            }
            _ => known_help(name, known),
        };
        log.error(Code::UnknownTemplate, span, format!("nobody fills in `{{{name}}}` here"), help);
    }
    for name in unclosed(text).filter(|name| known.contains(name)) {
        let message = format!("`{{{name}` is not closed, so that nobody fills it in");
        log.error(Code::UnknownTemplate, span, message, format!("write `{{{name}}}`"));
    }
}

/// The words in `text` after a brace that is never closed, or only after the next part of a path.
fn unclosed(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || ".-_".contains(c))).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        (after.is_empty() || after.starts_with('/')).then_some(name)
    })
}

fn known_help(name: &str, known: &[&str]) -> String {
    let templates: Vec<String> = known.iter().map(|name| format!("`{{{name}}}`")).collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None => format!("one of: {}; braces that are meant as such may hold a space", templates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_templates() {
        let found = |text| names(text).collect::<Vec<_>>();
        assert_eq!(found(r#"{"a":{state}} {x {} { print } ${HOME}"#), ["state"]);
        assert_eq!(found("{provider.rest}/{actions.file}"), ["provider.rest", "actions.file"]);
        assert_eq!(unclosed("{state/l.db {worker {state} {a:1").collect::<Vec<_>>(), ["state"]);
        assert_eq!(unclosed("--db={state").collect::<Vec<_>>(), ["state"]);
        assert!(names_actions("--count={actions}") && !names_actions("{action}"));
    }
}
