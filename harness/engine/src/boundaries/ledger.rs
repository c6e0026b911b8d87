//! The worker's ledger as a source of boundaries: two readings compared.

use std::collections::BTreeMap;

use killpoint_model::ledger::{LedgerRow, LedgerView};
use killpoint_model::{Entry, ExecutionState, HitName, Source};

use super::BoundarySource;

/// The `ledger` source.
#[derive(Debug)]
pub struct Ledger;

static ENTRY: Entry = Entry {
    name: "ledger",
    summary: "a row or a query of the worker's ledger changed; needs a mapping or a query in the configuration",
    explanation: "With a mapping, every row's new state is a point: created, dispatching, unknown, confirmed, failed, review, \
        cancelled, removed, and execution-succeeded. Queries under [[ledger.boundary]] are points by their own name. The ledger \
        is read from a copy, with the tree stopped: at every provider and mark hit, which is exact, and while the worker runs \
        free at a bounded interval, which is sampled: history and report say which. Where a request waits to be accepted just \
        then, a fault that holds somebody for long waits until it is accepted or refused.",
    example: "[[fault]]\nat = \"ledger:confirmed#1\"\ndo = \"kill\"",
};

impl BoundarySource for Ledger {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn is_exact(&self) -> bool {
        false
    }
}

/// A point that was passed between two readings, and the row that it is about.
pub type Passed = (HitName, Option<String>);

/// What changed from one reading to the next, in a fixed order. Unreadable readings change nothing.
pub fn changes(before: &LedgerView, after: &LedgerView) -> Vec<Passed> {
    let mut passed = Vec::new();
    let hit = |point: &str| HitName::new(Source::Ledger, point, 1);
    if let Some(rows) = &after.rows {
        let old = identities(before.rows.as_deref().unwrap_or_default());
        let new = identities(rows);
        for (identity, row) in &new {
            let known = old.get(identity);
            let succeeded = |row: &LedgerRow| row.execution == Some(ExecutionState::Succeeded);
            if succeeded(row) && !known.is_some_and(|known| succeeded(known)) {
                passed.push((hit("execution-succeeded"), Some(row.action.clone())));
            }
            if known.map(|known| known.state) != Some(row.state) {
                passed.push((hit(row.state.as_str()), Some(row.action.clone())));
            }
        }
        let gone = old.iter().filter(|(identity, _)| !new.contains_key(*identity));
        passed.extend(gone.map(|(_, row)| (hit("removed"), Some(row.action.clone()))));
    }
    for (name, value) in &after.values {
        if before.values.get(name).is_some_and(|old| old != value) {
            passed.push((hit(name), None));
        }
    }
    passed
}

/// Rows by action and destination; rows that share both are told apart by their order.
fn identities(rows: &[LedgerRow]) -> BTreeMap<(&str, &str, u32), &LedgerRow> {
    let mut seen: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let mut by_identity = BTreeMap::new();
    for row in rows {
        let pair = (row.action.as_str(), row.destination.as_deref().unwrap_or_default());
        let nth = seen.entry(pair).or_default();
        *nth += 1;
        by_identity.insert((pair.0, pair.1, *nth), row);
    }
    by_identity
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::RowState;

    fn view(rows: &[(&str, RowState)], value: &str) -> LedgerView {
        LedgerView {
            exact: true,
            rows: Some(rows.iter().map(|(action, state)| LedgerRow::new(*action, *state)).collect()),
            values: [("depth".to_owned(), value.to_owned())].into(),
            error: None,
        }
    }

    #[test]
    fn new_changed_and_removed_rows_and_changed_queries_are_points() {
        let before = view(&[("a", RowState::Created), ("b", RowState::Dispatching)], "2");
        let after = view(&[("a", RowState::Dispatching), ("c", RowState::Created)], "1");
        let names: Vec<String> = changes(&before, &after)
            .into_iter()
            .map(|(hit, subject)| format!("{} {}", hit.series(), subject.unwrap_or_default()))
            .collect();
        assert_eq!(names, ["ledger:dispatching a", "ledger:created c", "ledger:removed b", "ledger:depth "]);
        assert_eq!(changes(&after, &after), Vec::new());
    }
}
