//! Actions: a number of generated ones, or `[[action]]` tables.

use std::collections::BTreeSet;

use killpoint_model::plan::ActionSpec;

use crate::code::Code;
use crate::log::Log;
use crate::table::Table;

/// Actions of one trial at most.
const ACTIONS_MAX: i64 = 10_000;

/// Reads `actions` and `[[action]]` of a file.
pub(crate) fn read(root: &mut Table, log: &mut Log) -> Vec<ActionSpec> {
    let count = root.item("actions");
    let tables = root.tables("action", log);
    let Some(count) = count else { return listed(tables, log) };
    if !tables.is_empty() {
        let message = "`actions` and `[[action]]` are both given";
        log.error(Code::Conflict, count.span, message, "keep one of them: a number generates the actions");
        return Vec::new();
    }
    if !count.is_number() {
        count.wrong_type("a whole number", "write how many actions to generate, or `[[action]]` tables", log);
        return Vec::new();
    }
    let count = count.number(0..=ACTIONS_MAX, log).unwrap_or(0);
    (1..=count).map(generated).collect()
}

fn generated(number: i64) -> ActionSpec {
    ActionSpec {
        id: format!("action-{number}"),
        to: vec![format!("user{number}@example.com")],
        body: format!("hello {number}"),
    }
}

fn listed(tables: Vec<Table>, log: &mut Log) -> Vec<ActionSpec> {
    let mut ids = BTreeSet::new();
    let mut actions = Vec::new();
    for mut table in tables {
        let id = table.required("id", "give it a stable id, such as `id = \"job-1\"`", log);
        let to = table.required("to", "write `to = \"user@example.com\"`, or a list of destinations", log);
        let body = table.required("body", "write the text that the recipient sees", log);
        table.close(log);
        let id = id.and_then(|item| item.text(log));
        if let Some(id) = &id
            && !ids.insert(id.value)
        {
            let message = format!("the action `{}` is there twice", id.value);
            log.error(Code::Duplicate, id.span, message, "give each action an id of its own");
        }
        let to = to.and_then(|item| item.text_or_texts(log)).unwrap_or_default();
        let mut destinations = BTreeSet::new();
        for again in to.iter().filter(|text| !destinations.insert(text.value)) {
            let message = format!("the destination `{}` is there twice", again.value);
            log.error(
                Code::Duplicate,
                again.span,
                message,
                "an action sends one message to each destination",
            );
        }
        let body = body.and_then(|item| item.any_text(log));
        if let (Some(id), Some(body)) = (id, body) {
            let to = to.into_iter().map(|text| text.value.to_owned()).collect();
            actions.push(ActionSpec { id: id.value.to_owned(), to, body: body.value.to_owned() });
        }
    }
    actions
}
