//! Profiles: which trials one makes of the settings, and the answers after them.

use std::collections::BTreeMap;

use killpoint_checks::profiles::{Dossier, answers};
use killpoint_model::checklist::{ProfileName, RunProfile, Skipped};
use killpoint_model::{History, Plan, RunRecord, Settings};
use killpoint_scenarios::{LIBRARY, load_scenario, missing_needs};

use crate::catalog::catalog;
use crate::error::RunError;
use crate::job::Strategy;

/// The trials of a profile: the sweep, and every scenario of the library whose needs the settings meet. What is
/// left out is in the profile.
///
/// # Errors
/// A scenario of the library can't be read.
pub fn profile(name: ProfileName, settings: &Settings) -> Result<(Strategy, RunProfile), RunError> {
    let catalog = catalog();
    let mut plans: Vec<Plan> = Vec::new();
    let mut skipped = Vec::new();
    for entry in LIBRARY {
        let loaded = load_scenario(entry.text, entry.name, &catalog);
        let Some(scenario) = loaded.value else { return Err(RunError::Invalid(loaded.diagnostics)) };
        match missing_needs(&scenario, settings).into_iter().next() {
            None => plans.push(scenario.plan),
            Some(missing) => skipped.push(Skipped {
                scenario: entry.name.to_owned(),
                why: missing.message,
                to_do: missing.help.unwrap_or_default(),
            }),
        }
    }
    Ok((Strategy::SweepAnd(plans), RunProfile::new(name, skipped)))
}

/// Answers the checklist of the run's profile, where it has one.
pub(crate) fn answer(record: &mut RunRecord, histories: &BTreeMap<String, History>) {
    let asked = record.profile.as_ref().is_some_and(|profile| profile.name == ProfileName::PreHosting);
    if !asked {
        return;
    }
    let answers = answers(&Dossier::new(record, histories));
    if let Some(profile) = &mut record.profile {
        profile.answers = answers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::settings::InboundSettings;

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
}
