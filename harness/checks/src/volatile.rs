//! Which fields of a body differ from run to run of the same work, and bodies without them.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::History;
use killpoint_model::provider::Effect;
use serde_json::Value;

/// Why two fault-free trials can't serve as an oracle: they did not do the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the two baselines differ: `{recipient}` received {first} in the first and {second} in the second; make the worker deterministic without faults, or map its ledger and repeat"
)]
pub struct BaselinesDiffer {
    /// The recipient.
    pub recipient: String,
    /// Effects in the first baseline.
    pub first: usize,
    /// Effects in the second.
    pub second: usize,
}

/// JSON pointers (RFC 6901) of the body fields that differ between the effects of two baselines. Effects
/// are paired by recipient: equal bodies first, then equal action or text, then order. The empty pointer
/// means that the whole body differs. An error says that recipients or counts differ.
pub fn volatile_pointers(a: &History, b: &History) -> Result<BTreeSet<String>, BaselinesDiffer> {
    let (first, second) = (by_recipient(a), by_recipient(b));
    let recipients: BTreeSet<&str> = first.keys().chain(second.keys()).copied().collect();
    let mut pointers = BTreeSet::new();
    for recipient in recipients {
        let left = first.get(recipient).map_or(&[][..], Vec::as_slice);
        let right = second.get(recipient).map_or(&[][..], Vec::as_slice);
        if left.len() != right.len() {
            return Err(BaselinesDiffer {
                recipient: recipient.to_owned(),
                first: left.len(),
                second: right.len(),
            });
        }
        for (one, other) in paired(left, right) {
            differences(&one.body, &other.body, &mut String::new(), &mut pointers);
        }
    }
    Ok(pointers)
}

fn by_recipient(history: &History) -> BTreeMap<&str, Vec<&Effect>> {
    let mut map: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
    for (_, effect) in history.effects() {
        map.entry(&effect.recipient).or_default().push(effect);
    }
    map
}

/// Pairs effects of one recipient, the surest likeness first, so that two workers' order does not matter.
fn paired<'a>(left: &[&'a Effect], right: &[&'a Effect]) -> Vec<(&'a Effect, &'a Effect)> {
    let likenesses: [fn(&Effect) -> Option<String>; 4] = [
        |effect| Some(effect.body.to_string()),
        |effect| effect.action.clone(),
        |effect| Some(effect.text.clone()),
        |_| Some(String::new()),
    ];
    let (mut left, mut right) = (left.to_vec(), right.to_vec());
    let mut pairs = Vec::new();
    for likeness in likenesses {
        let mut waiting: BTreeMap<String, Vec<&Effect>> = BTreeMap::new();
        let mut rest = Vec::new();
        for effect in right.drain(..).rev() {
            match likeness(effect) {
                Some(like) => waiting.entry(like).or_default().push(effect),
                None => rest.push(effect),
            }
        }
        left.retain(|effect| {
            let found = likeness(effect).and_then(|like| waiting.get_mut(&like)?.pop());
            pairs.extend(found.map(|other| (*effect, other)));
            found.is_none()
        });
        rest.extend(waiting.into_values().flatten());
        rest.sort_by_key(|effect| (effect.committed_at_ms, effect.attempt));
        right = rest;
    }
    pairs
}

fn differences(a: &Value, b: &Value, at: &mut String, into: &mut BTreeSet<String>) {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let length = at.len();
                at.push('/');
                at.push_str(&escaped(name));
                let null = Value::Null;
                differences(left.get(name).unwrap_or(&null), right.get(name).unwrap_or(&null), at, into);
                at.truncate(length);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (one, other)) in left.iter().zip(right).enumerate() {
                let length = at.len();
                at.push('/');
                at.push_str(&index.to_string());
                differences(one, other, at, into);
                at.truncate(length);
            }
        }
        _ if a == b => {}
        _ => {
            into.insert(at.clone());
        }
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A body as comparable text, without its volatile fields.
pub(crate) fn normalised(body: &Value, volatile: &BTreeSet<String>) -> String {
    if volatile.is_empty() {
        return body.to_string();
    }
    let mut body = body.clone();
    for pointer in volatile {
        if let Some(value) = body.pointer_mut(pointer) {
            *value = Value::Null;
        }
    }
    body.to_string()
}

/// Every string in a body.
pub(crate) fn leaves<'a>(body: &'a Value, into: &mut Vec<&'a str>) {
    match body {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, into)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::Trial;

    fn baseline(bodies: &[(&str, Value)]) -> History {
        let mut trial = Trial::new();
        for (recipient, body) in bodies {
            let attempt = trial.send_body(recipient, None, body.clone());
            trial.commit(attempt);
        }
        trial.end()
    }

    #[test]
    fn what_differs_is_volatile_and_order_is_not() {
        let a = baseline(&[("x", json!({"text": "a", "at": 1})), ("x", json!({"text": "b", "n/o": [1, 2]}))]);
        let b = baseline(&[("x", json!({"text": "b", "n/o": [1, 3]})), ("x", json!({"text": "a", "at": 2}))]);
        let pointers = volatile_pointers(&a, &b).unwrap();
        assert_eq!(pointers.iter().map(String::as_str).collect::<Vec<_>>(), ["/at", "/n~1o/1"]);
        assert_eq!(
            normalised(&json!({"text": "a", "at": 1}), &pointers),
            normalised(&json!({"text": "a", "at": 9}), &pointers)
        );
    }

    #[test]
    fn other_counts_or_recipients_are_no_oracle() {
        let a = baseline(&[("x", json!("hello"))]);
        let b = baseline(&[("y", json!("hello"))]);
        assert_eq!(volatile_pointers(&a, &b).map_err(|differ| (differ.first, differ.second)), Err((1, 0)));
        assert_eq!(volatile_pointers(&a, &a), Ok(BTreeSet::new()));
    }

    #[test]
    fn a_text_body_that_differs_is_volatile_as_a_whole() {
        let pointers = volatile_pointers(&baseline(&[("x", json!("a"))]), &baseline(&[("x", json!("b"))]));
        assert_eq!(pointers, Ok(BTreeSet::from([String::new()])));
    }
}
