//! What can't be shown: scenarios, faults, invariants, and lines of the checklists.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_checks::profiles::{Dossier, answers};
use killpoint_model::Settings;
use killpoint_model::checklist::{ProfileName, Skipped};
use killpoint_model::event::ClockMethod;
use serde::Serialize;

use super::State;
use super::machine::Tried;
use super::reach::maps;
use crate::error::RunError;
use crate::job::Strategy;
use crate::profile::profile;

/// What kind of thing is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A fault that nothing stages.
    Fault,
    /// A scenario of the library.
    Scenario,
    /// An invariant that has nothing to look at.
    Invariant,
    /// A line of a checklist.
    Checklist,
}

impl Kind {
    /// The word of the JSON form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Scenario => "scenario",
            Self::Invariant => "invariant",
            Self::Checklist => "checklist",
        }
    }
}

/// One thing that can't be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// What it is.
    pub kind: Kind,
    /// Its name, or a checklist line's id.
    pub name: String,
    /// Why, a fragment.
    pub why: String,
    /// What to configure, or to do.
    pub to_do: String,
}

/// What an invariant needs of the configuration.
struct Need {
    invariants: &'static [&'static str],
    why: &'static str,
    to_do: &'static str,
    is_met: fn(&Settings) -> bool,
}

static NEEDS: &[Need] = &[
    Need {
        invariants: &[
            "intent-before-dispatch",
            "acknowledged-is-durable",
            "decided-is-final",
            "budget-not-eaten",
            "confirmed-after-acceptance",
            "unknown-is-explicit",
            "due-is-served",
            "no-false-success",
            "no-false-failure",
            "audit-survives",
        ],
        why: "no row is mapped",
        to_do: "write `[ledger]` with a `query`, a `preset` or a `command` that gives its rows",
        is_met: has_rows,
    },
    Need {
        invariants: &["attempt-count-true"],
        why: "no row has the worker's count of attempts",
        to_do: "map `attempts` in the ledger's query",
        is_met: |settings| has_column(settings, "attempts"),
    },
    Need {
        invariants: &["execution-not-repeated"],
        why: "no row has the state of the work behind it",
        to_do: "map `execution`, and `executions` where the worker counts, in the ledger's query",
        is_met: |settings| has_column(settings, "execution"),
    },
    Need {
        invariants: &["counters-agree"],
        why: "the worker's metrics are not read",
        to_do: "write `[metrics]` with its `url`, `file` or `query`, and the names",
        is_met: |settings| settings.metrics.is_some(),
    },
    Need {
        invariants: &["decided-in-time"],
        why: "no bound is configured",
        to_do: "write `decided-within = \"30s\"` under `[checks]`",
        is_met: |settings| settings.checks.decided_within_ms.is_some(),
    },
    Need {
        invariants: &["no-secret-leak"],
        why: "no credential is planted",
        to_do: "name the variables that hold credentials: `env = [\"API_TOKEN\"]` under `[secrets]`",
        is_met: |settings| settings.secrets.url || !settings.secrets.env.is_empty(),
    },
    Need {
        invariants: &["nothing-from-rollback"],
        why: "no producer is configured whose transaction could be rolled back",
        to_do: "write `[producer]` with a `command` that makes the mark `producer-open` inside its transaction",
        is_met: |settings| settings.producer.is_some(),
    },
    Need {
        invariants: &["processed-equals-fed"],
        why: "no inbound feed is served",
        to_do: "write `[inbound]` with `items = 3`, and let the worker poll `{provider.rest}/v1/feed`",
        is_met: |settings| settings.inbound.is_some(),
    },
];

fn has_rows(settings: &Settings) -> bool {
    settings.ledger.as_ref().is_some_and(|ledger| ledger.query.is_some() || ledger.command.is_some())
}

/// Whether rows have a column; those of a command may have it.
fn has_column(settings: &Settings, column: &str) -> bool {
    let Some(ledger) = &settings.ledger else { return false };
    ledger.command.is_some() || ledger.query.as_ref().is_some_and(|query| maps(query, column))
}

/// Everything that this machine and this configuration can't show; without a configuration what the machine
/// can't.
pub(super) fn left_out(settings: Option<&Settings>, machine: &[Tried]) -> Result<Vec<LeftOut>, RunError> {
    let none = Settings::default();
    let lacking = lacking(settings.unwrap_or(&none), machine);
    let (strategy, by_config) = profile(ProfileName::RestartSafe, settings.unwrap_or(&none))?;
    let plans = match strategy {
        Strategy::SweepAnd(plans) => plans,
        _ => Vec::new(),
    };
    let mut skipped = if settings.is_some() { by_config.skipped } else { Vec::new() };
    let mut staged: BTreeSet<&str> = BTreeSet::new();
    for plan in &plans {
        let faults: Vec<&str> = plan.faults.iter().map(|fault| fault.fault.name.as_str()).collect();
        let Some((why, to_do)) = faults.iter().find_map(|fault| lacking.get(fault)) else {
            staged.extend(faults);
            continue;
        };
        skipped.push(Skipped {
            scenario: plan.scenario.clone().unwrap_or_else(|| plan.name.clone()),
            faults: faults.into_iter().map(str::to_owned).collect(),
            why: why.clone(),
            to_do: to_do.clone(),
        });
    }
    let mut all = faults(&skipped, &staged, &lacking);
    all.extend(skipped.iter().map(|one| LeftOut {
        kind: Kind::Scenario,
        name: one.scenario.clone(),
        why: one.why.clone(),
        to_do: one.to_do.clone(),
    }));
    if let Some(settings) = settings {
        all.extend(invariants(settings));
    }
    all.extend(lines(settings.unwrap_or(&none), &skipped));
    all.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(all)
}

/// Faults that the machine refuses, with why and what to do.
fn lacking<'m>(settings: &Settings, machine: &'m [Tried]) -> BTreeMap<&'m str, (String, String)> {
    let missing = machine.iter().filter(|tried| tried.state == State::Missing);
    let faults = missing.flat_map(|tried| tried.faults.iter().map(move |fault| (*fault, tried)));
    let by_itself = settings.worker.clock == ClockMethod::Environment;
    faults
        .filter(|(fault, _)| !(by_itself && *fault == "worker-clock"))
        .map(|(fault, tried)| {
            let why = format!("needs what this machine can't do: {}", tried.said);
            (fault, (why, tried.to_do.clone().unwrap_or_default()))
        })
        .collect()
}

/// Faults that only left-out scenarios stage, and those that the machine refuses.
fn faults(
    skipped: &[Skipped],
    staged: &BTreeSet<&str>,
    lacking: &BTreeMap<&str, (String, String)>,
) -> Vec<LeftOut> {
    let mut reasons: BTreeMap<String, (String, String)> = BTreeMap::new();
    for one in skipped {
        for fault in one.faults.iter().filter(|fault| !staged.contains(fault.as_str())) {
            let prefix = format!("`{}` ", one.scenario);
            let why = one.why.strip_prefix(&prefix).unwrap_or(&one.why);
            reasons
                .entry(fault.clone())
                .or_insert_with(|| (format!("every scenario that does it {why}"), one.to_do.clone()));
        }
    }
    reasons.extend(lacking.iter().map(|(fault, reason)| ((*fault).to_owned(), reason.clone())));
    // A kill is tried at each boundary in any case.
    reasons.remove("kill");
    let made = reasons.into_iter();
    made.map(|(name, (why, to_do))| LeftOut { kind: Kind::Fault, name, why, to_do }).collect()
}

fn invariants(settings: &Settings) -> Vec<LeftOut> {
    let unmet = NEEDS.iter().filter(|need| !(need.is_met)(settings));
    let made = unmet.flat_map(|need| {
        need.invariants.iter().map(|name| LeftOut {
            kind: Kind::Invariant,
            name: (*name).to_owned(),
            why: need.why.to_owned(),
            to_do: need.to_do.to_owned(),
        })
    });
    made.collect()
}

/// Lines of the checklists whose own answer names something that is left out.
fn lines(settings: &Settings, skipped: &[Skipped]) -> Vec<LeftOut> {
    let dossier = Dossier { settings, exhibits: Vec::new(), skipped, host: None };
    let concerned = answers(&dossier).into_iter().filter_map(|answered| {
        let because = skipped.iter().find(|one| answered.because.contains(&format!("({})", one.why)))?;
        Some(LeftOut {
            kind: Kind::Checklist,
            why: format!("\"{}\" {}", answered.question, because.why),
            name: answered.id,
            to_do: because.to_do.clone(),
        })
    });
    concerned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(name: &'static str, faults: &'static [&'static str], state: State) -> Tried {
        let to_do = Some("do this".to_owned());
        Tried { name, summary: "a", state, vital: false, said: "no such thing".into(), to_do, faults }
    }

    fn names(all: &[LeftOut], kind: Kind) -> Vec<&str> {
        all.iter().filter(|one| one.kind == kind).map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn every_invariant_that_is_named_exists_and_is_named_once() {
        let known: Vec<&str> = crate::catalog().invariants.iter().map(|entry| entry.name).collect();
        let named: Vec<&str> = NEEDS.iter().flat_map(|need| need.invariants).copied().collect();
        assert!(named.iter().all(|name| known.contains(name)), "{named:?}");
        assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), named.len());
    }

    #[test]
    fn a_bare_configuration_leaves_out_what_it_has_nothing_for() {
        let all = left_out(Some(&Settings::default()), &[]).unwrap();
        assert!(names(&all, Kind::Invariant).contains(&"no-false-success"));
        assert!(names(&all, Kind::Fault).contains(&"hold-producer"), "{all:?}");
        assert!(!names(&all, Kind::Fault).contains(&"kill"));
        assert!(!names(&all, Kind::Scenario).is_empty() && !names(&all, Kind::Checklist).is_empty());
        assert!(all.iter().all(|one| !one.why.is_empty() && !one.to_do.is_empty()), "{all:?}");
    }

    #[test]
    fn what_the_machine_refuses_is_left_out_with_its_reason() {
        let machine = [
            tried("worker-clock", &["worker-clock"], State::Missing),
            tried("small-file-system", &["store-no-space"], State::Works),
        ];
        let all = left_out(None, &machine).unwrap();
        assert!(names(&all, Kind::Fault).contains(&"worker-clock"));
        assert!(!names(&all, Kind::Fault).contains(&"store-no-space"));
        assert!(!names(&all, Kind::Scenario).is_empty());
        assert!(
            all.iter().all(|one| one.kind == Kind::Checklist || one.why.contains("no such thing")),
            "{all:?}"
        );
        assert_eq!(names(&all, Kind::Invariant), Vec::<&str>::new());
        let mut settings = Settings::default();
        settings.worker.clock = ClockMethod::Environment;
        let all = left_out(Some(&settings), &machine).unwrap();
        assert!(!names(&all, Kind::Fault).contains(&"worker-clock"));
    }
}
