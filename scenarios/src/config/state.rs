//! `[state]`.

use killpoint_model::Settings;
use killpoint_model::settings::{CommandSettings, StateSettings};

use super::{Context, command};
use crate::code::Code;
use crate::item::Item;
use crate::log::Log;
use crate::table::Table;
use crate::template::{self, Place};

/// Reads the section. `settings` has the worker and the actions already.
pub(super) fn read(mut table: Table, settings: &Settings, context: Context, log: &mut Log) -> StateSettings {
    let worker = &settings.worker.command;
    let path = |table: &mut Table, key, log: &mut Log| {
        table.item(key).and_then(|item| item.text(log)).map(|text| context.path(text.value))
    };
    let mut state = StateSettings {
        from: path(&mut table, "from", log),
        provider: path(&mut table, "provider", log),
        ..StateSettings::default()
    };
    if let Some(item) = table.item("prepare") {
        let elements = item.elements();
        if elements.as_ref().is_none_or(|list| list.iter().any(|element| element.as_text().is_some())) {
            let help = "write a list of commands: `[[\"python3\", \"worker.py\", \"setup\"]]`";
            item.wrong_type("a list of commands", help, log);
        } else {
            let commands = elements.iter().flatten();
            let commands =
                commands.filter_map(|element| command::read(element, worker, Place::Command, context, log));
            state.prepare = commands.collect();
        }
    }
    let enqueue = table.item("enqueue");
    state.enqueue =
        enqueue.as_ref().and_then(|item| command::read(item, worker, Place::Command, context, log));
    if let (Some(item), Some(command)) = (&enqueue, &state.enqueue) {
        check_actions(item, command, settings, log);
    }
    if let Some(item) = table.item("enqueue-kill-after") {
        state.enqueue_kill_after = item.text(log).map(|text| text.value.to_owned());
        if enqueue.is_none() {
            let message = "`state.enqueue-kill-after` needs a command to kill";
            log.error(Code::MissingKey, item.span, message, "add `enqueue = [\"…\"]`, or leave it out");
        }
    }
    if let Some(item) = table.item("outside") {
        let files = item.texts(log).unwrap_or_default();
        state.outside = files.iter().map(|file| file.value.to_owned()).collect();
    }
    table.close(log);
    state
}

/// Notes that actions are handed over although the file has none: such a baseline proves nothing.
fn check_actions(item: &Item, enqueue: &CommandSettings, settings: &Settings, log: &mut Log) {
    let mut texts = enqueue.argv.iter().chain(enqueue.env.values());
    if settings.actions.is_empty() && texts.any(|text| template::names_actions(text)) {
        let message = "`state.enqueue` hands over the actions, and there are none";
        let help = "write `actions = 2` at the top of the file, or `[[action]]` tables";
        log.warning(Code::NoActions, item.span, message, help);
    }
}
