//! A run: baselines, then the trials that the strategy makes of them, judged as they end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use killpoint_model::credential::masked_words;
use killpoint_model::event::EventKind;
use killpoint_model::plan::ActionSpec;
use killpoint_model::provider::ProviderEvent;
use killpoint_model::run::TrialRole;
use killpoint_model::verdict::ActionVerdict;
use killpoint_model::{
    Clock, Diagnostic, History, HitName, Plan, RunRecord, Settings, Severity, SystemClock, TrialRecord,
    TrialVerdict,
};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::attempt::{Trying, Watch, try_job};
use crate::check::run_verdict;
use crate::code::Code;
use crate::error::RunError;
use crate::explore::{Resumed, stored};
use crate::folder::RunFolder;
use crate::job::{Job, RunRequest, Strategy};
use crate::known::KnownFailures;
use crate::progress::{Progress, Running};
use crate::{host, profile, shard};

/// How often whoever watches is told which trials are under way.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A finished run, with what reports need.
#[derive(Debug)]
pub struct Finished {
    /// The record, as in `run.json`.
    pub record: RunRecord,
    /// Histories by trial folder.
    pub histories: BTreeMap<String, History>,
    /// The directory.
    pub folder: RunFolder,
}

/// Runs everything that was asked for.
///
/// # Errors
/// Invalid input, a worker that does not work without faults, or a run directory that can't be written.
/// Violations are no errors: they are in the record.
pub async fn run<P: Progress>(request: RunRequest, progress: &P) -> Result<Finished, RunError> {
    let mut runner = Runner::new(request, progress)?;
    runner.folder.write(&runner.record)?;
    let outcome = runner.carry_out().await;
    runner.close(outcome.is_ok())?;
    outcome?;
    Ok(Finished { record: runner.record, histories: runner.histories, folder: runner.folder })
}

/// A run under way.
pub(crate) struct Runner<'p, P> {
    pub(crate) request: RunRequest,
    pub(crate) settings: Arc<Settings>,
    pub(crate) folder: RunFolder,
    pub(crate) record: RunRecord,
    pub(crate) histories: BTreeMap<String, History>,
    /// The distinct sets of actions of the plans.
    pub(crate) groups: Vec<Vec<ActionSpec>>,
    /// Counterexamples that were found before.
    pub(crate) regressions: Vec<Plan>,
    /// The first place of which nothing is on disk.
    pub(crate) first_free: usize,
    /// Two baselines per distinct set of actions.
    pub(crate) baselines: Vec<Vec<History>>,
    /// Whether the plans that are run were drawn by an exploration.
    pub(crate) drawing: bool,
    /// Histories of drawn plans, until the exploration has taken note of them.
    pub(crate) drawn: Vec<History>,
    /// When no further trial is begun.
    pub(crate) until: Option<Instant>,
    pub(crate) progress: &'p P,
    pub(crate) started: Instant,
    /// When the record was last put on disk, and how long that took.
    pub(crate) saved: (Instant, Duration),
}

impl<'p, P: Progress> Runner<'p, P> {
    fn new(request: RunRequest, progress: &'p P) -> Result<Self, RunError> {
        if let Some(problem) = request.problem() {
            return Err(RunError::Invalid(vec![problem]));
        }
        if let Strategy::Explore(exploring) = &request.strategy
            && exploring.resume
        {
            let resumed = Resumed::open(&request.folder)?;
            return Ok(Self::on(resumed.folder, resumed.record, request, progress).with(resumed.baselines));
        }
        let folder = RunFolder::create(&request.folder)?;
        let settings = request.settings.clone().masked();
        let record = RunRecord {
            killpoint: env!("CARGO_PKG_VERSION").into(),
            started_at_ms: SystemClock::default().now_ms(),
            command_line: masked_words(&request.command_line),
            shard: request.shard.map(|shard| shard.record(&settings)),
            warnings: request.warnings.clone(),
            profile: request.profile.clone(),
            baseline: request.known.as_ref().map(KnownFailures::record),
            ..RunRecord::new(settings)
        };
        let regressions = match (&request.strategy, &request.regressions) {
            (Strategy::Sweep | Strategy::SweepAnd(_), Some(folder)) => stored(folder)?,
            _ => Vec::new(),
        };
        let regressions = regressions.into_iter().map(|(_, plan)| plan).collect();
        Ok(Self { regressions, ..Self::on(folder, record, request, progress) })
    }

    fn on(folder: RunFolder, record: RunRecord, request: RunRequest, progress: &'p P) -> Self {
        Self {
            settings: Arc::new(request.settings.clone()),
            request,
            regressions: Vec::new(),
            first_free: folder.first_free(),
            folder,
            record,
            histories: BTreeMap::new(),
            groups: Vec::new(),
            baselines: Vec::new(),
            drawing: false,
            drawn: Vec::new(),
            until: None,
            progress,
            started: Instant::now(),
            saved: (Instant::now(), Duration::ZERO),
        }
    }

    /// With the baselines of the worker's own actions, which a stored run has.
    fn with(mut self, baselines: Vec<History>) -> Self {
        self.groups.push(Vec::new());
        self.baselines.push(baselines);
        self.record.interrupted = false;
        self
    }

    async fn carry_out(&mut self) -> Result<(), RunError> {
        if self.baselines.is_empty() {
            self.groups = self.action_groups();
            self.progress.planned(2 * self.groups.len());
            for (index, actions) in self.groups.clone().iter().enumerate() {
                self.run_baselines(index, actions).await?;
            }
        }
        if self.record.interrupted || !self.baselines_compare() {
            return Ok(());
        }
        self.warn_of_doubt();
        self.note_changes();
        if let Strategy::Explore(exploring) = self.request.strategy.clone() {
            return self.explore(exploring).await;
        }
        let plans = self.plans()?;
        let mut jobs = Vec::new();
        for repetition in 1..=self.request.repeat {
            for (plan, group) in &plans {
                let index = self.record.trials.len() + jobs.len();
                jobs.push(Job { index, repetition, plan: plan.clone(), group: *group, known: Vec::new() });
            }
        }
        let jobs = self.share(jobs)?;
        self.progress.planned(self.record.trials.len() + jobs.len());
        self.run_jobs(jobs, TrialRole::Faulted).await?;
        self.warn_of_stale_regressions();
        match self.request.second_level {
            Some(asked) if !self.record.interrupted => self.second_level(asked).await,
            _ => Ok(()),
        }
    }

    /// The jobs of this part of the run, where it is divided; they keep their places in the whole. The whole list
    /// goes on record before the first of them, so that what is missing can be told whenever this process dies.
    fn share(&mut self, mut jobs: Vec<Job>) -> Result<Vec<Job>, RunError> {
        let (Some(part), Some(record)) = (self.request.shard, &mut self.record.shard) else {
            return Ok(jobs);
        };
        let planned = |job: &Job| shard::planned(&job.plan, job.repetition);
        record.planned = jobs.iter().map(planned).collect();
        jobs.retain(|job| part.has(&planned(job)));
        if jobs.is_empty() {
            let all = record.planned.len();
            self.progress
                .note(&format!("none of the {all} trials belongs to shard {part}; merge it all the same"));
        }
        self.folder.write(&self.record)?;
        Ok(jobs)
    }

    /// Where not even the fault-free trial ends in a plain outcome, a green says less than it seems to.
    fn warn_of_doubt(&mut self) {
        let doubtful = |verdict: ActionVerdict| {
            matches!(verdict, ActionVerdict::ExplicitUnknown | ActionVerdict::ExplicitFailure)
        };
        let judged = self.record.trials.iter().filter_map(|trial| trial.verdict.as_ref());
        let count =
            judged.flat_map(|judged| &judged.actions).filter(|action| doubtful(action.verdict)).count();
        if count > 0 {
            self.record.warnings.push(format!(
                "the fault-free trials already end in doubt or failure for {count} actions; is the worker's time-out \
                 long enough, and does it go on after a signal (EINTR)?"
            ));
        }
    }

    /// Whether other trials can be compared with the baselines: they came to rest, and somebody received
    /// something. A worker that is wrong without any fault in another way is still worth killing.
    fn baselines_compare(&self) -> bool {
        self.baselines.iter().flatten().all(|history| {
            let settled = history.events.iter().any(|event| matches!(event.event, EventKind::Settled { .. }));
            settled && history.effects().next().is_some()
        })
    }

    /// The distinct sets of actions that the plans need; each has its own baselines.
    fn action_groups(&self) -> Vec<Vec<ActionSpec>> {
        let (mut groups, plans) = match &self.request.strategy {
            // The boundaries that are compared are those of the worker's own actions.
            Strategy::Scenarios(plans) if self.request.changed.is_some() => {
                (vec![Vec::new()], plans.as_slice())
            }
            Strategy::Scenarios(plans) => (Vec::new(), plans.as_slice()),
            Strategy::SweepAnd(plans) => (vec![Vec::new()], plans.as_slice()),
            Strategy::Sweep | Strategy::Boundaries(_) | Strategy::Explore(_) => (vec![Vec::new()], &[][..]),
        };
        for plan in plans.iter().chain(&self.regressions) {
            if !groups.contains(&plan.actions) {
                groups.push(plan.actions.clone());
            }
        }
        groups
    }

    pub(crate) async fn run_baselines(
        &mut self,
        group: usize,
        actions: &[ActionSpec],
    ) -> Result<(), RunError> {
        let baseline = |name: &str| Plan {
            name: name.to_owned(),
            provider_plan: "ok".into(),
            actions: actions.to_vec(),
            ..Plan::default()
        };
        self.baselines.push(Vec::new());
        for (name, role) in [("baseline", TrialRole::Baseline), ("baseline again", TrialRole::BaselineAgain)]
        {
            if self.record.interrupted {
                return Ok(());
            }
            let index = self.next_index();
            let job = Job { index, repetition: 1, plan: baseline(name), group, known: Vec::new() };
            self.run_jobs(vec![job], role).await?;
        }
        Ok(())
    }

    /// The plans of the strategy, bound to this worker, with the group whose baselines they belong to.
    fn plans(&mut self) -> Result<Vec<(Plan, usize)>, RunError> {
        let mut diagnostics = Vec::new();
        let mut plans = self.scenarios(self.regressions.clone(), &mut diagnostics);
        match self.request.strategy.clone() {
            Strategy::Sweep => {
                let sweep = self.sweep(&self.settings.clone(), &mut diagnostics);
                plans.extend(self.narrowed(sweep));
            }
            Strategy::Boundaries(names) => {
                let mut settings = Settings::clone(&self.settings);
                settings.sweep.boundaries = names;
                settings.sweep.plans.clear();
                plans.extend(self.sweep(&settings, &mut diagnostics));
            }
            Strategy::Scenarios(scenarios) => {
                plans.extend(self.scenarios(scenarios, &mut diagnostics));
            }
            Strategy::SweepAnd(scenarios) => {
                plans.extend(self.sweep(&self.settings.clone(), &mut diagnostics));
                plans.extend(self.scenarios(scenarios, &mut diagnostics));
            }
            // It draws its own.
            Strategy::Explore(_) => {}
        }
        for (plan, _) in &plans {
            diagnostics.extend(parameter_problems(plan));
        }
        if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Err(RunError::Invalid(diagnostics));
        }
        self.note_uncovered(&plans)?;
        self.record.warnings.extend(diagnostics.into_iter().map(|diagnostic| {
            let help = diagnostic.help.map(|help| format!("; {help}")).unwrap_or_default();
            format!("{} [{}]{help}", diagnostic.message, diagnostic.code)
        }));
        Ok(plans)
    }

    /// Plans as written, bound to this worker.
    fn scenarios(&self, scenarios: Vec<Plan>, diagnostics: &mut Vec<Diagnostic>) -> Vec<(Plan, usize)> {
        let bind = |plan: Plan| {
            let group = self.groups.iter().position(|actions| *actions == plan.actions).unwrap_or_default();
            let (bound, notes) = killpoint_scenarios::bind(&plan, &self.settings, &self.reached(group));
            diagnostics.extend(notes);
            (bound, group)
        };
        scenarios.into_iter().map(bind).collect()
    }

    fn sweep(&self, settings: &Settings, diagnostics: &mut Vec<Diagnostic>) -> Vec<(Plan, usize)> {
        let Some(baseline) = self.baselines.first().and_then(|pair| pair.first()) else { return Vec::new() };
        let sweep = killpoint_scenarios::sweep(settings, baseline);
        diagnostics.extend(sweep.warnings);
        // A boundary that was asked for is tried although the baseline did not reach it: the trial shows
        // that it is not reached, and is vacuous.
        let asked = sweep.unreached.into_iter().map(killpoint_scenarios::kill_plan);
        sweep.trials.into_iter().chain(asked).map(|plan| (plan, 0)).collect()
    }

    /// The hits of a group's baselines.
    pub(crate) fn reached(&self, group: usize) -> BTreeSet<HitName> {
        let events = self.baselines.get(group).into_iter().flatten().flat_map(|history| &history.events);
        events
            .filter_map(|event| match &event.event {
                EventKind::Hit { hit, .. } => Some(hit.clone()),
                _ => None,
            })
            .collect()
    }

    /// Runs and judges some trials, several at the same time.
    pub(crate) async fn run_jobs(&mut self, jobs: Vec<Job>, role: TrialRole) -> Result<(), RunError> {
        let baselines: Vec<Arc<Vec<History>>> = self.baselines.iter().cloned().map(Arc::new).collect();
        let progress = self.progress;
        progress.scheduled(&jobs);
        let mut waiting = jobs.into_iter();
        let mut running = JoinSet::new();
        let mut watched = BTreeMap::new();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let cancelled = progress.cancelled();
        tokio::pin!(cancelled);
        loop {
            let is_over = self.until.is_some_and(|until| Instant::now() >= until);
            while !is_over && running.len() < self.request.jobs.max(1) {
                let Some(job) = waiting.next() else { break };
                progress.started(&job.plan.name);
                let baselines = baselines.get(job.group).map(Arc::clone).unwrap_or_default();
                let watch = Watch::new(&job);
                let place =
                    Trying { settings: Arc::clone(&self.settings), run: self.folder.clone(), baselines };
                running.spawn(try_job(job.clone(), role, place, watch.pulse.clone()));
                watched.insert(job.index, watch);
            }
            tokio::select! {
                biased;
                () = &mut cancelled => {
                    self.record.interrupted = true;
                    // Dropping a trial kills its worker's tree; its history stays, cut short.
                    running.shutdown().await;
                    return Ok(());
                }
                ended = running.join_next() => match ended {
                    None => return Ok(()),
                    Some(Ok(ended)) => {
                        let ended = ended?;
                        watched.remove(&ended.job.index);
                        self.take(ended)?;
                    }
                    Some(Err(error)) => {
                        return Err(RunError::SetupFailed(format!("a trial's task failed: {error}")));
                    }
                },
                _ = looks.tick() => {
                    progress.running(&watched.values().map(Watch::look).collect::<Vec<Running>>());
                }
            }
        }
    }

    /// A rule of the configuration that no trial met is a misspelt one, or says nothing.
    fn warn_of_unfired_rules(&mut self) {
        let fired: BTreeSet<&str> = self
            .histories
            .values()
            .flat_map(History::provider)
            .filter_map(|(_, event)| match event {
                ProviderEvent::RuleFired { rule, .. } => Some(rule.as_str()),
                _ => None,
            })
            .collect();
        let rules = self.settings.provider.rules.iter();
        let unfired = rules.filter(|rule| !fired.contains(rule.id.as_str()));
        self.record.warnings.extend(unfired.map(|rule| unfired_warning(&rule.id)));
    }

    fn close(&mut self, carried_through: bool) -> Result<(), RunError> {
        self.warn_of_unfired_rules();
        self.record.trials.sort_by(|a, b| a.folder.cmp(&b.folder));
        host::read_logs(&mut self.record, &self.folder, &self.histories);
        profile::set_aside(&mut self.record, &self.histories);
        profile::answer(&mut self.record, &self.histories);
        self.record.verdict = run_verdict(&self.record);
        self.record.duration_ms = self.started.elapsed().as_millis() as u64;
        let carried_through = carried_through && !self.record.interrupted;
        let known = match self.request.known.clone() {
            Some(known) => known.settle(&mut self.record, carried_through),
            None => Ok(()),
        };
        let boundaries = self.keep_boundaries(carried_through);
        // The record is written whatever became of the other files.
        self.folder.write(&self.record)?;
        known.and(boundaries)
    }
}

/// What is said of a rule of the configuration that no trial met.
pub(crate) fn unfired_warning(rule: &str) -> String {
    format!("the rule `{rule}` of the configuration never fired: no request matched it in any trial")
}

/// What the faults say of their parameters.
fn parameter_problems(plan: &Plan) -> Vec<Diagnostic> {
    plan.faults
        .iter()
        .filter_map(|at| {
            let why = killpoint_engine::faults::find(&at.fault.name)?.check(&at.fault.with).err()?;
            Some(Diagnostic::error(
                Code::BadParameter,
                format!("{}: fault `{}`: {why}", plan.name, at.fault.name),
            ))
        })
        .collect()
}

/// The verdict of a trial, for callers that hold a record.
impl Finished {
    /// Trials with their verdicts, in order.
    pub fn verdicts(&self) -> impl Iterator<Item = (&TrialRecord, &TrialVerdict)> {
        self.record.trials.iter().filter_map(|trial| Some((trial, trial.verdict.as_ref()?)))
    }
}
