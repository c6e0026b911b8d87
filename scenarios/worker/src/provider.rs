//! The provider's wire, as the worker sees it: one blocking request per call, nothing retried, nothing pooled.

use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Response;
use ureq::typestate::WithBody;
use ureq::{Agent, Body, RequestBuilder};

use crate::policy::Policy;
use crate::redact::{Secrets, without_user_info};
use crate::store::FeedItem;

/// Bytes of an answer's body that are read at most.
const BODY_BYTES_MAX: u64 = 64 * 1024;
/// The variable that holds the provider's credential.
pub(crate) const TOKEN_VARIABLE: &str = "OUTBOX_API_TOKEN";
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
    Doubtful { why: String, retry_after_ms: Option<u64> },
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

/// What a poll of the feed gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedPage {
    /// In the order of the feed.
    pub(crate) items: Vec<FeedItem>,
    /// Where the next poll goes on.
    pub(crate) cursor: String,
}

/// A provider at a base address.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    agent: Agent,
    base_url: String,
    /// The same without user information, for evidence.
    shown_url: String,
    token: Option<String>,
    secrets: Secrets,
    retries: bool,
    keeps_headers: bool,
}

impl Provider {
    /// `timeout_ms` limits each call as a whole. `token` is sent as a bearer's and appears nowhere else, and the same
    /// goes for user information in the address.
    pub(crate) fn new(base_url: &str, token: Option<String>, timeout_ms: u64, policy: Policy) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_millis(timeout_ms)))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .proxy(None)
            .build();
        let base_url = base_url.trim_end_matches('/').to_owned();
        let (shown_url, user_info) = without_user_info(&base_url);
        Self {
            agent: config.new_agent(),
            secrets: Secrets::new(token.as_deref(), user_info.as_deref()),
            base_url,
            shown_url,
            token,
            retries: policy.retry_in_client,
            keeps_headers: policy.keep_headers,
        }
    }

    /// Which credential requests bear, for evidence: its name, never its value.
    pub(crate) fn credential(&self) -> &'static str {
        if self.token.is_some() { TOKEN_VARIABLE } else { "no credential" }
    }

    /// Where requests go, for evidence.
    pub(crate) fn messages_url(&self) -> String {
        format!("{}/v1/messages", self.shown_url)
    }

    /// Sends one message, once.
    pub(crate) fn send(&self, payload: &str, key: &str) -> Answer {
        let post = || {
            let request = self.post("/v1/messages").header("Idempotency-Key", key);
            request.content_type("application/json").send(payload)
        };
        let mut sent = post();
        if self.retries && sent.is_err() {
            sent = post();
        }
        let answer = match sent {
            Ok(response) => answer_of(response),
            Err(error) => Answer::Doubtful { why: format!("no answer: {error}"), retry_after_ms: None },
        };
        match answer {
            Answer::Refused { why } => Answer::Refused { why: self.shown(&why) },
            Answer::Doubtful { why, retry_after_ms } => {
                Answer::Doubtful { why: self.shown(&why), retry_after_ms }
            }
            other => other,
        }
    }

    /// Asks for the message under a key.
    pub(crate) fn look_up(&self, key: &str) -> Lookup {
        let asked = self.get("/v1/messages").query("idempotency_key", key).call();
        let answer = asked.map_err(|error| format!("no answer: {error}")).and_then(success);
        answer
            .and_then(|text| lookup_of(&text))
            .unwrap_or_else(|why| Lookup::Failed { why: self.shown(&why) })
    }

    /// Asks for what the feed has after a cursor; an empty one is its beginning.
    pub(crate) fn poll_feed(&self, cursor: &str) -> Result<FeedPage, String> {
        let mut request = self.get("/v1/feed");
        if !cursor.is_empty() {
            request = request.query("cursor", cursor);
        }
        let page = request.call().map_err(|error| format!("no answer: {error}"));
        page.and_then(success).and_then(|text| page_of(&text)).map_err(|why| self.shown(&why))
    }

    /// Tells the feed that items arrived.
    pub(crate) fn acknowledge_feed(&self, items: &[String]) -> Result<(), String> {
        let request = self.post("/v1/feed/ack").content_type("application/json");
        let answer = request.send(json!({ "items": items }).to_string());
        let answer = answer.map_err(|error| format!("no answer: {error}"));
        answer.and_then(success).map(drop).map_err(|why| self.shown(&why))
    }

    fn post(&self, path: &str) -> RequestBuilder<WithBody> {
        let request = self.agent.post(format!("{}{path}", self.base_url)).header("Connection", "close");
        match self.authorization() {
            Some(value) => request.header("Authorization", value),
            None => request,
        }
    }

    fn get(&self, path: &str) -> RequestBuilder<ureq::typestate::WithoutBody> {
        let request = self.agent.get(format!("{}{path}", self.base_url)).header("Connection", "close");
        match self.authorization() {
            Some(value) => request.header("Authorization", value),
            None => request,
        }
    }

    fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    /// A text for the ledger or for people.
    fn shown(&self, why: &str) -> String {
        if self.keeps_headers {
            let authorization = self.authorization().unwrap_or_default();
            return format!("{why} (to {}, authorization: {authorization})", self.base_url);
        }
        self.secrets.redact(why)
    }
}

fn answer_of(mut response: Response<Body>) -> Answer {
    let status = response.status().as_u16();
    let retry_after_ms = retry_after_ms(&response);
    if status == 429 {
        return Answer::RateLimited { retry_after_ms };
    }
    let text = match body_of(&mut response) {
        Ok(text) => text,
        Err(why) => {
            return Answer::Doubtful { why: format!("answered {status}, then {why}"), retry_after_ms };
        }
    };
    let why = format!("answered {status}: {}", excerpt(&text));
    match (status, id_of(&parsed(&text))) {
        (200..300, Some(id)) => Answer::Accepted { id },
        (200..300, None) => {
            let why = format!("answered {status} without an id: {}", excerpt(&text));
            Answer::Doubtful { why, retry_after_ms }
        }
        // A conflict is an earlier request's doing, and the other two ask for a repetition.
        (400..500, _) if ![408, 409, 425].contains(&status) => Answer::Refused { why },
        _ => Answer::Doubtful { why, retry_after_ms },
    }
}

fn retry_after_ms(response: &Response<Body>) -> Option<u64> {
    let seconds: u64 = response.headers().get("Retry-After")?.to_str().ok()?.parse().ok()?;
    Some(seconds.saturating_mul(1000))
}

/// The body of a 2xx answer.
fn success(mut response: Response<Body>) -> Result<String, String> {
    let status = response.status().as_u16();
    let text = body_of(&mut response).map_err(|why| format!("answered {status}, then {why}"))?;
    if (200..300).contains(&status) {
        Ok(text)
    } else {
        Err(format!("answered {status}: {}", excerpt(&text)))
    }
}

fn page_of(text: &str) -> Result<FeedPage, String> {
    let page = parsed(text);
    let odd = || format!("answered without items and cursor: {}", excerpt(text));
    let items = page.get("items").and_then(Value::as_array).ok_or_else(odd)?;
    let items = items.iter().map(item_of).collect::<Option<_>>().ok_or_else(odd)?;
    let cursor = match page.get("cursor") {
        Some(Value::String(cursor)) => cursor.clone(),
        Some(Value::Number(cursor)) => cursor.to_string(),
        _ => return Err(odd()),
    };
    Ok(FeedPage { items, cursor })
}

fn item_of(item: &Value) -> Option<FeedItem> {
    let to = match item.get("to")? {
        Value::String(to) => vec![to.clone()],
        many => many.as_array()?.iter().map(|to| to.as_str().map(str::to_owned)).collect::<Option<_>>()?,
    };
    Some(FeedItem { id: id_of(item)?, to, body: item.get("body")?.as_str()?.to_owned() })
}

fn lookup_of(text: &str) -> Result<Lookup, String> {
    let odd = || format!("answered without a list: {}", excerpt(text));
    match parsed(text).get("data").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => Ok(Lookup::Absent),
        Some([first, ..]) => id_of(first).map(|id| Lookup::Found { id }).ok_or_else(odd),
        None => Err(odd()),
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
