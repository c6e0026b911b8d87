//! Store faults on a real worker: what it sees, and that nothing of them is left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use killpoint_engine::{TrialSpec, run_trial};
use killpoint_model::event::EventKind;
use killpoint_model::plan::FaultAt;
use killpoint_model::settings::{CommandSettings, LedgerSettings};
use killpoint_model::{Fault, History, Plan, Settings};
use serde_json::json;

type With<'a> = &'a [(&'a str, serde_json::Value)];

fn settings(mode: &str, sync: &str) -> Settings {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/store.py");
    let mut settings = Settings::default();
    settings.worker.command = CommandSettings {
        argv: vec!["python3".into(), script.display().to_string(), mode.into()],
        env: [("STATE_DIR", "{state}"), ("SYNC", sync)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cwd: PathBuf::from("/"),
        inherit: None,
    };
    settings.ledger = Some(LedgerSettings {
        kind: "sqlite".into(),
        path: Some("{state}/ledger.db".into()),
        query: Some("select x as action, 'confirmed' as state from t".into()),
        command: None,
        states: BTreeMap::new(),
        executions: BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 20,
    });
    settings
}

fn plan(faults: &[(&str, &str, With<'_>)]) -> Plan {
    let fault = |(at, name, with): &(&str, &str, With<'_>)| {
        let with = with.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        FaultAt { at: at.parse().unwrap(), fault: Fault { name: (*name).into(), with } }
    };
    Plan { name: "store".into(), faults: faults.iter().map(fault).collect(), ..Plan::default() }
}

/// A trial that is over.
struct Over {
    folder: tempfile::TempDir,
    history: History,
}

impl Over {
    async fn of(settings: Settings, plan: Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = TrialSpec {
            settings: Arc::new(settings),
            plan,
            folder: folder.path().join("trial"),
            pulse: None,
        };
        let result = run_trial(spec).await.unwrap();
        assert!(result.error.is_none(), "{:?}", result.error);
        let over = Self { folder, history: result.history };
        nothing_is_left(over.folder.path());
        over
    }

    /// What one life of a worker printed.
    fn words(&self, worker: u32, generation: u32) -> String {
        let name = format!("trial/worker{worker}-generation{generation}.stdout");
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn landings(&self) -> Vec<(bool, String)> {
        let landing = |event: &EventKind| match event {
            EventKind::FaultDone { landed, note, .. } => Some((*landed, note.clone())),
            _ => None,
        };
        self.history.events.iter().filter_map(|event| landing(&event.event)).collect()
    }

    fn position(&self, wanted: impl Fn(&EventKind) -> bool) -> Option<usize> {
        self.history.events.iter().position(|event| wanted(&event.event))
    }

    /// Whether the machine lacks what the fault needs; the test is over then.
    fn is_limited(&self) -> bool {
        let what = self.history.events.iter().find_map(|event| match &event.event {
            EventKind::Limitation { what, why } => Some(format!("{what}: {why}")),
            _ => None,
        });
        assert_eq!(
            what.is_some(),
            !self.landings().iter().all(|(landed, _)| *landed),
            "{}",
            self.history.to_text()
        );
        what.is_some()
    }

    fn lasted(&self, name: &str) {
        let of = |wanted: bool| {
            self.position(move |event| {
                matches!(event, EventKind::StoreFault { name: at, begins, .. } if at == name && *begins == wanted)
            })
        };
        let over = self.position(|event| matches!(event, EventKind::FaultsOver));
        assert!(of(true).is_some() && of(true) < of(false), "{}", self.history.to_text());
        assert!(of(false) < over, "faults are over only when this one is: {}", self.history.to_text());
    }

    fn is_sound(&self) -> bool {
        let checks = self.history.events.iter().filter_map(|event| match event.event {
            EventKind::Integrity { sound, .. } => Some(sound),
            _ => None,
        });
        let checks: Vec<bool> = checks.collect();
        !checks.is_empty() && checks.iter().all(|sound| *sound)
    }
}

/// No mount below the folder, and every file can be written and removed.
fn nothing_is_left(folder: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&folder.display().to_string()), "{mounts}");
    let state = folder.join("trial/state");
    for entry in std::fs::read_dir(&state).into_iter().flatten().flatten() {
        if entry.path().is_file() {
            std::fs::OpenOptions::new().append(true).open(entry.path()).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_competing_writer_makes_the_store_busy_for_a_time() {
    let plan = plan(&[("mark:before#1", "store-busy", &[("for", json!("1s"))])]);
    let over = Over::of(settings("insist", "full"), plan).await;
    assert_eq!(over.words(1, 1), "rows [] lock None\nSQLITE_BUSY\ndone\n", "{}", over.history.to_text());
    over.lasted("store-busy");
    assert_eq!(over.history.generations(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overtaken_snapshot_fails_its_write() {
    let once = plan(&[("mark:read#1", "store-busy-snapshot", &[])]);
    let over = Over::of(settings("upgrade", "full"), once).await;
    assert_eq!(over.words(1, 1), "rows [] lock None\nSQLITE_BUSY_SNAPSHOT\ndone\n", "{:?}", over.landings());
    let again = plan(&[("mark:before#1", "store-busy-snapshot", &[("for", json!("1s"))])]);
    let over = Over::of(settings("upgrade", "full"), again).await;
    // A write in the very instant of another commit meets the write lock instead: SQLite asks no busy handler within
    // a transaction that has read, so this too comes at once.
    let words = over.words(1, 1);
    let mut errors: Vec<_> = words.lines().filter(|&word| word != "SQLITE_BUSY").collect();
    errors.dedup();
    assert_eq!(errors, ["rows [] lock None", "SQLITE_BUSY_SNAPSHOT", "done"], "{:?}", over.landings());
    over.lasted("store-busy-snapshot");
    let outside = plan(&[("mark:before#1", "store-busy-snapshot", &[])]);
    let over = Over::of(settings("insist", "full"), outside).await;
    assert!(
        matches!(&over.landings()[..], [(false, why)] if why.contains("snapshot")),
        "{:?}",
        over.landings()
    );
    assert_eq!(over.words(1, 1), "rows [] lock None\ndone\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_in_its_own_write_transaction_is_left_alone() {
    let plan = plan(&[("mark:inside#1", "store-busy", &[])]);
    let over = Over::of(settings("hold", "full"), plan).await;
    assert!(
        matches!(&over.landings()[..], [(false, why)] if why.contains("write lock")),
        "{:?}",
        over.landings()
    );
    assert_eq!(over.words(1, 1), "rows [] lock None\ndone\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_store_refuses_the_next_life_and_is_writable_again() {
    let plan = plan(&[("mark:before#1", "store-read-only", &[("for", json!("1500ms"))])]);
    let over = Over::of(settings("insist", "full"), plan).await;
    if over.is_limited() {
        return;
    }
    assert_eq!(over.words(1, 2), "rows [] lock None\nSQLITE_READONLY\ndone\n");
    over.lasted("store-read-only");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_file_system_refuses_and_has_space_again() {
    let plan = plan(&[("mark:before#1", "store-no-space", &[("for", json!("300ms"))])]);
    let over = Over::of(settings("insist", "full"), plan).await;
    if over.is_limited() {
        return;
    }
    assert_eq!(over.words(1, 1), "rows [] lock None\nSQLITE_FULL\ndone\n");
    over.lasted("store-no-space");
    assert_eq!(
        over.history.final_rows().map(|(_, rows)| rows.len()),
        Some(1),
        "the last look sees the state"
    );
    assert!(over.folder.path().join("trial/state/ledger.db").is_file(), "and so does whoever looks later");
}

#[tokio::test(flavor = "multi_thread")]
async fn rolled_back_commits_are_gone_exactly() {
    let plan = plan(&[("mark:row#5", "store-rollback", &[("commits", json!(2))])]);
    let over = Over::of(settings("rows", "full"), plan).await;
    assert_eq!(over.words(1, 2), "rows [1, 2, 3] lock None\ndone\n", "{:?}", over.landings());
    assert!(over.is_sound());
    let far = self::plan(&[("mark:row#2", "store-rollback", &[("commits", json!(9))])]);
    let over = Over::of(settings("rows", "full"), far).await;
    assert!(
        matches!(&over.landings()[..], [(false, why)] if why.contains("holds 2 commits")),
        "{:?}",
        over.landings()
    );
    assert_eq!(over.words(1, 2), "rows [1, 2] lock None\ndone\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_takes_what_was_not_synced_and_nothing_else() {
    for (sync, left) in [("full", "[1, 2, 3]"), ("off", "[]"), ("normal", "[]")] {
        let plan = plan(&[("mark:row#3", "power-cut", &[])]);
        let over = Over::of(settings("rows", sync), plan).await;
        if over.is_limited() {
            return;
        }
        assert_eq!(
            over.words(1, 2),
            format!("rows {left} lock None\ndone\n"),
            "{sync}: {:?}",
            over.landings()
        );
        assert!(over.is_sound(), "{sync}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remembered_state_is_restored_and_a_second_instance_runs_on_it() {
    let restore = plan(&[("mark:row#2", "store-copy", &[]), ("mark:row#4", "store-restore", &[])]);
    let over = Over::of(settings("rows", "full"), restore).await;
    assert_eq!(over.words(1, 2), "rows [1, 2] lock None\ndone\n", "{:?}", over.landings());
    let second = plan(&[
        ("mark:row#2", "store-copy", &[]),
        ("mark:row#4", "store-second", &[("quiet", json!("300ms"))]),
    ]);
    let over = Over::of(settings("rows", "full"), second).await;
    assert_eq!(over.words(2, 2), "rows [1, 2] lock None\ndone\n", "{:?}", over.landings());
    assert_eq!(over.words(1, 1), "rows [] lock None\ndone\n", "the first goes on undisturbed");
    let nothing = plan(&[("mark:row#1", "store-restore", &[])]);
    let over = Over::of(settings("rows", "full"), nothing).await;
    assert!(
        matches!(&over.landings()[..], [(false, why)] if why.contains("store-copy")),
        "{:?}",
        over.landings()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_owners_lock_file_is_left_behind() {
    let plan = plan(&[("mark:row#1", "store-lock", &[("file", json!("locks/owner"))])]);
    let over = Over::of(settings("rows", "full"), plan).await;
    assert_eq!(over.words(1, 2), "rows [1] lock 4194303\ndone\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_it_is_said_what_to_configure() {
    for fault in ["store-busy", "store-busy-snapshot", "store-rollback", "power-cut"] {
        let mut settings = settings("rows", "full");
        settings.ledger = None;
        let over = Over::of(settings, plan(&[("mark:row#1", fault, &[])])).await;
        assert!(over.is_limited(), "{fault}");
        assert!(over.landings()[0].1.contains("[ledger]"), "{:?}", over.landings());
        assert_eq!(over.words(1, 1), "rows [] lock None\ndone\n", "{fault}: the worker is left alone");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_that_is_given_up_leaves_nothing_behind() {
    for fault in ["store-read-only", "store-no-space", "store-busy"] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&[("mark:before#1", fault, &[("for", json!("60s"))])]);
        let trial = folder.path().join("trial");
        let spec = TrialSpec {
            settings: Arc::new(settings("insist", "full")),
            plan,
            folder: trial.clone(),
            pulse: None,
        };
        let running = tokio::spawn(run_trial(spec));
        let done = async {
            let history = trial.join("history.jsonl");
            while !std::fs::read_to_string(&history).is_ok_and(|text| text.contains("fault-done")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), done).await.unwrap();
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        nothing_is_left(folder.path());
    }
}
