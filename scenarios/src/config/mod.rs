//! `killpoint.toml` to [`Settings`].

mod alarm;
mod checks;
mod command;
mod inbound;
mod ledger;
mod metrics;
mod provider;
mod secrets;
mod settle;
mod state;
mod sweep;
mod worker;

use std::path::{Path, PathBuf};

use killpoint_model::{Catalog, Settings};

use crate::actions;
use crate::item::set;
use crate::log::{Loaded, Log};
use crate::table::Table;

/// What the sections need to know of their surroundings.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    /// The folder of the file, absolute.
    folder: &'a Path,
    /// The dialect that the provider speaks.
    dialect: &'a str,
    /// What killpoint knows by name.
    catalog: &'a Catalog,
    /// Files outside of a trial's state that the file names as meant.
    outside: &'a [&'a str],
}

impl Context<'_> {
    /// A path of the file made absolute, without asking the file system.
    fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path).components().collect()
    }
}

/// Reads a configuration. `file` is its name for diagnostics; `folder` is where it lies, absolute; the
/// paths in it are relative to that.
pub fn load_config(text: &str, file: &str, folder: &Path, catalog: &Catalog) -> Loaded<Settings> {
    let mut log = Log::new(file);
    let (document, errors) = toml::de::DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        log.syntax(text, &errors);
        return log.finish(None);
    }
    let settings = resolve(Table::root(document.get_ref()), folder, catalog, &mut log);
    log.finish(Some(settings))
}

fn resolve(mut root: Table, folder: &Path, catalog: &Catalog, log: &mut Log) -> Settings {
    let mut settings = Settings::default();
    set(&mut settings.promise, root.item("promise").and_then(|item| item.word("promise", log)));
    settings.actions = actions::read(&mut root, log);
    if let Some(table) = root.table("provider", log) {
        settings.provider = provider::read(table, catalog, log);
    }
    let dialect = settings.provider.dialect.clone();
    // Commands are read before the section that says what they may name.
    let outside = root.texts_at("state", "outside");
    let context = Context { folder, dialect: &dialect, catalog, outside: &outside };
    worker::read(&mut root, &mut settings.worker, context, log);
    if let Some(table) = root.table("state", log) {
        settings.state = state::read(table, &settings, context, log);
    }
    if let Some(table) = root.table("ledger", log) {
        settings.ledger = Some(ledger::read(table, &settings.worker.command, context, log));
    }
    settings.settle = settle::read(&mut root, &settings, log);
    let points = settings.ledger.as_ref().map(ledger::points);
    if let Some(table) = root.table("boundaries", log) {
        settings.bindings = sweep::read_bindings(&table, points.as_deref(), log);
    }
    if let Some(table) = root.table("sweep", log) {
        sweep::read(table, &mut settings.sweep, points.as_deref(), log);
    }
    if let Some(table) = root.table("checks", log) {
        checks::read(table, &mut settings.checks, log);
    }
    read_extras(&mut root, &mut settings, context, log);
    root.close(log);
    settings
}

/// The sections that only some schedules need.
fn read_extras(root: &mut Table, settings: &mut Settings, context: Context, log: &mut Log) {
    let worker = settings.worker.command.clone();
    if let Some(table) = root.table("cleanup", log) {
        let example = "[\"python3\", \"worker.py\", \"cleanup\"]";
        settings.cleanup = command::read_section(table, example, &worker, context, log);
    }
    if let Some(table) = root.table("producer", log) {
        let example = "[\"python3\", \"producer.py\"]";
        settings.producer = command::read_section(table, example, &worker, context, log);
    }
    if let Some(table) = root.table("metrics", log) {
        settings.metrics = Some(metrics::read(table, settings, context, log));
    }
    if let Some(table) = root.table("alarm", log) {
        settings.alarm = alarm::read(table, settings.metrics.is_some(), log);
    }
    if let Some(table) = root.table("secrets", log) {
        settings.secrets = secrets::read(table, log);
    }
    if let Some(table) = root.table("inbound", log) {
        settings.inbound = Some(inbound::read(table, log));
    }
}
