//! A hand-made dossier in which every line is answered yes, and ways to spoil it; one test per line and answer.

use std::collections::BTreeMap;

use killpoint_model::checklist::{AnswerWord, Answered, HostFacts, LogLine, Skipped};
use killpoint_model::event::EventKind;
use killpoint_model::finding::{Finding, InvariantOutcome, InvariantStatus};
use killpoint_model::provider::{Counters, ProviderEvent, Replay, Unanswered};
use killpoint_model::verdict::{TrialEvidence, TrialVerdict};
use killpoint_model::{ExecutionState, Fault, History, LedgerRow, Plan, RowState, Settings, Verdict};

use super::{CHECKLISTS, Dossier, Exhibit, answers};
use crate::invariants::INVARIANTS;
use crate::sample::{Trial, mapped};

const KEY: &str = "k-deploy-42";

/// A dossier that owns what it is about.
struct Fixture {
    settings: Settings,
    host: HostFacts,
    skipped: Vec<Skipped>,
    trials: Vec<(String, Plan, TrialVerdict, History)>,
}

impl Fixture {
    fn right() -> Self {
        let mut settings = mapped();
        settings.secrets.env = vec!["API_TOKEN".into()];
        let log = LogLine {
            trial: "timeout".into(),
            file: "worker1-generation1.stdout".into(),
            line: 3,
            names_attempt: true,
        };
        let host = HostFacts {
            file_system: Some("ext4".into()),
            journal_mode: Some("wal".into()),
            schema_version: Some(2),
            log: Some(log),
        };
        let trials = [
            ("timeout", timeout()),
            ("kill", kill()),
            ("restore", restore()),
            ("second", second()),
            ("power-cut", power_cut()),
            ("rejected", rejected()),
        ];
        let trials = trials.map(|(folder, history)| {
            let EventKind::TrialStarted { plan, .. } = &history.events[0].event else { panic!("{folder}") };
            (folder.to_owned(), plan.clone(), all_holds(), history)
        });
        Self { settings, host, skipped: Vec::new(), trials: trials.into() }
    }

    fn answers(&self) -> BTreeMap<String, Answered> {
        let exhibits = self.trials.iter().map(|(folder, plan, judged, history)| Exhibit {
            folder: folder.as_str(),
            plan,
            judged,
            history,
        });
        let dossier = Dossier {
            settings: &self.settings,
            exhibits: exhibits.collect(),
            skipped: &self.skipped,
            host: Some(&self.host),
        };
        answers(&dossier).into_iter().map(|answered| (answered.id.clone(), answered)).collect()
    }

    fn outcomes(&mut self, invariant: &str, edit: impl Fn(&mut InvariantOutcome)) {
        let outcomes = self.trials.iter_mut().flat_map(|(_, _, judged, _)| &mut judged.outcomes);
        let mut found = outcomes.filter(|outcome| outcome.invariant == invariant).peekable();
        assert!(found.peek().is_some(), "{invariant}");
        found.for_each(edit);
    }

    fn violate(&mut self, invariant: &str) {
        self.outcomes(invariant, |outcome| {
            outcome.status = InvariantStatus::Violated;
            outcome.findings = vec![Finding {
                invariant: outcome.invariant.clone(),
                message: "it is wrong".into(),
                subject: "deploy-42".into(),
                events: vec![2, 3],
            }];
        });
    }

    fn hide(&mut self, invariant: &str) {
        self.outcomes(invariant, |outcome| {
            outcome.status = InvariantStatus::NotShown;
            outcome.looked_at = 0;
            outcome.reason = Some("there was nothing".into());
        });
    }

    fn drop(&mut self, folder: &str) {
        self.trials.retain(|(name, ..)| name != folder);
    }

    fn events(&mut self, edit: impl Fn(&mut EventKind)) {
        let events = self.trials.iter_mut().flat_map(|(_, _, _, history)| &mut history.events);
        events.for_each(|event| edit(&mut event.event));
    }

    fn rows(&mut self, edit: impl Fn(&mut LedgerRow)) {
        self.events(|event| {
            if let EventKind::Ledger { view, .. } | EventKind::Final { view, .. } = event {
                view.rows.iter_mut().flatten().for_each(&edit);
            }
        });
    }

    fn metric(&mut self, name: &str, value: Option<u64>) {
        self.events(|event| {
            if let EventKind::Metrics { values, .. } = event {
                match value {
                    Some(value) => drop(values.insert(name.to_owned(), value)),
                    None => drop(values.remove(name)),
                }
            }
        });
    }
}

fn all_holds() -> TrialVerdict {
    let outcome = |name: &str| InvariantOutcome {
        invariant: name.to_owned(),
        status: InvariantStatus::Holds,
        looked_at: 1,
        findings: Vec::new(),
        notes: Vec::new(),
        reason: None,
    };
    TrialVerdict {
        verdict: Verdict::Holds,
        evidence: TrialEvidence { recovery_acted: Some(true), ..TrialEvidence::default() },
        outcomes: INVARIANTS.iter().map(|invariant| outcome(invariant.entry().name)).collect(),
        actions: Vec::new(),
        counters: Counters::default(),
    }
}

fn row(state: RowState) -> LedgerRow {
    LedgerRow {
        execution: Some(ExecutionState::Succeeded),
        due_at_ms: Some(1),
        owner: (state == RowState::Dispatching).then(|| "host-1".into()),
        evidence: Some("sent with API_TOKEN".into()),
        provider_id: (state == RowState::Confirmed).then(|| "msg_1".into()),
        ..crate::sample::row("deploy-42", "bob@x", state)
    }
}

fn metrics(trial: &mut Trial) {
    let names = [
        "created",
        "attempts",
        "acceptances",
        "unknown",
        "reconciled-successes",
        "reconciled-failures",
        "awaiting-review",
        "delivery-failures",
    ];
    let mut values: BTreeMap<String, u64> = names.iter().map(|name| ((*name).to_owned(), 1)).collect();
    values.insert("execution-failures".into(), 0);
    trial.push(EventKind::Metrics { values, error: None });
    trial.push(EventKind::Scanned { places: 5, leaks: Vec::new() });
}

fn end(trial: &mut Trial, state: RowState) -> History {
    metrics(trial);
    trial.end_rows(vec![row(state)])
}

fn output(trial: &mut Trial) {
    trial.push(EventKind::Output { worker: 1, stream: "stdout".into(), bytes: 20, dropped: 0 });
}

/// A request that is never answered, then a lookup, and the same key again.
fn timeout() -> History {
    let mut trial = Trial::new();
    let first = trial.send("bob@x", Some(KEY), "deployed");
    trial.provider(ProviderEvent::Unanswered { attempt: first, how: Unanswered::Hang });
    trial.view(None, vec![row(RowState::Unknown)]);
    trial.look_up(KEY, &[]).deliver("bob@x", Some(KEY), "deployed");
    let again = trial.send("bob@x", Some(KEY), "deployed");
    trial.replay(again, Replay::Replayed, "msg_1");
    output(&mut trial);
    end(&mut trial, RowState::Confirmed)
}

/// Killed with a queued row, with a claimed one, after acceptance, and when all was done.
fn kill() -> History {
    let mut trial = Trial::new();
    trial.view(Some("ledger:created#1"), vec![row(RowState::Created)]);
    trial.kill("ledger:created#1");
    trial.view(Some("provider:received#1"), vec![row(RowState::Dispatching)]);
    trial.send("bob@x", Some(KEY), "deployed");
    trial.kill("provider:received#1").look_up(KEY, &[]);
    let accepted = trial.send("bob@x", Some(KEY), "deployed");
    trial.commit(accepted);
    trial.die("provider:committed#1");
    trial.provider(ProviderEvent::Unanswered { attempt: accepted, how: Unanswered::Abandoned });
    trial.spawn().look_up(KEY, &["msg_1"]);
    trial.view(Some("ledger:confirmed#1"), vec![row(RowState::Confirmed)]);
    trial.kill("ledger:confirmed#1");
    end(&mut trial, RowState::Confirmed)
}

fn land(trial: &mut Trial, name: &str, at: &str) {
    let at: killpoint_model::HitName = at.parse().unwrap();
    trial.push(EventKind::FaultAnnounced { at: at.clone(), fault: Fault::named(name) });
    trial.plan.faults.push(killpoint_model::plan::FaultAt { at: at.clone(), fault: Fault::named(name) });
    trial.push(EventKind::FaultDone { at, landed: true, note: "done".into() });
}

fn restore() -> History {
    let mut trial = Trial::new();
    land(&mut trial, "store-copy", "provider:received#1");
    let first = trial.send("bob@x", Some(KEY), "deployed");
    trial.commit(first);
    land(&mut trial, "store-restore", "provider:replied#1");
    trial.look_up(KEY, &["msg_1"]);
    end(&mut trial, RowState::Confirmed)
}

fn second() -> History {
    let mut trial = Trial::new();
    land(&mut trial, "second-worker", "mark:before-claim#1");
    trial.push(EventKind::Spawned { worker: 2, pid: 200, argv: vec!["worker".into()] });
    trial.deliver("bob@x", Some(KEY), "deployed");
    end(&mut trial, RowState::Confirmed)
}

fn power_cut() -> History {
    let mut trial = Trial::new();
    land(&mut trial, "power-cut", "provider:received#1");
    trial.deliver("bob@x", Some(KEY), "deployed");
    end(&mut trial, RowState::Confirmed)
}

fn rejected() -> History {
    let mut trial = Trial::new();
    let attempt = trial.send("bob@x", Some(KEY), "deployed");
    trial.reply(attempt, 400);
    end(&mut trial, RowState::Failed)
}

type Spoil = fn(&mut Fixture);

/// Per line: what makes it a `no`, and what makes it `not shown`.
const SPOILS: &[(&str, Spoil, Spoil)] = &[
    ("a1-1", |f| f.violate("no-false-success"), |f| f.rows(|row| row.execution = None)),
    ("a1-2", |f| f.violate("stable-key"), |f| f.hide("intent-before-dispatch")),
    ("a1-3", |f| f.violate("unknown-is-explicit"), |f| f.drop("timeout")),
    ("a1-4", |f| f.violate("no-blind-resend"), |f| f.hide("no-blind-resend")),
    ("a1-5", |f| f.violate("counters-agree"), |f| f.metric("unknown", None)),
    ("a1-6", |f| f.violate("no-secret-leak"), |f| f.drop("restore")),
    ("a1-7", |f| f.violate("no-duplicate-effect"), |f| f.drop("kill")),
    ("a2-1", |f| f.violate("execution-not-repeated"), |f| f.rows(|row| row.execution = None)),
    ("a2-2", |f| f.violate("due-is-served"), |f| f.rows(|row| row.due_at_ms = None)),
    ("a2-3", |f| f.violate("stable-key"), |f| f.hide("stable-key")),
    ("a2-4", spoil_receiver, |f| {
        f.rows(|row| row.provider_id = None);
        f.drop("timeout");
    }),
    ("a2-5", |f| f.violate("no-lost-action"), |f| f.drop("kill")),
    ("a2-6", |f| f.metric("execution-failures", Some(1)), |f| f.metric("execution-failures", None)),
    ("a2-7", |f| f.violate("no-secret-leak"), |f| f.host.log = None),
    ("a3-1", |f| f.violate("execution-not-repeated"), |f| f.host.schema_version = Some(0)),
    ("a3-2", |f| f.violate("intent-before-dispatch"), |f| f.drop("kill")),
    ("a3-3", |f| f.violate("one-identity-per-destination"), |f| f.hide("one-identity-per-destination")),
    ("a3-4", |f| f.violate("no-blind-resend"), |f| f.drop("timeout")),
    ("a3-5", |f| f.violate("claim-is-exclusive"), |f| f.rows(|row| row.owner = None)),
    ("a3-6", |f| f.rows(|row| row.destination = Some("eve@x".into())), |f| f.rows(|row| row.evidence = None)),
    ("a3-7", |f| f.violate("no-duplicate-effect"), |f| f.drop("restore")),
    ("a3-8", |f| f.violate("unknown-is-explicit"), |f| f.drop("timeout")),
    ("h1-1", |f| f.violate("acknowledged-is-durable"), |f| f.host.file_system = Some("tmpfs".into())),
    ("h1-2", |f| f.violate("terminal-state-explicit"), |f| f.drop("kill")),
    ("h1-3", |f| f.violate("counters-agree"), |f| f.metric("created", None)),
    ("h1-4", |f| f.violate("no-lost-action"), |f| f.drop("restore")),
    ("h1-5", |f| f.violate("no-secret-leak"), |f| f.hide("no-secret-leak")),
    ("h1-6", |f| f.violate("no-blind-resend"), |f| f.drop("restore")),
    ("h1-7", |f| f.violate("claim-is-exclusive"), |f| f.drop("second")),
    ("h1-8", |f| f.violate("no-blind-resend"), |f| f.hide("stable-key")),
    ("h2-1", |f| f.violate("audit-survives"), |f| f.host.file_system = None),
    ("h2-2", |f| f.violate("no-lost-action"), |f| f.drop("kill")),
    ("h2-3", spoil_some_evidence, |f| f.rows(|row| row.evidence = None)),
    ("h3-1", |f| f.violate("audit-survives"), |f| f.host.file_system = Some("overlay".into())),
    ("h3-2", |f| f.violate("no-lost-action"), |f| f.drop("restore")),
    ("h3-3", |f| f.violate("no-duplicate-effect"), |f| f.drop("restore")),
    ("h3-4", |f| f.violate("no-blind-resend"), |f| f.drop("timeout")),
    ("h3-5", |f| f.violate("no-manufactured-item"), |f| f.drop("kill")),
    ("h3-6", |f| f.violate("no-blind-resend"), |f| f.hide("no-blind-resend")),
    ("h3-7", |f| f.violate("no-duplicate-effect"), |f| f.drop("kill")),
];

/// A key comes twice, makes two effects, and nobody keeps an id.
fn spoil_receiver(fixture: &mut Fixture) {
    let mut trial = Trial::new();
    trial.deliver("bob@x", Some(KEY), "deployed").deliver("bob@x", Some(KEY), "deployed");
    let history = trial.end_rows(vec![LedgerRow::new("deploy-42", RowState::Confirmed)]);
    fixture.trials.push(("twice".into(), Plan::default(), all_holds(), history));
}

/// One of two failed rows says why.
fn spoil_some_evidence(fixture: &mut Fixture) {
    let rejected = fixture.trials.iter().find(|(folder, ..)| folder == "rejected").cloned().unwrap();
    let mut silent = Fixture { trials: vec![rejected], ..Fixture::right() };
    silent.rows(|row| row.evidence = None);
    fixture.trials.append(&mut silent.trials);
}

#[test]
fn every_line_is_yes_where_everything_was_shown() {
    let fixture = Fixture::right();
    for (id, answered) in fixture.answers() {
        assert_eq!(answered.answer, AnswerWord::Yes, "{id}: {answered:?}");
        assert!(!answered.proofs.is_empty() && answered.to_do.is_none(), "{id}");
        for proof in &answered.proofs {
            let (.., history) = fixture.trials.iter().find(|(folder, ..)| *folder == proof.trial).unwrap();
            assert!(!proof.events.is_empty() && proof.events.is_sorted(), "{id}");
            assert!(proof.events.iter().all(|seq| *seq <= history.events.len() as u64), "{id}");
        }
    }
}

#[test]
fn every_line_has_its_no_and_its_not_shown() {
    let lines: Vec<&str> = CHECKLISTS.iter().flat_map(|items| items.iter().map(|item| item.id)).collect();
    assert_eq!(SPOILS.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), lines);
    for (id, no, not_shown) in SPOILS {
        for (spoil, word) in [(no, AnswerWord::No), (not_shown, AnswerWord::NotShown)] {
            let mut fixture = Fixture::right();
            spoil(&mut fixture);
            let answered = &fixture.answers()[*id];
            assert_eq!(answered.answer, word, "{id}: {answered:?}");
            assert_eq!(!answered.proofs.is_empty(), word == AnswerWord::No, "{id}");
            assert!(answered.to_do.is_some(), "{id}");
        }
    }
}

#[test]
fn a_trial_that_shows_nothing_carries_no_yes() {
    for verdict in [Verdict::Vacuous, Verdict::Inconclusive] {
        let mut fixture = Fixture::right();
        fixture.trials.iter_mut().for_each(|(_, _, judged, _)| judged.verdict = verdict);
        let yes: Vec<String> =
            fixture.answers().into_values().filter(|a| a.answer == AnswerWord::Yes).map(|a| a.id).collect();
        assert_eq!(yes, Vec::<String>::new(), "{verdict}");
    }
    let mut fixture = Fixture::right();
    for (_, _, judged, _) in &mut fixture.trials {
        judged.evidence.boundary_reached = Some(false);
        judged.evidence.missing = vec!["the boundary was never reached".into()];
    }
    let answered = &fixture.answers()["a1-1"];
    assert_eq!(answered.answer, AnswerWord::NotShown);
    assert!(answered.because.contains("never reached"), "{}", answered.because);
}

#[test]
fn an_inconclusive_invariant_carries_no_yes() {
    let mut fixture = Fixture::right();
    fixture.outcomes("stable-key", |outcome| outcome.status = InvariantStatus::Inconclusive);
    assert_eq!(fixture.answers()["a2-3"].answer, AnswerWord::NotShown);
}

#[test]
fn what_a_fault_says_when_it_does_not_land_is_told() {
    let mut fixture = Fixture::right();
    fixture.events(|event| {
        if let EventKind::FaultDone { landed, note, .. } = event {
            *landed = false;
            "it needs Linux 6.5".clone_into(note);
        }
    });
    let answered = &fixture.answers()["h1-1"];
    assert_eq!(answered.answer, AnswerWord::NotShown);
    assert!(answered.because.contains("it needs Linux 6.5"), "{}", answered.because);
}

#[test]
fn why_a_scenario_was_not_staged_is_told() {
    let mut fixture = Fixture::right();
    fixture.drop("restore");
    fixture.skipped.push(Skipped {
        scenario: "restored-from-a-backup".into(),
        faults: vec!["store-copy".into(), "store-restore".into()],
        why: "`restored-from-a-backup` could not be staged here: too large".into(),
        to_do: "run it".into(),
    });
    let answered = &fixture.answers()["h1-4"];
    assert_eq!(answered.answer, AnswerWord::NotShown);
    assert!(answered.because.contains("too large"), "{}", answered.because);
}

#[test]
fn a_damaged_ledger_is_a_no() {
    let mut fixture = Fixture::right();
    fixture.events(|event| {
        if matches!(event, EventKind::Scanned { .. }) {
            *event = EventKind::Integrity { sound: false, detail: "malformed".into() };
        }
    });
    for id in ["h1-1", "h3-2"] {
        let answered = &fixture.answers()[id];
        assert_eq!(answered.answer, AnswerWord::No);
        assert!(answered.because.contains("malformed"));
    }
}

#[test]
fn what_if_faults_say_nothing_about_a_worker() {
    let mut fixture = Fixture::right();
    fixture.violate("acknowledged-is-durable");
    fixture.events(|event| {
        if let EventKind::FaultAnnounced { fault, .. } = event {
            "store-rollback".clone_into(&mut fault.name);
        }
    });
    fixture.drop("timeout");
    assert_eq!(fixture.answers()["h1-1"].answer, AnswerWord::No, "other trials still count");
    fixture.drop("kill");
    fixture.drop("rejected");
    assert_eq!(fixture.answers()["h1-1"].answer, AnswerWord::NotShown);
}
