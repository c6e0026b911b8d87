//! The control port, and the program.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use fake_provider::{Control, Server, ServerConfig, serve_control};
use serde_json::{Value, json};
use support::{Client, post, start};

struct Steered {
    server: Server,
    control: Control,
}

impl Steered {
    async fn start() -> Self {
        let server = start(ServerConfig::default()).await;
        let control = serve_control(&server, 0).await.unwrap();
        Self { server, control }
    }

    async fn raw(&self, request: &str) -> (u16, Value) {
        let mut client = Client::connect(&self.control.base_url()).await;
        client.send(request).await;
        let (status, _, body) = client.response().await;
        (status, serde_json::from_str(&body).unwrap())
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let token = self.control.token();
        let length = body.len();
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
        .await
    }
}

#[tokio::test]
async fn strangers_are_turned_down() {
    let steered = Steered::start().await;
    let token = steered.control.token();
    for (head, status) in [
        ("Host: localhost".to_owned(), 401),
        ("Host: localhost\r\nAuthorization: Bearer 00000000000000000000000000000000".to_owned(), 401),
        (format!("Host: localhost\r\nAuthorization: Bearer {token}0"), 401),
        (format!("Host: localhost\r\nAuthorization: {token}"), 401),
        (format!("Host: evil.example\r\nAuthorization: Bearer {token}"), 403),
        (format!("Authorization: Bearer {token}"), 403),
        (format!("Host: [::1]:80\r\nAuthorization: Bearer {token}"), 200),
    ] {
        let (got, body) = steered.raw(&format!("GET /v1/counters HTTP/1.1\r\n{head}\r\n\r\n")).await;
        assert_eq!(got, status, "{head}: {body}");
        assert_eq!(body["error"]["message"].is_string(), status != 200);
    }
}

#[tokio::test]
async fn rules_can_be_added_listed_and_removed() {
    let steered = Steered::start().await;
    let rule = json!({ "id": "r/1", "match": { "nth": 1 }, "plan": { "reply": "status(503)" } }).to_string();
    assert_eq!(steered.call("POST", "/v1/rules", &rule).await.0, 201);
    assert_eq!(steered.call("POST", "/v1/rules", &rule).await.0, 409);
    let mut client = Client::connect(&steered.server.base_url()).await;
    client.send(post(None, "{}")).await;
    assert_eq!(client.response().await.0, 503);
    let (_, listed) = steered.call("GET", "/v1/rules", "").await;
    assert_eq!((&listed["rules"][0]["fired"], &listed["rules"][0]["rule"]["id"]), (&json!(1), &json!("r/1")));
    assert_eq!(steered.call("DELETE", "/v1/rules/r%2F1", "").await.0, 200);
    assert_eq!(steered.call("DELETE", "/v1/rules/r%2F1", "").await.0, 404);
    assert_eq!(steered.call("PUT", "/v1/rules", "").await.0, 404);
}

#[tokio::test]
async fn mistakes_are_named() {
    let steered = Steered::start().await;
    for (path, body, part) in [
        ("/v1/rules", r#"{"id":"a","plan":{},"tims":1}"#, "tims"),
        ("/v1/rules", r#"{"id":"a","plan":{"comit":"now"}}"#, "comit"),
        ("/v1/rules", r#"{"id":"a","plan":{"commit":"nw"}}"#, "never, now"),
        ("/v1/rules", r#"{"id":"a","match":{"nth":0},"plan":{}}"#, "from 1"),
        ("/v1/clock", r#"{"advance":1}"#, "advance"),
        ("/v1/holds/1", r#"{"reply":"hang"}"#, "no way to end"),
        ("/v1/holds/one", r#"{"reply":"ok"}"#, "no attempt"),
    ] {
        let (status, answer) = steered.call("POST", path, body).await;
        assert_eq!(status, 400, "{path} {body}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
    }
    assert_eq!(steered.call("GET", "/v1/events?aftr=1", "").await.0, 400);
    assert_eq!(steered.call("GET", "/v1/events?after=x", "").await.0, 400);
    assert_eq!(steered.call("POST", "/v1/holds/9", r#"{"reply":"ok"}"#).await.0, 404);
}

#[tokio::test]
async fn a_hold_is_met_by_long_polling_and_released() {
    let steered = Steered::start().await;
    let rule = r#"{"id":"hold","plan":{"reply":"hold"}}"#;
    steered.call("POST", "/v1/rules", rule).await;
    let mut client = Client::connect(&steered.server.base_url()).await;
    client.send(post(Some("k"), r#"{"to":"a","text":"b"}"#)).await;
    let mut after = 0;
    loop {
        let (_, page) = steered.call("GET", &format!("/v1/events?after={after}&wait_ms=10000"), "").await;
        let events = page["events"].as_array().unwrap();
        assert_eq!(events[0]["seq"], after + 1);
        after = page["next"].as_u64().unwrap();
        if events.iter().any(|event| event["event"]["held"].is_object()) {
            break;
        }
    }
    assert_eq!(steered.call("GET", "/v1/holds", "").await.1, json!({ "holds": [1] }));
    assert_eq!(steered.call("POST", "/v1/holds/1", r#"{"reply":"status(503)"}"#).await.0, 200);
    assert_eq!(client.response().await.0, 503);
    let (_, effects) = steered.call("GET", "/v1/effects", "").await;
    assert_eq!(effects["effects"][0]["recipient"], "a");
    let (_, attempts) = steered.call("GET", "/v1/attempts", "").await;
    assert_eq!(attempts["attempts"][0]["effect"], "msg_000001");
    assert_eq!(steered.call("GET", "/v1/lookups", "").await.1, json!({ "lookups": [] }));
    let (_, empty) = steered.call("GET", "/v1/events?after=1000&wait_ms=1", "").await;
    assert_eq!(empty["events"], json!([]));
}

#[tokio::test]
async fn the_clock_is_stepped_and_everything_forgotten() {
    let steered = Steered::start().await;
    let rule = r#"{"id":"late","plan":{"commit":"after(24h)"}}"#;
    steered.call("POST", "/v1/rules", rule).await;
    let mut client = Client::connect(&steered.server.base_url()).await;
    client.send(post(None, "{}")).await;
    client.response().await;
    assert_eq!(steered.call("GET", "/v1/counters", "").await.1["effects"], 0);
    assert_eq!(steered.call("POST", "/v1/clock", r#"{"advance_ms":86400000}"#).await.0, 200);
    assert_eq!(steered.call("GET", "/v1/counters", "").await.1["effects"], 1);
    assert_eq!(steered.call("POST", "/v1/reset", "").await.0, 200);
    assert_eq!(steered.call("GET", "/v1/counters", "").await.1["effects"], 0);
    assert_eq!(steered.call("GET", "/v1/rules", "").await.1, json!({ "rules": [] }));
}

#[tokio::test]
async fn the_program_prints_its_addresses_and_serves() {
    let script = std::env::temp_dir().join(format!("fake-provider-script-{}.json", std::process::id()));
    std::fs::write(&script, r#"[{"id":"one","plan":{"reply":"status(503)"}}]"#).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_fake-provider"))
        .args(["--dedupe", "--script"])
        .arg(&script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    std::fs::remove_file(&script).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready["token"].as_str().map(str::len), Some(32));
    assert!(ready["control"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    let mut client = Client::connect(ready["rest"].as_str().unwrap()).await;
    client.send(post(None, "{}")).await;
    let status = client.response().await.0;
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(status, 503);
}

#[test]
fn a_script_that_is_no_list_of_rules_is_named() {
    let program = env!("CARGO_BIN_EXE_fake-provider");
    let output = Command::new(program).args(["--script", "/nonexistent/rules.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8(output.stderr).unwrap().contains("/nonexistent/rules.json"));
}
