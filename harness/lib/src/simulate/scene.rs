//! A modelled worker with its settings and fault-free trials, and plans to try on it.

use std::collections::BTreeMap;

use killpoint_checks::{Case, judge};
use killpoint_model::plan::{ActionSpec, Aftermath, Commit, CutAt, ProviderPlan, Reply, Visible};
use killpoint_model::run::TrialRole;
use killpoint_model::settings::{CommandSettings, LedgerSettings, MetricsSettings};
use killpoint_model::{History, Plan, Settings, TrialVerdict};
use killpoint_scenarios::search::{Family, Space, Swarm};

use super::dice::Dice;
use super::{ModelWorker, Simulated, Unsupported, disagreements, simulate};

/// Families of which a model can do nothing.
const NOT_MODELLED: &[Family] = &[Family::Barrier, Family::Producer, Family::Store, Family::StoreLoss];
/// Random subsets of the others that plans are made of.
const SUBSETS: u32 = 16;
/// Sets of actions whose fault-free trials are kept.
const KEPT_MAX: usize = 256;

/// What can be seen of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SceneKind {
    /// Its ledger and its marks.
    Marked,
    /// Its ledger.
    Mapped,
    /// The same, at a provider that dedupes by key.
    Deduping,
    /// Nothing but what the provider received.
    Bare,
}

impl SceneKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Marked, Self::Mapped, Self::Deduping, Self::Bare];

    /// Settings that a model of this kind is judged by.
    pub fn settings(self) -> Settings {
        let actions = vec![action("action-1", &["ann@example.com"], "hello 1")];
        let mut settings = Settings { actions, ..Settings::default() };
        settings.worker.restarts_max = 12;
        // Time costs nothing here: whoever is still at work is never taken for stuck.
        settings.settle.deadline_ms = 1_000_000;
        settings.provider.idempotency.dedupe = self == Self::Deduping;
        // Several workers and other actions are part of the space only where commands say how they are told.
        settings.worker.command.argv = vec!["worker".into(), "{worker}".into()];
        let enqueue = vec!["enqueue".into(), "{actions.file}".into()];
        settings.state.enqueue = Some(CommandSettings { argv: enqueue, ..CommandSettings::default() });
        if self != Self::Bare {
            settings.cleanup = Some(CommandSettings::default());
            settings.ledger = Some(ledger());
            settings.metrics =
                Some(MetricsSettings { query: Some("select".into()), ..MetricsSettings::default() });
        }
        settings
    }
}

fn ledger() -> LedgerSettings {
    LedgerSettings {
        kind: "sqlite".into(),
        path: None,
        query: Some("select".into()),
        command: None,
        states: BTreeMap::new(),
        executions: BTreeMap::new(),
        absent: None,
        boundaries: Vec::new(),
        sample_ms: 20,
    }
}

fn action(id: &str, to: &[&str], body: &str) -> ActionSpec {
    ActionSpec {
        id: id.to_owned(),
        to: to.iter().map(|to| (*to).to_owned()).collect(),
        body: body.to_owned(),
    }
}

/// One worker under one kind of observation.
#[derive(Debug)]
pub struct Scene {
    /// Who is at work.
    pub worker: ModelWorker,
    /// How it is watched and judged.
    pub settings: Settings,
    swarm: Swarm,
    /// By actions.
    baselines: BTreeMap<String, Vec<History>>,
}

/// One plan that was tried.
#[derive(Debug)]
pub struct Tried {
    /// What happened.
    pub simulated: Simulated,
    /// What the checks say of it.
    pub judged: TrialVerdict,
    /// Where they differ.
    pub disagreements: Vec<String>,
}

impl Scene {
    /// A worker under one kind of observation.
    ///
    /// # Errors
    /// Never for the settings of a [`SceneKind`]; what of the settings can't be modelled otherwise.
    pub fn new(kind: SceneKind, worker: &ModelWorker) -> Result<Self, Unsupported> {
        let worker = if kind == SceneKind::Marked { *worker } else { worker.without_marks() };
        let settings = kind.settings();
        let first = simulate(&Plan::default(), &settings, &worker, 0)?;
        let mut space = Space::of(&settings, &first.history);
        space.families.retain(|family| !NOT_MODELLED.contains(family));
        let swarm = Swarm::new(&space, SUBSETS);
        Ok(Self { worker, settings, swarm, baselines: BTreeMap::new() })
    }

    /// Tries a plan against the fault-free trials of the same actions.
    ///
    /// # Errors
    /// What of the plan can't be modelled.
    pub fn try_plan(&mut self, plan: &Plan, seed: u64) -> Result<Tried, Unsupported> {
        let simulated = simulate(plan, &self.settings, &self.worker, seed)?;
        let role = if plan.is_baseline() { TrialRole::Baseline } else { TrialRole::Faulted };
        self.prepare(plan)?;
        let baselines = self.baselines.get(&actions_id(plan)).map_or(&[][..], Vec::as_slice);
        let delivers = baselines.iter().all(|baseline| baseline.effects().next().is_some());
        if self.settings.ledger.is_none() && !delivers {
            let what = "a worker that delivers nothing without faults and shows no rows".to_owned();
            return Err(Unsupported { what });
        }
        let baselines = if role == TrialRole::Faulted { baselines } else { &[] };
        let case = Case { settings: &self.settings, role, history: &simulated.history, baselines };
        let judged = judge(&case);
        let disagreements = disagreements(&simulated, &judged);
        Ok(Tried { simulated, judged, disagreements })
    }

    fn prepare(&mut self, plan: &Plan) -> Result<(), Unsupported> {
        let id = actions_id(plan);
        if self.baselines.contains_key(&id) {
            return Ok(());
        }
        if self.baselines.len() >= KEPT_MAX {
            self.baselines.clear();
        }
        let bare = Plan { name: "baseline".into(), actions: plan.actions.clone(), ..Plan::default() };
        let run =
            |seed| simulate(&bare, &self.settings, &self.worker, seed).map(|simulated| simulated.history);
        let pair = vec![run(1)?, run(2)?];
        self.baselines.insert(id, pair);
        Ok(())
    }
}

fn actions_id(plan: &Plan) -> String {
    let words = plan
        .actions
        .iter()
        .map(|action| format!("{}\u{1}{:?}\u{1}{}\u{2}", action.id, action.to, action.body));
    words.collect()
}

/// The plan of one case: the same for the same scene, seed and case. It is what exploring draws for such a worker; in
/// half of the cases what the provider does with a write is any point of its space, of which exploring, that has
/// fewer trials, takes some.
pub fn plan_for(scene: &Scene, seed: u64, case: u64) -> Plan {
    let mut dice = Dice::new(seed ^ case.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let mut plan = scene.swarm.plan(seed ^ (case >> u32::BITS), case as u32);
    plan.name = format!("modelled {case}");
    if dice.one_in(2) {
        for rule in plan.rules.iter_mut().filter(|rule| rule.matches.operation.as_deref() == Some("create")) {
            rule.plan = point(&mut dice);
        }
    }
    plan
}

/// A point of the provider's plan space, but for a provider that says "accepted" and does nothing: nobody can be
/// right with that one.
fn point(dice: &mut Dice) -> ProviderPlan {
    const COMMITS: [Commit; 6] = [
        Commit::Now,
        Commit::Now,
        Commit::Never,
        Commit::Twice,
        Commit::After { ms: 150 },
        Commit::After { ms: 900 },
    ];
    const REPLIES: [Reply; 14] = [
        Reply::Ok,
        Reply::Status { code: 400 },
        Reply::Status { code: 401 },
        Reply::Status { code: 409 },
        Reply::Status { code: 429 },
        Reply::Status { code: 500 },
        Reply::Status { code: 503 },
        Reply::Fin,
        Reply::Rst,
        Reply::Cut { at: CutAt::Zero },
        Reply::Cut { at: CutAt::Headers },
        Reply::Cut { at: CutAt::Body },
        Reply::Hang,
        Reply::Hold,
    ];
    const VISIBLE: [Visible; 6] = [
        Visible::Now,
        Visible::Now,
        Visible::Now,
        Visible::After { ms: 200 },
        Visible::After { ms: 2000 },
        Visible::Never,
    ];
    const AFTERMATHS: [Aftermath; 4] =
        [Aftermath::None, Aftermath::None, Aftermath::Redeliver, Aftermath::ReceiptDuplicate];
    let (commit, mut reply) = (*dice.pick(&COMMITS), *dice.pick(&REPLIES));
    if commit == Commit::Never && reply == Reply::Ok {
        reply = Reply::Fin;
    }
    ProviderPlan { commit, reply, visible: *dice.pick(&VISIBLE), aftermath: *dice.pick(&AFTERMATHS) }
}
