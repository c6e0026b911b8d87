//! A raw client and observers for the wire tests. Every wait has a limit.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fake_provider::{Crossing, Moment, Observer, Passage, Point, Server, ServerConfig, Unobserved};
use killpoint_model::plan::{Commit, Match, ProviderPlan, Reply, Rule};
use killpoint_model::provider::ProviderEvent;
use killpoint_model::settings::ProviderSettings;
use killpoint_model::{Clock, ManualClock, SystemClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("it takes too long")
}

pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) async fn connect(base_url: &str) -> Self {
        let address = base_url.strip_prefix("http://").unwrap();
        Self(soon(TcpStream::connect(address)).await.unwrap())
    }

    /// Leaves with a reset.
    pub(crate) fn reset(self) {
        self.0.set_zero_linger().unwrap();
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.0.write_all(bytes.as_ref())).await.unwrap();
    }

    /// All bytes until the connection ends, and whether it ended by a reset.
    pub(crate) async fn read_to_end(&mut self) -> (String, bool) {
        let mut bytes = Vec::new();
        match soon(self.0.read_to_end(&mut bytes)).await {
            Ok(_) => (String::from_utf8(bytes).unwrap(), false),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                (String::from_utf8(bytes).unwrap(), true)
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// One response with a Content-Length: its status, headers and body.
    pub(crate) async fn response(&mut self) -> (u16, String, String) {
        let mut text = String::new();
        loop {
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length: usize = head
                    .lines()
                    .find_map(|line| line.strip_prefix("Content-Length: "))
                    .map_or(0, |length| length.parse().unwrap());
                if body.len() >= length {
                    assert_eq!(body.len(), length, "more than one response");
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    return (status, head.to_owned(), body.to_owned());
                }
            }
            text.push_str(&self.some().await);
        }
    }

    /// The next bytes, however many.
    pub(crate) async fn some(&mut self) -> String {
        let mut bytes = [0; 4096];
        let read = soon(self.0.read(&mut bytes)).await.unwrap();
        assert!(read > 0, "the connection ended");
        String::from_utf8(bytes[..read].to_vec()).unwrap()
    }
}

pub(crate) fn post(key: Option<&str>, body: &str) -> String {
    let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
    format!("POST /v1/messages HTTP/1.1\r\nHost: x\r\n{key}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

pub(crate) fn plan(commit: Commit, reply: Reply) -> ProviderPlan {
    ProviderPlan { commit, reply, ..ProviderPlan::default() }
}

pub(crate) fn rule(matches: Match, plan: ProviderPlan) -> Rule {
    Rule { id: "only".into(), matches, plan, times: None }
}

pub(crate) fn settings(dedupe: bool) -> ProviderSettings {
    let mut settings = ProviderSettings::default();
    settings.idempotency.dedupe = dedupe;
    settings
}

pub(crate) fn config(provider: ProviderSettings, plan: ProviderPlan) -> ServerConfig {
    ServerConfig { provider, rules: vec![rule(Match::default(), plan)], ..ServerConfig::default() }
}

pub(crate) async fn start(config: ServerConfig) -> Server {
    Server::start(config, Arc::new(Unobserved), Arc::new(SystemClock::default())).await.unwrap()
}

/// What a gate saw.
#[derive(Debug)]
pub(crate) enum Seen {
    Event(Box<ProviderEvent>),
    Reached(Moment, oneshot::Sender<Passage>),
}

/// An observer that tells the test everything, and waits at each point for its answer.
pub(crate) struct Gate(UnboundedSender<Seen>);

impl Observer for Gate {
    fn record(&self, event: &ProviderEvent) {
        let _ = self.0.send(Seen::Event(Box::new(event.clone())));
    }

    fn reach(&self, moment: Moment) -> Crossing {
        let (sender, receiver) = oneshot::channel();
        let _ = self.0.send(Seen::Reached(moment, sender));
        Box::pin(async { receiver.await.unwrap_or(Passage::Abandon) })
    }
}

/// A server whose every step the test sees and allows.
pub(crate) struct Gated {
    pub(crate) server: Server,
    pub(crate) seen: UnboundedReceiver<Seen>,
}

impl Gated {
    pub(crate) async fn start(config: ServerConfig) -> Self {
        Self::start_with(config, Arc::new(ManualClock::at(1000))).await
    }

    pub(crate) async fn start_with(config: ServerConfig, clock: Arc<dyn Clock>) -> Self {
        let (sender, seen) = unbounded_channel();
        let server = Server::start(config, Arc::new(Gate(sender)), clock).await.unwrap();
        Self { server, seen }
    }

    /// Lets everything pass until `point`; the words for what came before, and the answer that is owed.
    pub(crate) async fn until(&mut self, point: Point) -> (Vec<String>, oneshot::Sender<Passage>) {
        let mut words = Vec::new();
        loop {
            match soon(self.seen.recv()).await.unwrap() {
                Seen::Event(event) => words.push(word(&event)),
                Seen::Reached(moment, answer) => {
                    words.push(format!("@{:?}", moment.point));
                    if moment.point == point {
                        return (words, answer);
                    }
                    let _ = answer.send(Passage::Go);
                }
            }
        }
    }

    /// Lets everything pass until an event of that kind.
    pub(crate) async fn until_event(&mut self, kind: &str) -> Vec<String> {
        let mut words = Vec::new();
        loop {
            match soon(self.seen.recv()).await.unwrap() {
                Seen::Event(event) => {
                    words.push(word(&event));
                    if word(&event).starts_with(kind) {
                        return words;
                    }
                }
                Seen::Reached(moment, answer) => {
                    words.push(format!("@{:?}", moment.point));
                    let _ = answer.send(Passage::Go);
                }
            }
        }
    }
}

/// The event's kind, and how it ended where it is an end.
pub(crate) fn word(event: &ProviderEvent) -> String {
    match event {
        ProviderEvent::Unanswered { how, .. } => format!("unanswered {how}"),
        ProviderEvent::LookupUnanswered { how, .. } => format!("lookup-unanswered {how}"),
        other => match serde_json::to_value(other).unwrap() {
            serde_json::Value::Object(object) => object.keys().next().unwrap().clone(),
            other => other.as_str().unwrap().to_owned(),
        },
    }
}

pub(crate) fn words(log: &[ProviderEvent]) -> Vec<String> {
    log.iter().map(word).collect()
}
