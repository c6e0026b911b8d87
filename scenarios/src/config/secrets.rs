//! `[secrets]`.

use std::collections::BTreeSet;

use killpoint_model::settings::SecretSettings;

use super::command;
use crate::code::Code;
use crate::log::Log;
use crate::table::Table;

pub(super) fn read(mut table: Table, log: &mut Log) -> SecretSettings {
    let names = table.item("env").and_then(|item| item.texts(log)).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for name in &names {
        command::check_variable(name, log);
        if !seen.insert(name.value) {
            let message = format!("the variable `{}` is there twice", name.value);
            log.error(Code::Duplicate, name.span, message, "write each variable once");
        }
    }
    let url = table.item("url").and_then(|item| item.flag(log)).unwrap_or_default();
    let declared = table.item("declared");
    let places = declared.as_ref().and_then(|item| item.texts(log)).unwrap_or_default();
    for place in places.iter().filter(|place| place.value.trim().is_empty()) {
        let help = "write a place, such as `requests:header:authorization`; `*` stands for anything";
        log.error(Code::EmptyValue, place.span, "a declared place is empty", help);
    }
    if let Some(item) = declared.filter(|_| names.is_empty() && !url) {
        let message = "`secrets.declared` has no meaning where nothing is planted";
        log.warning(
            Code::UnusedKey,
            item.span,
            message,
            "name a variable under `env`, or write `url = true`",
        );
    }
    table.close(log);
    SecretSettings {
        env: names.iter().map(|name| name.value.to_owned()).collect(),
        url,
        declared: places.iter().map(|place| place.value.to_owned()).collect(),
    }
}
