//! A TOML table that remembers which keys were asked for, so that all others are known to be unknown.

use killpoint_model::Span;
use toml::de::{DeTable, DeValue};

use crate::code::Code;
use crate::item::Item;
use crate::log::{Log, did_you_mean};

#[derive(Debug)]
pub(crate) struct Table<'d> {
    /// The dotted path; empty for the file itself.
    pub(crate) path: String,
    pub(crate) span: Span,
    entries: &'d DeTable<'d>,
    asked: Vec<&'static str>,
}

impl<'d> Table<'d> {
    pub(crate) fn root(entries: &'d DeTable<'d>) -> Self {
        Self::new(String::new(), Span { start: 0, end: 0 }, entries)
    }

    pub(crate) fn new(path: String, span: Span, entries: &'d DeTable<'d>) -> Self {
        Self { path, span, entries, asked: Vec::new() }
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value under `key`. Asking makes the key a known one.
    pub(crate) fn item(&mut self, key: &'static str) -> Option<Item<'d>> {
        self.asked.push(key);
        let (_, value) = self.entries.get_key_value(key)?;
        Some(Item::new(self.path_of(key), value))
    }

    /// The value under `key`, or an error that says what to write.
    pub(crate) fn required(&mut self, key: &'static str, help: &str, log: &mut Log) -> Option<Item<'d>> {
        let item = self.item(key);
        if item.is_none() {
            log.error(Code::MissingKey, self.span, format!("`{}` is missing", self.path_of(key)), help);
        }
        item
    }

    /// The table under `key`.
    pub(crate) fn table(&mut self, key: &'static str, log: &mut Log) -> Option<Table<'d>> {
        self.item(key)?.table(log)
    }

    /// The array of tables under `key`; empty where there is none.
    pub(crate) fn tables(&mut self, key: &'static str, log: &mut Log) -> Vec<Table<'d>> {
        let help = format!("write `[[{}]]` with its keys below", self.path_of(key));
        let Some(item) = self.item(key) else { return Vec::new() };
        let Some(elements) = item.elements() else {
            item.wrong_type("a list of tables", &help, log);
            return Vec::new();
        };
        elements.into_iter().filter_map(|element| element.table(log)).collect()
    }

    /// The texts of a list in a section below, where they are there, without asking for the key.
    pub(crate) fn texts_at(&self, section: &str, key: &str) -> Vec<&'d str> {
        let Some(DeValue::Table(entries)) = self.entries.get(section).map(toml::Spanned::get_ref) else {
            return Vec::new();
        };
        let Some(DeValue::Array(list)) = entries.get(key).map(toml::Spanned::get_ref) else {
            return Vec::new();
        };
        list.iter().filter_map(|element| element.get_ref().as_str()).collect()
    }

    /// Every key with its place and value: for tables whose keys the user chooses.
    pub(crate) fn entries(&self) -> Vec<(&'d str, Span, Item<'d>)> {
        let entry =
            |(key, value): (&'d toml::Spanned<toml::de::DeString<'d>>, &'d toml::Spanned<DeValue<'d>>)| {
                let name: &str = key.get_ref();
                let range = key.span();
                (name, Span { start: range.start, end: range.end }, Item::new(self.path_of(name), value))
            };
        self.entries.iter().map(entry).collect()
    }

    /// Notes every key that was not asked for.
    pub(crate) fn close(self, log: &mut Log) {
        let place = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
        for (name, span, _) in self.entries() {
            if !self.asked.contains(&name) {
                let help = did_you_mean(name, &self.asked);
                log.error(Code::UnknownKey, span, format!("unknown key `{name}`{place}"), help);
            }
        }
    }
}
