//! Process control with real processes: stop and go on, terminate, parts of a tree, several workers, another
//! configuration, a producer that is held.

mod support;

use killpoint_model::event::EventKind;
use killpoint_model::plan::FaultAt;
use killpoint_model::provider::ProviderEvent;
use killpoint_model::{Fault, Plan, RowState};
use support::{command, final_states, history_of, position, settings, spawned};

/// Hit, fault, and its parameters.
type Planned<'p> = (&'p str, &'p str, &'p [(&'p str, serde_json::Value)]);

fn plan(faults: &[Planned<'_>]) -> Plan {
    let fault = |(at, name, with): &Planned<'_>| FaultAt {
        at: at.parse().unwrap(),
        fault: Fault {
            name: (*name).to_owned(),
            with: with.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        },
    };
    Plan { name: "control".into(), faults: faults.iter().map(fault).collect(), ..Plan::default() }
}

fn landed(history: &killpoint_model::History) -> Vec<bool> {
    let done = |event: &EventKind| match event {
        EventKind::FaultDone { landed, .. } => Some(*landed),
        _ => None,
    };
    history.events.iter().filter_map(|event| done(&event.event)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_under_which_a_worker_had_anothers_name_is_not_used_again() {
    let same = [("same-identity", true.into())];
    let plan = plan(&[("mark:claimed#1", "second-worker", &same), ("mark:claimed#1", "second-worker", &[])]);
    let history = history_of(settings("drain", "1"), plan).await;
    assert_eq!(spawned(&history), [1, 2, 3], "{}", history.to_text());
    assert_eq!(landed(&history), [true, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker_is_a_zombie_while_another_one_works() {
    let plan = plan(&[("mark:claimed#1", "second-worker", &[("stop", true.into())])]);
    let history = history_of(settings("drain", "1"), plan).await;
    let stopped = position(&history, |event| matches!(event, EventKind::Stopped { worker: 1 }));
    let second = position(&history, |event| matches!(event, EventKind::Spawned { worker: 2, .. }));
    let ended = position(&history, |event| matches!(event, EventKind::Exited { worker: 2, .. }));
    let resumed = position(&history, |event| matches!(event, EventKind::Resumed { worker: 1 }));
    assert!(stopped < second && second < ended && ended < resumed, "{}", history.to_text());
    assert_eq!(history.counters().effects, 2, "its claim has no fence");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_can_be_stopped_for_a_time_and_goes_on() {
    let plan = plan(&[("provider:received#1", "stop", &[("for", "300ms".into())])]);
    let history = history_of(settings("drain", "1"), plan).await;
    assert_eq!((landed(&history), history.generations()), (vec![true], 1));
    assert_eq!(final_states(&history), [RowState::Confirmed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_gives_grace_and_then_the_tree_is_killed() {
    // It ends after the item in flight, and the next life does the rest.
    let polite = plan(&[("provider:received#1", "terminate", &[("grace", "20s".into())])]);
    let history = history_of(settings("polite", "2"), polite).await;
    assert!(!history.events.iter().any(|event| matches!(event.event, EventKind::Killed { .. })));
    assert_eq!((history.generations(), history.counters().effects), (2, 2), "{}", history.to_text());
    // No grace: whatever it does with the signal, it is dead.
    let abrupt = plan(&[("provider:received#1", "terminate", &[("grace", "0s".into())])]);
    let history = history_of(settings("polite", "2"), abrupt).await;
    let signalled = position(&history, |event| matches!(event, EventKind::Signalled { signal: 15, .. }));
    assert!(signalled < position(&history, |event| matches!(event, EventKind::Spawned { .. })) + 60);
    assert_eq!(final_states(&history), [RowState::Confirmed; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_while_another_one_waits_at_the_hit_is_started_again() {
    for worker in [1, 2] {
        let mut plan = plan(&[("mark:claimed#1", "kill", &[("worker", worker.into())])]);
        plan.workers = 2;
        let history = history_of(settings("drain", "1"), plan).await;
        assert_eq!((landed(&history), history.generations()), (vec![true], 3), "{}", history.to_text());
        let settled = history.events.iter().any(|event| matches!(event.event, EventKind::Settled { .. }));
        assert!(settled, "{}", history.to_text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_parent_is_not_killing_the_child() {
    let plan = plan(&[("mark:claimed#1", "kill", &[("part", "root".into())])]);
    let mut settings = settings("child", "1");
    settings.settle.deadline_ms = 15_000;
    // The orphan is to be done before the next life begins.
    settings.worker.restart_delay_ms = 3000;
    let history = history_of(settings, plan).await;
    let part = position(
        &history,
        |event| matches!(event, EventKind::PartKilled { part, processes: 1, .. } if part == "root"),
    );
    let restart = history.events.iter().rposition(|event| matches!(event.event, EventKind::Spawned { .. }));
    let sent = position(&history, |event| matches!(event, EventKind::Provider(ProviderEvent::Committed(_))));
    assert!(part < sent && Some(sent) < restart, "the orphan sends: {}", history.to_text());
    assert_eq!(final_states(&history), [RowState::Confirmed], "and says so at its mark");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_barrier_lets_workers_go_on_together_and_says_who_is_missing() {
    let mut all = plan(&[("mark:claimed#1", "barrier", &[("workers", 3.into())])]);
    all.workers = 3;
    let history = history_of(settings("drain", "1"), all).await;
    assert_eq!(landed(&history), [true], "{}", history.to_text());
    assert_eq!(history.counters().effects, 3, "all three had claimed the one item");
    let missing = plan(&[("mark:claimed#1", "barrier", &[("workers", 2.into()), ("limit", "300ms".into())])]);
    let history = history_of(settings("drain", "1"), missing).await;
    let note = history.events.iter().find_map(|event| match &event.event {
        EventKind::FaultDone { landed: false, note, .. } => Some(note.clone()),
        _ => None,
    });
    assert!(note.is_some_and(|note| note.contains("only 1 of 2 workers")), "{}", history.to_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn barriers_that_wait_for_each_other_are_found_and_explained() {
    // Who is done first stands at the one barrier, and who claims second at the other one.
    let with: &[_] = &[("workers", 2.into()), ("limit", "5s".into())];
    let mut both = plan(&[("mark:done#1", "barrier", with), ("mark:claimed#2", "barrier", with)]);
    both.workers = 2;
    let history = history_of(settings("drain", "2"), both).await;
    let notes: Vec<&str> = history
        .events
        .iter()
        .filter_map(|event| match &event.event {
            EventKind::FaultDone { landed: false, note, .. } => Some(note.as_str()),
            _ => None,
        })
        .collect();
    let explained = notes.iter().any(|note| note.contains("stand at another barrier already"));
    assert!(explained, "whichever was second: {}", history.to_text());
    let settled = history.events.iter().any(|event| matches!(event.event, EventKind::Settled { .. }));
    assert!(settled, "nobody is left behind: {}", history.to_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_life_can_have_another_environment_identity_and_clock() {
    let plan = plan(&[
        ("provider:received#1", "worker-clock", &[("by", "-3h".into())]),
        ("provider:received#1", "change", &[("env", serde_json::json!({ "ROSTER": "new@example.com" }))]),
    ]);
    let mut settings = settings("drain", "1");
    settings.worker.command.env.insert("WHO".into(), "{worker} {generation}".into());
    let history = history_of(settings, plan).await;
    assert_eq!(landed(&history), [true, true], "{}", history.to_text());
    let recipients: Vec<&str> = history.attempts().map(|(_, attempt)| attempt.recipient.as_str()).collect();
    assert_eq!(recipients, ["user1@example.com", "new@example.com"]);
    assert!(
        history
            .events
            .iter()
            .any(|event| matches!(event.event, EventKind::WorkerClock { offset_ms: -10_800_000, .. }))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_is_held_and_its_transaction_ends_as_planned() {
    for (end, effects) in [("rollback", 1), ("commit", 2)] {
        let plan = plan(&[(
            "mark:producer-open#1",
            "hold-producer",
            &[("end", end.into()), ("quiet", "300ms".into())],
        )]);
        let mut settings = settings("drain", "1");
        settings.producer = Some(command(&["produce", "1"]));
        let history = history_of(settings, plan).await;
        let held = position(&history, |event| matches!(event, EventKind::ProducerHeld));
        let ended = position(&history, |event| matches!(event, EventKind::ProducerEnded { .. }));
        let worked = position(&history, |event| matches!(event, EventKind::Spawned { worker: 1, .. }));
        assert!(held < worked && worked < ended, "{}", history.to_text());
        assert_eq!(history.counters().effects, effects, "{end}: {}", history.to_text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_configured_is_a_limitation() {
    let plan = plan(&[("provider:received#1", "cleanup", &[])]);
    let history = history_of(settings("drain", "1"), plan).await;
    assert_eq!(landed(&history), [false]);
    assert!(
        history
            .events
            .iter()
            .any(|event| matches!(&event.event, EventKind::Limitation { what, .. } if what == "cleanup"))
    );
}
