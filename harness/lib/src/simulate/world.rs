//! The world around the workers: the provider, the clock, and who acts next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use fake_provider::core::Core;
use killpoint_engine::boundaries::HitCounter;
use killpoint_model::event::{CommandRole, Containment, EventKind, ProcessLimit, SettledBy};
use killpoint_model::plan::{ActionSpec, FaultAt};
use killpoint_model::provider::ProviderEvent;
use killpoint_model::{LedgerView, Plan, Settings, Source};

use super::dice::Dice;
use super::exchange::Exchange;
use super::ledger::Ledger;
use super::process::{Process, Stage};
use super::record::Record;
use super::truth::Trace;
use super::workers::ModelWorker;

/// Steps of one trial after which the model itself is at fault.
const STEPS_MAX: u32 = 200_000;

/// After how long the harness looks at a changed ledger at most, in microseconds.
const SAMPLE_US: u64 = 20_000;
/// The same while a fault waits for what it shows.
const SAMPLE_AWAITED_US: u64 = 1000;

/// What a drive waits for; as in a real trial.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    Elapsed { until_us: u64 },
    Gone { worker: u32, until_us: u64 },
    WorkerRests { worker: u32, quiet_us: u64 },
    Settled,
}

/// Who acts next.
enum Actor {
    Process(u32),
    Exchange(u32),
    Provider,
    Termination,
    Sampler,
}

/// One trial under way.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) plan: &'a Plan,
    pub(super) settings: &'a Settings,
    pub(super) worker: ModelWorker,
    pub(super) core: Core,
    logged: usize,
    pub(super) record: Record,
    pub(super) ledger: Rc<RefCell<Ledger>>,
    pub(super) view: LedgerView,
    pub(super) viewed: u64,
    pub(super) processes: BTreeMap<u32, Process>,
    pub(super) exchanges: BTreeMap<u32, Exchange>,
    pub(super) next_exchange: u32,
    /// Whether only exchanges of the dead go on.
    pub(super) draining: bool,
    pub(super) counter: HitCounter,
    pub(super) pending: Vec<FaultAt>,
    faults_over: bool,
    /// Rules that fired, in the order of the log.
    fired: BTreeMap<String, u32>,
    /// How far the clock of the life that runs is off, by number.
    pub(super) clocks: BTreeMap<u32, i64>,
    /// The same for the next life.
    pub(super) clocks_to_come: BTreeMap<u32, i64>,
    pub(super) identities: BTreeMap<u32, u32>,
    /// Workers that were asked to end, with the end of their grace.
    pub(super) terminations: Vec<(u32, u64)>,
    last_activity_us: u64,
    /// When the harness looks at a changed ledger.
    sample_at: Option<u64>,
    deadline_us: u64,
    /// By how much the provider's clock was stepped.
    pub(super) stepped_ms: u64,
    pub(super) dice: Dice,
    pub(super) version_at_death: Option<u64>,
    pub(super) trace: Trace,
    steps: u32,
}

/// A reading of nothing.
pub(super) fn empty_view() -> LedgerView {
    LedgerView { exact: true, rows: None, values: BTreeMap::new(), error: None }
}

/// The actions of a plan.
pub(super) fn actions<'p>(plan: &'p Plan, settings: &'p Settings) -> &'p [ActionSpec] {
    if plan.actions.is_empty() { &settings.actions } else { &plan.actions }
}

impl<'a> World<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        settings: &'a Settings,
        worker: ModelWorker,
        core: Core,
        seed: u64,
    ) -> Self {
        Self {
            plan,
            settings,
            worker,
            core,
            logged: 0,
            record: Record::new(),
            ledger: Rc::default(),
            view: empty_view(),
            viewed: 0,
            processes: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            next_exchange: 1,
            draining: false,
            counter: HitCounter::default(),
            pending: plan.faults.clone(),
            faults_over: false,
            fired: BTreeMap::new(),
            clocks: BTreeMap::new(),
            clocks_to_come: BTreeMap::new(),
            identities: BTreeMap::new(),
            terminations: Vec::new(),
            last_activity_us: 0,
            sample_at: None,
            deadline_us: settings.settle.deadline_ms * 1000,
            stepped_ms: 0,
            dice: Dice::new(seed),
            version_at_death: None,
            trace: Trace::default(),
            steps: 0,
        }
    }

    /// Runs the trial to its end.
    pub(super) fn run(&mut self) {
        let (containment, process_limit) = (Containment::PidNamespace, ProcessLimit::Rlimit);
        let plan = self.plan.clone();
        self.record.push(EventKind::TrialStarted {
            plan,
            containment,
            containment_reason: None,
            process_limit,
        });
        self.record.push(EventKind::StateReady { from: "fresh".into() });
        let now = self.record.wall_ms();
        self.ledger.borrow_mut().enqueue(actions(self.plan, self.settings), now);
        let (role, argv) = (CommandRole::Enqueue, vec!["enqueue".to_owned()]);
        self.record.push(EventKind::CommandRan { role, argv, code: Some(0) });
        self.look_at_dead_ledger();
        for number in 1..=self.plan.workers.max(1) {
            self.start(number);
        }
        self.drive(Goal::Settled);
        self.last_look();
    }

    /// Lets things happen until the goal is reached.
    pub(super) fn drive(&mut self, goal: Goal) {
        while !self.is_reached(goal) {
            let next = self.next_actor();
            let limit = self.limit_of(goal);
            match next {
                Some((at_us, actor)) if at_us <= limit => {
                    self.record.now_us = self.record.now_us.max(at_us);
                    self.act(actor);
                }
                _ => self.record.now_us = self.record.now_us.max(limit),
            }
            self.steps += 1;
            if self.steps > STEPS_MAX {
                // A model that runs in circles is a trial that never rests: seen, and never green.
                self.deadline_us = 0;
            }
        }
    }

    /// Until when nothing but waiting can reach the goal.
    fn limit_of(&self, goal: Goal) -> u64 {
        match goal {
            Goal::Elapsed { until_us } | Goal::Gone { until_us, .. } => until_us,
            Goal::WorkerRests { quiet_us, .. } if !self.provider_busy() => {
                self.deadline_us.min(self.last_activity_us + quiet_us)
            }
            Goal::WorkerRests { .. } | Goal::Settled => self.deadline_us,
        }
    }

    fn is_reached(&mut self, goal: Goal) -> bool {
        let now = self.record.now_us;
        match goal {
            Goal::Elapsed { until_us } => now >= until_us,
            Goal::Gone { worker, until_us } => {
                now >= until_us || !self.processes.get(&worker).is_some_and(Process::is_live)
            }
            Goal::WorkerRests { worker, quiet_us } => {
                let done = self.processes.get(&worker).is_none_or(|process| process.stage == Stage::Done);
                let quiet = now >= self.last_activity_us + quiet_us && !self.provider_busy();
                done || quiet || now >= self.deadline_us
            }
            Goal::Settled => self.is_settled(),
        }
    }

    fn is_settled(&mut self) -> bool {
        let used_up = self.plan.rules.iter().all(|rule| {
            let fired = self.fired.get(&rule.id).copied().unwrap_or(0);
            rule.matches.nth.map(|_| 1).or(rule.times).is_some_and(|times| fired >= times)
        });
        if used_up && self.pending.is_empty() && self.terminations.is_empty() {
            self.end_faults();
        }
        let all_done = self.processes.values().all(|process| process.stage == Stage::Done);
        if all_done && !self.provider_busy() {
            self.end_faults();
            self.record.push(EventKind::Settled { by: SettledBy::Exit, window_complete: true });
            self.trace.settled = true;
            return true;
        }
        if self.record.now_us < self.deadline_us {
            return false;
        }
        let why = format!("the trial was not at rest after {} ms", self.settings.settle.deadline_ms);
        self.end_faults();
        self.record.push(EventKind::NotSettled { why });
        true
    }

    fn end_faults(&mut self) {
        if !self.faults_over {
            self.trace.undone.extend(self.pending.drain(..).map(|fault| fault.at.to_string()));
            self.terminations.clear();
            for rule in &self.plan.rules {
                self.core.remove_rule(&rule.id);
            }
            self.record.push(EventKind::FaultsOver);
            self.faults_over = true;
        }
    }

    fn provider_busy(&self) -> bool {
        let under_way = |exchange: &Exchange| exchange.is_under_way() && !exchange.held;
        self.exchanges.values().any(under_way) || self.core.pending_commits() > 0
    }

    fn next_actor(&self) -> Option<(u64, Actor)> {
        let processes = self.processes.iter().filter(|(_, process)| !process.stopped);
        let processes =
            processes.filter_map(|(number, process)| Some((process.wake?, Actor::Process(*number))));
        let exchanges =
            self.exchanges.iter().filter_map(|(id, exchange)| Some((exchange.wake?, Actor::Exchange(*id))));
        let due = self
            .core
            .next_due()
            .map(|due_ms| (Record::us_at(due_ms as i64 - self.stepped_ms as i64), Actor::Provider));
        let asked = self.terminations.iter().map(|(_, deadline_us)| *deadline_us).min();
        let asked = asked.map(|at_us| (at_us, Actor::Termination));
        let sample = self.sample_at.map(|at_us| (at_us, Actor::Sampler));
        processes.chain(exchanges).chain(due).chain(asked).chain(sample).min_by_key(|(at_us, _)| *at_us)
    }

    fn act(&mut self, actor: Actor) {
        match actor {
            Actor::Process(number) => self.act_process(number),
            Actor::Exchange(id) => self.advance(id),
            Actor::Provider => {
                let now = self.provider_ms();
                self.core.land_due(now);
                self.log();
            }
            Actor::Termination => self.end_terminations(),
            Actor::Sampler => {
                self.sample_at = None;
                if self.has_live_worker() && self.ledger.borrow().version != self.viewed {
                    self.sample_ledger();
                }
            }
        }
    }

    /// The ledger's files changed: the harness will look at them.
    pub(super) fn plan_sample(&mut self) {
        if self.sample_at.is_none() && self.settings.ledger.is_some() {
            let awaited = self.pending.iter().any(|fault| fault.at.source == Some(Source::Ledger));
            let most_us = if awaited { SAMPLE_AWAITED_US } else { SAMPLE_US };
            self.sample_at = Some(self.record.now_us + self.dice.below(most_us));
        }
    }

    /// A short time, in microseconds.
    pub(super) fn soon(&mut self) -> u64 {
        self.record.now_us + 100 + self.dice.below(1500)
    }

    /// The provider's own clock.
    pub(super) fn provider_ms(&self) -> u64 {
        self.record.wall_ms() as u64 + self.stepped_ms
    }

    /// Puts what the provider did since the last time on record.
    pub(super) fn log(&mut self) {
        let fresh: Vec<ProviderEvent> = self.core.log()[self.logged..].to_vec();
        self.logged += fresh.len();
        for event in fresh {
            match &event {
                ProviderEvent::RuleFired { rule, .. } => *self.fired.entry(rule.clone()).or_default() += 1,
                ProviderEvent::Committed(effect) => {
                    self.trace.committed_us.insert(effect.attempt, self.record.now_us);
                }
                _ => {}
            }
            self.record.push(EventKind::Provider(event));
        }
    }

    pub(super) fn has_live_worker(&self) -> bool {
        self.processes.values().any(Process::is_live)
    }

    pub(super) fn touch(&mut self) {
        self.last_activity_us = self.record.now_us;
    }

    pub(super) fn extend_deadline(&mut self) {
        self.deadline_us = self.record.now_us + self.settings.settle.deadline_ms * 1000;
    }

    /// The worker's own final state, read when it is dead.
    fn last_look(&mut self) {
        if self.settings.metrics.is_some() {
            let values = self.ledger.borrow().metrics();
            self.record.push(EventKind::Metrics { values, error: None });
        }
        let numbers: Vec<u32> = self.processes.keys().copied().collect();
        for number in numbers {
            self.close_output(number);
            if let Some(process) = self.processes.get_mut(&number) {
                process.drop_life(Stage::Done);
            }
            self.bereave(number);
        }
        self.drain();
        let mut view = empty_view();
        let mut words = Vec::new();
        if self.settings.ledger.is_some() {
            view.rows = Some(self.ledger.borrow().rows());
        } else {
            let rows = self.ledger.borrow().rows();
            words.extend(rows.iter().map(|row| format!("deliveries.state={}", row.state)));
            words.sort();
            words.dedup();
        }
        let version = self.ledger.borrow().version;
        let state_changed = self.version_at_death.is_some_and(|at_death| at_death != version);
        self.record.push(EventKind::Final { view, words, state_changed });
        self.record.push(EventKind::TrialEnded);
    }

    /// Rules of the plan that never fired.
    pub(super) fn silent_rules(&self) -> Vec<String> {
        let rules = self.plan.rules.iter().filter(|rule| !self.fired.contains_key(&rule.id));
        rules.map(|rule| rule.id.clone()).collect()
    }
}
