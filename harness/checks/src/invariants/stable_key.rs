//! One action, one key; one key, one action.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::Entry;
use killpoint_model::profile::KeyScope;
use killpoint_model::provider::Replay;
use killpoint_model::settings::Promise;

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::index::Index;
use crate::facts::ledger::RowFact;
use crate::facts::units::Unit;
use crate::facts::wire::AttemptFact;
use crate::volatile::normalised;

static ENTRY: Entry = Entry {
    name: "stable-key",
    summary: "all attempts of an action bear one key, and no key serves two actions or bodies",
    explanation: "\
An idempotency key protects only if it is made before the first attempt, kept with the action, and sent with \
every attempt. A key that is new on every try, or after a restart, makes each retry a fresh request. A key \
that two actions share, or that comes with two bodies, makes the provider swallow or refuse the second.

Right is a key from the durable row. After a whole refusal a new key may be taken; after an unknown outcome it \
may not. (Your Agent Finished the Job: \"a restart cannot create a new identity for the same logical action\"; \
the IETF draft on the Idempotency-Key header.)",
    example: "[provider.idempotency]\nheader = \"Idempotency-Key\"",
};

/// See [`ENTRY`].
pub(crate) struct StableKey;

impl Invariant for StableKey {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no request bears a key: set `provider.idempotency.header` or `.pointer` to where the worker sends it, if it sends one",
        );
        let attempts = &facts.book.wire.attempts;
        if attempts.iter().all(|fact| fact.attempt.key.is_none()) {
            if facts.settings.promise == Promise::AtLeastOnceKeyed && !attempts.is_empty() {
                looked.look();
                looked.violation(
                    "all actions",
                    "no request bears a key, though the promise is at-least-once-keyed",
                    attempts.iter().map(|fact| fact.seq).collect(),
                );
            }
            return looked;
        }
        for (index, unit, _) in facts.units().filter(|(_, unit, _)| !unit.attempts.is_empty()) {
            looked.look();
            if unit.attempts.len() > 1 {
                keys_of_one_action(facts, index, unit, &mut looked);
            }
            bodies_of_one_key(facts, unit, &mut looked);
        }
        actions_of_one_key(facts, &mut looked);
        keys_of_one_row(facts, &mut looked);
        looked
    }
}

fn keys_of_one_action(facts: &Facts<'_>, index: usize, unit: &Unit, looked: &mut Looked) {
    let attempts: Vec<&AttemptFact<'_>> =
        unit.attempts.iter().map(|at| &facts.book.wire.attempts[*at]).collect();
    let without = attempts.iter().filter(|fact| fact.attempt.key.is_none()).count();
    if without > 0 && without < attempts.len() {
        looked.violation(
            unit.subject(),
            format!("{without} of {} attempts bear no key", attempts.len()),
            facts.attempt_events(unit),
        );
    }
    // Keys under which something may have been accepted: these may not be given up.
    let mut binding: BTreeSet<&str> = BTreeSet::new();
    let mut changed = false;
    for fact in attempts {
        let Some(key) = fact.attempt.key.as_deref() else { continue };
        changed |= !binding.contains(key) && binding.len() >= facts.slots(index) as usize;
        if fact.doubtful() {
            binding.insert(key);
        }
    }
    if changed {
        looked.violation(
            unit.subject(),
            format!(
                "the key changed between attempts, though one before may have been accepted (keys: {})",
                binding.into_iter().take(5).collect::<Vec<_>>().join(", ")
            ),
            facts.attempt_events(unit),
        );
    }
}

fn bodies_of_one_key(facts: &Facts<'_>, unit: &Unit, looked: &mut Looked) {
    let mut bodies: BTreeMap<&str, (u64, String)> = BTreeMap::new();
    for fact in unit.attempts.iter().map(|at| &facts.book.wire.attempts[*at]) {
        let Some(key) = fact.attempt.key.as_deref() else { continue };
        if let Some((seq, Replay::Mismatch, _)) = fact.replay {
            looked.violation(
                unit.subject(),
                format!("the provider refused key `{key}` because it came with another body before"),
                vec![fact.seq, seq],
            );
            continue;
        }
        // Without two baselines nobody knows which fields are meant to differ.
        if unit.payloads.len() < 2 || !facts.volatile_known {
            continue;
        }
        let body = normalised(&fact.attempt.body, &facts.volatile);
        let (first, known) = bodies.entry(key).or_insert_with(|| (fact.seq, body.clone()));
        if *known != body {
            let message = format!("key `{key}` came with two bodies");
            looked.violation(unit.subject(), message, vec![*first, fact.seq]);
        }
    }
}

fn actions_of_one_key(facts: &Facts<'_>, looked: &mut Looked) {
    let by_path = facts.settings.provider.idempotency.scope == KeyScope::Path;
    let mut first: Index<(&str, &str, &str), (usize, u64)> = Index::default();
    let mut users: BTreeMap<(&str, &str, &str), BTreeMap<usize, u64>> = BTreeMap::new();
    for (index, fact) in facts.book.wire.attempts.iter().enumerate() {
        let Some(key) = fact.attempt.key.as_deref() else { continue };
        let path = if by_path { fact.attempt.target.as_str() } else { "" };
        let place = (key, fact.attempt.operation.as_str(), path);
        let unit = facts.book.unit_of_attempt[index];
        let (known, seq) = *first.entry(place).or_insert((unit, fact.seq));
        if known != unit {
            let units = users.entry(place).or_insert_with(|| BTreeMap::from([(known, seq)]));
            units.entry(unit).or_insert(fact.seq);
        }
    }
    for ((key, _, _), units) in &users {
        let names: Vec<String> = units.keys().take(3).map(|unit| facts.book.units[*unit].subject()).collect();
        looked.violation(
            names.join(" and "),
            format!("key `{key}` serves {} different messages", units.len()),
            units.values().copied().collect(),
        );
    }
}

/// A row may get its key late, and even another one, as long as nothing was sent under the first and no
/// restart came in between.
fn keys_of_one_row(facts: &Facts<'_>, looked: &mut Looked) {
    let mut sent: Index<&str, u64> = Index::default();
    let rekeyed = |row: &&RowFact<'_>| row.sightings.windows(2).any(|pair| pair[0].1.key != pair[1].1.key);
    let mut rows = facts.book.ledger.rows.iter().filter(rekeyed).peekable();
    if rows.peek().is_none() {
        return;
    }
    for fact in &facts.book.wire.attempts {
        if let Some(key) = fact.attempt.key.as_deref() {
            sent.entry(key).or_insert(fact.seq);
        }
    }
    for row in rows {
        let keys = row.sightings.iter().filter_map(|(view, row)| Some((*view, row.key.as_deref()?)));
        let mut keys: Vec<(u64, &str)> =
            keys.map(|(view, key)| (facts.book.ledger.views[view].seq, key)).collect();
        keys.dedup_by_key(|(seq, _)| *seq);
        let changed = keys.windows(2).find(|pair| {
            let [(before, key), (after, other)] = pair else { return false };
            let was_sent = sent.get(key).is_some_and(|attempt| attempt < after);
            let restarted = facts.first_kill_after(*before).is_some_and(|kill| kill < *after);
            key != other && (was_sent || restarted)
        });
        if let Some([(before, key), (after, other)]) = changed {
            let message = format!("the row's key was `{key}` and became `{other}`");
            looked.violation(row.action, message, vec![*before, *after]);
        }
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};
    use killpoint_model::settings::Promise;
    use killpoint_model::{History, LedgerRow, RowState, Settings};
    use serde_json::json;

    use crate::sample::{Trial, judged, mapped, row, status, violated};

    fn keys(keys: &[Option<&str>]) -> History {
        let mut trial = Trial::new();
        for key in keys {
            trial.lose("bob@x", *key, "deployed", false).look_up("", &[]);
        }
        trial.deliver("bob@x", keys[0], "deployed").end()
    }

    #[test]
    fn one_key_for_all_attempts() {
        let settings = Settings::default();
        assert_eq!(status(&settings, &keys(&[Some("k-1"), Some("k-1")]), "stable-key"), Holds);
        assert_eq!(status(&settings, &keys(&[Some("k-1"), Some("k-2")]), "stable-key"), Violated);
        assert_eq!(status(&settings, &keys(&[Some("k-1"), None]), "stable-key"), Violated);
        assert_eq!(status(&settings, &keys(&[None, None]), "stable-key"), NotShown);
        let keyed = Settings { promise: Promise::AtLeastOnceKeyed, ..Settings::default() };
        assert_eq!(status(&keyed, &keys(&[None, None]), "stable-key"), Violated);
    }

    #[test]
    fn a_key_may_be_rotated_after_a_refusal() {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", Some("k-1"), "deployed");
        let trial = trial.reply(attempt, 422).deliver("bob@x", Some("k-2"), "deployed").end();
        assert_eq!(status(&Settings::default(), &trial, "stable-key"), Holds);
    }

    #[test]
    fn one_key_for_one_action_and_body() {
        let shared =
            || Trial::new().deliver("bob@x", Some("k-1"), "a").deliver("eve@x", Some("k-1"), "b").end();
        assert!(violated(&judged(&Settings::default(), &shared(), &shared())).contains(&"stable-key"));
        let mut changed = Trial::new();
        for number in 1..=2 {
            let body = json!({"to": "bob@x", "text": "deployed", "try": number});
            let attempt = changed.send_body("bob@x", Some("k-1"), body);
            changed.drop_reply(attempt);
        }
        assert_eq!(status(&Settings::default(), &changed.end(), "stable-key"), Violated);
    }

    #[test]
    fn a_row_keeps_its_key_once_it_counts() {
        let with = |key: &str| {
            let row = row("deploy-42", "bob@x", RowState::Created);
            vec![LedgerRow { key: Some(key.into()), ..row }]
        };
        let mut trial = Trial::new();
        trial.view(None, with("k-1"));
        let mut early = trial.clone();
        early.view(None, with("k-2"));
        let early = early.deliver("bob@x", Some("k-2"), "deployed").end_rows(with("k-2"));
        assert_eq!(status(&mapped(), &early, "stable-key"), Holds);
        trial.kill("mark:claimed#1").view(None, with("k-2"));
        let restarted = trial.deliver("bob@x", Some("k-2"), "deployed").end_rows(with("k-2"));
        assert_eq!(status(&mapped(), &restarted, "stable-key"), Violated);
        let mut sent = Trial::new();
        sent.deliver("bob@x", Some("k-1"), "deployed");
        sent.view(None, with("k-1"));
        assert_eq!(status(&mapped(), &sent.end_rows(with("k-2")), "stable-key"), Violated);
    }
}
