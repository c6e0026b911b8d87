//! Trials with real processes: what is recorded, in which order, and what is left behind.

mod support;

use killpoint_engine::TrialError;
use killpoint_model::event::{CommandRole, EventKind, SettledBy};
use killpoint_model::plan::FaultAt;
use killpoint_model::settings::{Lifecycle, SettleBy};
use killpoint_model::{Fault, History, HitName, Plan, RowState};
use support::{command, final_states, history_of, position, run, settings, settled_by, spawned};

fn kill_at(at: &str) -> Plan {
    let at = at.parse().unwrap();
    Plan { name: "kill".into(), faults: vec![FaultAt { at, fault: Fault::named("kill") }], ..Plan::default() }
}

fn hits(history: &History) -> Vec<String> {
    let name = |event: &EventKind| match event {
        EventKind::Hit { hit, live: true, .. } => Some(hit.to_string()),
        _ => None,
    };
    history.events.iter().filter_map(|event| name(&event.event)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_baseline_reaches_its_boundaries_in_order_and_settles_by_exit() {
    let history =
        history_of(settings("drain", "1"), Plan { name: "baseline".into(), ..Plan::default() }).await;
    assert_eq!(settled_by(&history), Some(SettledBy::Exit));
    assert_eq!(final_states(&history), [RowState::Confirmed]);
    let counters = history.counters();
    assert_eq!((counters.attempts, counters.effects, counters.acknowledged), (1, 1, 1));
    let hits = hits(&history);
    let wanted = [
        "mark:claimed#1",
        "provider:connected#1",
        "provider:received#1",
        "provider:committed#1",
        "provider:replying#1",
        "provider:replied#1",
        "mark:done#1",
    ];
    let mut rest = hits.iter();
    assert!(wanted.iter().all(|name| rest.any(|hit| hit == name)), "{hits:?}");
    assert!(
        hits.contains(&"ledger:dispatching#1".to_owned()) && hits.contains(&"ledger:confirmed#1".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_is_announced_before_it_is_done_and_proven_before_the_restart() {
    let history = history_of(settings("drain", "1"), kill_at("provider:committed#1")).await;
    let announced = position(&history, |event| matches!(event, EventKind::FaultAnnounced { .. }));
    let killed = position(&history, |event| matches!(event, EventKind::Killed { .. }));
    let restarted = history.events.iter().rposition(|event| matches!(event.event, EventKind::Spawned { .. }));
    assert!(announced < killed && Some(killed) < restarted, "{}", history.to_text());
    let EventKind::Killed { proof, .. } = &history.events[killed].event else { unreachable!() };
    assert_eq!((proof.signal, proof.was_alive, proof.survivors), (Some(9), true, 0));
    assert_eq!(history.generations(), 2);
    // This worker sends again without asking: the harness must count both.
    assert_eq!((history.counters().effects, history.counters().acknowledged), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_replied_the_worker_has_not_read_the_reply() {
    let history = history_of(settings("drain", "1"), kill_at("provider:replied#1")).await;
    assert_eq!(history.counters().acknowledged, 2, "the first reply was written whole");
    let killed = position(&history, |event| matches!(event, EventKind::Killed { .. }));
    let before = history.events[..killed].iter().rev().find_map(|event| match &event.event {
        EventKind::Ledger { view, .. } => view.rows.clone(),
        _ => None,
    });
    assert_eq!(before.map(|rows| rows[0].state), Some(RowState::Dispatching));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_and_a_sampled_ledger_change_can_be_killed_at() {
    for at in ["mark:done#1", "ledger:confirmed#1"] {
        let history = history_of(settings("drain", "1"), kill_at(at)).await;
        assert_eq!(history.generations(), 2, "{at}");
        assert_eq!(history.counters().effects, 1, "{at}: the outcome was durable");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_lifecycle_comes_to_rest() {
    for (mode, lifecycle, by, settled) in [
        ("forever", Lifecycle::RunsForever, SettleBy::Quiet, SettledBy::Quiet),
        ("forever", Lifecycle::RunsForever, SettleBy::Query, SettledBy::Query),
        ("oneshot", Lifecycle::OneShot, SettleBy::Exit, SettledBy::Exit),
        ("daemon", Lifecycle::Daemonises, SettleBy::Quiet, SettledBy::Quiet),
    ] {
        let mut settings = settings(mode, "2");
        settings.worker.lifecycle = lifecycle;
        settings.worker.again_codes = vec![75];
        settings.settle.by = by;
        let history = history_of(settings, kill_at("provider:received#1")).await;
        assert_eq!(settled_by(&history), Some(settled), "{mode}: {}", history.to_text());
        assert_eq!(final_states(&history), [RowState::Confirmed; 2], "{mode}");
        let killed = position(&history, |event| matches!(event, EventKind::Killed { .. }));
        let EventKind::Killed { proof, .. } = &history.events[killed].event else { unreachable!() };
        assert_eq!((proof.signal, proof.survivors), (Some(9), 0), "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_ends_at_once_is_not_settled() {
    let mut settings = settings("crash", "1");
    settings.worker.restarts_max = 2;
    let history = history_of(settings, Plan { name: "baseline".into(), ..Plan::default() }).await;
    let why = history.events.iter().find_map(|event| match &event.event {
        EventKind::NotSettled { why } => Some(why.clone()),
        _ => None,
    });
    assert!(why.is_some_and(|why| why.contains("exit code 3")), "{}", history.to_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_started_is_a_set_up_error_and_the_history_is_whole() {
    let mut broken = settings("drain", "1");
    broken.worker.command.argv = vec!["/no/such/worker".into()];
    let result = run(broken, Plan::default()).await;
    assert!(matches!(result.error, Some(TrialError::Setup { .. })), "{:?}", result.error);
    assert!(!result.history.truncated);
    let mut broken = settings("drain", "1");
    broken.state.enqueue = Some(command(&["crash"]));
    let result = run(broken, Plan::default()).await;
    let error = result.error.map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("exited with 3") && error.contains("no configuration"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_stays_behind_does_not_outlive_the_trial() {
    let history = history_of(settings("leave-child", "1"), kill_at("provider:committed#1")).await;
    let killed = position(&history, |event| matches!(event, EventKind::Killed { .. }));
    let EventKind::Killed { proof, .. } = &history.events[killed].event else { unreachable!() };
    assert!(proof.reaped >= 2 && proof.survivors == 0, "{proof:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boundary_that_is_never_reached_leaves_the_trial_green_only_for_the_worker() {
    let history = history_of(settings("drain", "1"), kill_at("mark:nowhere#1")).await;
    assert!(!history.events.iter().any(|event| matches!(event.event, EventKind::FaultAnnounced { .. })));
    assert_eq!(settled_by(&history), Some(SettledBy::Exit));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_worker_runs_while_the_first_waits() {
    let plan = Plan {
        faults: vec![FaultAt { at: "mark:claimed#1".parse().unwrap(), fault: Fault::named("second-worker") }],
        ..Plan::default()
    };
    let history = history_of(settings("drain", "1"), plan).await;
    let spawned = |number| {
        position(&history, |event| matches!(event, EventKind::Spawned { worker, .. } if *worker == number))
    };
    let done = position(&history, |event| matches!(event, EventKind::FaultDone { landed: true, .. }));
    let first_attempt = position(&history, |event| {
        matches!(event, EventKind::Provider(killpoint_model::provider::ProviderEvent::Received(_)))
    });
    assert!(spawned(1) < spawned(2) && spawned(2) < first_attempt && first_attempt < done);
    assert_eq!(history.counters().effects, 2, "this worker's claim protects nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_worker_takes_no_living_ones_number() {
    let plan = Plan {
        faults: vec![FaultAt { at: "mark:claimed#1".parse().unwrap(), fault: Fault::named("second-worker") }],
        workers: 2,
        ..Plan::default()
    };
    let history = history_of(settings("drain", "1"), plan).await;
    assert_eq!(spawned(&history), [1, 2, 3], "{}", history.to_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_a_mark_of_a_command_kills_the_worker_and_not_the_command() {
    let mut settings = settings("drain", "1");
    settings.cleanup = Some(command(&["drain"]));
    let at = |at: &str, fault: &str| FaultAt { at: at.parse().unwrap(), fault: Fault::named(fault) };
    let plan = Plan {
        faults: vec![at("mark:claimed#1", "cleanup"), at("mark:claimed#2", "kill")],
        ..Plan::default()
    };
    let history = history_of(settings, plan).await;
    position(&history, |event| matches!(event, EventKind::Killed { worker: 1, .. }));
    position(&history, |event| {
        matches!(event, EventKind::CommandRan { role: CommandRole::Cleanup, code: Some(0), .. })
    });
    assert_eq!(settled_by(&history), Some(SettledBy::Exit), "{}", history.to_text());
}

/// A trial in which the ledger shows the hit at an exchange: where it was sampled before, it is done again.
async fn seen_at_an_exchange(at: &HitName, faults: &[(&str, &str)]) -> History {
    let fault = |(at, name): &(&str, &str)| FaultAt { at: at.parse().unwrap(), fault: Fault::named(name) };
    for _ in 0..10 {
        let plan = Plan { faults: faults.iter().map(fault).collect(), ..Plan::default() };
        let history = history_of(settings("prompt", "1"), plan).await;
        let exact = |event: &EventKind| matches!(event, EventKind::Hit { hit, exact: true, .. } if hit == at);
        if history.events.iter().any(|event| exact(&event.event)) {
            return history;
        }
    }
    panic!("it was always sampled");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ledger_shows_holds_no_request_up_before_it_is_accepted() {
    let at: HitName = "ledger:dispatching#1".parse().unwrap();
    for (fault, at_once) in [("second-worker", false), ("stop", false), ("kill", true)] {
        let history = seen_at_an_exchange(&at, &[("ledger:dispatching#1", fault)]).await;
        let hit = position(&history, |event| matches!(event, EventKind::Hit { hit, .. } if *hit == at));
        let announced = position(&history, |event| matches!(event, EventKind::FaultAnnounced { .. }));
        let accepted = position(&history, |event| {
            matches!(event, EventKind::Provider(killpoint_model::provider::ProviderEvent::Committed(_)))
        });
        assert!(hit < announced && hit < accepted, "{}", history.to_text());
        assert_eq!(announced < accepted, at_once, "{fault}: {}", history.to_text());
        position(&history, |event| matches!(event, EventKind::FaultDone { landed: true, .. }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_an_acceptance_is_not_done_in_the_next_life() {
    let at: HitName = "ledger:dispatching#1".parse().unwrap();
    let faults = [("ledger:dispatching#1", "second-worker"), ("provider:received#1", "kill")];
    let history = seen_at_an_exchange(&at, &faults).await;
    position(&history, |event| matches!(event, EventKind::Killed { worker: 1, .. }));
    let announced = history.events.iter().filter_map(|event| match &event.event {
        EventKind::FaultAnnounced { fault, .. } => Some(fault.name.as_str()),
        _ => None,
    });
    assert_eq!(announced.collect::<Vec<_>>(), ["kill"], "{}", history.to_text());
    assert_eq!(spawned(&history), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enqueuer_can_be_killed_after_its_line() {
    let mut settings = settings("drain", "1");
    settings.state.enqueue_kill_after = Some("ENQUEUED".into());
    let history = history_of(settings, kill_at("provider:received#1")).await;
    assert_eq!(history.counters().effects, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_enqueue_command_a_killed_worker_is_started_again_too() {
    let state = tempfile::tempdir().unwrap();
    let db = rusqlite::Connection::open(state.path().join("ledger.db")).unwrap();
    db.execute_batch(
        "create table items (id integer primary key, state text); insert into items (state) values ('new')",
    )
    .unwrap();
    drop(db);
    let mut settings = settings("drain", "1");
    settings.state.enqueue = None;
    settings.state.from = Some(state.path().to_owned());
    let history = history_of(settings, kill_at("provider:received#1")).await;
    assert_eq!((history.generations(), history.counters().effects), (2, 1), "{}", history.to_text());
    assert!(
        history
            .events
            .iter()
            .any(|event| matches!(&event.event, EventKind::StateReady { from } if *from != "fresh"))
    );
}
