//! Families of what can be done: each explored plan is made of a random few of them, so that a frequent one does
//! not hide what another would show.

use killpoint_model::{HitName, Settings, Source};
use serde::{Deserialize, Serialize};

use crate::template;

/// One family of faults, or of other parts of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// SIGKILL to the tree.
    Kill,
    /// SIGTERM and a grace time.
    Terminate,
    /// SIGSTOP for a while.
    Stop,
    /// Another worker while the first is held.
    SecondWorker,
    /// Workers that race past a mark together.
    Barrier,
    /// What the provider does with a write.
    ProviderPlan,
    /// Lookups that lag or fail.
    Lookup,
    /// The provider's clock.
    ProviderClock,
    /// A worker's clock.
    WorkerClock,
    /// The worker's own cleanup command.
    Cleanup,
    /// A producer's open transaction.
    Producer,
    /// A store that is busy, read-only, full or locked.
    Store,
    /// A store that forgets, or is there twice.
    StoreLoss,
    /// Other actions than the configuration's.
    Actions,
    /// Several workers from the beginning.
    Workers,
}

/// A family with its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyEntry {
    /// Which one.
    pub family: Family,
    /// Unique kebab-case name.
    pub name: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
}

const fn entry(family: Family, name: &'static str, summary: &'static str) -> FamilyEntry {
    FamilyEntry { family, name, summary }
}

/// Every family, in declaration order.
pub static FAMILIES: &[FamilyEntry] = &[
    entry(Family::Kill, "kill", "SIGKILL at a boundary, and again in recovery"),
    entry(Family::Terminate, "terminate", "SIGTERM at a boundary, with much, little or no time to finish"),
    entry(Family::Stop, "stop", "the worker's tree is stopped at a boundary and goes on later"),
    entry(Family::SecondWorker, "second-worker", "another worker runs while the first is held at a boundary"),
    entry(Family::Barrier, "barrier", "several workers pass a mark at the same moment"),
    entry(
        Family::ProviderPlan,
        "provider-plan",
        "requests that are dropped, reset, cut, refused or left unanswered",
    ),
    entry(Family::Lookup, "lookup", "lookups that don't show an effect yet, or fail"),
    entry(Family::ProviderClock, "provider-clock", "the provider's clock is stepped past its dedupe window"),
    entry(Family::WorkerClock, "worker-clock", "the next life's clock is off"),
    entry(Family::Cleanup, "cleanup", "the worker's own cleanup command runs at a boundary"),
    entry(
        Family::Producer,
        "producer",
        "a producer's transaction is held open, then committed or rolled back",
    ),
    entry(Family::Store, "store", "the ledger is busy, read-only, full or locked for a while"),
    entry(
        Family::StoreLoss,
        "store-loss",
        "the ledger loses its last commits, is restored, or is there twice",
    ),
    entry(Family::Actions, "actions", "more actions, several destinations, equal payloads"),
    entry(Family::Workers, "workers", "several workers from the beginning"),
];

impl Family {
    /// The name that users see.
    pub fn name(self) -> &'static str {
        FAMILIES.iter().find(|entry| entry.family == self).map_or("", |entry| entry.name)
    }

    /// Whether it injects something by itself; the others only give a plan its frame.
    pub fn injects(self) -> bool {
        !matches!(self, Self::Actions | Self::Workers)
    }

    /// Whether the settings, and the moments that a live worker reached, have what it needs.
    pub(super) fn is_available(self, settings: &Settings, hits: &[HitName]) -> bool {
        match self {
            Self::ProviderPlan | Self::Lookup => true,
            Self::Kill | Self::Terminate | Self::Stop | Self::ProviderClock | Self::WorkerClock => {
                !hits.is_empty()
            }
            Self::SecondWorker => !hits.is_empty() && tells_workers_apart(settings),
            Self::Workers => tells_workers_apart(settings),
            Self::Barrier => {
                tells_workers_apart(settings) && hits.iter().any(|hit| hit.source == Some(Source::Mark))
            }
            Self::Cleanup => !hits.is_empty() && settings.cleanup.is_some(),
            Self::Producer => settings.producer.is_some(),
            Self::Store | Self::StoreLoss => !hits.is_empty() && has_database(settings),
            Self::Actions => takes_actions(settings),
        }
    }
}

/// Whether workers beside each other have names of their own: else one would take the other's for itself.
fn tells_workers_apart(settings: &Settings) -> bool {
    let command = &settings.worker.command;
    command.argv.iter().chain(command.env.values()).any(|text| template::names_worker(text))
}

fn has_database(settings: &Settings) -> bool {
    settings.ledger.as_ref().is_some_and(|ledger| ledger.kind == "sqlite" && ledger.path.is_some())
}

/// Whether other actions than the configuration's reach the worker.
fn takes_actions(settings: &Settings) -> bool {
    let commands = settings.state.enqueue.iter().chain([&settings.worker.command]);
    let mut texts = commands.flat_map(|command| command.argv.iter().chain(command.env.values()));
    texts.any(|text| template::names_actions(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::settings::{CommandSettings, LedgerSettings};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn names_are_unique_kebab_case_and_each_family_has_an_entry() {
        let names: BTreeSet<&str> = FAMILIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), FAMILIES.len());
        for entry in FAMILIES {
            assert!(entry.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", entry.name);
            assert!(!entry.summary.is_empty() && !entry.summary.ends_with('.'), "{}", entry.name);
            assert_eq!(serde_json::to_value(entry.family).unwrap(), entry.name);
            assert_eq!(entry.family.name(), entry.name);
        }
        assert!(FAMILIES.windows(2).all(|pair| pair[0].family < pair[1].family), "in declaration order");
        assert_eq!(FAMILIES.last().map(|entry| entry.family), Some(Family::Workers), "all of them");
    }

    fn available(settings: &Settings) -> BTreeSet<Family> {
        let hits = ["provider:received#1".parse().unwrap(), "mark:before-claim#1".parse().unwrap()];
        FAMILIES.iter().map(|entry| entry.family).filter(|it| it.is_available(settings, &hits)).collect()
    }

    fn command(words: &[&str]) -> CommandSettings {
        CommandSettings {
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
            ..CommandSettings::default()
        }
    }

    #[test]
    fn a_family_is_there_where_the_settings_have_what_it_needs() {
        let bare = available(&Settings::default());
        let always = [
            Family::Kill,
            Family::Terminate,
            Family::Stop,
            Family::ProviderPlan,
            Family::Lookup,
            Family::ProviderClock,
            Family::WorkerClock,
        ];
        assert_eq!(bare, always.into());
        let mut settings = Settings::default();
        settings.worker.command = command(&["worker", "--id", "host-{worker}"]);
        settings.state.enqueue = Some(command(&["enqueue", "{actions.file}"]));
        settings.cleanup = Some(command(&["cleanup"]));
        settings.producer = Some(command(&["produce"]));
        settings.ledger = Some(LedgerSettings {
            kind: "sqlite".into(),
            path: Some("{state}/a.db".into()),
            query: None,
            command: None,
            states: BTreeMap::new(),
            executions: BTreeMap::new(),
            absent: None,
            boundaries: Vec::new(),
            sample_ms: 20,
        });
        assert_eq!(available(&settings).len(), FAMILIES.len());
        settings.ledger.as_mut().unwrap().kind = "command".into();
        assert!(!available(&settings).contains(&Family::Store), "store faults need a database file");
        assert!(!Family::Kill.is_available(&settings, &[]), "there is no moment to kill at");
    }
}
