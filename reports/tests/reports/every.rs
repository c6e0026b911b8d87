//! Runs for formats with little room: one with every verdict, a hostile one, a crowded one.

use killpoint_model::known::{Baseline, BaselineRecord};
use killpoint_model::run::TrialRole;
use killpoint_model::shard::{LackingShard, MergedRecord, MissingTrial, PlannedTrial};
use killpoint_model::verdict::ActionVerdict;
use killpoint_model::{Finding, InvariantStatus, SourceLine, TrialRecord, Verdict};
use killpoint_reports::View;

use crate::golden::{Golden, golden, history, holds, plan, trial};

/// A view of a run.
pub(crate) fn view(golden: &Golden) -> View {
    View::new(&golden.record, &golden.histories)
}

/// Violated in one repetition of two, from a scenario file, vacuous, inconclusive, not judged, and two that hold.
pub(crate) fn every_verdict() -> Golden {
    let mut golden = golden();
    let mut again = trial("005-kill", TrialRole::Faulted, golden.record.trials[2].plan.clone(), holds());
    again.repetition = 2;
    let mut scenario = golden.record.trials[2].clone();
    scenario.folder = "006-late-accept".into();
    scenario.plan.name = "late-accept".into();
    scenario.plan.scenario = Some("late-accept".into());
    scenario.plan.provider_plan = "late-commit".into();
    scenario.source = Some(SourceLine { file: "killpoint/late-accept.toml".into(), line: 3 });
    let mut doubtful =
        trial("007-kill", TrialRole::Faulted, plan("doubt", &["mark:a#1"], "reset-after-accept"), holds());
    let judged = doubtful.verdict.as_mut().unwrap();
    judged.verdict = Verdict::Inconclusive;
    judged.outcomes[0].status = InvariantStatus::Inconclusive;
    judged.outcomes[0].findings = vec![Finding {
        invariant: "no-duplicate-effects".into(),
        message: "two effects look the same, and no ledger says whether both were owed".into(),
        subject: "job-1".into(),
        events: vec![4, 5],
    }];
    judged.actions[0].verdict = ActionVerdict::Undetermined;
    let mut unjudged = trial("008-kill", TrialRole::Faulted, plan("unjudged", &["mark:b#1"], "ok"), holds());
    unjudged.verdict = None;
    golden.record.trials.extend([again, scenario, doubtful, unjudged]);
    golden
}

/// A run in which a worker, or whoever writes files, has put this text wherever it can.
pub(crate) fn hostile(text: &str) -> Golden {
    let mut golden = every_verdict();
    for trial in &mut golden.record.trials {
        trial.plan.name = format!("{} {text}", trial.plan.name);
        trial.plan.scenario = Some(text.to_owned());
        text.clone_into(&mut trial.plan.provider_plan);
        text.clone_into(&mut trial.replay);
        if let Some(source) = &mut trial.source {
            text.clone_into(&mut source.file);
        }
        let Some(judgement) = &mut trial.verdict else { continue };
        judgement.evidence.missing.push(text.to_owned());
        for outcome in &mut judgement.outcomes {
            text.clone_into(&mut outcome.invariant);
            outcome.reason = Some(text.to_owned());
            for finding in outcome.findings.iter_mut().chain(&mut outcome.notes) {
                text.clone_into(&mut finding.message);
                text.clone_into(&mut finding.subject);
            }
        }
        for action in &mut judgement.actions {
            text.clone_into(&mut action.action);
            text.clone_into(&mut action.recipient);
            action.state = Some(text.to_owned());
        }
    }
    golden.record.warnings.push(text.to_owned());
    golden.record.command_line.push(text.to_owned());
    for answered in golden.record.profile.iter_mut().flat_map(|profile| &mut profile.answers) {
        text.clone_into(&mut answered.because);
        text.clone_into(&mut answered.question);
    }
    golden.record.merged = Some(MergedRecord {
        count: 2,
        lacking: vec![LackingShard { index: 1, why: text.to_owned() }],
        missing: vec![missing(1, text)],
    });
    golden
}

/// A trial of a shard that is not there.
pub(crate) fn missing(shard: u32, name: &str) -> MissingTrial {
    let trial = PlannedTrial { content_id: "0123456789abcdef".into(), name: name.into(), repetition: 1 };
    MissingTrial { shard, trial }
}

/// A run with more of everything than any format shows.
pub(crate) fn crowded() -> Golden {
    let mut golden = every_verdict();
    let (holds, violated) = (golden.record.trials[1].clone(), golden.record.trials[2].clone());
    for number in 0..1500 {
        let mut trial = if number % 10 == 0 { violated.clone() } else { holds.clone() };
        trial.plan.name = format!("{} {number}", trial.plan.name);
        trial.plan.provider_plan = format!("plan-{}", number % 30);
        trial.plan.faults.clone_from(&violated.plan.faults);
        trial.plan.faults[0].at.ordinal = number / 30 + 1;
        golden.record.trials.push(trial);
    }
    golden.histories.insert("002-drop".into(), history("002-drop", Vec::new()));
    golden.record.warnings.extend((0..300).map(|number| format!("warning {number}")));
    golden
}

/// A run whose violations are all listed as known failures.
pub(crate) fn known() -> Golden {
    let mut golden = every_verdict();
    golden.record.profile = None;
    golden.record.warnings.clear();
    let clear = |trial: &TrialRecord| {
        trial
            .verdict
            .as_ref()
            .is_some_and(|judged| matches!(judged.verdict, Verdict::Holds | Verdict::Violated))
    };
    golden.record.trials.retain(clear);
    for trial in &golden.record.trials {
        let of_nothing = || history(&trial.folder, Vec::new());
        golden.histories.entry(trial.folder.clone()).or_insert_with(of_nothing);
    }
    let entries = Baseline::compare(&[], &golden.record.trials).updated(&[], true).0;
    golden.record.baseline = Some(BaselineRecord { file: "known.toml".into(), entries, update: None });
    golden
}

/// A run of which everything holds.
pub(crate) fn green() -> Golden {
    let mut golden = golden();
    golden.record.trials.truncate(2);
    golden.record.profile = None;
    golden.record.verdict = Verdict::Holds;
    golden
}

/// Runs that are not green for a reason that no row shows.
pub(crate) fn red_without_a_red_row() -> Vec<(&'static str, Golden)> {
    let mut dead = green();
    let lacking = vec![LackingShard { index: 2, why: "run.json is not there".into() }];
    dead.record.merged = Some(MergedRecord { count: 2, lacking, missing: vec![missing(2, "kill at a#1")] });
    dead.record.verdict = Verdict::Inconclusive;
    let mut interrupted = green();
    interrupted.record.interrupted = true;
    let mut vacuous = green();
    vacuous.record.verdict = Verdict::Vacuous;
    let mut violated = green();
    violated.record.verdict = Verdict::Violated;
    let mut unanswered = green();
    unanswered.record.profile = golden().record.profile;
    unanswered.record.verdict = Verdict::Violated;
    vec![
        ("a dead shard", dead),
        ("interrupted", interrupted),
        ("nothing was tried", vacuous),
        ("only the record says violated", violated),
        ("the checklist says no", unanswered),
    ]
}
