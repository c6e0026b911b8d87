//! A restart makes no second item.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::Entry;

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;
use crate::facts::units::Unit;

static ENTRY: Entry = Entry {
    name: "no-manufactured-item",
    summary: "no item exists that nobody enqueued",
    explanation: "\
The trial ends with more items than the fault-free one: a row, or a message, that nobody asked for. It happens \
when recovery rebuilds the outbox from a transcript, or enqueues again because it does not see what is there.

Right is that each item has its durable identity from the moment it is committed, and that recovery only reads. \
(Your Agent Recovered the Run: \"Restart does not manufacture a second delivery item.\")",
    example: "[ledger]\nkind = \"sqlite\"\npath = \"{state}/outbox.db\"\nquery = \"SELECT id AS action, status AS state, body AS text FROM outbox\"",
};

/// See [`ENTRY`].
pub(crate) struct NoManufacturedItem;

impl Invariant for NoManufacturedItem {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "there is no baseline to compare with: it is the baseline itself, or the baselines differ",
        );
        let Some(baseline) = &facts.baseline else { return looked };
        let known: BTreeSet<&String> =
            baseline.units.iter().flat_map(|unit| unit.actions.iter().chain(&unit.texts)).collect();
        for (_, unit, account) in facts.units() {
            let rows = unit.rows.iter().any(|row| !facts.book.ledger.rows[*row].last.is_empty());
            if account.total == 0 && !rows {
                continue;
            }
            looked.look();
            if !facts.is_surplus(unit) {
                continue;
            }
            let message = describe(unit, account.total);
            if rows || facts.is_second_identity(unit) {
                looked.violation(unit.subject(), message, account.events.clone());
            } else if !is_retargeted(unit, &known) {
                looked.doubt(
                    unit.subject(),
                    format!("{message}: an alarm, or a manufactured item? set `provider.action`, or map the ledger"),
                    account.events.clone(),
                );
            }
        }
        rows_twice(facts, &mut looked);
        if !looked.is_empty() {
            doubt_unusable_rows(facts, &mut looked);
        }
        looked
    }
}

fn describe(unit: &Unit, total: u32) -> String {
    match (unit.rows.len(), total) {
        (0, total) => format!("{total} delivered that the fault-free trial does not have"),
        (rows, total) => {
            format!("{rows} rows, with {total} delivered, that the fault-free trial does not have")
        }
    }
}

/// A known action or text at another recipient is another invariant's violation.
fn is_retargeted(unit: &Unit, known: &BTreeSet<&String>) -> bool {
    unit.actions.iter().chain(&unit.texts).any(|word| known.contains(word))
}

/// One identity in several final rows, more often than in the baseline.
fn rows_twice(facts: &Facts<'_>, looked: &mut Looked) {
    let Some((seq, _)) = facts.final_rows() else { return };
    let known: BTreeMap<(&str, Option<&str>), usize> = (facts.baseline.iter())
        .flat_map(|book| &book.ledger.rows)
        .map(|row| ((row.action, row.destination), row.last.len()))
        .collect();
    for row in &facts.book.ledger.rows {
        let owed = known.get(&(row.action, row.destination)).copied().unwrap_or(1).max(1);
        if row.last.len() > owed {
            looked.violation(
                row.action,
                format!(
                    "{} final rows of one action and destination where {owed} was enqueued",
                    row.last.len()
                ),
                vec![seq],
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, Inconclusive, Violated};
    use killpoint_model::{RowState, Settings};

    use crate::sample::{Trial, judged, mapped, mapped_baseline, row, status, violated};

    const NAME: &str = "no-manufactured-item";

    #[test]
    fn a_second_row_for_one_message_is_manufactured() {
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), Holds);
        let rows = vec![
            row("deploy-42", "bob@x", RowState::Confirmed),
            row("deploy-43", "bob@x", RowState::Confirmed),
        ];
        let trial = Trial::new()
            .deliver("bob@x", Some("k-deploy-42"), "deployed")
            .kill("mark:claimed#1")
            .deliver("bob@x", Some("k-deploy-43"), "deployed")
            .end_rows(rows);
        let verdict = judged(&mapped(), &trial, &mapped_baseline());
        let violated = violated(&verdict);
        assert!(violated.contains(&NAME) && violated.contains(&"no-duplicate-effect"), "{violated:?}");
    }

    #[test]
    fn one_identity_in_two_rows_is_manufactured() {
        let done = || row("deploy-42", "bob@x", RowState::Confirmed);
        let trial =
            Trial::new().deliver("bob@x", Some("k-deploy-42"), "deployed").end_rows(vec![done(), done()]);
        assert_eq!(status(&mapped(), &trial, NAME), Violated);
    }

    #[test]
    fn other_words_may_be_an_alarm() {
        let trial =
            Trial::new().deliver("bob@x", None, "deployed").deliver("ops@x", None, "please look").end();
        assert_eq!(status(&Settings::default(), &trial, NAME), Inconclusive);
    }
}
