//! What a scenario needs beside a worker and a provider. Where that is not configured its schedule can't be
//! staged: the check is not shown, and never green.

use killpoint_model::{Diagnostic, Settings};

use crate::bind::warning;
use crate::code::Code;
use crate::scenario::Scenario;

/// Something that a scenario may need.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// Unique kebab-case name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// What to configure.
    pub help: &'static str,
    is_met: fn(&Settings) -> bool,
}

/// Every need. Whether a worker has children, whether its clock can be moved and whether a second one can run beside it shows
/// only in a trial; the engine says so there.
pub static NEEDS: &[Need] = &[
    Need {
        name: "ledger",
        what: "the worker's own rows",
        help: "add a `[ledger]` section with a `query`, a `preset` or a `command` that gives its rows",
        is_met: |settings| {
            settings.ledger.as_ref().is_some_and(|ledger| ledger.query.is_some() || ledger.command.is_some())
        },
    },
    Need {
        name: "second-worker",
        what: "a second worker on the same ledger",
        help: "let the worker's command take its identity from `{worker}`, and its state from `{state}`",
        is_met: |_| true,
    },
    Need {
        name: "clock",
        what: "a worker whose clock can be moved",
        help: "where the harness may not trace processes, let the worker add KILLPOINT_CLOCK_OFFSET_MS to its clock, and write `clock = \"environment\"` under `[worker]`",
        is_met: |_| true,
    },
    Need {
        name: "children",
        what: "a worker that works in child processes",
        help: "nothing is shown for a worker that is one process",
        is_met: |_| true,
    },
    Need {
        name: "metrics",
        what: "the worker's own metrics",
        help: "add a `[metrics]` section with its `url`, `file` or `query`",
        is_met: |settings| settings.metrics.is_some(),
    },
    Need {
        name: "inbound",
        what: "a worker that polls an inbound feed",
        help: "add an `[inbound]` section with `items = 3`, and let the worker poll `{provider.rest}/v1/feed`",
        is_met: |settings| settings.inbound.is_some(),
    },
    Need {
        name: "cleanup",
        what: "the worker's own cleanup command",
        help: "add `[cleanup]` with its `command`",
        is_met: |settings| settings.cleanup.is_some(),
    },
    Need {
        name: "producer",
        what: "a producer whose transaction can be held open",
        help: "add `[producer]` with a `command` that makes the mark `producer-open` inside its transaction",
        is_met: |settings| settings.producer.is_some(),
    },
    Need {
        name: "secrets",
        what: "credentials that can be planted",
        help: "name the variables that hold credentials: `env = [\"API_TOKEN\"]` under `[secrets]`",
        is_met: |settings| settings.secrets.url || !settings.secrets.env.is_empty(),
    },
];

/// Warnings about what a scenario needs and the settings don't have, each with what to configure.
pub fn missing_needs(scenario: &Scenario, settings: &Settings) -> Vec<Diagnostic> {
    let needed = |need: &&Need| scenario.needs.iter().any(|name| name == need.name);
    let missing = NEEDS.iter().filter(needed).filter(|need| !(need.is_met)(settings));
    missing
        .map(|need| {
            let message = format!("`{}` needs what is not configured: {}", scenario.name, need.what);
            warning(Code::NotConfigured, message, need.help.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::Plan;
    use killpoint_model::settings::{CommandSettings, InboundSettings, MetricsSettings};

    fn needing(needs: &[&str]) -> Scenario {
        Scenario {
            name: "a".into(),
            summary: String::new(),
            explanation: String::new(),
            source: String::new(),
            kind: None,
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            plan: Plan::default(),
        }
    }

    #[test]
    fn what_is_not_configured_is_said_with_what_to_do() {
        let all: Vec<&str> = NEEDS.iter().map(|need| need.name).collect();
        let missing = missing_needs(&needing(&all), &Settings::default());
        assert_eq!(
            missing.len(),
            NEEDS.len() - 3,
            "a clock, a second worker and children show only in a trial"
        );
        let first = &missing[0];
        assert_eq!(first.code, "not-configured");
        assert_eq!(first.message, "`a` needs what is not configured: the worker's own rows");
        assert!(first.help.as_deref().is_some_and(|help| help.contains("[ledger]")));
        assert_eq!(missing_needs(&needing(&["clock"]), &Settings::default()), []);
    }

    #[test]
    fn what_is_configured_is_not_missing() {
        let mut settings = Settings {
            cleanup: Some(CommandSettings::default()),
            producer: Some(CommandSettings::default()),
            metrics: Some(MetricsSettings::default()),
            inbound: Some(InboundSettings::default()),
            ..Settings::default()
        };
        settings.secrets.url = true;
        let needs = ["cleanup", "producer", "metrics", "inbound", "secrets"];
        assert_eq!(missing_needs(&needing(&needs), &settings), []);
    }
}
