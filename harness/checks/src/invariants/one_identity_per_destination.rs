//! One action has one identity per destination, and its destinations stay.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::Entry;

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::units::{Book, Unit};

static ENTRY: Entry = Entry {
    name: "one-identity-per-destination",
    summary: "each action has one row and one key per destination, and no new destinations after a restart",
    explanation: "\
An action has two rows or keys for one destination, or goes to a destination that the fault-free trial does not \
have. The second comes from resolving recipients anew after a restart (a roster, a routing rule): each identity \
stays unique and yet somebody is added.

Right is to freeze the resolved destinations with the action when it is committed. (Your Agent Recovered the \
Run: \"exactly one durable delivery identity per intended destination\", and the comment on recomputed \
recipients.)",
    example: "[provider]\nrecipient = [\"/to\"]\naction = \"/metadata/action_id\"",
};

/// See [`ENTRY`].
pub(crate) struct OneIdentityPerDestination;

impl Invariant for OneIdentityPerDestination {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "neither rows nor a baseline to compare destinations with: map the ledger, or set `provider.action`",
        );
        rows_and_keys(facts, &mut looked);
        if let Some(baseline) = &facts.baseline {
            destinations(facts, baseline, &mut looked);
        }
        looked
    }
}

/// Within one view: one row and one key per action and destination.
fn rows_and_keys(facts: &Facts<'_>, looked: &mut Looked) {
    let ledger = &facts.book.ledger;
    for row in &ledger.rows {
        looked.look();
        let twice = row.sightings.windows(2).find(|pair| pair[0].0 == pair[1].0);
        if let Some([(view, one), (_, other)]) = twice {
            let keys = if one.key == other.key { "" } else { " with different keys" };
            let to = row.destination.map(|destination| format!(" to {destination}")).unwrap_or_default();
            looked.violation(
                row.action,
                format!("the ledger has more than one row of this action{to}{keys}"),
                vec![ledger.views[*view].seq],
            );
        }
    }
}

fn destinations(facts: &Facts<'_>, baseline: &Book<'_>, looked: &mut Looked) {
    let known = Known::of(baseline);
    for (_, unit, account) in facts.units() {
        if unit.recipient.is_empty() || (unit.attempts.is_empty() && unit.rows.is_empty()) {
            continue;
        }
        if unit.attempts.is_empty() && !facts.book.directed {
            continue;
        }
        looked.look();
        if facts.is_surplus(unit) && known.is_elsewhere(unit) {
            looked.violation(
                unit.subject(),
                format!("`{}` is no destination of this action in the fault-free trial", unit.recipient),
                account.events.clone(),
            );
        }
    }
}

/// Where the baseline sends what.
struct Known<'b> {
    of_action: BTreeMap<&'b str, BTreeSet<&'b str>>,
    of_text: BTreeMap<&'b str, BTreeSet<&'b str>>,
    all: BTreeSet<&'b str>,
}

impl<'b> Known<'b> {
    fn of(baseline: &'b Book<'_>) -> Self {
        let mut known = Self { of_action: BTreeMap::new(), of_text: BTreeMap::new(), all: BTreeSet::new() };
        for unit in baseline.units.iter().filter(|unit| !unit.recipient.is_empty()) {
            known.all.insert(&unit.recipient);
            for action in &unit.actions {
                known.of_action.entry(action).or_default().insert(&unit.recipient);
            }
            for text in &unit.texts {
                known.of_text.entry(text).or_default().insert(&unit.recipient);
            }
        }
        known
    }

    /// Whether the action, or where ids are new in every trial its text or row, is known and never goes
    /// to this recipient.
    fn is_elsewhere(&self, unit: &Unit) -> bool {
        let elsewhere = |places: &BTreeSet<&str>| !places.contains(unit.recipient.as_str());
        let actions = unit.actions.iter().filter_map(|action| self.of_action.get(action.as_str()));
        let texts = unit.texts.iter().filter_map(|text| self.of_text.get(text.as_str()));
        let stranger = !unit.rows.is_empty() && !self.all.contains(unit.recipient.as_str());
        stranger || actions.chain(texts).any(elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, Violated};
    use killpoint_model::{LedgerRow, RowState, Settings};

    use crate::sample::{Trial, mapped, mapped_baseline, plain_baseline, row, status};

    const NAME: &str = "one-identity-per-destination";

    #[test]
    fn a_new_recipient_after_a_restart_is_seen_with_and_without_rows() {
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), Holds);
        let added = Trial::new()
            .deliver("bob@x", Some("k-deploy-42"), "deployed")
            .kill("provider:committed#1")
            .deliver("eve@x", Some("k-deploy-42"), "deployed")
            .clone();
        assert_eq!(status(&Settings::default(), &added.clone().end(), NAME), Violated);
        let done = vec![row("deploy-42", "bob@x", RowState::Confirmed)];
        assert_eq!(status(&mapped(), &added.clone().end_rows(done), NAME), Violated);
    }

    #[test]
    fn two_rows_of_one_action_and_destination() {
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), Holds);
        let other_key =
            LedgerRow { key: Some("k-2".into()), ..row("deploy-42", "bob@x", RowState::Confirmed) };
        let trial = Trial::new()
            .deliver("bob@x", Some("k-deploy-42"), "deployed")
            .end_rows(vec![row("deploy-42", "bob@x", RowState::Confirmed), other_key]);
        assert_eq!(status(&mapped(), &trial, NAME), Violated);
    }
}
