//! A tiny provider: scripted answers to messages and lookups, and a list of what its recipients received.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

/// When the effect comes into being.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Commit {
    Never,
    Now,
    AfterMs(u64),
}

/// What the worker sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reply {
    Ok,
    Status(u16),
    /// 429 with `Retry-After`.
    RateLimited,
    Close,
    CutHeaders,
    CutBody,
    WithoutId,
    /// Nothing until the client goes away.
    Hang,
}

pub(crate) type Step = (Commit, Reply);

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) key: String,
    pub(crate) authorization: Option<String>,
    pub(crate) at: Instant,
    /// State, key and attempt count of the worker's row at this very moment.
    pub(crate) row: Option<(String, Option<String>, u32)>,
    /// Lookups that were answered before it.
    pub(crate) lookups_before: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Effect {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) to: String,
    pub(crate) body: String,
    at: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Answers to messages in order; then the default.
    pub(crate) script: VecDeque<Step>,
    pub(crate) afterwards: Option<Step>,
    /// Items of the feed that were not acknowledged; the cursor is the number of items given so far.
    pub(crate) feed: Vec<String>,
    pub(crate) acknowledgements: usize,
    /// Lookups answer 503.
    pub(crate) lookups_fail: bool,
    pub(crate) dedupes: bool,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) lookups: usize,
}

/// The provider on a loopback port, for as long as the test process lives.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    pub(crate) url: String,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Provider {
    /// `db` is the worker's ledger, read at each message.
    pub(crate) fn start(db: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (db, shared) = (db.clone(), Arc::clone(&shared));
                // A client that goes away in the middle ends its own exchange only.
                std::thread::spawn(move || serve(stream, &db, &shared));
            }
        });
        Self { url, state }
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.state.lock().unwrap().attempts.clone()
    }

    /// Waits until a message has arrived.
    pub(crate) fn wait_for_attempt(&self) {
        let begun = Instant::now();
        while self.attempts().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(20), "no message arrived");
            std::thread::yield_now();
        }
    }

    pub(crate) fn effects(&self) -> Vec<Effect> {
        self.state.lock().unwrap().effects.clone()
    }

    pub(crate) fn lookups(&self) -> usize {
        self.state.lock().unwrap().lookups
    }
}

struct Request {
    line: String,
    key: String,
    authorization: Option<String>,
    body: Value,
}

fn read_request(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let (mut key, mut length, mut authorization) = (String::new(), 0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "idempotency-key" => value.clone_into(&mut key),
            "authorization" => authorization = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { line, key, authorization, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn serve(mut stream: TcpStream, db: &PathBuf, state: &Mutex<State>) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let request = read_request(&stream)?;
    if request.line.contains(" /v1/feed") {
        return stream.write_all(feed(&request, &mut state.lock().unwrap()).as_bytes());
    }
    if request.line.starts_with("GET ") {
        return stream.write_all(lookup(&request.line, &mut state.lock().unwrap()).as_bytes());
    }
    let row = row_of(db, request.body["ref"].as_str().unwrap());
    let (id, reply) = accept(&request, row, &mut state.lock().unwrap());
    let ok = http(201, "", &json!({ "id": id }).to_string());
    let bytes = match reply {
        Reply::Ok => ok,
        Reply::Status(code) => http(code, "", r#"{"error":"scripted"}"#),
        Reply::RateLimited => http(429, "Retry-After: 1\r\n", "{}"),
        Reply::WithoutId => http(202, "", "{}"),
        Reply::CutHeaders => ok[..20].to_owned(),
        Reply::CutBody => ok[..ok.len() - 4].to_owned(),
        Reply::Close => String::new(),
        Reply::Hang => {
            let _ = stream.read(&mut [0; 1]);
            return Ok(());
        }
    };
    stream.write_all(bytes.as_bytes())?;
    stream.shutdown(Shutdown::Both)
}

fn http(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} Scripted\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn row_of(db: &PathBuf, delivery_id: &str) -> Option<(String, Option<String>, u32)> {
    let connection = Connection::open(db).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection
        .query_row(
            "SELECT delivery_status, idempotency_key, attempt_count FROM deliveries WHERE delivery_id = ?1",
            [delivery_id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
        .unwrap()
}

fn accept(
    request: &Request,
    row: Option<(String, Option<String>, u32)>,
    state: &mut State,
) -> (String, Reply) {
    let to = request.body["to"].as_str().unwrap().to_owned();
    let lookups_before = state.lookups;
    let authorization = request.authorization.clone();
    state.attempts.push(Attempt {
        key: request.key.clone(),
        authorization,
        at: Instant::now(),
        row,
        lookups_before,
    });
    let (commit, reply) = state.script.pop_front().or(state.afterwards).unwrap_or((Commit::Now, Reply::Ok));
    if let Some(known) = state.effects.iter().find(|effect| state.dedupes && effect.key == request.key) {
        return (known.id.clone(), reply);
    }
    let id = format!("m-{}", state.attempts.len());
    let delay_ms = match commit {
        Commit::Never => return (id, reply),
        Commit::Now => 0,
        Commit::AfterMs(ms) => ms,
    };
    state.effects.push(Effect {
        id: id.clone(),
        key: request.key.clone(),
        to,
        body: request.body["body"].as_str().unwrap().to_owned(),
        at: Instant::now() + Duration::from_millis(delay_ms),
    });
    (id, reply)
}

/// Gives every item after the cursor that was not acknowledged, and takes acknowledgements.
fn feed(request: &Request, state: &mut State) -> String {
    if request.line.starts_with("POST ") {
        state.acknowledgements += 1;
        let ids: Vec<&str> =
            request.body["items"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        state.feed.retain(|id| !ids.contains(&id.as_str()));
        return http(200, "", "{}");
    }
    let cursor: usize =
        request.line.split(['=', ' ']).nth(2).and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let number = |id: &String| id.trim_start_matches("in-").parse::<usize>().unwrap();
    let new: Vec<&String> = state.feed.iter().filter(|id| number(id) > cursor).collect();
    let last = new.last().map_or(cursor, |id| number(id));
    let items: Vec<Value> = new
        .iter()
        .map(|id| json!({ "id": id, "to": "ops@example.test", "body": format!("text of {id}") }))
        .collect();
    http(200, "", &json!({ "items": items, "cursor": last.to_string() }).to_string())
}

fn lookup(line: &str, state: &mut State) -> String {
    if state.lookups_fail {
        return http(503, "", "{}");
    }
    state.lookups += 1;
    let key = line.split(['=', ' ']).nth(2).unwrap();
    let found: Vec<Value> = state
        .effects
        .iter()
        .filter(|effect| effect.key == key && effect.at <= Instant::now())
        .map(|effect| json!({ "id": effect.id }))
        .collect();
    http(200, "", &json!({ "data": found }).to_string())
}
