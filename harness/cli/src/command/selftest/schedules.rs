//! The schedule under which each seeded bug shows.

use killpoint::model::plan::{FaultAt, Match};
use killpoint::model::{Fault, Plan, Rule};

use crate::diagnostics::Diagnosed;
use crate::invocation::scenario;

/// The moment at which a bug shows.
pub(super) enum Schedule {
    /// Without any fault.
    Baseline,
    /// A kill.
    Kill(&'static str),
    /// A named provider plan for the first request.
    FirstRequest(&'static str),
    /// A named provider plan for every request.
    EveryRequest(&'static str),
    /// A named provider plan for the first request, and a kill.
    FirstRequestAndKill(&'static str, &'static str),
    /// A scenario of the library.
    Scenario(&'static str),
}

use Schedule::{Baseline, EveryRequest, FirstRequest, FirstRequestAndKill, Kill, Scenario};

/// One line per seeded bug. A bug without a line fails the selftest.
pub(super) const SCHEDULES: &[(&str, Schedule)] = &[
    ("blind-resend", Kill("provider:committed#1")),
    ("trust-first-lookup", Scenario("late-accept")),
    ("key-per-attempt", FirstRequest("drop-before-accept")),
    ("mark-before-send", Baseline),
    ("send-before-intent", Baseline),
    ("single-done-flag", Kill("mark:result-committed#1")),
    ("swallow-timeout", FirstRequest("timeout-before-accept")),
    ("unknown-as-failed", FirstRequest("drop-before-accept")),
    ("forever-pending", FirstRequest("drop-before-accept")),
    ("cleanup-erases-audit", Baseline),
    ("recompute-recipients", Kill("provider:committed#1")),
    ("never-starts-sending", Baseline),
    ("re-executes", Kill("provider:committed#1")),
    ("claim-without-cas", Scenario("run-two-workers-one-item")),
    ("attempts-unbounded", EveryRequest("error-before-accept")),
    ("manufacture-on-restart", Kill("provider:received#1")),
    ("client-retries", FirstRequest("drop-after-accept")),
    ("trust-key-for-ever", Scenario("retry-after-the-window")),
    ("lease-too-short", Scenario("send-outlasts-the-lease")),
    ("zombie-without-fencing", Scenario("zombie-resumes")),
    ("steal-at-start", Scenario("recovery-beside-live-work")),
    ("orphans-stay-locked", Kill("mark:item-claimed#1")),
    ("recovery-runs-once", Kill("mark:dispatch-started#1")),
    ("reopen-failed", FirstRequestAndKill("rejected", "mark:before-cleanup#1")),
    ("takeover-ignores-outcome", Scenario("two-recoverers")),
    ("forget-missed", Scenario("eleven-hours-down")),
    ("render-at-send", FirstRequest("drop-before-accept")),
    ("cursor-first", Scenario("inbound-killed-after-the-cursor")),
    ("enqueue-outside", Scenario("producer-rolls-back")),
    ("commit-apart", Kill("mark:result-committed#1")),
    ("stop-requeues", Scenario("stopped-with-too-little-time")),
    ("retry-whole-run", Scenario("one-bad-destination-of-ten")),
    ("poison-uncounted", Scenario("poison-action")),
    ("retry-refused", FirstRequest("rejected")),
    ("ignore-retry-after", Scenario("rate-limited")),
    ("claims-count", Scenario("killed-before-sending-thrice")),
    ("reregister-schedules", Kill("mark:ack-committed#1")),
    ("wall-clock-lease", Scenario("clock-steps-back")),
    ("trust-copies", Scenario("restored-from-a-backup")),
    ("resend-unwritten", Scenario("store-busy-at-the-outcome")),
    ("no-flush", Scenario("power-cut-after-a-confirmation")),
    ("fold-counters", FirstRequest("drop-before-accept")),
    ("keep-headers", Scenario("credentials-in-errors")),
    ("idle-for-ever", Baseline),
];

impl Schedule {
    /// The plan; `None` for the baseline alone.
    pub(super) fn plan(&self) -> Result<Option<Plan>, Diagnosed> {
        let empty = Plan { name: self.to_string(), provider_plan: "ok".into(), ..Plan::default() };
        match self {
            Baseline => Ok(None),
            Kill(at) => Ok(Some(Plan { faults: vec![kill(at)?], ..empty })),
            FirstRequest(name) => {
                Ok(Some(Plan { rules: vec![rule(name, Some(1))?], provider_plan: (*name).into(), ..empty }))
            }
            EveryRequest(name) => {
                Ok(Some(Plan { rules: vec![rule(name, None)?], provider_plan: (*name).into(), ..empty }))
            }
            FirstRequestAndKill(name, at) => Ok(Some(Plan {
                rules: vec![rule(name, Some(1))?],
                faults: vec![kill(at)?],
                provider_plan: (*name).into(),
                ..empty
            })),
            Scenario(name) => scenario(name).map(Some),
        }
    }
}

fn kill(at: &str) -> Result<FaultAt, Diagnosed> {
    let at =
        at.parse().map_err(|error| Diagnosed::one(killpoint::Code::UnknownBoundary, &format!("{error}")))?;
    Ok(FaultAt { at, fault: Fault::named("kill") })
}

fn rule(name: &str, nth: Option<u32>) -> Result<Rule, Diagnosed> {
    let named = killpoint::model::named_plan::find(name).ok_or_else(|| {
        Diagnosed::one(killpoint::scenarios::Code::UnknownWord, &format!("nobody knows the plan `{name}`"))
    })?;
    let matches = Match { operation: Some("create".into()), nth, ..Match::default() };
    Ok(Rule { id: "plan".into(), matches, plan: named.plan, times: None })
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Baseline => "no fault".to_owned(),
            Kill(at) => format!("kill at {at}"),
            FirstRequest(plan) => format!("{plan}, first request"),
            EveryRequest(plan) => format!("{plan}, every request"),
            FirstRequestAndKill(plan, at) => format!("{plan}, then kill at {at}"),
            Scenario(name) => format!("scenario {name}"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_its_schedule() {
        for bug in outbox_worker::BUGS {
            assert!(SCHEDULES.iter().any(|(name, ..)| *name == bug.name), "{}", bug.name);
        }
        assert_eq!(SCHEDULES.len(), outbox_worker::BUGS.len());
        for (name, schedule) in SCHEDULES {
            assert!(schedule.plan().is_ok(), "{name}");
        }
    }

    #[test]
    fn every_kind_has_a_bug() {
        for kind in killpoint::scenarios::KINDS {
            assert!(outbox_worker::BUGS.iter().any(|bug| bug.kind == kind.id), "{} {}", kind.id, kind.name);
        }
    }
}
