//! Every seeded bug shows, in the way that its invariant names, at something that can be seen from outside.

use std::collections::BTreeSet;

use outbox_worker::BUGS;

use crate::kinds;
use crate::provider::{Commit, Reply};
use crate::stand::{Stand, each, finish};

const LOST_AFTER: (Commit, Reply) = (Commit::Now, Reply::Close);
const LOST_BEFORE: (Commit, Reply) = (Commit::Never, Reply::Close);

fn state(stand: &Stand) -> String {
    stand.row()["state"].as_str().unwrap().to_owned()
}

fn effects(stand: &Stand) -> usize {
    stand.provider.effects().len()
}

fn keys(stand: &Stand) -> BTreeSet<String> {
    stand.provider.attempts().into_iter().map(|attempt| attempt.key).collect()
}

fn crashed_and_restarted(bug: &str, mark: &str) -> Stand {
    let stand = Stand::single().with(&["--bug", bug]);
    assert_eq!(stand.crash_at(mark, 1).code, Some(1), "{bug}");
    assert_eq!(stand.run().code, Some(0), "{bug}");
    stand
}

fn faulty(bug: &str, step: (Commit, Reply)) -> Stand {
    let stand = Stand::single().script(&[step]).with(&["--bug", bug]);
    assert_eq!(stand.run().code, Some(0), "{bug}");
    stand
}

/// Whether the bug of that name shows.
fn shows(bug: &str) -> bool {
    match bug {
        "blind-resend" => {
            let stand = crashed_and_restarted(bug, "answer-read");
            effects(&stand) == 2 && stand.provider.lookups() == 0 && keys(&stand).len() == 1
        }
        "trust-first-lookup" => {
            let stand = faulty(bug, (Commit::AfterMs(300), Reply::Close));
            effects(&stand) == 2 && stand.provider.attempts()[1].lookups_before == 1
        }
        "key-per-attempt" => {
            keys(&faulty(bug, LOST_AFTER)).len() == 2
                && effects(&crashed_and_restarted(bug, "answer-read")) == 2
        }
        "mark-before-send" => {
            let stand = faulty(bug, LOST_BEFORE);
            let at_send = stand.provider.attempts()[0].row.clone();
            at_send.is_some_and(|(state, ..)| state == "delivered") && effects(&stand) == 0
        }
        "send-before-intent" => {
            let stand = Stand::single().script(&[(Commit::Now, Reply::Hang)]).with(&[
                "--bug",
                bug,
                "--timeout-ms",
                "1000",
            ]);
            let mut first = stand.start("host-1");
            stand.provider.wait_for_attempt();
            first.kill().unwrap();
            first.wait().unwrap();
            stand.run();
            stand.provider.attempts()[0].row == Some(("pending".into(), None, 0)) && effects(&stand) == 2
        }
        "single-done-flag" => {
            let stand = crashed_and_restarted(bug, "result-committed");
            state(&stand) == "confirmed" && effects(&stand) == 0
        }
        "swallow-timeout" => {
            let stand = faulty(bug, LOST_BEFORE);
            state(&stand) == "confirmed" && effects(&stand) == 0 && !stand.row().contains_key("provider_id")
        }
        "unknown-as-failed" => {
            let stand = faulty(bug, LOST_AFTER);
            state(&stand) == "failed" && effects(&stand) == 1
        }
        _ => shows_in_the_end(bug),
    }
}

fn shows_in_the_end(bug: &str) -> bool {
    match bug {
        "forever-pending" => state(&faulty(bug, LOST_BEFORE)) == "created",
        "cleanup-erases-audit" => {
            let stand = faulty(bug, (Commit::Now, Reply::Ok));
            stand.rows().is_empty() && effects(&stand) == 1
        }
        "recompute-recipients" => {
            let stand = crashed_and_restarted(bug, "item-enqueued");
            stand.provider.effects().iter().filter(|effect| effect.to != "ops@example.test").count() == 1
        }
        "never-starts-sending" => state(&faulty(bug, (Commit::Now, Reply::Ok))) == "created",
        "re-executes" => {
            let stand = crashed_and_restarted(bug, "item-enqueued");
            stand.row()["executions"] == 2 && effects(&stand) == 1
        }
        "claim-without-cas" => {
            let stand = Stand::single().with(&["--bug", bug]);
            let (first, second) =
                (stand.hold_at("host-1", "before-claim"), stand.hold_at("host-2", "before-claim"));
            let (at_first, at_second) = (first.arrive(), second.arrive());
            first.release(at_first);
            second.release(at_second);
            effects(&stand) == 2
        }
        "attempts-unbounded" => {
            let stand = Stand::single().always((Commit::Never, Reply::Status(429))).with(&["--bug", bug]);
            stand.run();
            stand.provider.attempts().len() == 40
        }
        "manufacture-on-restart" => {
            let stand = crashed_and_restarted(bug, "item-enqueued");
            stand.rows().len() == 2 && effects(&stand) == 2 && keys(&stand).len() == 2
        }
        other => kinds::shows(other),
    }
}

#[test]
fn every_bug_shows() {
    each(BUGS, |bug| assert!(shows(bug.name), "{} does not show", bug.name));
}

#[test]
fn no_bug_but_the_idle_one_shows_without_faults_in_what_recipients_get() {
    each(BUGS, |bug| {
        let stand = Stand::single().with(&["--bug", bug.name]).patient();
        assert_eq!(stand.run().code, Some(0), "{}", bug.name);
        assert_eq!(effects(&stand), usize::from(bug.name != "never-starts-sending"), "{}", bug.name);
    });
}

#[test]
fn a_bug_survives_many_restarts() {
    each(BUGS, |bug| {
        let stand = Stand::single().with(&["--bug", bug.name]);
        for mark in ["item-enqueued", "dispatch-started", "answer-read"] {
            stand.crash_at(mark, 1);
        }
        let life = finish(stand.start("host-1"));
        assert_eq!(life.code, Some(0), "{}: {}", bug.name, life.stderr);
    });
}
