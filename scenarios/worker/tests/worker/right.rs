//! The right worker, in every schedule that a test can script.

use std::time::Duration;

use serde_json::Value;

use crate::provider::{Commit, Reply};
use crate::stand::{Life, Row, Stand, each, finish};

fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).and_then(Value::as_str).unwrap_or("")
}

/// Every destination of every action received its message once, and the ledger says so.
fn assert_delivered_once(stand: &Stand, context: &str) {
    let rows = stand.rows();
    let effects = stand.provider.effects();
    assert_eq!(effects.len(), rows.len(), "{context}: {effects:?}");
    for row in &rows {
        assert_eq!(text(row, "state"), "confirmed", "{context}: {row:?}");
        assert_eq!(row["executions"], 1, "{context}: {row:?}");
        let effect = effects.iter().find(|effect| effect.key == text(row, "key")).unwrap();
        assert_eq!(
            (effect.to.as_str(), effect.id.as_str()),
            (text(row, "destination"), text(row, "provider_id"))
        );
        assert_eq!(effect.body, text(row, "text"), "{context}");
    }
}

fn assert_ended(life: &Life, context: &str) {
    assert_eq!(life.code, Some(0), "{context}: {}", life.stderr);
}

#[test]
fn without_faults_each_message_is_sent_once_and_the_audit_stays() {
    let actions: [(&str, &[&str]); 2] =
        [("a", &["x@example.test", "y@example.test"]), ("b", &["x@example.test"])];
    let stand = Stand::new(&actions).patient();
    assert_eq!(stand.rows().len(), 3, "what is owed shows before the work is done");
    let life = stand.run();
    assert_ended(&life, "baseline");
    assert_delivered_once(&stand, "baseline");
    for attempt in stand.provider.attempts() {
        assert_eq!(
            attempt.row,
            Some(("dispatching".into(), Some(attempt.key.clone()), 1)),
            "the intent comes first"
        );
    }
    assert_eq!(stand.provider.lookups(), 0);
    assert_eq!(stand.count("SELECT count(*) FROM queue"), 0);
    assert_eq!(stand.count("SELECT count(*) FROM deliveries"), 3);
    let marks: Vec<&str> = life.marks.iter().map(String::as_str).collect();
    let first_run =
        ["execution-started", "before-result-commit", "result-committed", "item-enqueued", "item-enqueued"];
    let delivery = ["before-claim", "item-claimed", "dispatch-started", "answer-read", "ack-committed"];
    assert_eq!(marks[..5], first_run);
    assert_eq!(marks[9..14], delivery);
    assert_eq!(marks[marks.len() - 2..], ["before-cleanup", "cleanup-done"]);
}

#[test]
fn a_crash_at_any_mark_delivers_once() {
    let marks = Stand::single().run().marks;
    assert_eq!(marks.len(), 11, "{marks:?}");
    each(&marks, |mark| {
        let stand = Stand::single();
        assert_eq!(stand.crash_at(mark, 1).code, Some(1), "{mark}");
        assert_ended(&stand.run(), mark);
        assert_delivered_once(&stand, mark);
    });
}

#[test]
fn a_crash_in_recovery_delivers_once() {
    let pairs = [
        ("answer-read", "outcome-unknown"),
        ("answer-read", "before-reconcile"),
        ("answer-read", "reconciled"),
        ("dispatch-started", "before-reconcile"),
        ("dispatch-started", "dispatch-started"),
        ("dispatch-started", "answer-read"),
    ];
    each(&pairs, |(first, second)| {
        let stand = Stand::single();
        assert_eq!(stand.crash_at(first, 1).code, Some(1), "{first}");
        assert_eq!(stand.crash_at(second, 1).code, Some(1), "{first}, {second}");
        assert_ended(&stand.run(), second);
        assert_delivered_once(&stand, &format!("{first}, {second}"));
    });
}

#[test]
fn a_lost_reply_is_unknown_then_reconciled_whatever_the_truth_is() {
    let replies = [
        Reply::Close,
        Reply::CutHeaders,
        Reply::CutBody,
        Reply::WithoutId,
        Reply::Hang,
        Reply::Status(500),
        Reply::Status(503),
        Reply::Status(409),
        Reply::Status(302),
    ];
    let both = |reply| [(Commit::Now, reply), (Commit::Never, reply)];
    each(&replies.map(both).concat(), |step| {
        let context = format!("{step:?}");
        let timeout = if step.1 == Reply::Hang { "300" } else { "5000" };
        let stand = Stand::single().script(&[*step]).with(&["--timeout-ms", timeout]);
        let life = stand.run();
        assert_ended(&life, &context);
        assert!(life.marks.iter().any(|mark| mark == "outcome-unknown"), "{context}: {:?}", life.marks);
        assert_delivered_once(&stand, &context);
        let attempts = stand.provider.attempts();
        let reconciled = life.marks.iter().any(|mark| mark == "reconciled");
        let expected = if step.0 == Commit::Now { (1, true) } else { (2, false) };
        assert_eq!((attempts.len(), reconciled), expected, "{context}");
        assert!(attempts.iter().all(|attempt| attempt.key == attempts[0].key), "{context}: one key");
        assert!(attempts[1..].iter().all(|attempt| attempt.lookups_before >= 2), "{context}: asked first");
    });
}

#[test]
fn a_commit_that_comes_late_is_waited_for() {
    for reply in [Reply::Close, Reply::Hang] {
        let stand = Stand::single().script(&[(Commit::AfterMs(300), reply)]).with(&["--reconcile-ms", "600"]);
        assert_ended(&stand.run(), "late");
        assert_delivered_once(&stand, "late");
        assert_eq!(stand.provider.attempts().len(), 1);
    }
}

#[test]
fn a_definite_refusal_is_a_failure_and_stays_one() {
    each(&[400, 401, 404, 422], |status| {
        let stand = Stand::single().always((Commit::Never, Reply::Status(*status))).patient();
        assert_ended(&stand.run(), "refused");
        assert_ended(&stand.run(), "refused, again");
        let row = stand.row();
        assert_eq!(text(&row, "state"), "failed");
        assert!(text(&row, "evidence").contains(&format!("answered {status}")), "{row:?}");
        assert!(text(&row, "evidence").contains(text(&row, "key")), "{row:?}");
        assert_eq!(stand.provider.attempts().len(), 1);
    });
}

#[test]
fn a_refusal_after_a_doubtful_attempt_is_for_an_operator() {
    let stand = Stand::single().script(&[(Commit::Never, Reply::Close), (Commit::Never, Reply::Status(400))]);
    assert_ended(&stand.run(), "doubt, refusal");
    assert_eq!(text(&stand.row(), "state"), "review");
}

#[test]
fn a_refusal_for_rate_waits_as_long_as_told_and_asks_first() {
    let stand = Stand::single().script(&[(Commit::Never, Reply::RateLimited)]).patient();
    assert_ended(&stand.run(), "429");
    assert_delivered_once(&stand, "429");
    let attempts = stand.provider.attempts();
    assert_eq!((attempts.len(), attempts[1].lookups_before), (2, 1));
    assert!(attempts[1].at - attempts[0].at >= Duration::from_millis(950), "{attempts:?}");
}

#[test]
fn attempts_are_bounded_and_end_with_evidence() {
    for (reply, state) in [(Reply::Status(500), "review"), (Reply::Status(429), "failed")] {
        let stand = Stand::single().always((Commit::Never, reply)).with(&["--attempts-max", "3"]).patient();
        assert_ended(&stand.run(), state);
        let row = stand.row();
        assert_eq!((text(&row, "state"), &row["attempts"]), (state, &Value::from(3)));
        assert_eq!(stand.provider.attempts().len(), 3);
        for part in ["no attempt is left", "/v1/messages", text(&row, "key")] {
            assert!(text(&row, "evidence").contains(part), "{part}: {row:?}");
        }
    }
}

#[test]
fn without_an_answer_to_lookups_nothing_is_sent_again() {
    let stand = Stand::single().script(&[(Commit::Now, Reply::Close)]);
    stand.provider.state.lock().unwrap().lookups_fail = true;
    assert_ended(&stand.run(), "lookups fail");
    assert_ended(&stand.run(), "lookups fail, again");
    let row = stand.row();
    assert_eq!(text(&row, "state"), "review");
    assert!(text(&row, "evidence").contains("lookups failed"), "{row:?}");
    assert_eq!(stand.provider.attempts().len(), 1);
}

#[test]
fn a_provider_that_dedupes_gets_the_same_key_again_inside_its_window_only() {
    for (window, attempts, state) in [("60000", 2, "confirmed"), ("1", 1, "review")] {
        let options = ["--provider-dedupes", "--dedupe-window-ms", window];
        let stand = Stand::single().script(&[(Commit::Now, Reply::Close)]).with(&options);
        {
            let mut provider = stand.provider.state.lock().unwrap();
            provider.dedupes = true;
            provider.lookups_fail = true;
        }
        assert_ended(&stand.run(), window);
        assert_eq!(text(&stand.row(), "state"), state, "window {window}");
        assert_eq!((stand.provider.attempts().len(), stand.provider.effects().len()), (attempts, 1));
    }
}

#[test]
fn an_unreachable_provider_ends_in_review() {
    let mut stand = Stand::single();
    stand.provider.url = "http://127.0.0.1:1".into();
    assert_ended(&stand.run(), "nobody listens");
    assert_eq!(text(&stand.row(), "state"), "review");
}

#[test]
fn two_workers_share_the_items() {
    let ids: Vec<String> = (0..8).map(|n| format!("a{n}")).collect();
    let actions: Vec<(&str, &[&str])> = ids.iter().map(|id| (id.as_str(), &["x@example.test"][..])).collect();
    let stand = Stand::new(&actions).patient();
    let workers = [stand.start("host-1"), stand.start("host-2")];
    for worker in workers {
        assert_ended(&finish(worker), "two workers");
    }
    assert_delivered_once(&stand, "two workers");
    assert_eq!(stand.provider.attempts().len(), 8);
}

#[test]
fn two_workers_that_saw_the_same_free_item_send_it_once() {
    let stand = Stand::single();
    let (first, second) = (stand.hold_at("host-1", "before-claim"), stand.hold_at("host-2", "before-claim"));
    let (at_first, at_second) = (first.arrive(), second.arrive());
    assert_ended(&first.release(at_first), "first");
    assert_ended(&second.release(at_second), "second");
    assert_delivered_once(&stand, "the same item");
    assert_eq!(stand.provider.attempts().len(), 1);
}

#[test]
fn two_workers_that_reconcile_the_same_item_resend_it_once() {
    let stand = Stand::single();
    stand.crash_at("dispatch-started", 1);
    let (first, second) =
        (stand.hold_at("host-2", "before-reconcile"), stand.hold_at("host-3", "before-reconcile"));
    let (at_first, at_second) = (first.arrive(), second.arrive());
    assert_ended(&first.release(at_first), "first");
    assert_ended(&second.release(at_second), "second");
    assert_delivered_once(&stand, "reconciled twice");
    assert_eq!(stand.provider.attempts().len(), 1);
}

#[test]
fn an_owner_that_comes_back_after_its_lease_sends_and_writes_nothing() {
    each(&["item-claimed", "dispatch-started", "answer-read"], |mark| {
        let stand = Stand::single();
        let stalled = stand.hold_at("host-1", mark);
        let at_mark = stalled.arrive();
        assert_ended(&finish(stand.start("host-2")), mark);
        let row = stand.row();
        assert_eq!(text(&row, "state"), "confirmed", "{mark}");
        let life = stalled.release(at_mark);
        assert_ended(&life, mark);
        assert!(life.stderr.contains("taken over by another worker"), "{mark}: {}", life.stderr);
        assert_eq!(stand.row(), row, "{mark}");
        assert_delivered_once(&stand, mark);
    });
}

#[test]
fn a_lease_from_before_the_clock_was_stepped_back_holds_nobody_up() {
    let stand = Stand::single();
    stand.crash_at("dispatch-started", 1);
    stand.change("UPDATE deliveries SET lease_until = lease_until + 3 * 3600 * 1000");
    assert_ended(&stand.run(), "back-step");
    assert_delivered_once(&stand, "back-step");
}

#[test]
fn an_executor_that_comes_back_after_its_lease_commits_nothing() {
    let stand = Stand::single();
    let stalled = stand.hold_at("host-1", "before-result-commit");
    let at_mark = stalled.arrive();
    assert_ended(&finish(stand.start("host-2")), "second");
    assert_ended(&stalled.release(at_mark), "first");
    assert_delivered_once(&stand, "executed once");
}

#[test]
fn enqueue_can_be_repeated_but_not_changed() {
    let stand = Stand::single();
    let same = r#"{"id":"a","to":["ops@example.test"],"body":"text of a"}"#;
    assert_eq!(stand.enqueue(same).code, Some(0));
    assert_eq!(stand.count("SELECT count(*) FROM executions"), 1);
    for (line, part) in [
        (
            r#"{"id":"a","to":["ops@example.test"],"body":"other"}"#,
            "line 1: `a` is in the ledger with other contents",
        ),
        (r#"{"id":"b","to":[],"body":"x"}"#, "at least one destination"),
        (r#"{"id":"b","to":["x"],"body":"x","bdy":""}"#, "unknown field `bdy`"),
        ("\n{", "line 2"),
    ] {
        let life = stand.enqueue(line);
        assert_eq!(life.code, Some(1), "{line}");
        assert!(life.stderr.contains(part), "{line}: {}", life.stderr);
    }
}

#[test]
fn the_command_line_is_strict() {
    let code = |words: &[&str]| {
        outbox_worker::main(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(code(&["run", "--db", "x"]), 2);
    assert_eq!(code(&["run", "--db", "x", "--provider", "http://127.0.0.1:1", "--bug", "no-such"]), 2);
    assert_eq!(code(&["status", "--db", "/nowhere/ledger.db"]), 1);
    assert_eq!(code(&["bugs"]), 0);
}
