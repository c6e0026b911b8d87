//! What a request says: its key, recipient, text, action, and by what its sender could know it again.

use std::fmt::Write;

use killpoint_model::provider::{Attempt, Recognizer, RecognizerVisibility};
use killpoint_model::settings::ProviderSettings;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Arrival;
use crate::http::read_form;

/// Bytes of a body that an event keeps.
pub const BODY_STORED_BYTES_MAX: usize = 64 << 10;
const RECOGNIZERS_MAX: usize = 32;
const RECOGNIZER_BYTES_MAX: usize = 128;

/// Makes the attempt, and gives the whole body beside it.
pub(super) fn read_attempt(
    settings: &ProviderSettings,
    arrival: &Arrival,
    id: u32,
    now_ms: u64,
) -> (Attempt, Value) {
    let body = read_body(arrival);
    let attempt = Attempt {
        id,
        connection: arrival.connection,
        dialect: settings.dialect.clone(),
        operation: arrival.operation.clone(),
        target: arrival.target.clone(),
        key: read_key(settings, arrival, &body),
        recipient: first_text(&settings.recipient, &body).unwrap_or_else(|| arrival.target.clone()),
        action: settings.action.as_deref().and_then(|place| at_place(place, arrival, &body)),
        body_sha256: lower_hex(&Sha256::digest(&arrival.body)),
        body: stored(&arrival.body, &body),
        at_ms: now_ms,
    };
    (attempt, body)
}

/// Two lower-case hex digits per byte.
pub(crate) fn lower_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn header<'a>(arrival: &'a Arrival, name: &str) -> Option<&'a str> {
    arrival
        .headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// The body as JSON: read as JSON, else as a form where it is declared one, else its text.
fn read_body(arrival: &Arrival) -> Value {
    if let Ok(value) = serde_json::from_slice(&arrival.body) {
        return value;
    }
    let text = String::from_utf8_lossy(&arrival.body);
    let declared = header(arrival, "content-type").unwrap_or_default().to_ascii_lowercase();
    if !declared.starts_with("application/x-www-form-urlencoded") {
        return Value::String(text.into_owned());
    }
    let mut object = Map::new();
    for (name, value) in read_form(&text) {
        let value = Value::String(value);
        match object.get_mut(&name) {
            None => {
                object.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(object)
}

/// The body as an event keeps it.
fn stored(bytes: &[u8], value: &Value) -> Value {
    if bytes.len() <= BODY_STORED_BYTES_MAX {
        return value.clone();
    }
    let prefix = String::from_utf8_lossy(&bytes[..BODY_STORED_BYTES_MAX]);
    Value::String(format!("{prefix}… [cut: {BODY_STORED_BYTES_MAX} of {} bytes]", bytes.len()))
}

/// The key exactly as sent: a quoted key is another key than the bare one. An empty one is none.
fn read_key(settings: &ProviderSettings, arrival: &Arrival, body: &Value) -> Option<String> {
    let profile = &settings.idempotency;
    profile
        .pointer
        .as_deref()
        .and_then(|pointer| body.pointer(pointer))
        .and_then(text_of)
        .or_else(|| header(arrival, &profile.header).map(str::to_owned))
        .filter(|key| !key.is_empty())
}

fn at_place(place: &str, arrival: &Arrival, body: &Value) -> Option<String> {
    match place.strip_prefix("header:") {
        Some(name) => header(arrival, name).map(str::to_owned),
        None => body.pointer(place).and_then(text_of),
    }
}

/// A value as a human would read it: text as it is, a list joined with commas, anything else as JSON.
/// `None` for null.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(items.iter().filter_map(text_of).collect::<Vec<_>>().join(",")),
        other => Some(other.to_string()),
    }
}

fn first_text(pointers: &[String], body: &Value) -> Option<String> {
    pointers.iter().find_map(|pointer| body.pointer(pointer).and_then(text_of))
}

/// What a human would read of an attempt: the configured text, else the whole body.
pub(super) fn rendered(settings: &ProviderSettings, attempt: &Attempt) -> String {
    first_text(&settings.text, &attempt.body).or_else(|| text_of(&attempt.body)).unwrap_or_default()
}

/// By what the sender could know an effect again: its key, and what looks like an id in the body.
pub(super) fn recognizers(settings: &ProviderSettings, attempt: &Attempt) -> Vec<Recognizer> {
    let mut found = Vec::new();
    if let Some(key) = &attempt.key {
        let profile = &settings.idempotency;
        let in_body = profile
            .pointer
            .as_deref()
            .filter(|pointer| attempt.body.pointer(pointer).and_then(text_of).as_ref() == Some(key));
        let place = in_body.map_or_else(|| format!("header:{}", profile.header), str::to_owned);
        found.push(Recognizer { place, value: key.clone(), visibility: RecognizerVisibility::Hidden });
    }
    let shown = settings
        .text
        .iter()
        .find(|pointer| attempt.body.pointer(pointer).and_then(text_of).is_some())
        .map(String::as_str);
    collect(&attempt.body, &mut String::new(), shown, attempt, &mut found);
    found.truncate(RECOGNIZERS_MAX);
    found
}

fn collect(
    value: &Value,
    pointer: &mut String,
    shown: Option<&str>,
    attempt: &Attempt,
    found: &mut Vec<Recognizer>,
) {
    if found.len() >= RECOGNIZERS_MAX {
        return;
    }
    let mut descend = |name: &str, value: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        collect(value, pointer, shown, attempt, found);
        pointer.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| descend(name, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| descend(&index.to_string(), value));
        }
        Value::String(text) => {
            let visible = shown.is_some_and(|shown| pointer.as_str() == shown);
            let visibility =
                if visible { RecognizerVisibility::Visible } else { RecognizerVisibility::Hidden };
            // A human's text holds an id among other words; elsewhere the whole value is the id.
            let words: Vec<&str> = if visible { words_of(text) } else { vec![text.as_str()] };
            for word in words {
                let known = found.iter().any(|one| one.place == *pointer && one.value == word);
                if !known && *word != attempt.recipient && is_id(word, attempt.action.as_deref()) {
                    found.push(Recognizer { place: pointer.clone(), value: word.to_owned(), visibility });
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn words_of(text: &str) -> Vec<&str> {
    text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric())).collect()
}

/// Whether a word looks like an id: letters and digits, and a separator or some length.
fn is_id(word: &str, action: Option<&str>) -> bool {
    if action == Some(word) {
        return true;
    }
    let has = |test: fn(char) -> bool| word.chars().any(test);
    let separated = word.contains(['-', '_', ':']);
    word.len() <= RECOGNIZER_BYTES_MAX
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_:.".contains(c))
        && has(|c| c.is_ascii_alphabetic())
        && has(|c| c.is_ascii_digit())
        && (separated || word.len() >= 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(settings: &ProviderSettings, headers: &[(&str, &str)], body: &str) -> Attempt {
        let arrival = Arrival {
            connection: 1,
            operation: "create".into(),
            target: "POST /v1/messages".into(),
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: body.into(),
        };
        read_attempt(settings, &arrival, 1, 5).0
    }

    #[test]
    fn recipient_text_action_and_key_are_found() {
        let settings = ProviderSettings { action: Some("/meta/id".into()), ..ProviderSettings::default() };
        let body = r#"{"to":["a@x","b@x"],"text":"hi","meta":{"id":7}}"#;
        let got = attempt(&settings, &[("idempotency-KEY", "\"k\"")], body);
        assert_eq!(got.recipient, "a@x,b@x");
        assert_eq!(got.action.as_deref(), Some("7"));
        assert_eq!(got.key.as_deref(), Some("\"k\""), "as sent, quotes and all");
        assert_eq!(rendered(&settings, &got), "hi");
        assert_eq!(got.body_sha256.len(), 64);
    }

    #[test]
    fn without_pointers_the_target_and_the_whole_body_are_taken() {
        let settings = ProviderSettings { action: Some("header:X-Action".into()), ..Default::default() };
        let got = attempt(&settings, &[("x-action", "a-1"), ("Idempotency-Key", "")], "plain");
        assert_eq!(got.recipient, "POST /v1/messages");
        assert_eq!(rendered(&settings, &got), "plain");
        assert_eq!((got.action.as_deref(), got.key), (Some("a-1"), None));
    }

    #[test]
    fn forms_are_objects_and_a_pointer_key_wins_over_the_header() {
        let mut settings = ProviderSettings::default();
        settings.idempotency.pointer = Some("/key".into());
        let form = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
        let got = attempt(&settings, &[form, ("Idempotency-Key", "head")], "to=a&to=b&key=body&text=x+y");
        assert_eq!((got.recipient.as_str(), got.key.as_deref()), ("a,b", Some("body")));
        assert_eq!(rendered(&settings, &got), "x y");
    }

    #[test]
    fn long_bodies_are_kept_as_a_prefix_with_a_note() {
        let text = "é".repeat(BODY_STORED_BYTES_MAX);
        let got = attempt(&ProviderSettings::default(), &[], &format!(r#"{{"to":"a","text":"{text}"}}"#));
        assert_eq!(got.recipient, "a", "read before the body is cut");
        let kept = got.body.as_str().unwrap();
        assert!(kept.len() < BODY_STORED_BYTES_MAX + 100 && kept.ends_with("bytes]"), "{}", kept.len());
    }

    #[test]
    fn recognizers_are_the_key_and_what_looks_like_an_id() {
        let settings = ProviderSettings { action: Some("/ref".into()), ..ProviderSettings::default() };
        let body = r#"{"to":"user-1","text":"Invoice [ref:job-17], 3 items","meta":{"a/b":"ord_9f","n":"plain"},"ref":"x"}"#;
        let got = attempt(&settings, &[("Idempotency-Key", "k1")], body);
        let found: Vec<(String, String, &str)> = recognizers(&settings, &got)
            .into_iter()
            .map(|one| (one.place, one.value, one.visibility.as_str()))
            .collect();
        let expected = [
            ("header:Idempotency-Key", "k1", "hidden"),
            ("/meta/a~1b", "ord_9f", "hidden"),
            ("/ref", "x", "hidden"),
            ("/text", "ref:job-17", "visible"),
        ];
        assert_eq!(found, expected.map(|(place, value, seen)| (place.into(), value.into(), seen)));
    }

    #[test]
    fn recognizers_have_a_cap() {
        let ids: Vec<String> = (0..100).map(|n| format!("id-{n}")).collect();
        let body = serde_json::to_string(&ids).unwrap();
        let settings = ProviderSettings::default();
        assert_eq!(recognizers(&settings, &attempt(&settings, &[], &body)).len(), RECOGNIZERS_MAX);
    }
}
