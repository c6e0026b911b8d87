//! What changed between two readings of the worker's ledger, row by row.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use killpoint_model::{LedgerRow, LedgerView};

use crate::sanitise::shorten;

/// Most rows or values that one step names.
const NAMED_MAX: usize = 8;
/// Longest worker's text within a step, in characters.
const TEXT_CHARS_MAX: usize = 60;

/// Action, destination, and which of the rows with the same two, from 0.
type RowId = (String, Option<String>, usize);

/// Compares each reading with the one before.
#[derive(Debug)]
pub(super) struct LedgerChanges {
    rows: BTreeMap<RowId, String>,
    values: BTreeMap<String, String>,
    subjects: BTreeSet<String>,
}

impl LedgerChanges {
    /// `subjects` are named first where not everything can be named.
    pub(super) const fn new(subjects: BTreeSet<String>) -> Self {
        Self { rows: BTreeMap::new(), values: BTreeMap::new(), subjects }
    }

    /// Takes a reading and says what changed; empty where nothing did.
    pub(super) fn take(&mut self, view: &LedgerView) -> String {
        let mut changes = Vec::new();
        if let Some(error) = &view.error {
            changes.push((false, format!("could not be read: {}", shorten(error, 2 * TEXT_CHARS_MAX))));
        }
        if let Some(rows) = &view.rows {
            let now: BTreeMap<RowId, String> = identified(rows).map(|(id, row)| (id, state(row))).collect();
            for (id, new) in &now {
                match self.rows.get(id) {
                    Some(old) if old == new => {}
                    Some(old) => changes.push(self.change(id, old, new)),
                    None => changes.push(self.change(id, "absent", new)),
                }
            }
            for (id, old) in self.rows.iter().filter(|(id, _)| !now.contains_key(*id)) {
                changes.push(self.change(id, old, "absent"));
            }
            self.rows = now;
        }
        for (name, new) in &view.values {
            let old = self.values.insert(name.clone(), new.clone());
            if old.as_ref() != Some(new) {
                let old = old.map_or_else(|| "unread".to_owned(), |old| shorten(&old, TEXT_CHARS_MAX));
                let text = format!(
                    "value {}: {old} → {}",
                    shorten(name, TEXT_CHARS_MAX),
                    shorten(new, TEXT_CHARS_MAX)
                );
                changes.push((false, text));
            }
        }
        join(changes)
    }

    fn change(&self, id: &RowId, old: &str, new: &str) -> (bool, String) {
        (self.is_subject(id), format!("{} {old} → {new}", name(id)))
    }

    fn is_subject(&self, (action, destination, _): &RowId) -> bool {
        self.subjects.contains(action)
            || destination.as_ref().is_some_and(|destination| self.subjects.contains(destination))
    }

    /// All rows of a reading with their states and the evidence that the worker kept.
    pub(super) fn list(&self, rows: &[LedgerRow]) -> String {
        if rows.is_empty() {
            return "no rows".to_owned();
        }
        let texts = identified(rows).map(|(id, row)| {
            let evidence =
                row.evidence.as_ref().map(|evidence| format!(" (“{}”)", shorten(evidence, TEXT_CHARS_MAX)));
            (self.is_subject(&id), format!("{} {}{}", name(&id), state(row), evidence.unwrap_or_default()))
        });
        join(texts.collect())
    }
}

/// Rows with an identity each, though two may have the same action and destination.
fn identified(rows: &[LedgerRow]) -> impl Iterator<Item = (RowId, &LedgerRow)> {
    let mut seen: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
    rows.iter().map(move |row| {
        let count = seen.entry((&row.action, row.destination.as_deref())).or_default();
        let id = (row.action.clone(), row.destination.clone(), *count);
        *count += 1;
        (id, row)
    })
}

fn name((action, destination, nth): &RowId) -> String {
    let mut name = shorten(action, TEXT_CHARS_MAX);
    if let Some(destination) = destination {
        let _ = write!(name, " to {}", shorten(destination, TEXT_CHARS_MAX));
    }
    if *nth > 0 {
        let _ = write!(name, " (row {} of the same name)", nth + 1);
    }
    name
}

/// The canonical state, and the worker's own word where it is another.
fn state(row: &LedgerRow) -> String {
    match &row.raw_state {
        Some(raw) if raw != row.state.as_str() => {
            format!("{} “{}”", row.state, shorten(raw, TEXT_CHARS_MAX))
        }
        _ => row.state.to_string(),
    }
}

/// Joins texts, the subjects' first, and says how many are not named.
fn join(mut texts: Vec<(bool, String)>) -> String {
    texts.sort_by_key(|(is_subject, _)| !is_subject);
    let more = texts.len().saturating_sub(NAMED_MAX);
    let mut named: Vec<String> = texts.into_iter().take(NAMED_MAX).map(|(_, text)| text).collect();
    if more > 0 {
        named.push(format!("… {more} more"));
    }
    named.join("; ")
}

#[cfg(test)]
mod tests {
    use killpoint_model::RowState;

    use super::*;

    fn view(rows: Vec<LedgerRow>) -> LedgerView {
        LedgerView { exact: true, rows: Some(rows), values: BTreeMap::new(), error: None }
    }

    #[test]
    fn changes_are_told_once_from_old_to_new() {
        let subjects = BTreeSet::new();
        let mut changes = LedgerChanges::new(subjects);
        let row = |state| LedgerRow::new("job-1", state);
        assert_eq!(changes.take(&view(vec![row(RowState::Created)])), "job-1 absent → created");
        assert_eq!(changes.take(&view(vec![row(RowState::Created)])), "");
        assert_eq!(changes.take(&view(vec![row(RowState::Confirmed)])), "job-1 created → confirmed");
        assert_eq!(changes.take(&view(vec![])), "job-1 confirmed → absent");
    }

    #[test]
    fn a_second_row_of_the_same_name_and_an_error_are_said_aloud() {
        let subjects = BTreeSet::new();
        let mut changes = LedgerChanges::new(subjects);
        let twice = vec![LedgerRow::new("a", RowState::Created), LedgerRow::new("a", RowState::Confirmed)];
        assert_eq!(
            changes.take(&view(twice)),
            "a absent → created; a (row 2 of the same name) absent → confirmed"
        );
        let broken = LedgerView { error: Some("malformed".into()), rows: None, ..view(vec![]) };
        assert_eq!(changes.take(&broken), "could not be read: malformed");
    }

    #[test]
    fn subjects_are_named_though_others_are_left_out() {
        let subjects = BTreeSet::from(["z".to_owned()]);
        let changes = LedgerChanges::new(subjects);
        let mut rows: Vec<LedgerRow> =
            (0..20).map(|n| LedgerRow::new(format!("a{n}"), RowState::Confirmed)).collect();
        rows.push(LedgerRow::new("z", RowState::Unknown));
        let text = changes.list(&rows);
        assert!(text.starts_with("z unknown; a0 confirmed"), "{text}");
        assert!(text.ends_with("… 13 more"), "{text}");
    }
}
