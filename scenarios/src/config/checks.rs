//! `[checks]`.

use killpoint_model::settings::CheckSettings;

use crate::item::{set, set_u32};
use crate::log::Log;
use crate::table::Table;

/// Longest bound, in milliseconds.
const BOUND_MS_MAX: u64 = 24 * 3_600_000;

/// Reads the section into the defaults that are in `checks`.
pub(super) fn read(mut table: Table, checks: &mut CheckSettings, log: &mut Log) {
    set_u32(
        &mut checks.attempts_max,
        table.item("attempts-max").and_then(|item| item.number(1..=1_000_000, log)),
    );
    set(&mut checks.overdue_ms, table.item("overdue").and_then(|item| item.duration(1..=BOUND_MS_MAX, log)));
    checks.decided_within_ms =
        table.item("decided-within").and_then(|item| item.duration(1..=BOUND_MS_MAX, log));
    table.close(log);
}
