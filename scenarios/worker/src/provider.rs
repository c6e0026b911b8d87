//! The provider's wire, as the worker sees it: one blocking request per call, nothing retried, nothing pooled.

use std::time::Duration;

use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body};

/// Bytes of an answer's body that are read at most.
const BODY_BYTES_MAX: u64 = 64 * 1024;
/// Characters of an answer that are kept as evidence.
const EXCERPT_CHARS_MAX: usize = 200;

/// What is known after a request was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A whole 2xx answer with the provider's id.
    Accepted { id: String },
    /// A definite refusal: not accepted, and a repetition can't help.
    Refused { why: String },
    /// Not now: not accepted, and a repetition may help.
    RateLimited { retry_after_ms: Option<u64> },
    /// Anything else: it may have been accepted.
    Doubtful { why: String },
}

/// What is known after the provider was asked for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It has a message under that key.
    Found { id: String },
    /// It answered that there is none.
    Absent,
    /// It did not answer the question.
    Failed { why: String },
}

/// A provider at a base address.
#[derive(Debug)]
pub(crate) struct Provider {
    agent: Agent,
    messages_url: String,
}

impl Provider {
    /// `timeout_ms` limits each call as a whole.
    pub(crate) fn new(base_url: &str, timeout_ms: u64) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_millis(timeout_ms)))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .proxy(None)
            .build();
        Self {
            agent: config.new_agent(),
            messages_url: format!("{}/v1/messages", base_url.trim_end_matches('/')),
        }
    }

    /// Where requests go, for evidence.
    pub(crate) fn messages_url(&self) -> &str {
        &self.messages_url
    }

    /// Sends one message, once.
    pub(crate) fn send(&self, payload: &str, key: &str) -> Answer {
        let sent = self
            .agent
            .post(&self.messages_url)
            .header("Connection", "close")
            .header("Idempotency-Key", key)
            .content_type("application/json")
            .send(payload);
        match sent {
            Ok(response) => answer_of(response),
            Err(error) => Answer::Doubtful { why: format!("no answer: {error}") },
        }
    }

    /// Asks for the message under a key.
    pub(crate) fn look_up(&self, key: &str) -> Lookup {
        let asked = self
            .agent
            .get(&self.messages_url)
            .header("Connection", "close")
            .query("idempotency_key", key)
            .call();
        match asked {
            Ok(response) => lookup_of(response),
            Err(error) => Lookup::Failed { why: format!("no answer: {error}") },
        }
    }
}

fn answer_of(mut response: Response<Body>) -> Answer {
    let status = response.status().as_u16();
    if status == 429 {
        let seconds =
            response.headers().get("Retry-After").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        return Answer::RateLimited { retry_after_ms: seconds.map(|seconds| seconds.saturating_mul(1000)) };
    }
    let text = match body_of(&mut response) {
        Ok(text) => text,
        Err(why) => return Answer::Doubtful { why: format!("answered {status}, then {why}") },
    };
    match status {
        200..300 => match id_of(&parsed(&text)) {
            Some(id) => Answer::Accepted { id },
            None => Answer::Doubtful { why: format!("answered {status} without an id: {}", excerpt(&text)) },
        },
        // A conflict is an earlier request's doing, and the other two ask for a repetition.
        400..500 if ![408, 409, 425].contains(&status) => {
            Answer::Refused { why: format!("answered {status}: {}", excerpt(&text)) }
        }
        _ => Answer::Doubtful { why: format!("answered {status}: {}", excerpt(&text)) },
    }
}

fn lookup_of(mut response: Response<Body>) -> Lookup {
    let status = response.status().as_u16();
    let text = match body_of(&mut response) {
        Ok(text) if (200..300).contains(&status) => text,
        Ok(text) => return Lookup::Failed { why: format!("answered {status}: {}", excerpt(&text)) },
        Err(why) => return Lookup::Failed { why: format!("answered {status}, then {why}") },
    };
    let failed = || Lookup::Failed { why: format!("answered {status} without a list: {}", excerpt(&text)) };
    match parsed(&text).get("data").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => Lookup::Absent,
        Some([first, ..]) => id_of(first).map_or_else(failed, |id| Lookup::Found { id }),
        None => failed(),
    }
}

fn body_of(response: &mut Response<Body>) -> Result<String, String> {
    response
        .body_mut()
        .with_config()
        .limit(BODY_BYTES_MAX)
        .read_to_string()
        .map_err(|error| error.to_string())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn id_of(value: &Value) -> Option<String> {
    match value.get("id")? {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS_MAX).collect()
}
