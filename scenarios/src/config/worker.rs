//! `[worker]`.

use killpoint_model::settings::{INHERITED_ALWAYS, Lifecycle, WorkerSettings};

use super::{Context, command};
use crate::code::Code;
use crate::item::{set, set_u32};
use crate::log::Log;
use crate::table::Table;
use crate::template::Place;

/// Longest pause before a restart, in milliseconds.
const RESTART_DELAY_MS_MAX: u64 = 600_000;
/// Most that is kept of one output stream, in bytes.
const OUTPUT_BYTES_MAX: i64 = 1 << 30;

const COMMAND_HELP: &str = "write how the worker is started: `command = [\"python3\", \"worker.py\"]`";

/// Reads the section into the defaults that are in `worker`.
pub(super) fn read(root: &mut Table, worker: &mut WorkerSettings, context: Context, log: &mut Log) {
    worker.command.cwd = context.path(".");
    let section = root.required("worker", "add a `[worker]` section with its `command`", log);
    let Some(mut table) = section.and_then(|item| item.table(log)) else { return };
    if let Some(cwd) = table.item("cwd").and_then(|item| item.text(log)) {
        worker.command.cwd = context.path(cwd.value);
    }
    if let Some(item) = table.item("env") {
        worker.command.env = command::read_env(&item, context, log);
    }
    if let Some(names) = table.item("inherit").and_then(|item| item.texts(log)) {
        for name in &names {
            command::check_variable(name, log);
        }
        let always = INHERITED_ALWAYS.iter().copied();
        let names = names.iter().map(|name| name.value).chain(always);
        worker.command.inherit = Some(names.map(str::to_owned).collect());
    }
    let words = table.required("command", COMMAND_HELP, log);
    let words = words.and_then(|item| command::read(&item, &worker.command, Place::Command, context, log));
    set(&mut worker.command, words);
    set(&mut worker.lifecycle, table.item("lifecycle").and_then(|item| item.word("lifecycle", log)));
    read_again_codes(&mut table, worker, log);
    set_u32(
        &mut worker.restarts_max,
        table.item("restarts-max").and_then(|item| item.number(0..=10_000, log)),
    );
    set(
        &mut worker.restart_delay_ms,
        table.item("restart-delay").and_then(|item| item.duration(0..=RESTART_DELAY_MS_MAX, log)),
    );
    set_u32(
        &mut worker.processes_max,
        table.item("processes-max").and_then(|item| item.number(1..=100_000, log)),
    );
    let output = table.item("output-max").and_then(|item| item.number(0..=OUTPUT_BYTES_MAX, log));
    set(&mut worker.output_bytes_max, output.and_then(|bytes| u64::try_from(bytes).ok()));
    set(&mut worker.clock, table.item("clock").and_then(|item| item.word("way to move a clock", log)));
    table.close(log);
}

fn read_again_codes(table: &mut Table, worker: &mut WorkerSettings, log: &mut Log) {
    let Some(item) = table.item("again-codes") else { return };
    if worker.lifecycle != Lifecycle::OneShot {
        let message = "`worker.again-codes` has no meaning for this lifecycle";
        log.warning(Code::UnusedKey, item.span, message, "write `lifecycle = \"one-shot\"`, or leave it out");
    }
    set(&mut worker.again_codes, item.numbers("exit codes", "75", 0..=255, log));
}
