//! A hand-made run: a baseline, a trial that holds, one with two effects, one that proves nothing.

use std::collections::BTreeMap;

use killpoint_model::checklist::{AnswerWord, Answered, HostFacts, ProfileName, Proof, RunProfile, Skipped};
use killpoint_model::event::{CommandRole, Containment, KillProof, ProcessLimit, SettledBy};
use killpoint_model::history::Header;
use killpoint_model::plan::{Commit, Reply};
use killpoint_model::provider::{Attempt, Counters, Effect, Lookup, ProviderEvent, Unanswered};
use killpoint_model::run::TrialRole;
use killpoint_model::verdict::{ActionOutcome, ActionVerdict, TrialEvidence};
use killpoint_model::*;
use serde_json::json;

/// What a hostile worker writes into its messages.
pub(crate) const HOSTILE: &str = "\x1b[2J\x1b[31mall green\u{202e}<script>alert(1)</script>\r\n✓ holds";

/// The run with its histories by folder.
pub(crate) struct Golden {
    pub(crate) record: RunRecord,
    pub(crate) histories: BTreeMap<String, History>,
}

pub(crate) fn golden() -> Golden {
    let trials = vec![
        trial("001-baseline", TrialRole::Baseline, plan("baseline", &[], "ok"), holds()),
        trial(
            "002-drop",
            TrialRole::Faulted,
            Plan { rules: vec![drop_rule()], ..plan("drop-after-accept", &[], "drop-after-accept") },
            holds_with_a_note(),
        ),
        trial(
            "003-kill",
            TrialRole::Faulted,
            plan("kill at provider:committed#1", &["provider:committed#1"], "ok"),
            violated(),
        ),
        trial(
            "004-kill",
            TrialRole::Faulted,
            plan("kill at mark:before-cleanup#1", &["mark:before-cleanup#1"], "ok"),
            vacuous(),
        ),
    ];
    let histories = [
        ("001-baseline", baseline_events()),
        ("003-kill", violated_events()),
        ("004-kill", vacuous_events()),
    ];
    Golden {
        record: RunRecord {
            killpoint: "0.1.0".into(),
            started_at_ms: 1_700_000_000_000,
            command_line: vec!["run".into(), "--config".into(), "killpoint.toml".into()],
            trials,
            warnings: vec!["mark:before-cleanup#1 was asked for, and no baseline reached it".into()],
            verdict: Verdict::Violated,
            duration_ms: 2319,
            profile: Some(profile()),
            host: Some(HostFacts { file_system: Some("ext4".into()), ..HostFacts::default() }),
            ..RunRecord::new(Settings::default())
        },
        histories: histories
            .into_iter()
            .map(|(folder, events)| (folder.to_owned(), history(folder, events)))
            .collect(),
    }
}

fn profile() -> RunProfile {
    let answered = |id: &str, question: &str, answer, because: &str| Answered {
        id: id.into(),
        article: "Your Agent Finished the Job. Did the Email Actually Leave?".into(),
        question: question.into(),
        answer,
        because: because.into(),
        proofs: match answer {
            AnswerWord::NotShown => Vec::new(),
            _ => vec![Proof { trial: "003-kill".into(), events: vec![9, 17] }],
        },
        to_do: (answer != AnswerWord::Yes).then(|| "add `[metrics]` and map the worker's own names".into()),
    };
    RunProfile {
        name: ProfileName::PreHosting,
        skipped: vec![Skipped {
            scenario: "cleanup-then-redelivery".into(),
            faults: vec!["cleanup".into()],
            why: "`cleanup-then-redelivery` needs the worker's own cleanup command, and none is configured"
                .into(),
            to_do: "add `[cleanup]` with its `command`".into(),
        }],
        answers: vec![
            answered(
                "a1-1",
                "Is execution completion separate from outbound delivery confirmation?",
                AnswerWord::Yes,
                "1 trial with a kill that left an open delivery: no-false-success holds",
            ),
            answered(
                "a1-2",
                "Is the idempotency key created before dispatch and persisted across restarts?",
                AnswerWord::No,
                &format!("stable-key: two keys for {HOSTILE}"),
            ),
            answered(
                "a1-5",
                "Do metrics distinguish accepted, delivered, unknown, and failed?",
                AnswerWord::NotShown,
                "no trial with acceptances and unknown among the worker's metrics",
            ),
        ],
    }
}

pub(crate) fn plan(name: &str, kills: &[&str], provider_plan: &str) -> Plan {
    let faults =
        kills.iter().map(|hit| FaultAt { at: hit.parse().unwrap(), fault: Fault::named("kill") }).collect();
    Plan { name: name.into(), provider_plan: provider_plan.into(), faults, ..Plan::default() }
}

fn drop_rule() -> Rule {
    let plan = ProviderPlan { commit: Commit::Now, reply: Reply::Fin, ..ProviderPlan::default() };
    Rule { id: "drop-after-accept".into(), matches: plan::Match::default(), plan, times: Some(1) }
}

pub(crate) fn trial(folder: &str, role: TrialRole, plan: Plan, verdict: TrialVerdict) -> TrialRecord {
    TrialRecord {
        drawn: false,
        folder: folder.into(),
        role,
        plan,
        repetition: 1,
        verdict: Some(verdict),
        replay: format!("killpoint replay .killpoint/runs/0001/{folder}"),
        duration_ms: 312,
        shard: None,
        source: None,
    }
}

fn outcome(invariant: &str, status: InvariantStatus) -> InvariantOutcome {
    InvariantOutcome {
        invariant: invariant.into(),
        status,
        looked_at: u32::from(status != InvariantStatus::NotShown),
        findings: Vec::new(),
        notes: Vec::new(),
        reason: (status == InvariantStatus::NotShown)
            .then(|| "the ledger mapping has no column `executions`; add it to `ledger.query`".into()),
    }
}

pub(crate) fn holds() -> TrialVerdict {
    TrialVerdict {
        verdict: Verdict::Holds,
        evidence: TrialEvidence { settle_complete: Some(true), ..TrialEvidence::default() },
        outcomes: vec![
            outcome("no-duplicate-effects", InvariantStatus::Holds),
            outcome("executed-once", InvariantStatus::NotShown),
        ],
        actions: vec![ActionOutcome {
            action: "job-1".into(),
            recipient: "ada@example.test".into(),
            verdict: ActionVerdict::DeliveredOnce,
            effects: 1,
            expected: 1,
            state: Some("confirmed".into()),
            events: vec![9],
        }],
        counters: Counters { attempts: 1, effects: 1, acknowledged: 1 },
    }
}

fn holds_with_a_note() -> TrialVerdict {
    let mut verdict = holds();
    verdict.outcomes[0].notes.push(Finding {
        invariant: "no-duplicate-effects".into(),
        message: "job-1 was sent twice under one key".into(),
        subject: "job-1".into(),
        events: vec![4, 8],
    });
    verdict
}

fn violated() -> TrialVerdict {
    let finding = Finding {
        invariant: "no-duplicate-effects".into(),
        message: format!("ada@example.test received 2 messages of job-1: “{HOSTILE}”"),
        subject: "job-1".into(),
        events: vec![9, 17],
    };
    TrialVerdict {
        verdict: Verdict::Violated,
        outcomes: vec![
            InvariantOutcome {
                findings: vec![finding],
                ..outcome("no-duplicate-effects", InvariantStatus::Violated)
            },
            outcome("executed-once", InvariantStatus::NotShown),
        ],
        actions: vec![
            ActionOutcome {
                verdict: ActionVerdict::Duplicate,
                effects: 2,
                events: vec![9, 17],
                ..holds().actions[0].clone()
            },
            ActionOutcome {
                action: "job-2".into(),
                recipient: "grace@example.test".into(),
                events: vec![20],
                ..holds().actions[0].clone()
            },
        ],
        counters: Counters { attempts: 2, effects: 2, acknowledged: 1 },
        ..holds()
    }
}

fn vacuous() -> TrialVerdict {
    TrialVerdict {
        verdict: Verdict::Vacuous,
        evidence: TrialEvidence {
            boundary_reached: Some(false),
            signal_landed: Some(false),
            missing: vec![
                "mark:before-cleanup#1 was never reached; call mark(\"before-cleanup\") in the worker, or take the boundary out".into(),
            ],
            ..TrialEvidence::default()
        },
        ..holds()
    }
}

pub(crate) fn history(folder: &str, events: Vec<(u32, EventKind)>) -> History {
    let events = events
        .into_iter()
        .enumerate()
        .map(|(index, (generation, event))| {
            let seq = index as u64 + 1;
            Event { seq, at_us: seq * 7300, generation, event }
        })
        .collect();
    History { header: Header::new(folder), events, truncated: false }
}

fn started(plan: Plan) -> EventKind {
    EventKind::TrialStarted {
        plan,
        containment: Containment::PidNamespace,
        containment_reason: None,
        process_limit: ProcessLimit::Rlimit,
    }
}

fn spawned(pid: u32) -> EventKind {
    EventKind::Spawned { worker: 1, pid, argv: vec!["python3".into(), "worker.py".into()] }
}

pub(crate) fn hit(name: &str, exact: bool) -> EventKind {
    EventKind::Hit { hit: name.parse().unwrap(), exact, live: true, subject: None, worker: 1 }
}

fn rows(states: &[(&str, RowState)]) -> LedgerView {
    let rows = states.iter().map(|(action, state)| LedgerRow::new(*action, *state)).collect();
    LedgerView { exact: false, rows: Some(rows), values: BTreeMap::new(), error: None }
}

fn received(id: u32, text: &str) -> EventKind {
    EventKind::Provider(ProviderEvent::Received(Attempt {
        id,
        connection: id,
        dialect: "rest".into(),
        operation: "create".into(),
        target: "POST /messages".into(),
        key: Some(format!("key-{id}")),
        recipient: "ada@example.test".into(),
        action: Some("job-1".into()),
        body_sha256: "00".repeat(32),
        body: json!({ "text": text }),
        at_ms: 20,
    }))
}

fn committed(id: u32, text: &str) -> EventKind {
    EventKind::Provider(ProviderEvent::Committed(Effect {
        id: format!("msg-{id}"),
        attempt: id,
        dialect: "rest".into(),
        operation: "create".into(),
        recipient: "ada@example.test".into(),
        text: text.into(),
        body: json!({ "text": text }),
        key: Some(format!("key-{id}")),
        action: Some("job-1".into()),
        recognizers: Vec::new(),
        copies: 1,
        committed_at_ms: 21,
        visible_at_ms: Some(21),
        bounced_at_ms: None,
    }))
}

fn provider(event: ProviderEvent) -> EventKind {
    EventKind::Provider(event)
}

fn baseline_events() -> Vec<(u32, EventKind)> {
    vec![
        (0, started(plan("baseline", &[], "ok"))),
        (1, spawned(4100)),
        (1, hit("ledger:created#1", false)),
        (1, hit("ledger:created#2", false)),
        (1, hit("provider:received#1", true)),
        (1, hit("provider:committed#1", true)),
        (1, hit("mark:result-committed#1", true)),
        (1, EventKind::TrialEnded),
    ]
}

fn violated_events() -> Vec<(u32, EventKind)> {
    let kill: HitName = "provider:committed#1".parse().unwrap();
    let proof = KillProof {
        signal: Some(9),
        code: None,
        was_alive: true,
        reaped: 2,
        survivors: 0,
        containment: Containment::PidNamespace,
    };
    let lookup = Lookup {
        id: 1,
        connection: 2,
        operation: "list".into(),
        target: "GET /messages".into(),
        subject: String::new(),
        found: vec!["msg-1".into()],
        at_ms: 90,
    };
    let enqueue = vec!["python3".into(), "enqueue.py".into()];
    vec![
        (0, started(plan("kill at provider:committed#1", &["provider:committed#1"], "ok"))),
        (0, EventKind::StateReady { from: "fresh".into() }),
        (0, EventKind::CommandRan { role: CommandRole::Enqueue, argv: enqueue, code: Some(0) }),
        (1, spawned(4242)),
        (1, EventKind::Ledger { at: None, view: rows(&[("job-1", RowState::Created)]) }),
        (1, provider(ProviderEvent::Connected { connection: 1 })),
        (1, received(1, HOSTILE)),
        (1, hit("ledger:dispatching#1", false)),
        (1, committed(1, HOSTILE)),
        (1, hit("provider:committed#1", true)),
        (1, EventKind::FaultAnnounced { at: kill.clone(), fault: Fault::named("kill") }),
        (1, EventKind::Killed { worker: 1, proof }),
        (1, provider(ProviderEvent::Unanswered { attempt: 1, how: Unanswered::Abandoned })),
        (2, spawned(4250)),
        (2, provider(ProviderEvent::LookedUp(lookup))),
        (2, received(2, HOSTILE)),
        (2, committed(2, HOSTILE)),
        (2, provider(ProviderEvent::Replied { attempt: 2, status: 201, retry_after_ms: None })),
        (2, EventKind::Ledger { at: None, view: rows(&[("job-1", RowState::Confirmed)]) }),
        (2, EventKind::Exited { worker: 1, code: Some(0), signal: None }),
        (2, EventKind::FaultsOver),
        (2, EventKind::Settled { by: SettledBy::Exit, window_complete: true }),
        (
            2,
            EventKind::Final {
                view: rows(&[("job-1", RowState::Confirmed), ("job-2", RowState::Confirmed)]),
                words: Vec::new(),
                state_changed: true,
            },
        ),
        (2, EventKind::TrialEnded),
    ]
}

fn vacuous_events() -> Vec<(u32, EventKind)> {
    vec![
        (0, started(plan("kill at mark:before-cleanup#1", &["mark:before-cleanup#1"], "ok"))),
        (1, spawned(4300)),
        (1, EventKind::Exited { worker: 1, code: Some(0), signal: None }),
        (1, EventKind::NotSettled { why: "the deadline of 30s came first".into() }),
        (1, EventKind::TrialEnded),
    ]
}
