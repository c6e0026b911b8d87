//! `[ledger]`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use killpoint_model::diagnostic::UnknownWord;
use killpoint_model::settings::{CommandSettings, LedgerQuery, LedgerSettings};
use killpoint_model::{ExecutionState, HitName, RowState};

use super::{Context, command};
use crate::boundary;
use crate::code::Code;
use crate::item::{Item, set};
use crate::log::{Log, Placed};
use crate::presets::{self, PRESETS, Preset};
use crate::table::Table;
use crate::template::{self, Place};

/// Pause between samples unless told otherwise, and at most, in milliseconds.
const SAMPLE_MS: u64 = 20;
const SAMPLE_MS_MAX: u64 = 60_000;

/// The points of the `ledger` source that this ledger has.
pub(super) fn points(ledger: &LedgerSettings) -> Vec<String> {
    let own = ledger.boundaries.iter().map(|query| query.name.clone());
    boundary::ledger_points().into_iter().chain(own).collect()
}

pub(super) fn read(
    mut table: Table,
    worker: &CommandSettings,
    context: Context,
    log: &mut Log,
) -> LedgerSettings {
    let kinds: Vec<&str> = context.catalog.ledgers.iter().map(|entry| entry.name).collect();
    let mut kind = "sqlite".to_owned();
    set(&mut kind, table.item("kind").and_then(|item| item.name("kind of ledger", &kinds, log)));
    let preset = table.item("preset");
    let source = Source {
        path: table.item("path"),
        query: table.item("query"),
        command: table.item("command"),
        boundary: table.item("boundary"),
    };
    source.check(&table, &kind, preset.as_ref(), log);
    let preset = preset.and_then(|item| read_preset(&item, log));
    let query = source.query.as_ref().and_then(|item| item.text(log)).map(|text| text.value.to_owned());
    let ledger = LedgerSettings {
        path: source.path.as_ref().and_then(|item| read_path(item, context, log)),
        query: query.or_else(|| preset.map(|preset| preset.query.to_owned())),
        command: source
            .command
            .as_ref()
            .and_then(|item| command::read(item, &on_a_copy(worker), Place::LedgerCommand, context, log)),
        states: read_words(
            table.item("states"),
            "state of a row",
            RowState::ALL.iter().map(|state| (state.as_str(), *state)),
            preset.map_or(&[], |_| presets::STATES),
            log,
        ),
        executions: read_words(
            table.item("executions"),
            "state of an execution",
            ExecutionState::ALL.iter().map(|state| (state.as_str(), *state)),
            preset.map_or(&[], |_| presets::EXECUTIONS),
            log,
        ),
        absent: table.item("absent").and_then(|item| item.word("state of a row", log)),
        boundaries: read_boundaries(table.tables("boundary", log), log),
        sample_ms: table
            .item("sample")
            .and_then(|item| item.duration(1..=SAMPLE_MS_MAX, log))
            .unwrap_or(SAMPLE_MS),
        kind,
    };
    table.close(log);
    ledger
}

/// The keys that say where the rows come from.
struct Source<'d> {
    path: Option<Item<'d>>,
    query: Option<Item<'d>>,
    command: Option<Item<'d>>,
    boundary: Option<Item<'d>>,
}

impl Source<'_> {
    /// Checks that the keys go with the kind, and with each other.
    fn check(&self, table: &Table, kind: &str, preset: Option<&Item>, log: &mut Log) {
        if let (Some(preset), Some(_)) = (preset, &self.query) {
            let message = "`ledger.preset` and `ledger.query` are both given";
            log.error(Code::Conflict, preset.span, message, "keep one of them");
        }
        match kind {
            "sqlite" => {
                if let Some(command) = &self.command {
                    let message = "`ledger.command` does not go with a ledger of kind `sqlite`";
                    log.error(
                        Code::Conflict,
                        command.span,
                        message,
                        "write `kind = \"command\"`, or leave it out",
                    );
                }
                if self.path.is_none() {
                    let help = "write where the database is: `path = \"{state}/ledger.db\"`";
                    log.error(Code::MissingKey, table.span, "`ledger.path` is missing", help);
                }
                if self.query.is_none() && preset.is_none() && self.boundary.is_none() {
                    let help = "write a `preset`, or a `query` that gives `action` and `state`";
                    log.error(Code::MissingKey, table.span, "the ledger has no query", help);
                }
            }
            "command" => {
                for item in [&self.path, &self.query, &self.boundary].into_iter().flatten().chain(preset) {
                    let message = format!("`{}` does not go with a ledger of kind `command`", item.path);
                    log.error(
                        Code::Conflict,
                        item.span,
                        message,
                        "write `kind = \"sqlite\"`, or leave it out",
                    );
                }
                if self.command.is_none() {
                    let help =
                        "write what prints the rows: `command = [\"python3\", \"status.py\", \"{copy}\"]`";
                    log.error(Code::MissingKey, table.span, "`ledger.command` is missing", help);
                }
            }
            // Another kind of the catalog knows best what it needs.
            _ => {}
        }
    }
}

/// The worker's surroundings with the copy in place of the live state.
fn on_a_copy(worker: &CommandSettings) -> CommandSettings {
    let env = worker.env.iter().map(|(name, text)| (name.clone(), text.replace("{state}", "{copy}")));
    CommandSettings { argv: Vec::new(), env: env.collect(), ..worker.clone() }
}

fn read_preset(item: &Item, log: &mut Log) -> Option<&'static Preset> {
    let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let name = item.name("preset", &known, log)?;
    PRESETS.iter().find(|preset| preset.name == name)
}

fn read_path(item: &Item, context: Context, log: &mut Log) -> Option<String> {
    let text = item.text(log)?;
    template::check(text.value, text.span, Place::LedgerPath, context.dialect, log);
    if text.value.starts_with("{state}") {
        return Some(text.value.to_owned());
    }
    let message = "the ledger is outside `{state}`, so that trials share it";
    let help = "let the worker keep it in `{state}`, which is fresh for each trial";
    log.warning(Code::LedgerOutsideState, text.span, message, help);
    Some(context.path(text.value).display().to_string())
}

/// The worker's words: canonical words mean themselves, a preset adds its own, the file has the last say.
fn read_words<T: Copy + FromStr<Err = UnknownWord>>(
    item: Option<Item>,
    what: &str,
    canonical: impl Iterator<Item = (&'static str, T)>,
    preset: &[(&str, T)],
    log: &mut Log,
) -> BTreeMap<String, T> {
    let mut words: BTreeMap<String, T> = canonical.map(|(word, state)| (word.to_owned(), state)).collect();
    words.extend(preset.iter().map(|(word, state)| ((*word).to_owned(), *state)));
    let table = item.and_then(|item| item.table(log));
    for (word, _, item) in table.iter().flat_map(Table::entries) {
        if let Some(state) = item.word(what, log) {
            words.insert(word.to_owned(), state);
        }
    }
    words
}

fn read_boundaries(tables: Vec<Table>, log: &mut Log) -> Vec<LedgerQuery> {
    let mut taken: BTreeSet<String> = boundary::ledger_points().into_iter().collect();
    let mut boundaries = Vec::new();
    for mut table in tables {
        let name = table.required("name", "give the boundary a name, such as `name = \"claimed\"`", log);
        let query =
            table.required("query", "write SQL that gives one value, whose changes are the hits", log);
        table.close(log);
        let name = name.and_then(|item| item.text(log));
        if let Some(name) = &name {
            check_name(name, &mut taken, log);
        }
        let query = query.and_then(|item| item.text(log));
        if let (Some(name), Some(query)) = (name, query) {
            boundaries.push(LedgerQuery { name: name.value.to_owned(), query: query.value.to_owned() });
        }
    }
    boundaries
}

/// A boundary's name must read back as the point of a hit, and be unique.
fn check_name(name: &Placed<&str>, taken: &mut BTreeSet<String>, log: &mut Log) {
    let hit = format!("ledger:{}", name.value).parse::<HitName>();
    if hit.is_ok_and(|hit| hit.point == name.value) {
        if !taken.insert(name.value.to_owned()) {
            let message = format!("the ledger's boundary `{}` is there twice", name.value);
            let help = "choose another name; the canonical states have boundaries of their own";
            log.error(Code::Duplicate, name.span, message, help);
        }
    } else {
        let message = format!("`{}` can't be the name of a boundary", name.value);
        log.error(Code::BadText, name.span, message, "write letters, digits and dashes, such as `claimed`");
    }
}
