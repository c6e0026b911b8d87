//! The right worker beside a feed, a schedule, a producer, a stop signal, a copy, and a ledger that can't be written.

use serde_json::Value;

use crate::provider::{Commit, Reply};
use crate::stand::{Stand, finish, terminate};

fn states(stand: &Stand) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    stand.rows().iter().map(|row| (text(&row["action"]), text(&row["state"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(action, state)| ((*action).to_owned(), (*state).to_owned())).collect()
}

#[test]
fn a_feed_is_taken_in_once_whatever_mark_the_worker_dies_at() {
    for mark in ["", "cursor-committed", "feed-acknowledged"] {
        let stand = Stand::single().with(&["--feed"]);
        stand.provider.state.lock().unwrap().feed.extend(["in-1".to_owned(), "in-2".to_owned()]);
        if !mark.is_empty() {
            assert_eq!(stand.crash_at(mark, 1).code, Some(1), "{mark}");
        }
        assert_eq!(stand.run().code, Some(0), "{mark}");
        let expected = [("a", "confirmed"), ("in-1", "confirmed"), ("in-2", "confirmed")];
        assert_eq!(states(&stand), pairs(&expected), "{mark}");
        let provider = stand.provider.state.lock().unwrap();
        assert_eq!((provider.effects.len(), provider.feed.len()), (3, 0), "{mark}");
    }
}

#[test]
fn each_occurrence_fires_once_and_missed_ones_are_recorded() {
    let stand = Stand::single();
    let missed = ["--every-ms", "3600000", "--occurrences", "3", "--start-ms", "-9000000", "--id", "tick-#"];
    stand.command(&[&["schedule"], &missed[..]].concat());
    stand.run();
    assert_eq!(stand.run().code, Some(0));
    let expected =
        [("a", "confirmed"), ("tick-1", "cancelled"), ("tick-2", "cancelled"), ("tick-3", "confirmed")];
    assert_eq!(states(&stand), pairs(&expected));
    assert_eq!(stand.provider.effects().len(), 2);
}

#[test]
fn what_a_producer_did_not_commit_is_not_there() {
    let stand = Stand::single();
    let file = stand
        .file("{\"id\":\"b\",\"to\":[\"x\"],\"body\":\"1\"}\n{\"id\":\"c\",\"to\":[\"x\"],\"body\":\"2\"}");
    let words = ["produce", "--suffix", "-p", "--actions", &file];
    assert_eq!(stand.crash_words_at(&words, "producer-open").code, Some(1));
    assert_eq!(stand.rows().len(), 1);
    assert_eq!(stand.command(&words), "enqueued b-p\nenqueued c-p\n");
    assert_eq!(stand.rows().len(), 3);
}

#[test]
fn a_stop_signal_lets_the_request_in_flight_end_and_begins_nothing() {
    let mut stand = Stand::new(&[("a", &["x@example.test"]), ("b", &["x@example.test"])]);
    stand.forever = true;
    let held = stand.hold_at("host-1", "answer-read");
    let at_mark = held.arrive();
    held.terminate();
    let life = held.release(at_mark);
    assert_eq!(life.code, Some(0), "{}", life.stderr);
    assert_eq!(states(&stand), pairs(&[("a", "confirmed"), ("b", "created")]));
}

#[test]
fn an_action_that_kills_its_worker_is_quarantined_and_the_others_go_through() {
    let stand = Stand::single().with(&["--lease-ms", "1"]);
    stand.enqueue(r#"{"id":"p","to":["ops@example.test"],"body":"poison"}"#);
    let lives: Vec<Option<i32>> = (0..5).map(|_| stand.run().code).collect();
    assert_eq!(lives, [None, None, None, None, Some(0)]);
    assert_eq!(states(&stand), pairs(&[("a", "confirmed"), ("p", "review")]));
    assert_eq!(stand.counter("awaiting-review"), 1);
}

#[test]
fn a_restored_ledger_asks_first_and_holds_what_may_be_sent_elsewhere() {
    let stand = Stand::new(&[("a", &["x@example.test"]), ("b", &["x@example.test"])]).patient();
    assert_eq!(stand.crash_at("before-claim", 1).code, Some(1));
    let backup = stand.db().with_extension("backup");
    stand.back_up(&backup);
    assert_eq!(stand.crash_at("before-claim", 2).code, Some(1));
    stand.restore(&backup);
    let life = stand.run();
    assert!(life.stderr.contains("is a copy or was restored"), "{}", life.stderr);
    assert_eq!(states(&stand), pairs(&[("a", "confirmed"), ("b", "review")]));
    assert_eq!(stand.provider.attempts().len(), 1);
}

#[test]
fn a_restored_ledger_that_is_the_only_one_is_adopted() {
    let stand = Stand::single().patient().with(&["--adopt"]);
    stand.crash_at("before-claim", 1);
    let backup = stand.db().with_extension("backup");
    stand.back_up(&backup);
    stand.restore(&backup);
    assert_eq!(stand.run().code, Some(0));
    assert_eq!((stand.provider.effects().len(), stand.provider.attempts()[0].lookups_before > 0), (1, true));
}

#[test]
fn two_ledgers_never_use_one_key() {
    let keys = [Stand::single(), Stand::single()].map(|stand| {
        stand.run();
        stand.provider.attempts()[0].key.clone()
    });
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn the_counters_are_kept_apart() {
    let stand = Stand::single().script(&[(Commit::Now, Reply::Close)]);
    stand.run();
    let names =
        ["created", "attempts", "acceptances", "unknown", "reconciled-successes", "reconciled-failures"];
    assert_eq!(names.map(|name| stand.counter(name)), [1, 1, 0, 1, 1, 0]);
    let stand = Stand::single().script(&[(Commit::Never, Reply::Close)]);
    stand.run();
    assert_eq!(names.map(|name| stand.counter(name)), [1, 2, 1, 1, 0, 1]);
}

#[test]
fn a_credential_is_sent_and_kept_nowhere() {
    let mut stand = Stand::single().script(&[(Commit::Never, Reply::Status(500))]);
    stand.env.push(("OUTBOX_API_TOKEN", "canary-1234".into()));
    stand.provider.url = stand.provider.url.replace("http://", "http://user:canary-5678@");
    let life = stand.run();
    let sent = stand.provider.attempts()[0].authorization.clone();
    assert_eq!(sent.as_deref(), Some("Bearer canary-1234"));
    let kept = std::fs::read(stand.db()).unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&kept), life.stderr);
    assert!(!printed.contains("canary-1234") && !printed.contains("canary-5678"));
}

#[test]
fn an_item_that_is_due_and_untouched_raises_the_alarm() {
    let stand = Stand::single().with(&["--overdue-ms", "1"]);
    let holder = stand.hold_at("host-1", "item-claimed");
    let at_mark = holder.arrive();
    let other = finish(stand.start("host-2"));
    assert!(other.stderr.contains("ALARM overdue a/ops@example.test"), "{}", other.stderr);
    holder.release(at_mark);
}

#[test]
fn a_stop_signal_ends_a_worker_that_runs_for_ever() {
    let mut stand = Stand::single();
    stand.forever = true;
    let worker = stand.start("host-1");
    stand.wait_for("SELECT count(*) FROM deliveries WHERE delivery_status = 'delivered'");
    terminate(&worker);
    assert_eq!(finish(worker).code, Some(0));
}
