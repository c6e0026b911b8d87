//! The model of the built-in worker and the built-in worker itself, on the same plans: every action has the same
//! verdict, and the same invariants are violated.

use std::collections::{BTreeMap, BTreeSet};

use killpoint::checks::{Case, judge};
use killpoint::model::plan::{FaultAt, Match};
use killpoint::model::provider::{ProviderEvent, Unanswered};
use killpoint::model::run::TrialRole;
use killpoint::model::verdict::ActionVerdict;
use killpoint::model::{
    Fault, History, InvariantStatus, Plan, Rule, RunRecord, Settings, TrialRecord, TrialVerdict, named_plan,
};
use killpoint::simulate::{ModelWorker, simulate};

use crate::bench::Bench;

const KILLED_AT: [&str; 5] = ["connected", "received", "committed", "replying", "replied"];
const FIRST_REQUEST: [&str; 5] = [
    "drop-before-accept",
    "drop-after-accept",
    "timeout-before-accept",
    "timeout-after-accept",
    "error-after-accept",
];

/// Runs of which one must be quick enough.
const TRIES_MAX: u32 = 4;

/// What a judgement comes to: the verdict, the actions' verdicts, and what is violated.
#[derive(Debug, PartialEq, Eq)]
struct Judgement {
    verdict: killpoint::model::Verdict,
    actions: BTreeMap<(String, String), ActionVerdict>,
    violated: BTreeSet<String>,
}

impl Judgement {
    fn of(judged: &TrialVerdict) -> Self {
        let violated = judged.outcomes.iter().filter(|it| it.status == InvariantStatus::Violated);
        let action = |it: &killpoint::model::verdict::ActionOutcome| {
            ((it.action.clone(), it.recipient.clone()), it.verdict)
        };
        Self {
            verdict: judged.verdict,
            actions: judged.actions.iter().map(action).collect(),
            violated: violated.map(|outcome| outcome.invariant.clone()).collect(),
        }
    }
}

fn plans() -> Vec<Plan> {
    let kill = |point: &&str| Plan {
        name: format!("killed-at-{point}"),
        provider_plan: "ok".into(),
        faults: vec![FaultAt {
            at: format!("provider:{point}#1").parse().unwrap(),
            fault: Fault::named("kill"),
        }],
        ..Plan::default()
    };
    let lose = |name: &&str| {
        let matches = Match { operation: Some("create".into()), nth: Some(1), ..Match::default() };
        let plan = named_plan::find(name).unwrap().plan;
        Plan {
            name: format!("first-{name}"),
            provider_plan: (*name).into(),
            rules: vec![Rule { id: "first".into(), matches, plan, times: None }],
            ..Plan::default()
        }
    };
    KILLED_AT.iter().map(kill).chain(FIRST_REQUEST.iter().map(lose)).collect()
}

/// The model's judgement of a plan, by the settings of the real run.
fn modelled(plan: &Plan, settings: &Settings, worker: &ModelWorker) -> Judgement {
    let run = |plan: &Plan, seed| simulate(plan, settings, worker, seed).unwrap().history;
    let baselines: Vec<History> = [1, 2].map(|seed| run(&Plan::default(), seed)).into();
    let history = run(plan, 3);
    let role = TrialRole::Faulted;
    Judgement::of(&judge(&Case { settings, role, history: &history, baselines: &baselines }))
}

/// Whether a request timed out that no rule held up: on a busy machine the worker then has a doubt more than its
/// model, which is never slow.
fn was_too_slow(history: &History) -> bool {
    let held_up = |wanted: u32| {
        history.provider().any(|(_, event)| {
            matches!(event, ProviderEvent::RuleFired { attempt, lookup: false, .. } if *attempt == wanted)
        })
    };
    history.provider().any(|(_, event)| match event {
        ProviderEvent::Unanswered { attempt, how: Unanswered::ClientGone } => !held_up(*attempt),
        ProviderEvent::LookupUnanswered { how: Unanswered::ClientGone, .. } => true,
        _ => false,
    })
}

/// Runs the built-in worker on every plan; again where the machine was too slow for its time-outs.
fn real_run(bug: Option<&str>) -> RunRecord {
    for _ in 0..TRIES_MAX {
        let bench = Bench::new();
        let mut words: Vec<String> = ["demo", "--run-dir", "run", "--jobs", "2"].map(str::to_owned).into();
        words.extend(bug.iter().flat_map(|bug| ["--bug".to_owned(), (*bug).to_owned()]));
        for plan in plans() {
            let file = format!("{}.toml", plan.name);
            bench.file(&file, &killpoint::scenarios::to_toml(&plan));
            words.extend(["--scenario".to_owned(), file]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = bench.killpoint(&words);
        let record = bench.record();
        assert_eq!(record.trials.len(), plans().len() + 2, "{said:?}");
        let history = |trial: &TrialRecord| {
            let path = bench.path("run").join(&trial.folder).join("history.jsonl");
            History::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        if !record.trials.iter().any(|trial| was_too_slow(&history(trial))) {
            return record;
        }
    }
    panic!("requests timed out in each of {TRIES_MAX} runs: this machine is too busy for the comparison");
}

fn model_and_worker_agree(bug: Option<&str>) {
    let record = real_run(bug);
    let worker = ModelWorker::named(bug.unwrap_or("right")).unwrap();
    for trial in record.trials.iter().filter(|trial| trial.role == TrialRole::Faulted) {
        let real = Judgement::of(trial.verdict.as_ref().unwrap());
        assert_eq!(modelled(&trial.plan, &record.settings, worker), real, "{}", trial.plan.name);
    }
}

#[test]
fn the_right_worker_is_as_its_model() {
    model_and_worker_agree(None);
}

#[test]
fn a_worker_that_resends_blindly_is_as_its_model() {
    model_and_worker_agree(Some("blind-resend"));
}

#[test]
fn a_worker_that_confirms_before_it_sends_is_as_its_model() {
    model_and_worker_agree(Some("mark-before-send"));
}
