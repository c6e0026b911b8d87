//! The order of events and points, what an abandoned exchange leaves, and how a server ends.

mod support;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use fake_provider::{Passage, Point, ReleaseError, Server, ServerConfig, ServerError, Unobserved};
use killpoint_model::ManualClock;
use killpoint_model::plan::{Commit, Match, ProviderPlan, Reply};
use killpoint_model::profile::Concurrent;
use killpoint_model::provider::Counters;
use support::{Client, Gated, config, get, plan, post, rule, settings, soon, start, words};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(10);

fn ordinary(dedupe: bool) -> ServerConfig {
    ServerConfig { provider: settings(dedupe), ..ServerConfig::default() }
}

#[tokio::test]
async fn events_come_before_the_acts_that_they_announce() {
    let mut gated = Gated::start(config(settings(false), ProviderPlan::default())).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    let (before, go) = gated.until(Point::Connected).await;
    assert_eq!(before, ["connected", "@Connected"]);
    let _ = go.send(Passage::Go);
    client.send(post(None, "{}")).await;
    let (before, go) = gated.until(Point::Received).await;
    assert_eq!(before, ["received", "rule-fired", "@Received"]);
    assert_eq!(gated.server.counters(), Counters { attempts: 1, effects: 0, acknowledged: 0 });
    let _ = go.send(Passage::Go);
    let (before, go) = gated.until(Point::Committed).await;
    assert_eq!(before, ["committed", "@Committed"]);
    let _ = go.send(Passage::Go);
    let (before, go) = gated.until(Point::Replying).await;
    assert_eq!(before, ["replying", "@Replying"]);
    let part = client.some().await;
    assert!(part.contains("\r\n\r\n{") && !part.ends_with('}'), "headers and part of the body: {part}");
    let _ = go.send(Passage::Go);
    let (before, go) = gated.until(Point::Finishing).await;
    assert_eq!(before, ["@Finishing"]);
    let _ = go.send(Passage::Go);
    let (before, go) = gated.until(Point::Replied).await;
    assert_eq!(before, ["replied", "@Replied"]);
    assert!(client.some().await.ends_with('}'));
    let _ = go.send(Passage::Go);
    client.send(get("/v1/messages")).await;
    let (before, go) = gated.until(Point::Lookup).await;
    assert_eq!(before, ["looked-up", "@Lookup"]);
    let _ = go.send(Passage::Go);
    assert_eq!(client.response().await.0, 200);
    assert_eq!(gated.until_event("lookup-replied").await, ["lookup-replied"]);
}

#[tokio::test]
async fn an_abandoned_exchange_does_nothing_more() {
    for (point, effects, last) in [
        (Point::Connected, 0, "partial"),
        (Point::Received, 0, "unanswered abandoned"),
        (Point::Committed, 1, "unanswered abandoned"),
        (Point::Replying, 1, "unanswered abandoned"),
        (Point::Finishing, 1, "unanswered abandoned"),
        (Point::Replied, 1, "replied"),
    ] {
        let mut gated = Gated::start(ordinary(true)).await;
        let mut client = Client::connect(&gated.server.base_url()).await;
        client.send(post(Some("k"), "{}")).await;
        let (_, answer) = gated.until(point).await;
        let _ = answer.send(Passage::Abandon);
        if point < Point::Replying && point != Point::Connected {
            assert_eq!(client.read_to_end().await, (String::new(), false), "{point:?}");
        }
        soon(gated.server.drain(LIMIT)).await;
        assert_eq!(gated.server.counters().effects, effects, "{point:?}");
        assert_eq!(words(&gated.server.log()).last().map(String::as_str), Some(last), "{point:?}");
    }
}

#[tokio::test]
async fn of_two_concurrent_requests_with_one_key_one_executes() {
    for (concurrent, status) in [(Concurrent::Conflict, 409), (Concurrent::Wait, 201)] {
        let mut provider = settings(true);
        provider.idempotency.concurrent = concurrent;
        provider.hang_ms = 10_000;
        let mut gated = Gated::start(ServerConfig { provider, ..ServerConfig::default() }).await;
        let mut first = Client::connect(&gated.server.base_url()).await;
        first.send(post(Some("k"), "{}")).await;
        let (_, go) = gated.until(Point::Received).await;
        let mut second = Client::connect(&gated.server.base_url()).await;
        second.send(post(Some("k"), "{}")).await;
        let (_, second_go) = gated.until(Point::Received).await;
        let _ = second_go.send(Passage::Go);
        if concurrent == Concurrent::Conflict {
            gated.until_event("replied").await;
        }
        let _ = go.send(Passage::Go);
        gated.until_event("replied").await;
        if concurrent == Concurrent::Wait {
            gated.until_event("replied").await;
        }
        assert_eq!(first.response().await.0, 201);
        let (got, head, _) = second.response().await;
        assert_eq!((got, head.contains("Idempotent-Replayed")), (status, status == 201), "{concurrent}");
        assert_eq!(gated.server.counters(), Counters { attempts: 2, effects: 1, acknowledged: 2 });
    }
}

#[tokio::test]
async fn a_hold_is_parked_at_the_committed_point_until_it_is_released() {
    let mut gated = Gated::start(config(settings(false), plan(Commit::Now, Reply::Hold))).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(post(None, "{}")).await;
    assert_eq!(gated.until_event("held").await.last().map(String::as_str), Some("held"));
    assert_eq!((gated.server.counters().effects, gated.server.parked()), (1, vec![1]));
    assert_eq!(gated.server.release(1, Reply::Hang), Err(ReleaseError::NoEnd(Reply::Hang)));
    assert_eq!(gated.server.release(7, Reply::Ok), Err(ReleaseError::NotParked(7)));
    assert_eq!(gated.server.release(1, Reply::Status { code: 503 }), Ok(()));
    gated.until_event("replied").await;
    assert_eq!(client.response().await.0, 503);

    client.send(post(None, "{}")).await;
    gated.until_event("held").await;
    drop(client);
    assert_eq!(gated.until_event("unanswered").await, ["unanswered client-gone"]);
    assert!(gated.server.parked().is_empty());
}

#[tokio::test]
async fn a_hang_ends_when_the_client_leaves_or_when_it_is_released() {
    let mut provider = settings(false);
    provider.hang_ms = 600_000;
    let mut gated = Gated::start(config(provider, plan(Commit::Never, Reply::Hang))).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(post(None, "{}")).await;
    let (_, go) = gated.until(Point::Received).await;
    let _ = go.send(Passage::Go);
    drop(client);
    assert_eq!(gated.until_event("unanswered").await, ["unanswered client-gone"]);
    assert!(gated.server.drain(LIMIT).await);
}

#[tokio::test]
async fn a_late_commit_lands_by_the_clock_after_a_lookup_that_denied_it() {
    let late = plan(Commit::After { ms: 60_000 }, Reply::Fin);
    let mut gated = Gated::start(config(settings(true), late)).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(post(Some("k"), "{}")).await;
    gated.until_event("unanswered").await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(get("/v1/messages?key=k")).await;
    gated.until_event("lookup-replied").await;
    assert!(client.response().await.2.contains(r#""data":[]"#));
    assert_eq!(gated.server.pending_commits(), 1);
    gated.server.step_clock(Duration::from_secs(60));
    assert_eq!((gated.server.pending_commits(), gated.server.counters().effects), (0, 1));
    client.send(get("/v1/messages?key=k")).await;
    gated.until_event("lookup-replied").await;
    assert!(client.response().await.2.contains("msg_000001"));
}

#[tokio::test]
async fn a_late_commit_lands_by_itself() {
    let late = plan(Commit::After { ms: 30 }, Reply::Fin);
    let clock = Arc::new(killpoint_model::SystemClock::default());
    let mut gated = Gated::start_with(config(settings(false), late), clock).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(post(None, "{}")).await;
    gated.until_event("unanswered fin").await;
    assert_eq!(gated.until_event("committed").await, ["@Dropped", "committed"]);
}

#[tokio::test]
async fn an_exchange_that_the_provider_drops_has_its_end_as_a_point() {
    for (reply, end) in [(Reply::Fin, "unanswered fin"), (Reply::Rst, "unanswered rst")] {
        let mut gated = Gated::start(config(settings(false), plan(Commit::Now, reply))).await;
        let mut client = Client::connect(&gated.server.base_url()).await;
        client.send(post(None, "{}")).await;
        let (before, go) = gated.until(Point::Dropped).await;
        assert_eq!(before[5..], ["committed", "@Committed", "@Finishing", end, "@Dropped"]);
        let _ = go.send(Passage::Go);
        assert_eq!(client.read_to_end().await, (String::new(), reply == Reply::Rst));
    }
}

#[tokio::test]
async fn a_hang_that_is_abandoned_waits_for_nobody() {
    let mut provider = settings(false);
    provider.hang_ms = 600_000;
    let mut gated = Gated::start(config(provider, plan(Commit::Now, Reply::Hang))).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(post(None, "{}")).await;
    let (_, go) = gated.until(Point::Committed).await;
    let _ = go.send(Passage::Go);
    assert!(!gated.server.drain(Duration::from_millis(20)).await);
    assert_eq!(gated.server.open_connections(), 0);
    assert_eq!(words(&gated.server.log()).last().map(String::as_str), Some("unanswered hang"));
}

#[tokio::test]
async fn drain_takes_what_the_dead_had_sent_and_ends_what_the_living_keep() {
    let server = start(ordinary(false)).await;
    let mut whole = Client::connect(&server.base_url()).await;
    whole.send(post(None, "{}")).await;
    drop(whole);
    let mut part = Client::connect(&server.base_url()).await;
    part.send("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{").await;
    drop(part);
    drop(Client::connect(&server.base_url()).await);
    assert!(server.drain(LIMIT).await);
    assert_eq!(server.open_connections(), 0);
    let log = server.log();
    let count = |kind: &str| words(&log).iter().filter(|word| *word == kind).count();
    assert_eq!((count("connected"), count("received"), count("partial")), (3, 1, 2), "{:?}", words(&log));

    let mut idle = Client::connect(&server.base_url()).await;
    idle.send(post(None, "{}")).await;
    idle.response().await;
    let before = server.log().len();
    assert!(!server.drain(Duration::from_millis(20)).await);
    assert_eq!(server.open_connections(), 0);
    assert_eq!(server.log().len(), before, "a kept connection between two requests lost nothing");
    assert_eq!(idle.read_to_end().await, (String::new(), false));
    let mut next = Client::connect(&server.base_url()).await;
    next.send(post(None, "{}")).await;
    assert_eq!(next.response().await.0, 201, "it serves the next generation");
}

#[tokio::test]
async fn an_exchange_that_waits_for_an_observer_is_abandoned_at_the_limit() {
    let mut gated = Gated::start(ordinary(false)).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(post(None, "{}")).await;
    let (_, _unanswered) = gated.until(Point::Received).await;
    assert!(!gated.server.drain(Duration::from_millis(20)).await);
    assert_eq!(words(&gated.server.log()).last().map(String::as_str), Some("unanswered abandoned"));
    assert_eq!((gated.server.open_connections(), gated.server.counters().effects), (0, 0));
}

#[tokio::test]
async fn a_server_goes_on_from_a_snapshot() {
    let server = start(ordinary(true)).await;
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(Some("k"), "{}")).await;
    client.response().await;
    server.step_clock(Duration::from_secs(3600));
    let snapshot = server.log();
    server.shutdown().await;

    let server = start(ServerConfig { snapshot: snapshot.clone(), ..ordinary(true) }).await;
    assert_eq!(server.log(), snapshot);
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(Some("k"), "{}")).await;
    assert!(client.response().await.1.contains("Idempotent-Replayed"));
    server.step_clock(Duration::from_secs(24 * 3600));
    client.send(post(Some("k"), "{}")).await;
    assert!(client.response().await.2.contains("msg_000003"), "the window is over");
    assert_eq!(server.counters(), Counters { attempts: 3, effects: 2, acknowledged: 3 });
}

#[tokio::test]
async fn rules_come_and_go_and_a_reset_forgets() {
    let server = start(config(settings(false), plan(Commit::Never, Reply::Status { code: 500 }))).await;
    let mut client = Client::connect(&server.base_url()).await;
    assert_eq!(server.unfired_rules(), ["only"]);
    assert!(server.add_rule(rule(Match::default(), ProviderPlan::default())).is_err());
    assert!(server.remove_rule("only") && !server.remove_rule("only"));
    client.send(post(None, "{}")).await;
    assert_eq!(client.response().await.0, 201);
    server.reset().await;
    assert_eq!((server.log().len(), server.counters()), (0, Counters::default()));
    assert_eq!(client.read_to_end().await, (String::new(), false));
    let mut client = Client::connect(&server.base_url()).await;
    client.send(post(None, "{}")).await;
    assert_eq!(client.response().await.0, 500, "the rules of the start are back");
}

#[tokio::test]
async fn shutdown_and_drop_close_the_port_and_every_connection() {
    for graceful in [true, false] {
        let server = start(config(settings(false), plan(Commit::Now, Reply::Hold))).await;
        let address = server.base_url().replace("http://", "");
        let mut client = Client::connect(&server.base_url()).await;
        client.send(post(None, "{}")).await;
        if graceful {
            soon(server.shutdown()).await;
        } else {
            drop(server);
        }
        client.read_to_end().await;
        assert!(soon(TcpStream::connect(address)).await.is_err(), "graceful: {graceful}");
    }
}

#[tokio::test]
async fn what_can_not_start_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let clock = || Arc::new(ManualClock::at(0));
    let error =
        Server::start_on(port, ordinary(false), Arc::new(Unobserved), clock()).await.unwrap_err().to_string();
    assert!(error.contains(&port.to_string()) && error.contains("take another"), "{error}");
    let mut unknown = ordinary(false);
    unknown.provider.dialect = "rset".into();
    let error = Server::start(unknown, Arc::new(Unobserved), clock()).await.unwrap_err();
    assert!(matches!(error, ServerError::Dialect(_)), "{error}");
    let mut twice = config(settings(false), ProviderPlan::default());
    twice.provider.rules = twice.rules.clone();
    let error = Server::start(twice, Arc::new(Unobserved), clock()).await.unwrap_err();
    assert!(matches!(error, ServerError::Rule(_)), "{error}");
}

#[tokio::test]
async fn whoever_stopped_the_worker_for_the_end_of_an_exchange_hears_of_a_client_that_left() {
    let mut gated = Gated::start(ordinary(false)).await;
    let mut client = Client::connect(&gated.server.base_url()).await;
    client.send(post(None, "{}")).await;
    let (_, go) = gated.until(Point::Finishing).await;
    // A reset: the rest of the reply can't be written any more.
    client.reset();
    let _ = go.send(Passage::Go);
    let (before, go) = gated.until(Point::Ended).await;
    assert_eq!(before, ["unanswered client-gone", "@Ended"]);
    let _ = go.send(Passage::Go);
    soon(gated.server.drain(LIMIT)).await;
}
