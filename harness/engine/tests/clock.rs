//! A worker whose clock is five minutes ahead, by the harness alone or by its own help.

mod support;

use std::path::Path;
use std::sync::Arc;

use killpoint_engine::os::probe_clock;
use killpoint_engine::{TrialSpec, run_trial};
use killpoint_model::event::{ClockMethod, EventKind};
use killpoint_model::plan::FaultAt;
use killpoint_model::{Clock, Fault, History, Plan, RowState, Settings, SystemClock};
use support::{final_states, settings};

/// The library's schedule: the second worker starts while the first waits for an answer.
fn five_minutes_ahead() -> Plan {
    let fault = |at: &str, name: &str, with: serde_json::Value| FaultAt {
        at: at.parse().unwrap(),
        fault: Fault { name: name.to_owned(), with: serde_json::from_value(with).unwrap() },
    };
    let clock = serde_json::json!({ "worker": 2, "by": "5m" });
    let second = serde_json::json!({ "quiet": "1s" });
    let faults = vec![
        fault("provider:connected#1", "worker-clock", clock),
        fault("provider:committed#1", "second-worker", second),
    ];
    Plan { name: "clock".into(), faults, ..Plan::default() }
}

fn leasing(by: &str) -> Settings {
    let mut settings = settings("drain", "1");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/lease.py").display().to_string();
    let words = |words: &[&str]| {
        [&["python3", &script], words].concat().into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    settings.worker.command.argv = words(&[by, "{worker}"]);
    settings.state.enqueue.as_mut().unwrap().argv = words(&["enqueue"]);
    settings
}

/// The history, and of each life the worker, how far its clock and its child's was off in seconds, and what it was told.
async fn lives_of(settings: Settings) -> (History, Vec<(String, [i64; 2], String)>) {
    let folder = tempfile::tempdir().unwrap();
    let trial = folder.path().join("trial");
    let begun = SystemClock::default().now_ms() as i64 / 1000;
    let spec = TrialSpec {
        settings: Arc::new(settings),
        plan: five_minutes_ahead(),
        folder: trial.clone(),
        pulse: None,
    };
    let result = run_trial(spec).await.unwrap();
    assert!(result.error.is_none(), "{:?}\n{}", result.error, result.history.to_text());
    let lives = std::fs::read_to_string(trial.join("state/lives")).unwrap();
    let life = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let off = |index: usize| words[index].parse::<i64>().unwrap() - begun;
        (words[0].to_owned(), [off(1), off(2)], words[3].to_owned())
    };
    (result.history, lives.lines().map(life).collect())
}

fn methods(history: &History) -> Vec<ClockMethod> {
    let method = |event: &EventKind| match event {
        EventKind::WorkerClock { offset_ms: 300_000, method, .. } => Some(*method),
        _ => None,
    };
    history.events.iter().filter_map(|event| method(&event.event)).collect()
}

fn limitations(history: &History) -> Vec<&EventKind> {
    let events = history.events.iter().map(|event| &event.event);
    events.filter(|event| matches!(event, EventKind::Limitation { .. })).collect()
}

/// What a busy machine may take, in seconds; the offset is 300.
const MARGIN_S: i64 = 100;

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
async fn a_lease_by_the_wall_clock_is_stolen_by_a_worker_whose_clock_is_ahead() {
    if let Err(reason) = probe_clock() {
        eprintln!("skipped: no clock can be moved here: {reason}");
        return;
    }
    for (by, effects) in [("wall", 2), ("boot", 1)] {
        let (history, lives) = lives_of(leasing(by)).await;
        let [(first, off, told), (second, moved, told_too)] = &lives[..] else {
            panic!("{by}: {lives:?}\n{}", history.to_text())
        };
        assert_eq!((first.as_str(), second.as_str()), ("1", "2"));
        assert!(off.iter().all(|off| (0..MARGIN_S).contains(off)), "{lives:?}");
        assert!(moved.iter().all(|off| (300..300 + MARGIN_S).contains(off)), "{lives:?}");
        assert_eq!((told.as_str(), told_too.as_str()), ("nothing", "nothing"));
        assert_eq!(methods(&history), [ClockMethod::Vdso]);
        assert_eq!(limitations(&history), Vec::<&EventKind>::new());
        assert_eq!(history.counters().effects, effects, "{by}: {}", history.to_text());
        assert_eq!(final_states(&history), [RowState::Confirmed]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_reads_the_variable_is_told_and_not_patched() {
    let mut settings = leasing("boot");
    settings.worker.clock = ClockMethod::Environment;
    let (history, lives) = lives_of(settings).await;
    let told: Vec<&str> = lives.iter().map(|(_, _, told)| told.as_str()).collect();
    assert_eq!(told, ["nothing", "300000"]);
    assert!(lives.iter().flat_map(|(_, off, _)| off).all(|off| (0..MARGIN_S).contains(off)), "{lives:?}");
    assert_eq!(methods(&history), [ClockMethod::Environment]);
}

/// Set where this test program runs inside another tracer.
const TRACED_BY_ANOTHER: &str = "KILLPOINT_CLOCK_TEST_TRACED";

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
async fn without_the_right_to_trace_the_fault_does_not_land_and_says_what_to_do() {
    if std::env::var_os(TRACED_BY_ANOTHER).is_none() {
        let name = "without_the_right_to_trace_the_fault_does_not_land_and_says_what_to_do";
        let mut strace = std::process::Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=none", "-e", "signal=none", "-o", "/dev/null"]);
        strace.arg(std::env::current_exe().unwrap()).args(["--exact", name]).env(TRACED_BY_ANOTHER, "1");
        match strace.output() {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => eprintln!("skipped: no other tracer here: strace: {error}"),
        }
        return;
    }
    let (history, lives) = lives_of(leasing("wall")).await;
    assert!(lives.iter().all(|(_, off, told)| off[0] < MARGIN_S && told == "nothing"), "{lives:?}");
    assert_eq!(methods(&history), []);
    let [EventKind::Limitation { what, why }] = &limitations(&history)[..] else {
        panic!("{}", history.to_text())
    };
    assert_eq!(what, "worker-clock");
    for part in ["tracing a process: EPERM", "KILLPOINT_CLOCK_OFFSET_MS", "clock = \"environment\""] {
        assert!(why.contains(part), "{why}");
    }
    let landed =
        |event: &EventKind| matches!(event, EventKind::FaultDone { landed: false, note, .. } if note == why);
    assert!(history.events.iter().any(|event| landed(&event.event)), "{}", history.to_text());
}
