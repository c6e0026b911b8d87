//! `killpoint selftest`: proves the alarm. Workers that are wrong on purpose must turn red by the invariant
//! that names their bug, and the right worker must stay green under every schedule that found one.

use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::model::finding::InvariantStatus;
use killpoint::model::plan::{FaultAt, Match};
use killpoint::model::run::TrialRole;
use killpoint::model::{ExitCode, Fault, Plan, Rule, Verdict};
use killpoint::{Finished, RunRequest, Silent, Strategy};
use outbox_worker::{BUGS, Bug};

use super::{block_on, demo};
use crate::diagnostics::Diagnosed;
use crate::invocation::{Selection, scenario};
use crate::show;

/// Arguments of `selftest`.
#[derive(Debug, Args)]
pub(crate) struct Selftest {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Keep the runs in this new or empty folder
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Trials at the same time [default: twice the processors]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroU16>,
}

/// The moment at which a bug shows.
enum Schedule {
    /// Without any fault.
    Baseline,
    /// A kill.
    Kill(&'static str),
    /// A named provider plan for the first request.
    FirstRequest(&'static str),
    /// A named provider plan for every request.
    EveryRequest(&'static str),
    /// A scenario of the library.
    Scenario(&'static str),
}

/// The schedule under which each bug must turn red. A bug without a line here fails the selftest.
const SCHEDULES: &[(&str, Schedule)] = &[
    ("blind-resend", Schedule::Kill("provider:committed#1")),
    ("trust-first-lookup", Schedule::Scenario("late-accept")),
    ("key-per-attempt", Schedule::FirstRequest("drop-before-accept")),
    ("mark-before-send", Schedule::Baseline),
    ("send-before-intent", Schedule::Baseline),
    ("single-done-flag", Schedule::Kill("mark:result-committed#1")),
    ("swallow-timeout", Schedule::FirstRequest("timeout-before-accept")),
    ("unknown-as-failed", Schedule::FirstRequest("drop-after-accept")),
    ("forever-pending", Schedule::FirstRequest("drop-before-accept")),
    ("cleanup-erases-audit", Schedule::Baseline),
    ("recompute-recipients", Schedule::Kill("provider:committed#1")),
    ("never-starts-sending", Schedule::Baseline),
    ("re-executes", Schedule::Kill("provider:committed#1")),
    ("claim-without-cas", Schedule::Scenario("run-two-workers-one-item")),
    ("attempts-unbounded", Schedule::EveryRequest("error-before-accept")),
    ("manufacture-on-restart", Schedule::Kill("provider:received#1")),
];

/// One line of the table.
#[derive(Debug)]
struct Line {
    worker: String,
    schedule: String,
    expected: String,
    seen: String,
    passed: bool,
}

impl Selftest {
    pub(crate) fn run(self) -> ExitCode {
        let folder = self.run_dir.clone().unwrap_or_else(|| {
            std::env::temp_dir().join(format!("killpoint-selftest-{}", std::process::id()))
        });
        let outcome = block_on(self.lines(&folder));
        if self.run_dir.is_none() {
            // Nobody asked for the runs; a folder that stays behind is no failure.
            let _ = std::fs::remove_dir_all(&folder);
        }
        match outcome {
            Ok(Ok(lines)) => self.show(&lines),
            Ok(Err(problems)) => problems.complain(),
            Err(code) => code,
        }
    }

    async fn lines(&self, folder: &Path) -> Result<Vec<Line>, Diagnosed> {
        let mut lines = Vec::new();
        for bug in BUGS {
            lines.push(self.wrong_worker(bug, folder).await?);
            show::lines_to_stderr(&line_text(&lines[lines.len() - 1]));
        }
        let mut right = vec![("every boundary and plan".to_owned(), Strategy::Sweep)];
        let plans = SCHEDULES.iter().map(|(_, schedule)| schedule.plan()).collect::<Result<Vec<_>, _>>()?;
        right.push((
            "every schedule above".to_owned(),
            Strategy::Scenarios(plans.into_iter().flatten().collect()),
        ));
        let library = killpoint::scenarios::LIBRARY.iter().map(|entry| scenario(entry.name));
        right.push((
            "every scenario of the library".to_owned(),
            Strategy::Scenarios(library.collect::<Result<_, _>>()?),
        ));
        for (schedule, strategy) in right {
            let outcome = self.gate(None, strategy, &folder.join(format!("right-{}", lines.len()))).await?;
            let verdict = outcome.as_ref().map_or(Verdict::Inconclusive, |finished| finished.record.verdict);
            let trials = outcome.as_ref().map_or(0, |finished| finished.record.trials.len());
            let seen = outcome.map_or_else(|error| error, |_| format!("{verdict} in {trials} trials"));
            let expected = "holds".to_owned();
            let passed = verdict == Verdict::Holds;
            lines.push(Line { worker: "the right worker".into(), schedule, expected, seen, passed });
            show::lines_to_stderr(&line_text(&lines[lines.len() - 1]));
        }
        Ok(lines)
    }

    async fn wrong_worker(&self, bug: &Bug, folder: &Path) -> Result<Line, Diagnosed> {
        let schedule = SCHEDULES.iter().find(|(name, _)| *name == bug.name).map(|(_, schedule)| schedule);
        let line = |schedule: String, seen: String, passed| Line {
            worker: bug.name.to_owned(),
            schedule,
            expected: bug.invariant.to_owned(),
            seen,
            passed,
        };
        let Some(schedule) = schedule else {
            return Ok(line("none".into(), "nobody knows where this bug shows".into(), false));
        };
        let strategy = Strategy::Scenarios(schedule.plan()?.into_iter().collect());
        let outcome = self.gate(Some(bug.name), strategy, &folder.join(bug.name)).await?;
        Ok(match outcome {
            Err(error) => line(schedule.to_string(), error, false),
            Ok(finished) => {
                let violated = violated(&finished, schedule);
                let passed = violated.iter().any(|name| name == bug.invariant);
                let seen = if violated.is_empty() { "green".to_owned() } else { violated.join(", ") };
                line(schedule.to_string(), seen, passed)
            }
        })
    }

    /// One run; a failure to run is a text for the table.
    async fn gate(
        &self,
        bug: Option<&str>,
        strategy: Strategy,
        folder: &Path,
    ) -> Result<Result<Finished, String>, Diagnosed> {
        let strategy = match strategy {
            // A bug that shows without any fault: the baselines are enough.
            Strategy::Scenarios(plans) if plans.is_empty() => Strategy::Scenarios(vec![Plan {
                name: "nothing but the baseline".into(),
                provider_plan: "ok".into(),
                ..Plan::default()
            }]),
            other => other,
        };
        let jobs = Selection::jobs_or_default(self.jobs);
        let request = RunRequest { strategy, jobs, ..RunRequest::sweep(demo::settings(bug)?, folder) };
        Ok(killpoint::run(request, &Silent).await.map_err(|error| error.to_string()))
    }

    fn show(&self, lines: &[Line]) -> ExitCode {
        let failed = lines.iter().filter(|line| !line.passed).count();
        let text = if self.json {
            let rows: Vec<_> = lines
                .iter()
                .map(|line| {
                    serde_json::json!({
                        "worker": line.worker, "schedule": line.schedule, "expected": line.expected,
                        "seen": line.seen, "passed": line.passed,
                    })
                })
                .collect();
            serde_json::to_string_pretty(&rows).unwrap_or_default()
        } else {
            let table: Vec<String> = lines.iter().map(line_text).collect();
            format!("{}\n{} of {} as expected", table.join("\n"), lines.len() - failed, lines.len())
        };
        match show::lines_to_stdout(&text) {
            Err(code) => code,
            Ok(()) if failed == 0 => ExitCode::Holds,
            // A bug that is not seen, or a false alarm, is a defect of ours.
            Ok(()) => ExitCode::Internal,
        }
    }
}

fn line_text(line: &Line) -> String {
    let word = if line.passed { "ok  " } else { "FAIL" };
    format!("{word} {:22} {:45} expected {:28} seen {}", line.worker, line.schedule, line.expected, line.seen)
}

/// The invariants that turned red in the trials that count for a schedule.
fn violated(finished: &Finished, schedule: &Schedule) -> Vec<String> {
    let mut names: Vec<String> = finished
        .verdicts()
        .filter(|(trial, _)| matches!(schedule, Schedule::Baseline) || trial.role == TrialRole::Faulted)
        .flat_map(|(_, judged)| &judged.outcomes)
        .filter(|outcome| outcome.status == InvariantStatus::Violated)
        .map(|outcome| outcome.invariant.clone())
        .collect();
    names.dedup();
    names
}

impl Schedule {
    /// The plan; `None` for the baseline alone.
    fn plan(&self) -> Result<Option<Plan>, Diagnosed> {
        let empty = Plan { name: self.to_string(), provider_plan: "ok".into(), ..Plan::default() };
        let rule = |name: &str, nth| {
            let named = killpoint::model::named_plan::find(name)
                .ok_or_else(|| Diagnosed::one("unknown-plan", &format!("nobody knows the plan `{name}`")))?;
            let matches = Match { operation: Some("create".into()), nth, ..Match::default() };
            let rules = vec![Rule { id: "plan".into(), matches, plan: named.plan, times: None }];
            Ok(Some(Plan { rules, provider_plan: name.into(), ..empty.clone() }))
        };
        match self {
            Self::Baseline => Ok(None),
            Self::Kill(at) => {
                let at =
                    at.parse().map_err(|error| Diagnosed::one("unknown-boundary", &format!("{error}")))?;
                Ok(Some(Plan { faults: vec![FaultAt { at, fault: Fault::named("kill") }], ..empty }))
            }
            Self::FirstRequest(name) => rule(name, Some(1)),
            Self::EveryRequest(name) => rule(name, None),
            Self::Scenario(name) => scenario(name).map(Some),
        }
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Baseline => "no fault".to_owned(),
            Self::Kill(at) => format!("kill at {at}"),
            Self::FirstRequest(plan) => format!("{plan}, first request"),
            Self::EveryRequest(plan) => format!("{plan}, every request"),
            Self::Scenario(name) => format!("scenario {name}"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_its_schedule() {
        for bug in BUGS {
            assert!(SCHEDULES.iter().any(|(name, _)| *name == bug.name), "{}", bug.name);
        }
        assert_eq!(SCHEDULES.len(), BUGS.len());
        for (name, schedule) in SCHEDULES {
            assert!(schedule.plan().is_ok(), "{name}");
        }
    }
}
