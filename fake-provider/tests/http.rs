//! HTTP/1.1 as clients speak it.

mod support;

use fake_provider::{Server, ServerConfig};
use support::{Client, get, post, start, word, words};

async fn server() -> Server {
    start(ServerConfig::default()).await
}

fn created(server: &Server) -> Vec<String> {
    server
        .log()
        .iter()
        .filter_map(|event| match event {
            killpoint_model::provider::ProviderEvent::Committed(effect) => Some(effect.text.clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn chunked_bodies_and_pipelined_requests_are_read() {
    let server = server().await;
    let mut client = Client::connect(&server.base_url()).await;
    let chunked =
        "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"text\":\r\n4\r\n\"c\"}\r\n0\r\n\r\n";
    client.send(format!("{chunked}{}", post(None, r#"{"text":"d"}"#))).await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let (all, _) = client.read_to_end().await;
    assert_eq!(all.matches("HTTP/1.1 201 Created").count(), 2, "{all}");
    assert_eq!(all.matches("HTTP/1.1 200 OK").count(), 1, "{all}");
    assert_eq!(created(&server), ["c", "d"]);
}

#[tokio::test]
async fn a_client_that_expects_100_gets_it_before_it_sends_the_body() {
    let server = server().await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    assert_eq!(client.some().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("{}").await;
    assert_eq!(client.response().await.0, 201);
}

#[tokio::test]
async fn http_1_0_connections_are_closed_unless_they_are_to_be_kept() {
    let server = server().await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send("POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}").await;
    assert_eq!(client.response().await.0, 201);
    client.send("POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}").await;
    let (text, reset) = client.read_to_end().await;
    assert!(text.contains("Connection: close\r\n") && !reset, "{text}");
}

#[tokio::test]
async fn what_is_not_served_is_answered_without_an_event() {
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(70_000));
    for (request, status) in [
        ("nonsense\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n{}", 413),
        (long.as_str(), 431),
        ("OPTIONS / HTTP/1.1\r\n\r\n", 405),
    ] {
        let server = server().await;
        let mut client = Client::connect(&server.base_url()).await;
        client.send(request).await;
        let (text, _) = client.read_to_end().await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        assert_eq!(words(&server.log()), ["connected"]);
    }
}

#[tokio::test]
async fn a_client_that_leaves_inside_a_request_is_partial_and_one_between_two_is_not() {
    let server = server().await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(None, "{}")).await;
    client.response().await;
    drop(client);
    let mut client = Client::connect(&server.base_url()).await;
    client.send(get("/")).await;
    client.response().await;
    client.send("POST / HT").await;
    drop(client);
    assert!(server.drain(std::time::Duration::from_secs(10)).await);
    let partial: Vec<_> = server.log().into_iter().filter(|event| word(event) == "partial").collect();
    assert_eq!(partial, [killpoint_model::provider::ProviderEvent::Partial { connection: 2, bytes: 9 }]);
}
