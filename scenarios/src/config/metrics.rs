//! `[metrics]`.

use std::collections::BTreeMap;

use killpoint_model::Settings;
use killpoint_model::settings::{CANONICAL_METRICS, MetricsSettings};

use super::Context;
use crate::code::Code;
use crate::item::Item;
use crate::log::Log;
use crate::table::Table;
use crate::template::{self, Place};

/// Reads the section. `settings` has the ledger already.
pub(super) fn read(
    mut table: Table,
    settings: &Settings,
    context: Context,
    log: &mut Log,
) -> MetricsSettings {
    let sources = [table.item("url"), table.item("file"), table.item("query")];
    let mut given = sources.iter().flatten();
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        let message = format!("`{}` and `{}` are both given", first.path, second.path);
        log.error(Code::Conflict, second.span, message, "keep one of them");
    }
    if sources.iter().all(Option::is_none) {
        let help =
            "write `url = \"http://127.0.0.1:9100/metrics\"`, `file = \"{state}/metrics.prom\"` or a `query`";
        log.error(Code::MissingKey, table.span, "the metrics have no source", help);
    }
    let [url, file, query] = &sources;
    let query = query.as_ref().and_then(|item| read_query(item, settings, log));
    let metrics = MetricsSettings {
        url: url.as_ref().and_then(|item| read_url(item, context, log)),
        file: file.as_ref().and_then(|item| read_file(item, context, log)),
        query,
        names: read_names(table.item("names"), log),
    };
    table.close(log);
    metrics
}

fn read_url(item: &Item, context: Context, log: &mut Log) -> Option<String> {
    let text = item.text(log)?;
    template::check(text.value, text.span, Place::Command, context.dialect, log);
    let local = ["http://127.0.0.1:", "http://localhost:", "http://{"];
    if !local.iter().any(|start| text.value.starts_with(start)) {
        let message = format!("`{}` is no address on loopback", text.value);
        log.error(Code::BadText, text.span, message, "write `http://127.0.0.1:PORT/…`");
        return None;
    }
    Some(text.value.to_owned())
}

fn read_file(item: &Item, context: Context, log: &mut Log) -> Option<String> {
    let text = item.text(log)?;
    template::check(text.value, text.span, Place::LedgerPath, context.dialect, log);
    if !text.value.starts_with("{state}") {
        let message = "the metrics' file is outside `{state}`, so that trials share it";
        log.error(Code::BadText, text.span, message, "let the worker write it below `{state}`");
        return None;
    }
    Some(text.value.to_owned())
}

fn read_query(item: &Item, settings: &Settings, log: &mut Log) -> Option<String> {
    if settings.ledger.as_ref().is_none_or(|ledger| ledger.kind != "sqlite") {
        let message =
            "`metrics.query` is SQL on a copy of the ledger, and there is no ledger of kind `sqlite`";
        log.error(Code::Conflict, item.span, message, "add such a `[ledger]`, or read a `url` or a `file`");
    }
    item.text(log).map(|text| text.value.to_owned())
}

/// The worker's names: what is written, and each canonical name that is not written means itself.
fn read_names(item: Option<Item>, log: &mut Log) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let table = item.and_then(|item| item.table(log));
    for (own, _, item) in table.iter().flat_map(Table::entries) {
        if let Some(name) = item.name("canonical metric", CANONICAL_METRICS, log) {
            names.insert(own.to_owned(), name);
        }
    }
    for name in CANONICAL_METRICS {
        if !names.values().any(|known| known == name) && !names.contains_key(*name) {
            names.insert((*name).to_owned(), (*name).to_owned());
        }
    }
    names
}
