//! `[[provider.rule]]`, in the configuration and in scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use killpoint_model::diagnostic::nearest;
use killpoint_model::named_plan::{self, PROVIDER_PLANS};
use killpoint_model::plan::{AxisError, Match};
use killpoint_model::{ProviderPlan, Rule, Span};

use crate::code::Code;
use crate::item::{Item, set};
use crate::log::{Log, Placed};
use crate::table::Table;

/// Reads all rules of a file. A rule without an id gets `PREFIX-1`, `PREFIX-2`, …
pub(crate) fn read_all(tables: Vec<Table>, prefix: &str, dialects: &[&str], log: &mut Log) -> Vec<Rule> {
    let mut ids = BTreeSet::new();
    let mut rules = Vec::new();
    for (index, mut table) in tables.into_iter().enumerate() {
        let id = table.item("id").and_then(|item| item.text(log));
        if let Some(id) = &id
            && !ids.insert(id.value)
        {
            let message = format!("the rule `{}` is there twice", id.value);
            log.error(Code::Duplicate, id.span, message, "give each rule an id of its own, or none");
        }
        let matches = table.table("match", log).map(|table| read_match(table, dialects, log));
        let plan = table.required("plan", "write what happens, such as `plan = \"drop-after-accept\"`", log);
        let times = table.item("times").and_then(|item| item.number(1..=i64::from(u32::MAX), log));
        table.close(log);
        if let Some(plan) = plan.and_then(|item| read_plan(&item, log)) {
            let id = id.map_or_else(|| format!("{prefix}-{}", index + 1), |id| id.value.to_owned());
            let times = times.and_then(|times| u32::try_from(times).ok());
            rules.push(Rule { id, matches: matches.unwrap_or_default(), plan, times });
        }
    }
    rules
}

fn read_match(mut table: Table, dialects: &[&str], log: &mut Log) -> Match {
    let owned = |text: Placed<&str>| text.value.to_owned();
    let matches = Match {
        dialect: table.item("dialect").and_then(|item| item.name("dialect", dialects, log)),
        operation: table.item("operation").and_then(|item| item.text(log)).map(owned),
        nth: table
            .item("nth")
            .and_then(|item| item.number(1..=i64::from(u32::MAX), log))
            .and_then(|nth| u32::try_from(nth).ok()),
        key: table.item("key").and_then(|item| item.text(log)).map(owned),
        header: table.item("header").map(|item| read_headers(&item, log)).unwrap_or_default(),
        pointer: table.item("pointer").map(|item| read_pointers(&item, log)).unwrap_or_default(),
    };
    table.close(log);
    matches
}

fn read_headers(item: &Item, log: &mut Log) -> BTreeMap<String, String> {
    let headers = item.text_map(log).unwrap_or_default();
    headers.into_iter().map(|(name, text)| (name, text.value.to_owned())).collect()
}

fn read_pointers(item: &Item, log: &mut Log) -> BTreeMap<String, String> {
    let Some(table) = item.table(log) else { return BTreeMap::new() };
    let mut pointers = BTreeMap::new();
    for (pointer, span, item) in table.entries() {
        check_pointer(pointer, span, log);
        if let Some(text) = item.any_text(log) {
            pointers.insert(pointer.to_owned(), text.value.to_owned());
        }
    }
    pointers
}

/// Notes a text that is no JSON pointer (RFC 6901).
pub(crate) fn check_pointer(text: &str, span: Span, log: &mut Log) {
    if !text.is_empty() && !text.starts_with('/') {
        let help = format!("a pointer begins with a slash: `/{}`", text.replace('.', "/"));
        log.error(Code::BadPointer, span, format!("`{text}` is no JSON pointer"), help);
    }
}

/// A plan is a name, or a table of axes.
fn read_plan(item: &Item, log: &mut Log) -> Option<ProviderPlan> {
    if let Some(name) = item.as_text() {
        let known: Vec<&str> = PROVIDER_PLANS.iter().map(|named| named.entry.name).collect();
        let plan = named_plan::find(name.value);
        if plan.is_none() {
            log.unknown_word("provider plan", &name, &known);
        }
        return plan.map(|named| named.plan);
    }
    if !item.is_table() {
        let help =
            "write a name, such as `\"drop-after-accept\"`, or `{ commit = \"now\", reply = \"fin\" }`";
        item.wrong_type("a plan", help, log);
        return None;
    }
    let mut table = item.table(log)?;
    let mut plan = ProviderPlan::default();
    set(&mut plan.commit, read_axis(&mut table, "commit", log));
    set(&mut plan.reply, read_axis(&mut table, "reply", log));
    set(&mut plan.visible, read_axis(&mut table, "visible", log));
    set(&mut plan.aftermath, read_axis(&mut table, "aftermath", log));
    table.close(log);
    Some(plan)
}

fn read_axis<T: FromStr<Err = AxisError>>(table: &mut Table, key: &'static str, log: &mut Log) -> Option<T> {
    let text = table.item(key)?.text(log)?;
    match text.value.parse() {
        Ok(value) => Some(value),
        Err(AxisError { axis, known, .. }) => {
            // A near miss with an argument helps less than the whole list, which says what goes into it.
            let plain = known.split(", ").filter(|word| !word.contains('('));
            let help = match nearest(text.value, plain) {
                Some(word) => format!("did you mean `{word}`?"),
                None => axis_help(axis, known),
            };
            log.error(Code::BadPlan, text.span, format!("`{}` is no value for `{axis}`", text.value), help);
            None
        }
    }
}

fn axis_help(axis: &str, known: &str) -> String {
    let note = if axis == "reply" { "; CODE is 400 to 599" } else { "; a DURATION is such as `500ms`" };
    format!("one of: {known}{}", if known.contains(char::is_uppercase) { note } else { "" })
}

/// What a rule's plan is called in reports.
pub(crate) fn plan_name(plan: ProviderPlan) -> String {
    let named = PROVIDER_PLANS.iter().find(|named| named.plan == plan);
    named.map_or_else(|| plan.to_string(), |named| named.entry.name.to_owned())
}

/// What the provider's behaviour under all of `rules` is called in reports.
pub(crate) fn plans_name(rules: &[Rule]) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in rules.iter().map(|rule| plan_name(rule.plan)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "ok".to_owned() } else { names.join(" + ") }
}
