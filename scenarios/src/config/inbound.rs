//! `[inbound]`.

use killpoint_model::settings::InboundSettings;

use crate::item::{Item, set_u32};
use crate::log::Log;
use crate::table::Table;

/// Items of a feed at most.
const ITEMS_MAX: i64 = 10_000;
/// Items per poll at most, unless told otherwise and in any case.
const PAGE: u32 = 10;
const PAGE_MAX: i64 = 1000;

pub(super) fn read(mut table: Table, log: &mut Log) -> InboundSettings {
    let items = table.required("items", "write how many items the feed has, such as `items = 3`", log);
    let mut inbound = InboundSettings { page: PAGE, ..InboundSettings::default() };
    set_u32(&mut inbound.items, items.and_then(|item| item.number(1..=ITEMS_MAX, log)));
    set_u32(&mut inbound.page, table.item("page").and_then(|item| item.number(1..=PAGE_MAX, log)));
    let mut ordinals = |key, what: &str, log: &mut Log| {
        let read = |item: Item| item.numbers(what, "1", 1..=1_000_000, log);
        table.item(key).and_then(read).unwrap_or_default()
    };
    inbound.redeliver = ordinals("redeliver", "numbers of polls", log);
    inbound.lose_answer = ordinals("lose-answer", "numbers of acknowledgements", log);
    table.close(log);
    inbound
}
