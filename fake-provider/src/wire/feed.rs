//! The inbound feed on the data port: `GET /v1/feed` and `POST /v1/feed/ack`.

use killpoint_model::provider::Unanswered;
use serde::Deserialize;
use serde_json::{Value, json};

use super::link::Link;
use super::{After, reject};
use crate::http::{Request, Response};

/// Ids that one acknowledgement may hold.
const ACKNOWLEDGED_MAX: usize = 10_000;

/// What a request asks of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FeedCall {
    Poll,
    Acknowledge,
}

#[derive(Deserialize)]
struct Acknowledgement {
    items: Vec<String>,
}

/// Whether a request is for the feed. The dialect never sees these.
pub(super) fn call_of(request: &Request) -> Option<FeedCall> {
    match (request.method.as_str(), request.path.trim_end_matches('/')) {
        ("GET", "/v1/feed") => Some(FeedCall::Poll),
        ("POST", "/v1/feed/ack") => Some(FeedCall::Acknowledge),
        _ => None,
    }
}

/// Answers a poll or an acknowledgement.
pub(super) async fn serve(link: &mut Link, request: &Request, call: FeedCall) -> After {
    let response = match call {
        FeedCall::Poll => Some(poll(link, request)),
        FeedCall::Acknowledge => match serde_json::from_slice::<Acknowledgement>(&request.body) {
            Ok(Acknowledgement { items }) if items.len() <= ACKNOWLEDGED_MAX => {
                let lost = link.shared.step(|core, _| core.acknowledge_feed(&items));
                (!lost).then(|| Response::json(200, &json!({ "acknowledged": items })))
            }
            _ => {
                let response = link.shared.dialect().error(400);
                reject(link, &response).await;
                return After::Close;
            }
        },
    };
    let Some(response) = response else {
        link.close(Unanswered::Fin).await;
        return After::Close;
    };
    let (bytes, _) = response.to_bytes(request.keep_alive, false);
    if link.write(&bytes).await.is_err() {
        return After::Close;
    }
    if request.keep_alive {
        return After::Next;
    }
    link.close(Unanswered::Fin).await;
    After::Close
}

fn poll(link: &Link, request: &Request) -> Response {
    let cursor = request.query_value("cursor").unwrap_or_default();
    let limit = request.query_value("limit").and_then(|limit| limit.parse().ok());
    let page = link.shared.step(|core, _| core.poll_feed(cursor, limit));
    let items: Vec<Value> =
        page.items.iter().map(|item| json!({ "id": item.id, "to": item.to, "body": item.body })).collect();
    Response::json(200, &json!({ "items": items, "cursor": page.cursor }))
}
