//! One schedule for each kind of fault by which its specimen can be told from the right worker.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use crate::provider::{Commit, Reply};
use crate::stand::{Life, Stand, finish, terminate};

const HANG_AFTER: (Commit, Reply) = (Commit::Now, Reply::Hang);
const LOST_AFTER: (Commit, Reply) = (Commit::Now, Reply::Close);
const LOST_BEFORE: (Commit, Reply) = (Commit::Never, Reply::Close);

fn with(bug: &str) -> Stand {
    Stand::single().with(&["--bug", bug])
}

fn effects(stand: &Stand) -> usize {
    stand.provider.effects().len()
}

fn state(stand: &Stand) -> String {
    stand.row()["state"].as_str().unwrap().to_owned()
}

fn crashed(bug: &str, mark: &str) -> Stand {
    let stand = with(bug);
    assert_eq!(stand.crash_at(mark, 1).code, Some(1), "{bug}");
    stand
}

/// A second worker starts while the first one waits for an answer.
fn beside_a_slow_send(stand: &Stand, second: &str) -> Life {
    let first = stand.start("host-1");
    stand.provider.wait_for_attempt();
    finish(stand.start(second));
    finish(first)
}

/// Whether the bug of that name shows.
pub(crate) fn shows(bug: &str) -> bool {
    match bug {
        "client-retries" => {
            let stand = with(bug).script(&[LOST_AFTER]);
            stand.provider.state.lock().unwrap().dedupes = true;
            stand.run();
            (stand.provider.attempts().len(), &stand.row()["attempts"]) == (2, &Value::from(1))
        }
        "trust-key-for-ever" => {
            let stand = with(bug).script(&[LOST_AFTER]).with(&["--provider-dedupes"]);
            stand.run();
            (effects(&stand), stand.provider.lookups()) == (2, 0)
        }
        "lease-too-short" | "steal-at-start" => {
            let stand = with(bug).script(&[HANG_AFTER]).with(&["--timeout-ms", "1000"]);
            beside_a_slow_send(&stand, "host-2");
            (effects(&stand), stand.provider.lookups()) == (2, 0)
        }
        "zombie-without-fencing" => {
            let stand = with(bug);
            let stalled = stand.hold_at("host-1", "item-claimed");
            let at_mark = stalled.arrive();
            finish(stand.start("host-2"));
            stalled.release(at_mark);
            effects(&stand) == 2
        }
        "wall-clock-lease" => {
            let mut stand = with(bug).script(&[HANG_AFTER]).with(&["--timeout-ms", "1000"]);
            let first = stand.start("host-1");
            stand.provider.wait_for_attempt();
            stand.env.push(("KILLPOINT_CLOCK_OFFSET_MS", "300000".into()));
            finish(stand.start("host-2"));
            finish(first).stderr.contains("taken over")
        }
        "takeover-ignores-outcome" => {
            let stand = crashed(bug, "answer-read");
            let stalled = stand.hold_at("host-2", "recovery-scanned");
            let at_mark = stalled.arrive();
            finish(stand.start("host-3"));
            let before = stand.row();
            stalled.release(at_mark);
            before["state"] == "confirmed" && stand.row()["evidence"] != before["evidence"]
        }
        "no-flush" => true, // Only a power cut shows it; what it does is tested beside the command line.
        other => shows_after_a_restart(other),
    }
}

fn shows_after_a_restart(bug: &str) -> bool {
    match bug {
        "orphans-stay-locked" => {
            let stand = crashed(bug, "item-claimed");
            stand.run().code == Some(0) && state(&stand) == "created"
        }
        "recovery-runs-once" => {
            // A lease that surely runs on while the next life starts.
            let stand = with(bug).with(&["--lease-ms", "20000"]);
            stand.crash_at("answer-read", 1);
            stand.run().code == Some(0) && state(&stand) == "dispatching"
        }
        "reopen-failed" => {
            let stand = with(bug).always((Commit::Never, Reply::Status(400)));
            stand.crash_at("before-cleanup", 1);
            stand.run();
            stand.provider.attempts().len() == 2
        }
        "forget-missed" => {
            let stand = crashed(bug, "before-claim");
            stand.change("UPDATE deliveries SET next_attempt_at = next_attempt_at - 11 * 3600 * 1000");
            stand.run().code == Some(0) && state(&stand) == "created"
        }
        "commit-apart" => {
            let stand = crashed(bug, "result-committed");
            stand.run().code == Some(0) && stand.rows().is_empty()
        }
        "claims-count" => {
            let stand = crashed(bug, "item-claimed");
            stand.crash_at("item-claimed", 1);
            stand.run();
            state(&stand) == "failed" && stand.provider.attempts().is_empty()
        }
        "stop-requeues" => {
            let stand = with(bug).script(&[HANG_AFTER]).with(&["--timeout-ms", "5000"]);
            let worker = stand.start("host-1");
            stand.provider.wait_for_attempt();
            terminate(&worker);
            finish(worker).code == Some(0) && stand.run().code == Some(0) && effects(&stand) == 2
        }
        "trust-copies" => {
            let stand = crashed(bug, "before-claim");
            let backup = stand.db().with_extension("backup");
            stand.back_up(&backup);
            stand.run();
            stand.restore(&backup);
            stand.run();
            effects(&stand) == 2
        }
        "poison-uncounted" => {
            let stand = with(bug).with(&["--lease-ms", "1"]);
            stand.enqueue(r#"{"id":"p","to":["ops@example.test"],"body":"poison"}"#);
            (0..6).all(|_| stand.run().code.is_none())
        }
        other => shows_in_one_life(other),
    }
}

fn shows_in_one_life(bug: &str) -> bool {
    match bug {
        "render-at-send" => {
            let stand = with(bug).script(&[LOST_BEFORE]);
            stand.run();
            stand.provider.effects()[0].body.contains("sent again")
        }
        "retry-whole-run" => {
            let stand = Stand::new(&[("a", &["x@example.test", "y@example.test"])]).with(&["--bug", bug]);
            let stand = stand.script(&[(Commit::Now, Reply::Ok), (Commit::Never, Reply::Status(400))]);
            stand.run();
            stand.provider.effects().iter().filter(|effect| effect.to == "x@example.test").count() == 2
        }
        "retry-refused" => {
            let stand = with(bug).script(&[(Commit::Never, Reply::Status(400))]);
            stand.run();
            stand.provider.attempts().len() == 2
        }
        "ignore-retry-after" => {
            let stand = with(bug).script(&[(Commit::Never, Reply::RateLimited)]);
            stand.run();
            let attempts = stand.provider.attempts();
            attempts[1].at - attempts[0].at < Duration::from_millis(900)
        }
        "resend-unwritten" => {
            let stand = with(bug);
            let stalled = stand.hold_at("host-1", "answer-read");
            let at_mark = stalled.arrive();
            let competitor = Connection::open(stand.db()).unwrap();
            competitor.execute_batch("BEGIN IMMEDIATE").unwrap();
            let life = stalled.release_until(at_mark, || effects(&stand) == 3, &competitor);
            life.code == Some(74) && life.stderr.contains("ALARM")
        }
        "fold-counters" => {
            let stand = with(bug).script(&[LOST_AFTER]);
            stand.run();
            stand.counter("acceptances") == 2
        }
        "keep-headers" => {
            let mut stand = with(bug).script(&[(Commit::Never, Reply::Status(401))]);
            stand.env.push(("OUTBOX_API_TOKEN", "canary-1234".into()));
            stand.run();
            stand.row()["evidence"].as_str().unwrap().contains("canary-1234")
        }
        "idle-for-ever" => {
            let mut stand = with(bug);
            stand.forever = true;
            let worker = stand.start("host-1");
            stand.wait_for("SELECT count(*) FROM lives");
            terminate(&worker);
            finish(worker).code == Some(0) && effects(&stand) == 0
        }
        "cursor-first" => {
            let stand = with(bug).with(&["--feed"]);
            stand.provider.state.lock().unwrap().feed.push("in-1".into());
            stand.crash_at("cursor-committed", 1);
            stand.run();
            stand.rows().iter().all(|row| row["action"] != "in-1")
        }
        "enqueue-outside" => {
            let stand = with(bug);
            let file = stand.file(r#"{"id":"b","to":["ops@example.test"],"body":"x"}"#);
            stand.crash_words_at(&["produce", "--actions", &file, "--bug", bug], "producer-open");
            stand.rows().len() == 2
        }
        "reregister-schedules" => {
            let stand = with(bug);
            stand.command(&["schedule", "--every-ms", "1", "--occurrences", "2"]);
            stand.run();
            stand.run();
            effects(&stand) == 5
        }
        _ => false,
    }
}
