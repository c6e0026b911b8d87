//! `[settle]`.

use killpoint_model::Settings;
use killpoint_model::settings::{Lifecycle, SettleBy, SettleSettings};

use crate::code::Code;
use crate::item::{Item, set};
use crate::log::Log;
use crate::table::Table;

/// Longest quiet time, in milliseconds.
const QUIET_MS_MAX: u64 = 3_600_000;
/// Longest deadline, in milliseconds: every wait has a limit.
const DEADLINE_MS_MAX: u64 = 24 * 3_600_000;

/// Reads the section. `settings` has the worker and the ledger already.
pub(super) fn read(root: &mut Table, settings: &Settings, log: &mut Log) -> SettleSettings {
    let mut settle = settings.settle.clone();
    let exits = settings.worker.lifecycle == Lifecycle::Drains;
    settle.by = if exits { SettleBy::Exit } else { SettleBy::Quiet };
    let Some(mut table) = root.table("settle", log) else { return settle };
    let by = table.item("by");
    set(&mut settle.by, by.as_ref().and_then(|item| item.word("way to settle", log)));
    let quiet = table.item("quiet");
    set(&mut settle.quiet_ms, quiet.as_ref().and_then(|item| item.duration(1..=QUIET_MS_MAX, log)));
    let query = table.item("query");
    settle.query = query.as_ref().and_then(|item| item.text(log)).map(|text| text.value.to_owned());
    set(
        &mut settle.deadline_ms,
        table.item("deadline").and_then(|item| item.duration(1..=DEADLINE_MS_MAX, log)),
    );
    table.close(log);
    if let Some(by) = by {
        check_reachable(&by, &settle, settings, log);
    }
    check_query(query.as_ref(), &settle, settings, log);
    if let Some(quiet) = quiet.filter(|_| settle.by != SettleBy::Quiet) {
        unused(&quiet, "quiet", log);
    }
    settle
}

fn check_reachable(by: &Item, settle: &SettleSettings, settings: &Settings, log: &mut Log) {
    if settle.by == SettleBy::Exit && settings.worker.lifecycle == Lifecycle::RunsForever {
        let message = "a worker that runs forever never settles by its exit";
        log.error(Code::NeverSettles, by.span, message, "write `by = \"quiet\"` or `by = \"query\"`");
    }
    if settle.by == SettleBy::Query && settings.ledger.is_none() {
        let message = "`settle.by = \"query\"` needs a ledger, and none is configured";
        log.error(
            Code::NeverSettles,
            by.span,
            message,
            "add a `[ledger]` section, or write `by = \"quiet\"`",
        );
    }
    let mapped =
        settings.ledger.as_ref().is_none_or(|ledger| ledger.query.is_some() || ledger.command.is_some());
    if settle.by == SettleBy::Query && settle.query.is_none() && !mapped {
        let message = "`settle.by = \"query\"` has neither a query nor mapped rows to look at";
        log.error(
            Code::NeverSettles,
            by.span,
            message,
            "add `query = \"select count(*) …\"` that gives 0 at rest",
        );
    }
}

fn check_query(query: Option<&Item>, settle: &SettleSettings, settings: &Settings, log: &mut Log) {
    let Some(query) = query else { return };
    if settle.by != SettleBy::Query {
        unused(query, "query", log);
    } else if settings.ledger.as_ref().is_some_and(|ledger| ledger.kind != "sqlite") {
        let message = "`settle.query` is SQL, and the ledger is no database";
        log.error(
            Code::Conflict,
            query.span,
            message,
            "leave it out: mapped rows that are all terminal are at rest",
        );
    }
}

fn unused(item: &Item, way: &str, log: &mut Log) {
    let message = format!("`{}` has no meaning for this way to settle", item.path);
    log.warning(Code::UnusedKey, item.span, message, format!("write `by = \"{way}\"`, or leave it out"));
}
