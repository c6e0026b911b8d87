//! Plain JSON over HTTP: any write to any path makes an effect.

use killpoint_model::Entry;
use killpoint_model::provider::Effect;
use serde_json::{Value, json};

use super::{Accepted, Call, Dialect, Refusal};
use crate::core::{LIST_MAX, Looked, Query};
use crate::http::{Request, Response, reason};

static ENTRY: Entry = Entry {
    name: "rest",
    summary: "plain JSON over HTTP: any write to any path makes an effect",
    explanation: "Any request but GET, HEAD, OPTIONS, TRACE and CONNECT, to any path, is the operation `create`: an unknown write must count. It is answered with 201 and an object with `id`, `status`, `idempotency_key` and `recipient`. GET of a path that ends in an id is `get`; GET with `?idempotency_key=` (or `?key=`) is `lookup`; any other GET is `list`, oldest first, with `limit` and `after`. Errors are objects under `error`. JSON and form bodies are read.",
    example: "[provider]\ndialect = \"rest\"",
};

/// The dialect.
#[derive(Debug)]
pub(super) struct Rest;

impl Dialect for Rest {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn read(&self, request: &Request) -> Call {
        match request.method.as_str() {
            "GET" | "HEAD" => Call::Lookup(read_query(request)),
            "OPTIONS" | "TRACE" | "CONNECT" => Call::Unsupported { status: 405 },
            _ => Call::Write { operation: "create".into() },
        }
    }

    fn accepted(&self, accepted: Accepted<'_>) -> Response {
        let Accepted { id, attempt } = accepted;
        let body = json!({
            "id": id,
            "status": "accepted",
            "idempotency_key": attempt.key,
            "recipient": attempt.recipient,
        });
        Response::json(201, &body)
    }

    fn refused(&self, refusal: Refusal) -> Response {
        match refusal {
            Refusal::Concurrent => error(
                409,
                "idempotency_key_in_use",
                "another request with this idempotency key is in progress",
            ),
            Refusal::Mismatch { status } => error(
                status,
                "idempotency_error",
                "this idempotency key was used with another request; use another key for another request",
            ),
            Refusal::MissingKey => {
                error(400, "idempotency_key_missing", "this request needs an idempotency key")
            }
        }
    }

    fn error(&self, status: u16) -> Response {
        error(status, error_type(status), reason(status))
    }

    fn found(&self, query: &Query, looked: &Looked) -> Response {
        let objects = || looked.found.iter().map(|effect| object(effect, looked.at_ms));
        match query {
            Query::Id(_) => match objects().next() {
                Some(object) => Response::json(200, &object),
                None => error(404, "not_found", "there is no such message"),
            },
            Query::Key(_) | Query::List { .. } => {
                let data: Vec<Value> = objects().collect();
                Response::json(200, &json!({ "data": data, "has_more": looked.has_more }))
            }
        }
    }
}

fn read_query(request: &Request) -> Query {
    let last = request.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if last.starts_with("msg_") {
        return Query::Id(last.to_owned());
    }
    if let Some(key) = request.query_value("idempotency_key").or_else(|| request.query_value("key")) {
        return Query::Key(key.to_owned());
    }
    let limit = request.query_value("limit").and_then(|limit| limit.parse().ok()).unwrap_or(LIST_MAX);
    Query::List { limit: limit.clamp(1, LIST_MAX), after: request.query_value("after").map(str::to_owned) }
}

fn object(effect: &Effect, now_ms: u64) -> Value {
    let bounced = effect.bounced_at_ms.is_some_and(|bounced_at_ms| bounced_at_ms <= now_ms);
    json!({
        "id": effect.id,
        "status": if bounced { "bounced" } else { "accepted" },
        "idempotency_key": effect.key,
        "recipient": effect.recipient,
        "body": effect.body,
    })
}

fn error(status: u16, kind: &str, message: &str) -> Response {
    Response::json(status, &json!({ "error": { "type": kind, "message": message } }))
}

fn error_type(status: u16) -> &'static str {
    match status {
        401 | 403 => "authentication_error",
        404 => "not_found",
        405 => "method_not_allowed",
        409 => "conflict",
        413 => "request_too_large",
        429 => "rate_limited",
        other if other < 500 => "invalid_request",
        _ => "api_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};

    fn call(line: &str) -> Call {
        match parse(format!("{line} HTTP/1.1\r\n\r\n").as_bytes()) {
            Ok(Parsed::Complete { request, .. }) => Rest.read(&request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn unknown_writes_count_and_reads_are_told_apart() {
        for line in ["POST /", "PUT /x/1", "PATCH /x", "DELETE /x/msg_000001", "LINK /x"] {
            assert_eq!(call(line), Call::Write { operation: "create".into() }, "{line}");
        }
        let list =
            |limit, after: Option<&str>| Call::Lookup(Query::List { limit, after: after.map(str::to_owned) });
        for (line, expected) in [
            ("GET /v1/messages/msg_000001", Call::Lookup(Query::Id("msg_000001".into()))),
            ("GET /v1/messages?idempotency_key=a%2Fb", Call::Lookup(Query::Key("a/b".into()))),
            ("GET /v1/messages?key=", Call::Lookup(Query::Key(String::new()))),
            ("HEAD /v1/messages", list(LIST_MAX, None)),
            ("GET /v1/messages?limit=2&after=msg_000003", list(2, Some("msg_000003"))),
            ("GET /v1/messages?limit=9999", list(LIST_MAX, None)),
            ("OPTIONS /", Call::Unsupported { status: 405 }),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn every_error_is_an_object_under_error() {
        for status in 400..600 {
            let response = Rest.error(status);
            let body: Value = serde_json::from_str(&response.body).unwrap();
            assert_eq!(response.status, status);
            assert!(body["error"]["type"].is_string() && body["error"]["message"].is_string());
        }
    }
}
