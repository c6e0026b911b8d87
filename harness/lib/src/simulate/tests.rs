//! Truth and checks agree under many schedules, the right worker is never wrong, and every wrong one is caught by
//! the invariant that is named for it.

use fake_provider::core::Core;
use killpoint_model::finding::InvariantStatus;
use killpoint_model::plan::{Commit, FaultAt, Match, ProviderPlan, Reply, Rule};
use killpoint_model::provider::ProviderEvent;
use killpoint_model::{Fault, Verdict, named_plan};
use serde_json::json;

use super::SceneKind::{Deduping, Mapped, Marked};
use super::*;

fn fault(at: &str, name: &str, with: serde_json::Value) -> FaultAt {
    let with = serde_json::from_value(with).unwrap();
    FaultAt { at: at.parse().unwrap(), fault: Fault { name: name.to_owned(), with } }
}

fn kill(at: &str) -> Plan {
    Plan { name: format!("kill at {at}"), faults: vec![fault(at, "kill", json!({}))], ..Plan::default() }
}

fn answer(plan: ProviderPlan, nth: Option<u32>) -> Plan {
    let matches = Match { operation: Some("create".into()), nth, ..Match::default() };
    let rule = Rule { id: "answer".into(), matches, plan, times: None };
    Plan { name: format!("{plan}"), rules: vec![rule], ..Plan::default() }
}

fn first(name: &str) -> Plan {
    answer(named_plan::find(name).unwrap().plan, Some(1))
}

fn with_fault(plan: Plan, at: &str, name: &str, with: serde_json::Value) -> Plan {
    Plan { faults: vec![fault(at, name, with)], ..plan }
}

/// Where each wrong worker shows.
fn schedules() -> Vec<(&'static str, SceneKind, Plan)> {
    let beside = |at: &str, with| with_fault(Plan::default(), at, "second-worker", with);
    let late =
        ProviderPlan { commit: Commit::After { ms: 300 }, reply: Reply::Fin, ..ProviderPlan::default() };
    let limited =
        ProviderPlan { commit: Commit::Never, reply: Reply::Status { code: 429 }, ..ProviderPlan::default() };
    let failing = named_plan::find("error-before-accept").unwrap().plan;
    vec![
        ("blind-resend", Mapped, kill("provider:committed#1")),
        ("trust-first-lookup", Mapped, answer(late, Some(1))),
        ("key-per-attempt", Mapped, first("drop-before-accept")),
        ("mark-before-send", Mapped, kill("provider:received#1")),
        ("send-before-intent", Mapped, kill("provider:received#1")),
        ("single-done-flag", Marked, kill("mark:result-committed#1")),
        ("swallow-timeout", Mapped, first("timeout-before-accept")),
        ("unknown-as-failed", Mapped, first("drop-before-accept")),
        ("forever-pending", Mapped, first("drop-before-accept")),
        ("cleanup-erases-audit", Mapped, first("drop-after-accept")),
        ("recompute-recipients", Mapped, kill("provider:committed#1")),
        ("never-starts-sending", Marked, kill("mark:result-committed#1")),
        ("re-executes", Marked, kill("provider:committed#1")),
        ("claim-without-cas", Marked, beside("mark:before-claim#1", json!({ "quiet": "1s" }))),
        (
            "zombie-without-fencing",
            Marked,
            beside("mark:dispatch-started#1", json!({ "quiet": "3s", "stop": true })),
        ),
        ("orphans-stay-locked", Marked, kill("mark:item-claimed#1")),
        ("retry-refused", Mapped, first("rejected")),
        ("attempts-unbounded", Mapped, answer(failing, None)),
        ("ignore-retry-after", Mapped, answer(limited, Some(1))),
        ("reopen-failed", Marked, with_fault(first("rejected"), "mark:before-cleanup#1", "kill", json!({}))),
        (
            "trust-key-for-ever",
            Deduping,
            with_fault(
                first("drop-after-accept"),
                "provider:dropped#1",
                "provider-clock",
                json!({ "by": "25h" }),
            ),
        ),
    ]
}

#[test]
fn every_wrong_worker_is_caught_by_its_invariant_and_the_right_one_never() {
    let schedules = schedules();
    assert_eq!(schedules.len() + 1, MODEL_WORKERS.len(), "a worker has no schedule");
    for (name, kind, plan) in schedules {
        let worker = ModelWorker::named(name).unwrap();
        let tried = Scene::new(kind, worker).unwrap().try_plan(&plan, 1).unwrap();
        assert_eq!(tried.disagreements, Vec::<String>::new(), "{name}");
        let red = tried.judged.outcomes.iter().filter(|it| it.status == InvariantStatus::Violated);
        let red: Vec<&str> = red.map(|outcome| outcome.invariant.as_str()).collect();
        assert!(red.contains(&worker.invariant), "{name}: {red:?}");
        let tried = Scene::new(kind, &MODEL_WORKERS[0]).unwrap().try_plan(&plan, 1).unwrap();
        assert_eq!(tried.disagreements, Vec::<String>::new(), "the right worker where {name} is caught");
        assert_eq!(tried.judged.verdict, Verdict::Holds, "the right worker where {name} is caught");
    }
}

#[test]
fn truth_and_checks_agree_under_many_schedules() {
    let mut found = Vec::new();
    for worker in MODEL_WORKERS {
        let cases = if worker.is_right() { 100 } else { 8 };
        for kind in SceneKind::ALL {
            let mut scene = Scene::new(kind, worker).unwrap();
            for case in 0..cases {
                let plan = plan_for(&scene, 7, case);
                match scene.try_plan(&plan, case) {
                    Ok(tried) if tried.disagreements.is_empty() => {}
                    Ok(tried) => {
                        found.push(format!("{} {kind:?} {case}: {:?}", worker.name, tried.disagreements));
                    }
                    Err(error) => {
                        assert_eq!((worker.name, kind), ("never-starts-sending", SceneKind::Bare), "{error}");
                    }
                }
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_provider_is_the_fold_of_what_is_on_record() {
    let mut scene = Scene::new(Deduping, &MODEL_WORKERS[0]).unwrap();
    for case in 0..60 {
        let plan = plan_for(&scene, 3, case);
        let tried = scene.try_plan(&plan, case).unwrap();
        let log: Vec<ProviderEvent> =
            tried.simulated.history.provider().map(|(_, event)| event.clone()).collect();
        let replayed = Core::replay(scene.settings.provider.clone(), plan.rules.clone(), &log).unwrap();
        assert_eq!(replayed.counters(), tried.simulated.truth.counters, "case {case}");
        assert_eq!(replayed.log(), log, "case {case}");
    }
}

#[test]
fn a_history_is_that_of_a_real_trial_in_form_and_the_same_each_time() {
    let scene = Scene::new(Marked, &MODEL_WORKERS[0]).unwrap();
    let plan = plan_for(&scene, 5, 4);
    let run = |seed| simulate(&plan, &scene.settings, &scene.worker, seed).unwrap().history;
    assert_eq!(run(9), run(9));
    assert_eq!(killpoint_model::History::parse(&run(9).to_text()), Ok(run(9)));
    assert!(run(9).events.windows(2).all(|pair| pair[0].at_us <= pair[1].at_us));
}

#[test]
fn what_can_not_be_modelled_is_said() {
    let settings = Mapped.settings();
    let why = |plan: &Plan| simulate(plan, &settings, &MODEL_WORKERS[0], 0).unwrap_err().what;
    let store = with_fault(Plan::default(), "provider:committed#1", "store-busy", json!({}));
    assert_eq!(why(&store), "the fault `store-busy`");
    let part = with_fault(Plan::default(), "provider:committed#1", "kill", json!({ "part": "root" }));
    assert_eq!(why(&part), "a kill of a part of a tree");
    assert!(why(&kill("provider-accepted#1")).contains("bound to no hit"));
}
