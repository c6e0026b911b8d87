//! Which plan a request gets: the first rule that matches and is not used up.

use std::collections::BTreeMap;

use killpoint_model::plan::{Match, Rule};
use killpoint_model::provider::{Attempt, Lookup};
use serde::Serialize;
use serde_json::Value;

use super::content::text_of;

/// Why a rule is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Two rules with one id.
    #[error("rule `{0}`: there is another rule with this id; give each its own")]
    Duplicate(String),
    /// `nth = 0`.
    #[error("rule `{0}`: nth counts from 1")]
    NthZero(String),
    /// A text that is no JSON pointer.
    #[error("rule `{id}`: `{pointer}` is no JSON pointer; it starts with `/`")]
    NoPointer {
        /// The rule.
        id: String,
        /// What was written.
        pointer: String,
    },
}

/// What a rule can look at.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) dialect: String,
    pub(super) operation: String,
    pub(super) write: bool,
    pub(super) key: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Facts {
    /// What the log keeps of a write: of its headers the key's alone, and the body as it is stored.
    pub(super) fn recorded_write(attempt: &Attempt, key_header: &str) -> Self {
        Self {
            dialect: attempt.dialect.clone(),
            operation: attempt.operation.clone(),
            write: true,
            key: attempt.key.clone(),
            headers: attempt.key.iter().map(|key| (key_header.to_owned(), key.clone())).collect(),
            body: attempt.body.clone(),
        }
    }

    /// What the log keeps of a lookup.
    pub(super) fn recorded_lookup(lookup: &Lookup, dialect: &str) -> Self {
        Self {
            dialect: dialect.to_owned(),
            operation: lookup.operation.clone(),
            write: false,
            key: (lookup.operation == "lookup").then(|| lookup.subject.clone()),
            headers: Vec::new(),
            body: Value::Null,
        }
    }
}

/// A rule in force and what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleStatus {
    /// The rule.
    pub rule: Rule,
    /// Requests that matched it, `nth` aside.
    pub matched: u32,
    /// How often it fired.
    pub fired: u32,
}

/// The rules in force, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RuleBook {
    entries: Vec<RuleStatus>,
}

impl RuleBook {
    pub(super) fn new(rules: &[Rule]) -> Result<Self, RuleError> {
        let mut book = Self::default();
        for rule in rules {
            book.add(rule.clone())?;
        }
        Ok(book)
    }

    pub(super) fn add(&mut self, rule: Rule) -> Result<(), RuleError> {
        if self.entries.iter().any(|entry| entry.rule.id == rule.id) {
            return Err(RuleError::Duplicate(rule.id));
        }
        if rule.matches.nth == Some(0) {
            return Err(RuleError::NthZero(rule.id));
        }
        if let Some(pointer) = rule.matches.pointer.keys().find(|it| !it.is_empty() && !it.starts_with('/')) {
            return Err(RuleError::NoPointer { pointer: pointer.clone(), id: rule.id });
        }
        self.entries.push(RuleStatus { rule, matched: 0, fired: 0 });
        Ok(())
    }

    pub(super) fn remove(&mut self, id: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.rule.id != id);
        self.entries.len() < before
    }

    pub(super) fn statuses(&self) -> Vec<RuleStatus> {
        self.entries.clone()
    }

    /// Counts a request for every rule that it is for. To be called once per request, before `choose`.
    pub(super) fn see(&mut self, facts: &Facts) {
        for entry in &mut self.entries {
            if is_for(&entry.rule.matches, facts) {
                entry.matched += 1;
            }
        }
    }

    /// The rule that takes the request last seen.
    pub(super) fn choose(&self, facts: &Facts) -> Option<&Rule> {
        self.entries
            .iter()
            .find(|entry| {
                let used_up = entry.rule.times.is_some_and(|times| entry.fired >= times);
                let its_turn = entry.rule.matches.nth.is_none_or(|nth| nth == entry.matched);
                !used_up && its_turn && is_for(&entry.rule.matches, facts)
            })
            .map(|entry| &entry.rule)
    }

    pub(super) fn fire(&mut self, id: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.rule.id == id) {
            entry.fired += 1;
            // A replayed log does not keep every header: a rule that fired for its nth saw that many.
            entry.matched = entry.matched.max(entry.rule.matches.nth.unwrap_or(0));
        }
    }
}

/// Whether a request meets every criterion but `nth`.
fn is_for(matches: &Match, facts: &Facts) -> bool {
    let operation = match &matches.operation {
        Some(operation) => *operation == facts.operation,
        None => facts.write,
    };
    operation
        && matches.dialect.as_ref().is_none_or(|dialect| *dialect == facts.dialect)
        && matches.key.as_ref().is_none_or(|key| facts.key.as_ref() == Some(key))
        && headers_match(&matches.header, &facts.headers)
        && matches
            .pointer
            .iter()
            .all(|(pointer, wanted)| facts.body.pointer(pointer).and_then(text_of).as_ref() == Some(wanted))
}

fn headers_match(wanted: &BTreeMap<String, String>, sent: &[(String, String)]) -> bool {
    wanted
        .iter()
        .all(|(name, value)| sent.iter().any(|(known, has)| known.eq_ignore_ascii_case(name) && has == value))
}
