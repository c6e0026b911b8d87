//! `killpoint selftest`: proves the alarm. Workers that are wrong on purpose must turn red by the invariant
//! that names their bug, and by no other first; the right worker must stay green under every schedule.

mod schedules;

use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::model::finding::InvariantStatus;
use killpoint::model::run::TrialRole;
use killpoint::model::{ExitCode, Plan, Verdict};
use killpoint::scenarios::{KINDS, LIBRARY};
use killpoint::{Finished, RunRequest, Silent, Strategy};
use outbox_worker::{BUGS, Bug};

use super::block_on;
use super::demo_worker::{self, Variant};
use crate::diagnostics::Diagnosed;
use crate::invocation::{Selection, load_library};
use crate::show;
use schedules::{SCHEDULES, Schedule};

/// Arguments of `selftest`.
#[derive(Debug, Args)]
pub(crate) struct Selftest {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// How often the right worker goes through every schedule
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: std::num::NonZeroU32,
    /// Keep the runs in this new or empty folder
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Trials at the same time [default: twice the processors]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroU16>,
}

/// One line of the table.
#[derive(Debug, serde::Serialize)]
struct Line {
    /// The kind's id; empty for the right worker.
    kind: String,
    /// The kind's name; empty for the right worker.
    name: String,
    worker: String,
    schedule: String,
    expected: String,
    seen: String,
    /// Faulted trials of this line.
    trials: usize,
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
        for kind in KINDS {
            for bug in BUGS.iter().filter(|bug| bug.kind == kind.id) {
                lines.push(self.wrong_worker(bug, folder).await?);
                show::lines_to_stderr(&line_text(&lines[lines.len() - 1]));
            }
        }
        for (variant, schedule, strategy) in right_schedules()? {
            let line = self
                .right_worker(variant, schedule, strategy, &folder.join(format!("right-{}", lines.len())))
                .await?;
            show::lines_to_stderr(&line_text(&line));
            lines.push(line);
        }
        Ok(lines)
    }

    async fn wrong_worker(&self, bug: &Bug, folder: &Path) -> Result<Line, Diagnosed> {
        let kind = KINDS.iter().find(|kind| kind.id == bug.kind);
        let mut line = Line {
            kind: bug.kind.to_owned(),
            name: kind.map_or("", |kind| kind.name).to_owned(),
            worker: bug.name.to_owned(),
            schedule: "none".to_owned(),
            expected: bug.invariant.to_owned(),
            seen: "nobody knows where this bug shows".to_owned(),
            trials: 0,
            passed: false,
        };
        let Some((_, schedule)) = SCHEDULES.iter().find(|(name, ..)| *name == bug.name) else {
            return Ok(line);
        };
        line.schedule = schedule.to_string();
        let strategy = Strategy::Scenarios(schedule.plan()?.into_iter().collect());
        match self
            .gate(Some(bug.name), Variant::showing(Some(bug.name)), strategy, 1, &folder.join(bug.name))
            .await?
        {
            Err(error) => line.seen = error,
            Ok(finished) => {
                let violated = violated(&finished, schedule);
                line.trials = finished.record.trials.len();
                line.passed = violated.first().is_some_and(|name| name == bug.invariant);
                line.seen = if violated.is_empty() {
                    format!("green: {}", finished.record.verdict)
                } else {
                    violated.join(", ")
                };
            }
        }
        Ok(line)
    }

    async fn right_worker(
        &self,
        variant: Variant,
        schedule: String,
        strategy: Strategy,
        folder: &Path,
    ) -> Result<Line, Diagnosed> {
        let outcome = self.gate(None, variant, strategy, self.repeat.get(), folder).await?;
        let (verdict, trials, seen) = match outcome {
            Err(error) => (Verdict::Inconclusive, 0, error),
            Ok(finished) => {
                let trials = finished.record.trials.len();
                let bad: Vec<String> = finished
                    .verdicts()
                    .filter(|(_, judged)| judged.verdict != Verdict::Holds)
                    .map(|(trial, judged)| format!("{}: {}", trial.plan.name, judged.verdict))
                    .collect();
                let seen = format!("{} in {trials} trials {}", finished.record.verdict, bad.join("; "));
                (finished.record.verdict, trials, seen.trim_end().to_owned())
            }
        };
        Ok(Line {
            kind: String::new(),
            name: String::new(),
            worker: "the right worker".into(),
            schedule,
            expected: "holds".to_owned(),
            seen,
            trials,
            passed: verdict == Verdict::Holds,
        })
    }

    /// One run; a failure to run is a text for the table.
    async fn gate(
        &self,
        bug: Option<&str>,
        variant: Variant,
        strategy: Strategy,
        repeat: u32,
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
        let settings = demo_worker::settings(bug, variant)?;
        let request = RunRequest { strategy, jobs, repeat, ..RunRequest::sweep(settings, folder) };
        Ok(killpoint::run(request, &Silent).await.map_err(|error| error.to_string()))
    }

    fn show(&self, lines: &[Line]) -> ExitCode {
        let failed = lines.iter().filter(|line| !line.passed).count();
        let text = if self.json {
            serde_json::to_string_pretty(&lines).unwrap_or_default()
        } else {
            let table: Vec<String> = lines.iter().map(line_text).collect();
            format!("{}\n{}", table.join("\n"), summary(lines))
        };
        match show::lines_to_stdout(&text) {
            Err(code) => code,
            Ok(()) if failed == 0 => ExitCode::Holds,
            // A bug that is not seen, or a false alarm, is a defect of ours.
            Ok(()) => ExitCode::Internal,
        }
    }
}

/// Every schedule, for the worker that must stay green under all of them.
fn right_schedules() -> Result<Vec<(Variant, String, Strategy)>, Diagnosed> {
    let mut all = vec![(Variant::Plain, "every boundary and plan".to_owned(), Strategy::Sweep)];
    for variant in [Variant::Plain, Variant::Deduping, Variant::Scheduled, Variant::Inbound] {
        let own = SCHEDULES.iter().filter(|(bug, _)| Variant::showing(Some(bug)) == variant);
        let plans = own.map(|(_, schedule)| schedule.plan()).collect::<Result<Vec<_>, _>>()?;
        let name = format!("every schedule above, {variant:?}").to_lowercase();
        all.push((variant, name, Strategy::Scenarios(plans.into_iter().flatten().collect())));
    }
    let scenarios = LIBRARY.iter().map(load_library).collect::<Result<Vec<_>, _>>()?;
    let needs = |scenario: &killpoint::scenarios::Scenario, name: &str| {
        scenario.needs.iter().any(|need| need == name)
    };
    // The built-in worker is one process: there is no child to kill.
    let scenarios = scenarios.into_iter().filter(|scenario| !needs(scenario, "children"));
    let (inbound, others): (Vec<_>, Vec<_>) = scenarios.partition(|scenario| needs(scenario, "inbound"));
    let plans =
        |list: Vec<killpoint::scenarios::Scenario>| list.into_iter().map(|scenario| scenario.plan).collect();
    all.push((Variant::Plain, "every scenario of the library".into(), Strategy::Scenarios(plans(others))));
    all.push((Variant::Inbound, "every inbound scenario".into(), Strategy::Scenarios(plans(inbound))));
    Ok(all)
}

fn line_text(line: &Line) -> String {
    let word = if line.passed { "ok  " } else { "FAIL" };
    format!(
        "{word} {:3} {:25} {:45} expected {:28} seen {}",
        line.kind, line.worker, line.schedule, line.expected, line.seen
    )
}

fn summary(lines: &[Line]) -> String {
    let kinds = KINDS.iter().filter(|kind| {
        let mut own = lines.iter().filter(|line| line.kind == kind.id).peekable();
        own.peek().is_some() && own.all(|line| line.passed)
    });
    let bugs = lines.iter().filter(|line| !line.kind.is_empty());
    let (caught, seeded) = (bugs.clone().filter(|line| line.passed).count(), bugs.count());
    let right = lines.iter().filter(|line| line.kind.is_empty());
    let alarms = right.clone().filter(|line| !line.passed).count();
    let trials: usize = right.map(|line| line.trials).sum();
    format!(
        "{} of {} kinds; mutation score {caught} of {seeded}, each by the named invariant first; {alarms} false alarms of \
         the right worker in {trials} trials",
        kinds.count(),
        KINDS.len()
    )
}

/// The invariants that turned red in the first red trial that counts for a schedule, first one first. Where the
/// fault-free trials were so wrong that no other was tried, they count.
fn violated(finished: &Finished, schedule: &Schedule) -> Vec<String> {
    let faulted = finished.record.trials.iter().any(|trial| trial.role == TrialRole::Faulted);
    let any = matches!(schedule, Schedule::Baseline) || !faulted;
    finished
        .verdicts()
        .filter(|(trial, _)| any || trial.role == TrialRole::Faulted)
        .map(|(_, judged)| {
            let red = judged.outcomes.iter().filter(|outcome| outcome.status == InvariantStatus::Violated);
            red.map(|outcome| outcome.invariant.clone()).collect::<Vec<_>>()
        })
        .find(|names| !names.is_empty())
        .unwrap_or_default()
}
