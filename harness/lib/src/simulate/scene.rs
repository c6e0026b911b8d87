//! A modelled worker with its settings and fault-free trials, and plans to try on it.

use std::collections::BTreeMap;

use killpoint_checks::{Case, judge};
use killpoint_model::event::EventKind;
use killpoint_model::named_plan::PROVIDER_PLANS;
use killpoint_model::plan::{
    ActionSpec, Aftermath, Commit, CutAt, FaultAt, Match, ProviderPlan, Reply, Rule, Visible,
};
use killpoint_model::run::TrialRole;
use killpoint_model::settings::{CommandSettings, LedgerSettings, MetricsSettings};
use killpoint_model::{Fault, History, HitName, Plan, Settings, TrialVerdict};
use serde_json::Value;

use super::dice::Dice;
use super::{ModelWorker, Simulated, Unsupported, disagreements, simulate};

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
        settings.provider.idempotency.dedupe = self == Self::Deduping;
        settings.state.enqueue = Some(CommandSettings::default());
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
    hits: Vec<HitName>,
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
        let hits = first.history.events.iter().filter_map(|event| match &event.event {
            EventKind::Hit { hit, live: true, .. } => Some(hit.clone()),
            _ => None,
        });
        Ok(Self { worker, settings: settings.clone(), hits: hits.collect(), baselines: BTreeMap::new() })
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

/// The plan of one case: the same for the same scene, seed and case.
pub fn plan_for(scene: &Scene, seed: u64, case: u64) -> Plan {
    let mut dice = Dice::new(seed ^ case.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let workers = *dice.pick(&[1, 1, 1, 1, 2, 2, 3]);
    let rules = *dice.pick(&[0, 0, 1, 1, 1, 2]);
    let faults = *dice.pick(&[0, 1, 1, 1, 2, 3]);
    Plan {
        name: format!("modelled {case}"),
        provider_plan: if rules > 0 { "mixed".into() } else { "ok".into() },
        rules: (0..rules).map(|number| rule(&mut dice, number)).collect(),
        faults: (0..faults).map(|_| fault_at(&mut dice, &scene.hits)).collect(),
        actions: some_actions(&mut dice),
        workers,
        ..Plan::default()
    }
}

fn some_actions(dice: &mut Dice) -> Vec<ActionSpec> {
    match dice.below(12) {
        0 => vec![
            action("action-1", &["ann@example.com"], "hello 1"),
            action("action-2", &["bob@example.com"], "hello 2"),
        ],
        1 => vec![action("action-1", &["ann@example.com", "bob@example.com"], "hello both")],
        2 => vec![
            action("action-1", &["ann@example.com"], "the same"),
            action("action-2", &["ann@example.com"], "the same"),
        ],
        3 => vec![
            action("action-1", &["ann@example.com"], "one"),
            action("action-2", &["ann@example.com"], "two"),
            action("action-3", &["eve@example.com"], "one"),
        ],
        _ => Vec::new(),
    }
}

fn rule(dice: &mut Dice, number: u32) -> Rule {
    let id = format!("rule-{number}");
    let nth = (!dice.one_in(6)).then(|| *dice.pick(&[1, 1, 1, 2, 2, 3]));
    let times = (nth.is_none() && !dice.one_in(4)).then(|| *dice.pick(&[1, 2, 3]));
    let of = |operation: &str| Match { operation: Some(operation.into()), nth, ..Match::default() };
    if dice.one_in(5) {
        const REPLIES: [Reply; 5] = [
            Reply::Status { code: 500 },
            Reply::Status { code: 503 },
            Reply::Fin,
            Reply::Cut { at: CutAt::Body },
            Reply::Hang,
        ];
        let plan = ProviderPlan { reply: *dice.pick(&REPLIES), ..ProviderPlan::default() };
        return Rule { id, matches: of("lookup"), plan, times };
    }
    let plan = if dice.one_in(2) { dice.pick(PROVIDER_PLANS).plan } else { point(dice) };
    Rule { id, matches: of("create"), plan, times }
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

fn fault_at(dice: &mut Dice, hits: &[HitName]) -> FaultAt {
    let mut at = match hits {
        [] => HitName::new(killpoint_model::Source::Provider, "received", 1),
        hits => dice.pick(hits).clone(),
    };
    // What recovery reaches again is not in the fault-free trial.
    at.ordinal += *dice.pick(&[0, 0, 0, 1, 1, 2]);
    FaultAt { at, fault: fault(dice) }
}

fn fault(dice: &mut Dice) -> Fault {
    let with = |name: &str, with: &[(&str, Value)]| Fault {
        name: name.to_owned(),
        with: with.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
    };
    let time = Value::from(*dice.pick(&["100ms", "600ms", "1s", "3s"]));
    match dice.below(16) {
        0 => with("terminate", &[("grace", time)]),
        1 => with("terminate", &[("grace", Value::from("2s")), ("answer-after", Value::from("300ms"))]),
        2 | 3 => with("stop", &[("for", time)]),
        4 => with("second-worker", &[("quiet", Value::from("1s"))]),
        5 => with("second-worker", &[("quiet", Value::from("3s")), ("stop", Value::from(true))]),
        6 => with("second-worker", &[("quiet", Value::from("1s")), ("then", Value::from("kill"))]),
        7 => with("provider-clock", &[("by", Value::from(*dice.pick(&["1h", "25h"])))]),
        8 => with("worker-clock", &[("by", Value::from(*dice.pick(&["5m", "-5m", "11h"])))]),
        9 => with("kill", &[("new-identity", Value::from(true))]),
        10 => Fault::named("cleanup"),
        _ => Fault::named("kill"),
    }
}
