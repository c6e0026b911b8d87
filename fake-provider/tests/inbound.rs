//! The inbound feed on the wire, and credentials that come by.

mod support;

use fake_provider::ServerConfig;
use killpoint_model::plan::ProviderPlan;
use killpoint_model::provider::Counters;
use killpoint_model::settings::InboundSettings;
use serde_json::{Value, json};
use support::{Client, config, get, post, settings, start, words};

fn fed(lose_answer: Vec<u32>) -> ServerConfig {
    let inbound = InboundSettings { items: 3, page: 2, redeliver: Vec::new(), lose_answer };
    ServerConfig { inbound: Some(inbound), ..config(settings(false), ProviderPlan::default()) }
}

fn acknowledge(body: &str) -> String {
    post(None, body).replace("/v1/messages", "/v1/feed/ack")
}

async fn poll(client: &mut Client, query: &str) -> Value {
    client.send(get(&format!("/v1/feed{query}"))).await;
    let (status, _, body) = client.response().await;
    assert_eq!(status, 200);
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn a_feed_is_polled_and_acknowledged_beside_the_dialect() {
    let server = start(fed(Vec::new())).await;
    let mut client = Client::connect(&server.base_url()).await;
    let first = poll(&mut client, "").await;
    let item = |n: u32| json!({ "id": format!("in-{n}"), "to": format!("user{n}@example.com"), "body": format!("inbound {n}") });
    assert_eq!(first, json!({ "items": [item(1), item(2)], "cursor": "2" }));
    assert_eq!(poll(&mut client, "?cursor=2&limit=5").await, json!({ "items": [item(3)], "cursor": "3" }));
    client.send(acknowledge(r#"{"items":["in-1","in-2","in-3"]}"#)).await;
    assert_eq!(client.response().await.0, 200);
    assert_eq!(poll(&mut client, "").await, json!({ "items": [], "cursor": "0" }));
    client.send(post(None, r#"{"to":"a"}"#)).await;
    assert_eq!(client.response().await.0, 201, "everything else is the dialect's");
    assert_eq!(words(&server.log())[..4], ["connected", "fed", "fed", "feed-acknowledged"]);
    assert_eq!(server.counters(), Counters { attempts: 1, effects: 1, acknowledged: 1 });
}

#[tokio::test]
async fn an_acknowledgement_whose_answer_is_lost_counts_and_nonsense_is_refused() {
    let server = start(fed(vec![1])).await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(acknowledge(r#"{"items":["in-1"]}"#)).await;
    assert_eq!(client.read_to_end().await, (String::new(), false));
    let mut client = Client::connect(&server.base_url()).await;
    assert_eq!(poll(&mut client, "").await["items"][0]["id"], "in-2");
    client.send(acknowledge("[]")).await;
    assert_eq!(client.response().await.0, 400);
    assert_eq!(words(&server.log()), ["connected", "feed-acknowledged", "connected", "fed"]);
}

#[tokio::test]
async fn without_a_feed_its_paths_are_like_any_other() {
    let server = start(config(settings(false), ProviderPlan::default())).await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(get("/v1/feed")).await;
    assert_eq!(client.response().await.0, 200);
    client.send(acknowledge("{}")).await;
    assert_eq!(client.response().await.0, 201);
    assert_eq!(server.counters().effects, 1);
}

#[tokio::test]
async fn credentials_are_seen_by_place_and_their_values_are_nowhere() {
    let mut config = fed(Vec::new());
    config.watch_for = vec![("API_TOKEN".into(), "canary-42".into())];
    assert!(!format!("{config:?}").contains("canary-42"));
    let server = start(config).await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(get("/v1/feed").replace("Host: x", "Host: x\r\nAuthorization: Bearer canary-42")).await;
    client.response().await;
    client.send(get("/v1/messages?token=canary-42")).await;
    client.response().await;
    let expected = ["requests:header:authorization", "requests:url"];
    let expected = expected.map(|place| ("API_TOKEN".to_owned(), place.to_owned()));
    assert_eq!(server.sightings(), expected);
    assert!(!serde_json::to_string(&server.log()).unwrap().contains("canary-42"));
    assert!(!format!("{server:?}").contains("canary-42"));
}
