//! `[provider]`.

use killpoint_model::Catalog;
use killpoint_model::profile::IdempotencyProfile;
use killpoint_model::settings::ProviderSettings;

use crate::item::{Item, set};
use crate::log::Log;
use crate::rule;
use crate::table::Table;

/// Longest hang, in milliseconds.
const HANG_MS_MAX: u64 = 600_000;
/// Longest deduplication window: a leap year, in milliseconds.
const WINDOW_MS_MAX: u64 = 366 * 24 * 3_600_000;

pub(super) fn read(mut table: Table, catalog: &Catalog, log: &mut Log) -> ProviderSettings {
    let mut provider = ProviderSettings::default();
    let dialects: Vec<&str> = catalog.dialects.iter().map(|entry| entry.name).collect();
    let dialect = table.item("dialect").and_then(|item| item.name("dialect", &dialects, log));
    set(&mut provider.dialect, dialect);
    set(&mut provider.hang_ms, table.item("hang").and_then(|item| item.duration(1..=HANG_MS_MAX, log)));
    set(&mut provider.recipient, table.item("recipient").and_then(|item| pointers(&item, log)));
    set(&mut provider.text, table.item("text").and_then(|item| pointers(&item, log)));
    provider.action = table.item("action").and_then(|item| {
        let text = item.text(log)?;
        if !text.value.starts_with("header:") {
            rule::check_pointer(text.value, text.span, log);
        }
        Some(text.value.to_owned())
    });
    if let Some(table) = table.table("idempotency", log) {
        read_idempotency(table, &mut provider.idempotency, log);
    }
    let rules = table.tables("rule", log);
    provider.rules = rule::read_all(rules, "config-rule", &dialects, log);
    table.close(log);
    provider
}

fn pointers(item: &Item, log: &mut Log) -> Option<Vec<String>> {
    let texts = item.text_or_texts(log)?;
    for text in &texts {
        rule::check_pointer(text.value, text.span, log);
    }
    Some(texts.into_iter().map(|text| text.value.to_owned()).collect())
}

fn read_idempotency(mut table: Table, profile: &mut IdempotencyProfile, log: &mut Log) {
    set(&mut profile.dedupe, table.item("dedupe").and_then(|item| item.flag(log)));
    let header = table.item("header").and_then(|item| item.text(log));
    set(&mut profile.header, header.map(|text| text.value.to_owned()));
    profile.pointer = table.item("pointer").and_then(|item| item.text(log)).map(|text| {
        rule::check_pointer(text.value, text.span, log);
        text.value.to_owned()
    });
    set(&mut profile.scope, table.item("scope").and_then(|item| item.word("scope of a key", log)));
    set(&mut profile.fingerprint, table.item("fingerprint").and_then(|item| item.word("fingerprint", log)));
    set(&mut profile.window_ms, table.item("window").and_then(|item| item.duration(1..=WINDOW_MS_MAX, log)));
    set(&mut profile.anchor, table.item("anchor").and_then(|item| item.word("anchor of the window", log)));
    set(
        &mut profile.cached,
        table.item("cached").and_then(|item| item.word("choice of cached answers", log)),
    );
    set(
        &mut profile.concurrent,
        table.item("concurrent").and_then(|item| item.word("answer to a concurrent request", log)),
    );
    set(
        &mut profile.mismatch,
        table.item("mismatch").and_then(|item| item.word("answer to a mismatch", log)),
    );
    // Empty means that the provider marks no replays.
    let marker = table.item("replay-marker").and_then(|item| item.any_text(log));
    set(&mut profile.replay_marker, marker.map(|text| text.value.to_owned()));
    set(
        &mut profile.missing,
        table.item("missing").and_then(|item| item.word("answer to a missing key", log)),
    );
    table.close(log);
}
