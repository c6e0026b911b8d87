//! What the control port can do.

use std::time::Duration;

use killpoint_model::json_words;
use killpoint_model::plan::{Reply, Rule};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::failure;
use crate::core::RuleError;
use crate::http::{Request, Response, percent_decoded};
use crate::shared::{ReleaseError, Shared};

/// Events that one answer holds.
const EVENTS_MAX: usize = 1000;
/// How long a request may wait for events, in milliseconds.
const EVENT_WAIT_MS_MAX: u64 = 30_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    reply: Reply,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockStep {
    advance_ms: u64,
}

/// Answers one request that was let in.
pub(super) async fn answer(shared: &Shared, request: &Request) -> Response {
    let path: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    let answered = match (request.method.as_str(), path.as_slice()) {
        ("GET", ["v1", "rules"]) => Ok(rules(shared)),
        ("POST", ["v1", "rules"]) => add_rule(shared, &request.body),
        ("DELETE", ["v1", "rules", id]) => remove_rule(shared, &percent_decoded(id)),
        ("GET", ["v1", "events"]) => events(shared, request).await,
        ("GET", ["v1", "holds"]) => Ok(Response::json(200, &json!({ "holds": shared.parked() }))),
        ("POST", ["v1", "holds", attempt]) => release(shared, attempt, &request.body),
        ("GET", ["v1", "effects"]) => Ok(effects(shared)),
        ("GET", ["v1", "attempts"]) => Ok(attempts(shared)),
        ("GET", ["v1", "lookups"]) => Ok(lookups(shared)),
        ("GET", ["v1", "counters"]) => Ok(counters(shared)),
        ("POST", ["v1", "clock"]) => step_clock(shared, &request.body),
        ("POST", ["v1", "reset"]) => {
            shared.reset().await;
            Ok(Response::json(200, &json!({})))
        }
        (method, _) => Err(failure(404, &format!("there is no {method} {}", request.path))),
    };
    answered.unwrap_or_else(|refused| refused)
}

fn body_as<T: DeserializeOwned>(body: &[u8]) -> Result<T, Response> {
    serde_json::from_slice(body).map_err(|error| failure(400, &format!("the body: {}", json_words(&error))))
}

fn rules(shared: &Shared) -> Response {
    let rules = shared.look(|core, _| core.rules());
    Response::json(200, &json!({ "rules": rules }))
}

fn add_rule(shared: &Shared, body: &[u8]) -> Result<Response, Response> {
    let rule: Rule = body_as(body)?;
    let id = rule.id.clone();
    match shared.step(|core, _| core.add_rule(rule)) {
        Ok(()) => Ok(Response::json(201, &json!({ "id": id }))),
        Err(error @ RuleError::Duplicate(_)) => Err(failure(409, &error.to_string())),
        Err(error) => Err(failure(400, &error.to_string())),
    }
}

fn remove_rule(shared: &Shared, id: &str) -> Result<Response, Response> {
    if shared.step(|core, _| core.remove_rule(id)) {
        return Ok(Response::json(200, &json!({ "id": id })));
    }
    Err(failure(404, &format!("there is no rule `{id}`")))
}

/// A number of the query; `absent` where it is not given.
fn number(request: &Request, name: &str, absent: u64) -> Result<u64, Response> {
    match request.query_value(name) {
        None => Ok(absent),
        Some(text) => text.parse().map_err(|_| failure(400, &format!("{name}: `{text}` is no whole number"))),
    }
}

/// The events after `after`; where there are none, waits for the next.
async fn events(shared: &Shared, request: &Request) -> Result<Response, Response> {
    if let Some((name, _)) = request.query.iter().find(|(name, _)| name != "after" && name != "wait_ms") {
        return Err(failure(400, &format!("`{name}` is unknown; known are after and wait_ms")));
    }
    let after = usize::try_from(number(request, "after", 0)?).unwrap_or(usize::MAX);
    let wait_ms = number(request, "wait_ms", 0)?.min(EVENT_WAIT_MS_MAX);
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    let mut changes = shared.changes();
    loop {
        changes.borrow_and_update();
        let found: Vec<Value> = shared.look(|core, _| {
            let log = core.log().iter().enumerate().skip(after).take(EVENTS_MAX);
            log.map(|(index, event)| json!({ "seq": index + 1, "event": event })).collect()
        });
        let over = found.is_empty() && timeout_at(deadline, changes.changed()).await.is_err();
        if over || !found.is_empty() {
            let next = after.saturating_add(found.len());
            return Ok(Response::json(200, &json!({ "events": found, "next": next })));
        }
    }
}

fn release(shared: &Shared, attempt: &str, body: &[u8]) -> Result<Response, Response> {
    let Release { reply } = body_as(body)?;
    let attempt: u32 =
        attempt.parse().map_err(|_| failure(400, &format!("`{attempt}` is no attempt's number")))?;
    match shared.release(attempt, reply) {
        Ok(()) => Ok(Response::json(200, &json!({ "attempt": attempt }))),
        Err(error @ ReleaseError::NotParked(_)) => Err(failure(404, &error.to_string())),
        Err(error @ ReleaseError::NoEnd(_)) => Err(failure(400, &error.to_string())),
    }
}

fn effects(shared: &Shared) -> Response {
    shared.look(|core, _| Response::json(200, &json!({ "effects": core.state().effects })))
}

fn attempts(shared: &Shared) -> Response {
    shared.look(|core, _| {
        let attempts: Vec<_> = core.state().attempts.values().collect();
        Response::json(200, &json!({ "attempts": attempts }))
    })
}

fn lookups(shared: &Shared) -> Response {
    shared.look(|core, _| {
        let lookups: Vec<_> = core.state().lookups.values().collect();
        Response::json(200, &json!({ "lookups": lookups }))
    })
}

fn counters(shared: &Shared) -> Response {
    shared.look(|core, _| Response::json(200, &json!(core.counters())))
}

fn step_clock(shared: &Shared, body: &[u8]) -> Result<Response, Response> {
    let ClockStep { advance_ms } = body_as(body)?;
    shared.step_clock(Duration::from_millis(advance_ms));
    let now_ms = shared.look(|_, now_ms| now_ms);
    Ok(Response::json(200, &json!({ "now_ms": now_ms })))
}
