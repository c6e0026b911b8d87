//! Profiles: which trials one makes of the settings, and the answers after them.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_checks::profiles::{Dossier, answers};
use killpoint_model::checklist::{ProfileName, RunProfile, Skipped};
use killpoint_model::event::EventKind;
use killpoint_model::{History, Plan, RunRecord, Settings, TrialRecord, Verdict};
use killpoint_scenarios::missing_needs;

use crate::catalog::library;
use crate::error::RunError;
use crate::job::Strategy;

/// The trials of a profile: the sweep, and every scenario of the library whose needs the settings meet. What is
/// left out is in the profile.
///
/// # Errors
/// A scenario of the library can't be read.
pub fn profile(name: ProfileName, settings: &Settings) -> Result<(Strategy, RunProfile), RunError> {
    let mut plans: Vec<Plan> = Vec::new();
    let mut skipped = Vec::new();
    for scenario in library()? {
        match missing_needs(&scenario, settings).into_iter().next() {
            // The library is no file of the user.
            None => plans.push(Plan { source: None, ..scenario.plan }),
            Some(missing) => skipped.push(Skipped {
                faults: fault_names(&scenario.plan),
                scenario: scenario.name,
                why: missing.message,
                to_do: missing.help.unwrap_or_default(),
            }),
        }
    }
    Ok((Strategy::SweepAnd(plans), RunProfile::new(name, skipped)))
}

fn fault_names(plan: &Plan) -> Vec<String> {
    plan.faults.iter().map(|fault| fault.fault.name.clone()).collect()
}

/// Sets aside the trials of scenarios that could not be staged on this worker and machine, as those whose needs
/// are not configured: no mark of that name, no child process, nothing that shows dirty pages. Nobody asked for
/// them by name, so they are listed with what was lacking, and neither green nor red. A scenario that was staged
/// in one repetition counts in all, so nothing is set aside in a part of a run: its other repetitions may be elsewhere.
pub(crate) fn set_aside(record: &mut RunRecord, histories: &BTreeMap<String, History>) {
    if record.shard.is_some() {
        return;
    }
    let Some(profile) = &mut record.profile else { return };
    let scenario = |trial: &TrialRecord| trial.plan.scenario.clone();
    let staged: BTreeSet<String> =
        record.trials.iter().filter(|trial| !is_unstaged(trial)).filter_map(scenario).collect();
    let (kept, aside) = std::mem::take(&mut record.trials)
        .into_iter()
        .partition(|trial| !is_unstaged(trial) || scenario(trial).is_some_and(|name| staged.contains(&name)));
    record.trials = kept;
    let aside: Vec<TrialRecord> = aside;
    for trial in aside {
        let Some(scenario) = scenario(&trial) else { continue };
        if profile.skipped.iter().any(|known| known.scenario == scenario) {
            continue;
        }
        let why = why_unstaged(&trial, histories.get(&trial.folder));
        profile.skipped.push(Skipped {
            faults: fault_names(&trial.plan),
            why: format!("`{scenario}` could not be staged here: {why}"),
            to_do: format!("`killpoint run --scenario {scenario}` shows it by itself"),
            scenario,
        });
    }
}

/// Whether a scenario's trial shows nothing because a boundary was not there, a fault found nothing to take hold
/// of, or the machine lacks something.
fn is_unstaged(trial: &TrialRecord) -> bool {
    let Some(judged) = trial.verdict.as_ref().filter(|judged| judged.verdict == Verdict::Vacuous) else {
        return false;
    };
    let evidence = &judged.evidence;
    let lacking = [evidence.boundary_reached, evidence.faults_landed, evidence.means_at_hand];
    trial.plan.scenario.is_some() && lacking.contains(&Some(false))
}

/// What the fault or the machine said, or else the evidence.
fn why_unstaged(trial: &TrialRecord, history: Option<&History>) -> String {
    let said = history.into_iter().flat_map(|history| &history.events).find_map(|event| match &event.event {
        EventKind::Limitation { why, .. } => Some(why.clone()),
        EventKind::FaultDone { landed: false, note, .. } => Some(note.clone()),
        _ => None,
    });
    let missing = trial.verdict.as_ref().and_then(|judged| judged.evidence.missing.first().cloned());
    said.or(missing).unwrap_or_else(|| "its evidence is not complete".into())
}

/// Answers the checklist of the run's profile, where it has one. A part of a run shows too little for that.
pub(crate) fn answer(record: &mut RunRecord, histories: &BTreeMap<String, History>) {
    let asked = record.profile.as_ref().is_some_and(|profile| profile.name == ProfileName::PreHosting);
    if !asked || record.shard.is_some() {
        return;
    }
    let answers = answers(&Dossier::new(record, histories));
    if let Some(profile) = &mut record.profile {
        profile.answers = answers;
    }
}

#[cfg(test)]
mod tests {
    use killpoint_scenarios::LIBRARY;

    use super::*;
    use killpoint_model::run::TrialRole;
    use killpoint_model::settings::InboundSettings;
    use killpoint_model::verdict::TrialEvidence;
    use killpoint_model::{ShardRecord, TrialVerdict};

    #[test]
    fn what_needs_more_than_is_configured_is_left_out_and_said() {
        let (strategy, bare) = profile(ProfileName::RestartSafe, &Settings::default()).unwrap();
        let Strategy::SweepAnd(plans) = strategy else { panic!("{strategy:?}") };
        assert_eq!(plans.len() + bare.skipped.len(), LIBRARY.len());
        let skipped = bare.skipped.iter().find(|one| one.to_do.contains("[inbound]"));
        let skipped = skipped.unwrap();
        assert!(!plans.iter().any(|plan| plan.name == skipped.scenario));
        let settings = Settings { inbound: Some(InboundSettings::default()), ..Settings::default() };
        let (_, fed) = profile(ProfileName::RestartSafe, &settings).unwrap();
        assert!(fed.skipped.len() < bare.skipped.len());
    }

    fn trial(scenario: Option<&str>, verdict: Verdict, evidence: TrialEvidence) -> TrialRecord {
        TrialRecord {
            drawn: false,
            folder: "0003-a".into(),
            role: TrialRole::Faulted,
            plan: Plan { scenario: scenario.map(str::to_owned), ..Plan::default() },
            repetition: 1,
            verdict: Some(TrialVerdict {
                verdict,
                evidence,
                outcomes: Vec::new(),
                actions: Vec::new(),
                counters: killpoint_model::provider::Counters::default(),
            }),
            replay: String::new(),
            duration_ms: 1,
            shard: None,
            source: None,
        }
    }

    #[test]
    fn only_what_could_not_be_staged_is_set_aside() {
        let lacking = || TrialEvidence {
            boundary_reached: Some(false),
            missing: vec!["no such mark".into()],
            ..TrialEvidence::default()
        };
        let unsettled = TrialEvidence { settle_complete: Some(false), ..TrialEvidence::default() };
        let mut record = crate::check::tests::record();
        record.profile = Some(RunProfile::new(ProfileName::RestartSafe, Vec::new()));
        record.trials = vec![
            trial(Some("a"), Verdict::Vacuous, lacking()),
            trial(Some("b"), Verdict::Vacuous, lacking()),
            trial(Some("b"), Verdict::Holds, TrialEvidence::default()),
            trial(Some("c"), Verdict::Violated, lacking()),
            trial(Some("d"), Verdict::Vacuous, unsettled),
            trial(None, Verdict::Vacuous, lacking()),
        ];
        let mut plain = RunRecord { profile: None, ..record.clone() };
        let shard = ShardRecord { index: 1, count: 2, planned: Vec::new(), settings_id: String::new() };
        let mut part = RunRecord { shard: Some(shard), ..record.clone() };
        set_aside(&mut record, &BTreeMap::new());
        let left: Vec<_> = record.trials.iter().map(|trial| trial.plan.scenario.as_deref()).collect();
        assert_eq!(left, [Some("b"), Some("b"), Some("c"), Some("d"), None]);
        let skipped = record.profile.unwrap().skipped;
        assert_eq!(skipped.len(), 1);
        assert_eq!(skipped[0].why, "`a` could not be staged here: no such mark");
        set_aside(&mut plain, &BTreeMap::new());
        assert_eq!(plain.trials.len(), 6);
        set_aside(&mut part, &BTreeMap::new());
        assert_eq!(part.trials.len(), 6, "other repetitions may be in other shards");
    }
}
