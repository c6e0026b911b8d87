//! Everything that the lines of a checklist are answered from.

use std::collections::BTreeMap;

use killpoint_model::checklist::{HostFacts, Skipped};
use killpoint_model::{History, RunRecord, Settings};

use super::exhibit::Exhibit;

/// A run, as the checklists see it.
#[derive(Debug)]
pub struct Dossier<'a> {
    /// What was configured.
    pub settings: &'a Settings,
    /// The trials that were judged.
    pub exhibits: Vec<Exhibit<'a>>,
    /// Scenarios that were not staged, with the reason.
    pub skipped: &'a [Skipped],
    /// What was seen of the machine and of the worker's files.
    pub host: Option<&'a HostFacts>,
}

impl<'a> Dossier<'a> {
    /// The dossier of a run. Trials without a verdict or a history are left out: they show nothing.
    pub fn new(record: &'a RunRecord, histories: &'a BTreeMap<String, History>) -> Self {
        let exhibits = record.trials.iter().filter_map(|trial| {
            let (judged, history) = (trial.verdict.as_ref()?, histories.get(&trial.folder)?);
            Some(Exhibit { folder: &trial.folder, plan: &trial.plan, judged, history })
        });
        Self {
            settings: &record.settings,
            exhibits: exhibits.collect(),
            skipped: record.profile.as_ref().map_or(&[], |profile| &profile.skipped),
            host: record.host.as_ref(),
        }
    }

    /// Trials with the events that a look at each gave, where it gave some.
    pub(super) fn with(&self, look: impl Fn(&Exhibit<'a>) -> Vec<u64>) -> Vec<(&Exhibit<'a>, Vec<u64>)> {
        let looked = self.exhibits.iter().map(|exhibit| (exhibit, look(exhibit)));
        looked.filter(|(_, events)| !events.is_empty()).collect()
    }
}
