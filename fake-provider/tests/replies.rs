//! Each kind of reply, to the byte, and that twins can't be told apart.

mod support;

use killpoint_model::plan::{Commit, CutAt, Match, ProviderPlan, Reply};
use killpoint_model::provider::ProviderEvent;
use support::{Client, config, get, plan, post, rule, settings, soon, start, word};

const BODY: &str = r#"{"to":"a@example.test","text":"hello"}"#;

/// What one client sees of one keyed write, and how the provider's log ends.
async fn seen(plan: ProviderPlan) -> ((String, bool), String, u32) {
    let mut provider = settings(true);
    provider.hang_ms = 20;
    let server = start(config(provider, plan)).await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(Some("k-1"), BODY).replace("Host: x", "Host: x\r\nConnection: close")).await;
    let seen = client.read_to_end().await;
    assert!(server.drain(std::time::Duration::from_secs(10)).await);
    let last = server.log().last().map(word).unwrap();
    (seen, last, server.counters().effects)
}

#[tokio::test]
async fn every_reply_is_exact_and_the_same_for_its_twin() {
    let ((ok, _), last, _) = seen(ProviderPlan::default()).await;
    assert_eq!(last, "replied");
    let (head, body) = ok.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: "));
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let expected = serde_json::json!({
        "id": "msg_000001", "status": "accepted", "idempotency_key": "k-1", "recipient": "a@example.test",
    });
    assert_eq!(body, expected);

    let cut = |at| Reply::Cut { at };
    let head_len = head.len() + 4;
    let half_body = head_len + (ok.len() - head_len) / 2;
    for (reply, bytes, reset, end) in [
        (Reply::Fin, "", false, "unanswered fin"),
        (Reply::Rst, "", true, "unanswered rst"),
        (Reply::Hang, "", false, "unanswered hang"),
        (cut(CutAt::Zero), "", false, "unanswered cut"),
        (cut(CutAt::Headers), &ok[..head_len / 2], false, "unanswered cut"),
        (cut(CutAt::Body), &ok[..half_body], false, "unanswered cut"),
    ] {
        let (accepted, last, effects) = seen(plan(Commit::Now, reply)).await;
        assert_eq!(
            (accepted.0.as_str(), accepted.1, last.as_str(), effects),
            (bytes, reset, end, 1),
            "{reply}"
        );
        let (dropped, last, effects) = seen(plan(Commit::Never, reply)).await;
        assert_eq!((dropped, last.as_str(), effects), (accepted, end, 0), "twin of {reply}");
    }
    for commit in [Commit::Never, Commit::Twice, Commit::After { ms: 600_000 }] {
        assert_eq!(seen(plan(commit, Reply::Ok)).await.0.0, ok, "{commit}");
    }
}

#[tokio::test]
async fn a_client_that_closes_without_having_read_the_answer_is_on_record() {
    let close = post(None, BODY).replace("Host: x", "Host: x\r\nConnection: close");
    for (request, reads, last) in [
        (post(None, BODY), false, "unread"),
        (post(None, BODY), true, "replied"),
        (close.clone(), false, "unread"),
        (close, true, "replied"),
    ] {
        let server = start(config(settings(true), plan(Commit::Never, Reply::Status { code: 400 }))).await;
        let mut client = Client::connect(&server.base_url()).await;
        client.send(&request).await;
        if reads {
            client.response().await;
        }
        soon(async {
            while server.log().last().map(word).as_deref() != Some("replied") {
                tokio::task::yield_now().await;
            }
        })
        .await;
        drop(client);
        assert!(server.drain(std::time::Duration::from_secs(10)).await);
        assert_eq!(server.log().last().map(word).as_deref(), Some(last), "{request}, read: {reads}");
        assert_eq!(server.counters().acknowledged, 1, "it was written in full all the same");
    }
}

#[tokio::test]
async fn an_error_answer_is_an_object_and_the_same_for_its_twin() {
    for code in [400, 429, 500, 503, 599] {
        let reply = Reply::Status { code };
        let ((bytes, reset), last, effects) = seen(plan(Commit::Now, reply)).await;
        assert!(bytes.starts_with(&format!("HTTP/1.1 {code} ")), "{bytes}");
        assert!(bytes.contains(r#"{"error":{"#), "{bytes}");
        assert_eq!((reset, last.as_str(), effects), (false, "replied", 1));
        assert_eq!(seen(plan(Commit::Never, reply)).await, ((bytes, reset), last, 0));
    }
}

#[tokio::test]
async fn an_answer_that_says_when_to_try_again_is_recorded_with_it() {
    for (code, said) in [(429, Some(1000)), (503, Some(1000)), (500, None), (400, None)] {
        let server = start(config(settings(true), plan(Commit::Never, Reply::Status { code }))).await;
        let mut client = Client::connect(&server.base_url()).await;
        client.send(post(Some("k"), BODY)).await;
        let (status, head, _) = client.response().await;
        assert_eq!(
            (status, head.lines().any(|line| line == "Retry-After: 1")),
            (code, said.is_some()),
            "{head}"
        );
        client.send(get("/v1/messages?key=k")).await;
        client.response().await;
        let replied = ProviderEvent::Replied { attempt: 1, status: code, retry_after_ms: said };
        assert!(server.log().contains(&replied), "{code}");
    }
}

#[tokio::test]
async fn a_retry_within_the_window_gets_the_stored_answer_with_its_marker() {
    let first = Match { nth: Some(1), ..Match::default() };
    let mut config = config(settings(true), ProviderPlan::default());
    config.rules = vec![rule(first, plan(Commit::Now, Reply::Fin))];
    let server = start(config).await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(Some("k"), BODY)).await;
    assert_eq!(client.read_to_end().await, (String::new(), false));
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(Some("k"), BODY)).await;
    let (status, head, body) = client.response().await;
    assert_eq!(status, 201);
    assert!(head.contains("Idempotent-Replayed: true"), "{head}");
    assert!(body.contains("msg_000001"), "{body}");
    client.send(post(Some("k"), "{}")).await;
    let (status, _, body) = client.response().await;
    assert_eq!((status, body.contains("idempotency_error")), (400, true));
    let counters = server.counters();
    assert_eq!((counters.attempts, counters.effects, counters.acknowledged), (3, 1, 2));
}

#[tokio::test]
async fn lookups_answer_and_fail_as_they_are_told() {
    let server = start(config(settings(false), ProviderPlan::default())).await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(Some("k"), BODY)).await;
    client.response().await;
    client.send(get("/v1/messages/msg_000001")).await;
    let (status, _, body) = client.response().await;
    let object: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, object["body"]["text"].as_str(), object["status"].as_str()),
        (200, Some("hello"), Some("accepted"))
    );
    client.send(get("/v1/messages/msg_000009")).await;
    let (status, _, body) = client.response().await;
    assert_eq!((status, body.contains("not_found")), (404, true));
    for (path, found) in [("?key=k", 1), ("?key=other", 0), ("", 1)] {
        client.send(get(&format!("/v1/messages{path}"))).await;
        let (status, _, body) = client.response().await;
        let page: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, page["data"].as_array().map(Vec::len)), (200, Some(found)), "{path}");
        assert_eq!(page["has_more"], false);
    }
    client.send("HEAD /v1/messages HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    let (text, _) = client.read_to_end().await;
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n\r\n"), "{text}");

    for (reply, reset, end) in
        [(Reply::Fin, false, "lookup-unanswered fin"), (Reply::Rst, true, "lookup-unanswered rst")]
    {
        let reads = Match { operation: Some("list".into()), ..Match::default() };
        let mut config = config(settings(false), ProviderPlan::default());
        config.rules = vec![rule(reads, plan(Commit::Now, reply))];
        let server = start(config).await;
        let mut client = Client::connect(&server.base_url()).await;
        client.send(get("/v1/messages")).await;
        assert_eq!(client.read_to_end().await, (String::new(), reset));
        assert_eq!(server.log().last().map(word).as_deref(), Some(end));
        assert_eq!(server.unfired_rules(), Vec::<String>::new());
    }
}
