//! Reading a fault's parameters: what is there, and what is wrong with it.

use std::collections::BTreeMap;
use std::time::Duration;

use killpoint_model::plan::duration_ms;
use serde_json::Value;

/// The parameters of a fault, as in the scenario's `with`.
pub type Parameters = BTreeMap<String, Value>;

/// Refuses parameters that a fault does not know.
pub(crate) fn known_only(with: &Parameters, known: &[&str]) -> Result<(), String> {
    match with.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) if known.is_empty() => Err(format!("`{name}`: this fault has no parameters")),
        Some(name) => Err(format!("`{name}`: this fault knows {}", known.join(", "))),
        None => Ok(()),
    }
}

/// A duration such as "1s"; `None` where it is not given.
pub(crate) fn duration(with: &Parameters, name: &str) -> Result<Option<Duration>, String> {
    let Some(value) = with.get(name) else { return Ok(None) };
    let ms = value.as_str().and_then(duration_ms);
    ms.map(|ms| Some(Duration::from_millis(ms)))
        .ok_or_else(|| format!("`{name}`: a duration such as \"1s\" is needed"))
}

/// A duration that may point back, such as "-3h", in milliseconds; `None` where it is not given.
pub(crate) fn signed_ms(with: &Parameters, name: &str) -> Result<Option<i64>, String> {
    let Some(value) = with.get(name) else { return Ok(None) };
    let text = value.as_str().unwrap_or_default();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let ms = duration_ms(digits).and_then(|ms| i64::try_from(ms).ok());
    ms.map(|ms| Some(sign * ms))
        .ok_or_else(|| format!("`{name}`: a duration such as \"5m\" or \"-3h\" is needed"))
}

/// A number from 1 to `most`; `None` where it is not given.
pub(crate) fn number(with: &Parameters, name: &str, most: u32) -> Result<Option<u32>, String> {
    let Some(value) = with.get(name) else { return Ok(None) };
    let number =
        value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|n| (1..=most).contains(n));
    number.map(Some).ok_or_else(|| format!("`{name}`: a number from 1 to {most} is needed"))
}

/// Yes or no; no where it is not given.
pub(crate) fn flag(with: &Parameters, name: &str) -> Result<bool, String> {
    let Some(value) = with.get(name) else { return Ok(false) };
    value.as_bool().ok_or_else(|| format!("`{name}`: true or false is needed"))
}

/// One of some words; the first where it is not given.
pub(crate) fn word<'w>(with: &Parameters, name: &str, words: &[&'w str]) -> Result<&'w str, String> {
    let Some(value) = with.get(name) else { return Ok(words.first().copied().unwrap_or_default()) };
    let found = words.iter().copied().find(|word| value.as_str() == Some(word));
    found.ok_or_else(|| format!("`{name}`: one of {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_wrong_ones_are_named() {
        let with: Parameters = [
            ("for", Value::from("2s")),
            ("back", Value::from("-3h")),
            ("count", Value::from(3)),
            ("stop", Value::from(true)),
            ("then", Value::from("kill")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        assert_eq!(duration(&with, "for"), Ok(Some(Duration::from_secs(2))));
        assert_eq!(signed_ms(&with, "back"), Ok(Some(-10_800_000)));
        assert_eq!(number(&with, "count", 9), Ok(Some(3)));
        assert!(number(&with, "count", 2).is_err_and(|why| why.contains("1 to 2")));
        assert_eq!(flag(&with, "stop"), Ok(true));
        assert_eq!(word(&with, "then", &["continue", "kill"]), Ok("kill"));
        assert_eq!(word(&with, "absent", &["continue", "kill"]), Ok("continue"));
        assert!(duration(&with, "count").is_err() && flag(&with, "for").is_err());
    }
}
