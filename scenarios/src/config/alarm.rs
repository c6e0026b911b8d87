//! `[alarm]`.

use killpoint_model::settings::{AlarmSettings, CANONICAL_METRICS};

use crate::code::Code;
use crate::log::Log;
use crate::table::Table;

/// Reads the section. `has_metrics` says whether the worker's metrics are read at all.
pub(super) fn read(mut table: Table, has_metrics: bool, log: &mut Log) -> AlarmSettings {
    let output = table.item("output").and_then(|item| item.text(log)).map(|text| text.value.to_owned());
    let codes = table.item("exit-codes").and_then(|item| item.numbers("exit codes", "74", 1..=255, log));
    let metric = table.item("metric");
    if let Some(item) = metric.as_ref().filter(|_| !has_metrics) {
        let message = "`alarm.metric` needs the worker's metrics, and none are configured";
        log.error(Code::MissingKey, item.span, message, "add a `[metrics]` section");
    }
    let alarm = AlarmSettings {
        output,
        exit_codes: codes.unwrap_or_default(),
        metric: metric.and_then(|item| item.name("canonical metric", CANONICAL_METRICS, log)),
    };
    table.close(log);
    alarm
}
