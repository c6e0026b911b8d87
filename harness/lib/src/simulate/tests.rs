//! A few thousand schedules for every worker: the truth and the checks agree, the right worker is never wrong,
//! and every wrong one is caught by the invariant that is named for it.

use std::collections::BTreeSet;

use killpoint_model::finding::InvariantStatus;
use killpoint_model::plan::{FaultAt, Match, Rule};
use killpoint_model::{Fault, Verdict};

use super::*;

#[test]
fn truth_and_checks_agree_under_many_schedules() {
    let mut found = Vec::new();
    for worker in MODEL_WORKERS {
        for kind in SceneKind::ALL {
            let mut scene = Scene::new(kind, worker).unwrap();
            for case in 0..300 {
                let plan = plan_for(&scene, 7, case);
                let tried = scene.try_plan(&plan, case).unwrap();
                if !tried.disagreements.is_empty() {
                    found.push(format!("{} {kind:?} {case}: {:?}", worker.name, tried.disagreements));
                }
            }
        }
    }
    let some: Vec<&String> = found.iter().take(40).collect();
    assert!(found.is_empty(), "{} disagreements: {some:#?}", found.len());
}
