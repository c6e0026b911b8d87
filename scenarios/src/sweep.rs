//! A baseline to the trials of a sweep: a kill at each hit that it reached, and each provider plan alone.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::diagnostic::nearest;
use killpoint_model::event::EventKind;
use killpoint_model::named_plan;
use killpoint_model::plan::Match;
use killpoint_model::{Diagnostic, Fault, FaultAt, History, HitName, Plan, Rule, Settings};

use crate::bind::{meaning, warning};
use crate::code::Code;

/// How many near names a warning shows.
const NEAREST_MAX: usize = 3;

/// The trials of a sweep, in the order in which they are run, and what is not among them.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPlan {
    /// One kill per hit, in the order of the baseline; then one trial per provider plan.
    pub trials: Vec<Plan>,
    /// What was asked for and not reached, and what is left out.
    pub warnings: Vec<Diagnostic>,
    /// Boundaries that were asked for and at which no worker could be killed: never green.
    pub unreached: Vec<HitName>,
}

/// Plans a sweep from a fault-free trial.
pub fn sweep(settings: &Settings, baseline: &History) -> SweepPlan {
    let reached = Reached::of(baseline);
    let mut warnings = Vec::new();
    let mut unreached = Vec::new();
    let chosen = if settings.sweep.boundaries.is_empty() {
        reached.limited(settings.sweep.hits_per_series_max, &mut warnings)
    } else {
        reached.asked_for(settings, &mut warnings, &mut unreached)
    };
    let mut trials: Vec<Plan> = chosen.into_iter().map(kill_plan).collect();
    let operation = baseline.attempts().next().map_or("create", |(_, attempt)| attempt.operation.as_str());
    for name in &settings.sweep.plans {
        let trial = plan_alone(name, operation);
        trials.extend(trial.filter(|trial| !trials.iter().any(|other| other.name == trial.name)));
    }
    SweepPlan { trials, warnings, unreached }
}

/// The trial that kills at one hit and does nothing else.
pub fn kill_plan(hit: HitName) -> Plan {
    Plan {
        name: format!("kill at {hit}"),
        provider_plan: "ok".to_owned(),
        faults: vec![FaultAt { at: hit, fault: Fault::named("kill") }],
        ..Plan::default()
    }
}

fn plan_alone(name: &str, operation: &str) -> Option<Plan> {
    let matches = Match { operation: Some(operation.to_owned()), nth: Some(1), ..Match::default() };
    let rule = Rule { id: "plan".to_owned(), matches, plan: named_plan::find(name)?.plan, times: Some(1) };
    Some(Plan {
        name: format!("{name} at attempt 1"),
        provider_plan: name.to_owned(),
        rules: vec![rule],
        ..Plan::default()
    })
}

/// The hits of a baseline.
pub(crate) struct Reached {
    /// Those at which a worker was alive, in order.
    pub(crate) live: Vec<HitName>,
    /// All of them.
    all: BTreeSet<HitName>,
}

impl Reached {
    pub(crate) fn of(baseline: &History) -> Self {
        let mut reached = Self { live: Vec::new(), all: BTreeSet::new() };
        for event in &baseline.events {
            let EventKind::Hit { hit, live, .. } = &event.event else { continue };
            reached.all.insert(hit.clone());
            if *live && !reached.live.contains(hit) {
                reached.live.push(hit.clone());
            }
        }
        reached
    }

    /// The first `max` live hits of each series.
    fn limited(&self, max: u32, warnings: &mut Vec<Diagnostic>) -> Vec<HitName> {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let mut chosen = Vec::new();
        for hit in &self.live {
            let count = counts.entry(hit.series()).or_default();
            *count += 1;
            if *count <= max {
                chosen.push(hit.clone());
            }
        }
        for (series, count) in counts.into_iter().filter(|(_, count)| *count > max) {
            let message =
                format!("`{series}` was hit {count} times; a kill is tried at the first {max} only");
            let help = format!("write `hits-per-series = {count}` under `[sweep]` to try them all");
            warnings.push(warning(Code::HitsLeftOut, message, help));
        }
        chosen
    }

    /// The live ones among the boundaries that the configuration names.
    fn asked_for(
        &self,
        settings: &Settings,
        warnings: &mut Vec<Diagnostic>,
        unreached: &mut Vec<HitName>,
    ) -> Vec<HitName> {
        let asked = settings.sweep.boundaries.iter().map(|name| meaning(name, settings, &self.all));
        let asked: BTreeSet<HitName> = asked.collect();
        for hit in asked.iter().filter(|hit| !self.live.contains(hit)) {
            warnings.push(if self.all.contains(hit) { after_exit(hit) } else { self.not_reached(hit) });
            unreached.push(hit.clone());
        }
        self.live.iter().filter(|hit| asked.contains(hit)).cloned().collect()
    }

    fn not_reached(&self, hit: &HitName) -> Diagnostic {
        let message = format!("`{hit}` was never reached by the fault-free trial");
        let near = nearest_hits(hit, &self.live);
        let help = if self.live.is_empty() {
            "no boundary was reached by a live worker; check that the worker starts and speaks to the provider"
                .to_owned()
        } else if near.is_empty() {
            format!("reached were: {}", quoted(self.live.iter().take(NEAREST_MAX)))
        } else {
            format!("the nearest that was reached: {}", quoted(near))
        };
        warning(Code::BoundaryNotReached, message, help)
    }
}

/// The hits with the names nearest to `hit`, nearest first.
pub(crate) fn nearest_hits(hit: &HitName, among: &[HitName]) -> Vec<String> {
    let mut names: Vec<String> = among.iter().map(ToString::to_string).collect();
    let wanted = hit.to_string();
    let mut near = Vec::new();
    while near.len() < NEAREST_MAX {
        let Some(name) = nearest(&wanted, names.iter().map(String::as_str)) else { break };
        names.retain(|other| *other != name);
        near.push(name);
    }
    near
}

fn quoted(names: impl IntoIterator<Item: std::fmt::Display>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn after_exit(hit: &HitName) -> Diagnostic {
    let message = format!("`{hit}` came only when no worker was alive: there is nothing to kill");
    let help = "choose a boundary inside the worker's life, such as a mark before its last step".to_owned();
    warning(Code::BoundaryAfterExit, message, help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::Event;
    use killpoint_model::history::Header;

    fn baseline(hits: &[(&str, bool, bool)]) -> History {
        let event = |(index, (name, exact, live)): (usize, &(&str, bool, bool))| Event {
            seq: index as u64 + 1,
            at_us: 0,
            generation: 1,
            event: EventKind::Hit {
                hit: name.parse().unwrap(),
                exact: *exact,
                live: *live,
                subject: None,
                worker: 1,
            },
        };
        let events = hits.iter().enumerate().map(event).collect();
        History { header: Header::new("baseline"), events, truncated: false }
    }

    fn names(plan: &SweepPlan) -> Vec<&str> {
        plan.trials.iter().map(|trial| trial.name.as_str()).collect()
    }

    /// Message and help of each warning.
    fn said(warnings: &[Diagnostic]) -> Vec<String> {
        let said = |warning: &Diagnostic| {
            format!("{}: {}; {}", warning.code, warning.message, warning.help.as_deref().unwrap())
        };
        warnings.iter().map(said).collect()
    }

    fn without_plans() -> Settings {
        let mut settings = Settings::default();
        settings.sweep.plans.clear();
        settings
    }

    #[test]
    fn each_live_hit_is_killed_at_in_order_and_then_come_the_plans() {
        let mut settings = Settings::default();
        settings.sweep.plans = vec!["drop-after-accept".into(), "rejected".into(), "rejected".into()];
        let hits = [
            ("provider:received#1", true, true),
            ("ledger:created#1", false, true),
            ("provider:received#2", true, true),
            ("provider:received#2", true, true),
            ("ledger:confirmed#1", true, false),
        ];
        let plan = sweep(&settings, &baseline(&hits));
        assert_eq!(
            names(&plan),
            [
                "kill at provider:received#1",
                "kill at ledger:created#1",
                "kill at provider:received#2",
                "drop-after-accept at attempt 1",
                "rejected at attempt 1",
            ]
        );
        assert_eq!((plan.warnings.as_slice(), plan.unreached.as_slice()), (&[][..], &[][..]));
        let kill = &plan.trials[0];
        assert_eq!((kill.provider_plan.as_str(), kill.faults[0].fault.name.as_str()), ("ok", "kill"));
        assert!(kill.rules.is_empty() && plan.trials[3].faults.is_empty());
        let rule = &plan.trials[3].rules[0];
        assert_eq!((rule.id.as_str(), rule.matches.nth), ("plan", Some(1)));
        assert_eq!(rule.times, Some(1), "once used up, only recovery follows");
        assert_eq!(rule.matches.operation.as_deref(), Some("create"));
        assert_eq!(rule.plan.to_string(), "commit now, reply fin");
    }

    #[test]
    fn hits_beyond_the_limit_are_left_out_aloud() {
        let mut settings = without_plans();
        settings.sweep.hits_per_series_max = 2;
        let hits = [
            ("mark:step#1", true, true),
            ("mark:step[a]#1", true, true),
            ("mark:step#2", true, true),
            ("mark:step#3", true, true),
            ("mark:step#4", true, false),
        ];
        let plan = sweep(&settings, &baseline(&hits));
        assert_eq!(names(&plan), ["kill at mark:step#1", "kill at mark:step[a]#1", "kill at mark:step#2"]);
        assert!(plan.unreached.is_empty());
        assert_eq!(
            said(&plan.warnings),
            [
                "hits-left-out: `mark:step` was hit 3 times; a kill is tried at the first 2 only; write `hits-per-series = 3` under `[sweep]` to try them all"
            ]
        );
    }

    #[test]
    fn what_was_asked_for_is_tried_whatever_the_limit_and_what_was_not_reached_is_named() {
        let mut settings = without_plans();
        settings.sweep.hits_per_series_max = 1;
        let asked = ["provider:committed#2", "mark:clamed#1", "ledger:removed#1", "provider-accepted"];
        settings.sweep.boundaries = asked.iter().map(|name| name.parse().unwrap()).collect();
        let hits = [
            ("mark:claimed#1", true, true),
            ("provider:committed#1", true, true),
            ("provider:committed#2", true, true),
            ("ledger:removed#1", false, false),
        ];
        let plan = sweep(&settings, &baseline(&hits));
        assert_eq!(names(&plan), ["kill at provider:committed#1", "kill at provider:committed#2"]);
        let unreached: Vec<String> = plan.unreached.iter().map(ToString::to_string).collect();
        assert_eq!(unreached, ["ledger:removed#1", "mark:clamed#1"]);
        assert_eq!(
            said(&plan.warnings),
            [
                "boundary-after-exit: `ledger:removed#1` came only when no worker was alive: there is nothing to kill; choose a boundary inside the worker's life, such as a mark before its last step",
                "boundary-not-reached: `mark:clamed#1` was never reached by the fault-free trial; the nearest that was reached: `mark:claimed#1`"
            ]
        );
    }

    #[test]
    fn an_empty_baseline_makes_no_kills_and_says_what_to_check() {
        let mut settings = without_plans();
        settings.sweep.boundaries = vec!["provider:committed#1".parse().unwrap()];
        let plan = sweep(&settings, &baseline(&[]));
        assert!(plan.trials.is_empty() && plan.unreached.len() == 1);
        let help = plan.warnings[0].help.as_deref();
        assert_eq!(
            help,
            Some(
                "no boundary was reached by a live worker; check that the worker starts and speaks to the provider"
            )
        );
    }
}
