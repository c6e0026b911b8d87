//! `[checks]`.

use killpoint_model::settings::CheckSettings;

use crate::item::set_u32;
use crate::log::Log;
use crate::table::Table;

pub(super) fn read(mut table: Table, checks: &mut CheckSettings, log: &mut Log) {
    set_u32(
        &mut checks.attempts_max,
        table.item("attempts-max").and_then(|item| item.number(1..=1_000_000, log)),
    );
    table.close(log);
}
