//! The evidence without which a trial shows nothing, each piece with what to do when it is missing.

use std::collections::BTreeSet;

use killpoint_model::event::{Event, EventKind, KillProof};
use killpoint_model::finding::{InvariantOutcome, InvariantStatus};
use killpoint_model::hit::{CANONICAL, HitName, Source};
use killpoint_model::provider::ProviderEvent;
use killpoint_model::verdict::TrialEvidence;
use killpoint_model::{Fault, LedgerView, Plan};

use crate::facts::sorted::Sorted;
use crate::judge::Case;

/// Faults that end a life, after which another one has to come.
const DEADLY: [&str; 5] = ["kill", "terminate", "change", "store-restore", "store-rollback"];
/// The one of them that asks, and lets the worker end by itself.
const ASKS: &str = "terminate";

/// Whether a fault ends the whole life of a worker: a part of its tree may be killed and the rest live on.
fn is_deadly(fault: &Fault) -> bool {
    let part = fault.with.get("part").and_then(|part| part.as_str());
    DEADLY.contains(&fault.name.as_str()) && part.is_none_or(|part| part == "tree")
}

/// Collects the evidence of a trial.
pub(crate) fn collect(case: &Case<'_>, sorted: &Sorted<'_>, outcomes: &[InvariantOutcome]) -> TrialEvidence {
    let events = sorted.rare.as_slice();
    let plan = events.iter().find_map(|event| match &event.event {
        EventKind::TrialStarted { plan, .. } => Some(plan),
        _ => None,
    });
    let mut evidence = TrialEvidence::default();
    let mut missing = Vec::new();
    if let Some(plan) = plan {
        evidence.boundary_reached = boundaries(case, plan, &mut missing);
        let kills = FaultKills::read(plan, events);
        evidence.signal_landed = kills.landed(&mut missing);
        evidence.generation_advanced = kills.advanced(events, &mut missing);
        evidence.recovery_acted = kills.recovered(case, &mut missing);
        evidence.faults_landed = faults_landed(events, plan, &mut missing);
        evidence.provider_plan_fired = rules(sorted, plan, &mut missing);
        evidence.faults_over = faults_over(events, plan, &mut missing);
    } else {
        evidence.boundary_reached = Some(false);
        missing.push("the history does not say what was to be done: record the trial again".to_owned());
    }
    evidence.means_at_hand = means_at_hand(events, &mut missing);
    evidence.settle_complete = Some(settled(events, &mut missing));
    let looked =
        outcomes.iter().any(|outcome| outcome.looked_at > 0 && outcome.status != InvariantStatus::NotShown);
    if !looked {
        missing.push(
            "no invariant looked at anything: check that the worker reaches the fake provider, and map its ledger"
                .to_owned(),
        );
    }
    evidence.invariants_looked = Some(looked);
    evidence.missing = missing;
    evidence
}

/// Names under which a boundary of the plan may have been recorded: a canonical one is bound by the
/// settings, by a mark of that name, or by default.
fn names_of(at: &HitName, case: &Case<'_>) -> Vec<HitName> {
    let with_ordinal = |hit: &HitName| HitName { ordinal: at.ordinal, ..hit.clone() };
    let mut names = vec![at.clone()];
    if at.source.is_none() {
        names.push(HitName { source: Some(Source::Mark), ..at.clone() });
        names.extend(case.settings.bindings.get(&at.point).map(with_ordinal));
        let default = CANONICAL.iter().find(|(name, _)| *name == at.point);
        names.extend(default.and_then(|(_, hit)| hit.parse::<HitName>().ok()).as_ref().map(with_ordinal));
    }
    names
}

fn boundaries(case: &Case<'_>, plan: &Plan, missing: &mut Vec<String>) -> Option<bool> {
    if plan.faults.is_empty() {
        return None;
    }
    let wanted: Vec<Vec<HitName>> = plan.faults.iter().map(|fault| names_of(&fault.at, case)).collect();
    let known: BTreeSet<&HitName> = wanted.iter().flatten().collect();
    let hits = case.history.events.iter().filter_map(|event| match &event.event {
        EventKind::Hit { hit, live: true, .. } => known.get(hit).copied(),
        _ => None,
    });
    let hits: BTreeSet<&HitName> = hits.collect();
    let mut complete = true;
    for (fault, names) in plan.faults.iter().zip(&wanted) {
        if !names.iter().any(|name| hits.contains(name)) {
            complete = false;
            missing.push(format!(
                "boundary `{}` was never reached by a living worker: compare with the hits of the baseline, or correct its name or ordinal",
                fault.at
            ));
        }
    }
    Some(complete)
}

/// Faults of the plan that end a life, with what followed each announcement.
struct FaultKills<'a> {
    planned: usize,
    announced: Vec<FaultKill<'a>>,
}

/// One such fault.
struct FaultKill<'a> {
    at: &'a HitName,
    /// Whether the worker may have ended by itself, as it was asked to.
    asks: bool,
    proofs: Vec<(&'a Event, &'a KillProof)>,
    /// The worker's own end, as it was asked to.
    exit: Option<&'a Event>,
    /// Whether the fault says of itself that it took hold, where it says something.
    landed: Option<bool>,
}

impl<'a> FaultKill<'a> {
    /// What ended the life, where something did.
    fn death(&self) -> Option<&'a Event> {
        self.proofs.last().map(|(event, _)| *event).or(self.exit)
    }

    fn took_hold(&self) -> bool {
        let signal = self.proofs.iter().any(|(_, proof)| proof.was_alive && proof.signal == Some(9));
        self.landed != Some(false) && (signal || (self.asks && self.exit.is_some()))
    }
}

impl<'a> FaultKills<'a> {
    fn read(plan: &Plan, events: &[&'a Event]) -> Self {
        let planned = plan.faults.iter().filter(|fault| is_deadly(&fault.fault)).count();
        let mut announced: Vec<FaultKill<'a>> = Vec::new();
        let mut open = false;
        for event in events {
            match &event.event {
                EventKind::FaultAnnounced { at, fault } if is_deadly(fault) => {
                    let asks = fault.name == ASKS;
                    let (proofs, exit, landed) = (Vec::new(), None, None);
                    announced.push(FaultKill { at, asks, proofs, exit, landed });
                    open = true;
                }
                EventKind::FaultDone { at, landed, .. } => {
                    if let Some(kill) = announced.iter_mut().rev().find(|kill| kill.at == at) {
                        kill.landed.get_or_insert(*landed);
                    }
                }
                EventKind::Killed { proof, .. } if open => {
                    if let Some(kill) = announced.last_mut() {
                        kill.proofs.push((event, proof));
                    }
                }
                EventKind::Exited { .. } if open => {
                    if let Some(kill) = announced.last_mut().filter(|kill| kill.asks) {
                        kill.exit.get_or_insert(event);
                    }
                }
                // One that was asked to end may take its time, while others start.
                EventKind::Spawned { .. } => {
                    open &= announced.last().is_some_and(|kill| kill.asks && kill.death().is_none());
                }
                EventKind::Settled { .. } | EventKind::NotSettled { .. } => open = false,
                _ => {}
            }
        }
        Self { planned, announced }
    }

    fn landed(&self, missing: &mut Vec<String>) -> Option<bool> {
        let mut complete = self.announced.len() >= self.planned;
        if !complete {
            missing.push(format!(
                "{} of {} kills were announced: the boundary of the other was not reached, or the worker had ended",
                self.announced.len(),
                self.planned
            ));
        }
        for kill in self.announced.iter().filter(|kill| !kill.took_hold()) {
            complete = false;
            missing.push(format!(
                "no signal ended a living worker at `{}`: choose a boundary at which the worker waits, such as `provider:committed`",
                kill.at
            ));
        }
        (self.planned > 0 || !self.announced.is_empty()).then_some(complete)
    }

    fn advanced(&self, events: &[&Event], missing: &mut Vec<String>) -> Option<bool> {
        let spawned: Vec<(u64, u32)> = (events.iter())
            .filter(|event| matches!(event.event, EventKind::Spawned { .. }))
            .map(|event| (event.seq, event.generation))
            .collect();
        let mut complete = true;
        for kill in &self.announced {
            let ends = kill.proofs.iter().map(|(event, proof)| (*event, proof.survivors));
            for (event, survivors) in ends.chain(kill.exit.map(|event| (event, 0))) {
                let from = spawned.partition_point(|(seq, _)| *seq < event.seq);
                let next = spawned.get(from).is_some_and(|(_, generation)| *generation > event.generation);
                if !next {
                    complete = false;
                    missing.push(format!(
                        "no new generation was started after the death of event {}: allow a restart",
                        event.seq
                    ));
                }
                if survivors > 0 {
                    complete = false;
                    missing.push(format!(
                        "{survivors} processes outlived the kill of event {}: the next generation may not have been alone; use a stronger containment",
                        event.seq
                    ));
                }
            }
        }
        let concerned = self.planned > 0 || !self.announced.is_empty();
        if concerned && self.announced.iter().all(|kill| kill.death().is_none()) {
            complete = false;
            missing.push("no life was ended, so none came after it: see why no kill took hold".to_owned());
        }
        concerned.then_some(complete)
    }

    fn recovered(&self, case: &Case<'_>, missing: &mut Vec<String>) -> Option<bool> {
        let kill = self.announced.iter().filter_map(FaultKill::death).next_back();
        let acted = kill.is_some_and(|kill| {
            let at_death = view_at_death(kill, &case.history.events);
            acted(kill, at_death, &case.history.events) || nothing_owed(kill, at_death, case)
        });
        if kill.is_some() && !acted {
            missing.push(
                "after the last kill the worker did nothing that can be seen: no request, no row, no file, no clean exit; check that a restart starts recovery, or that the settle time is long enough"
                    .to_owned(),
            );
        }
        if self.planned > 0 && kill.is_none() {
            missing.push("there was no death to recover from: see why no kill took hold".to_owned());
        }
        (self.planned > 0 || kill.is_some()).then_some(acted)
    }
}

/// The ledger as the kill left it: read on the dead tree, or at the hit, where the worker stood still.
fn view_at_death<'a>(kill: &Event, events: &'a [Event]) -> Option<&'a LedgerView> {
    let died = events.partition_point(|event| event.seq <= kill.seq);
    let on_the_dead =
        events[died..].iter().take_while(|event| !matches!(event.event, EventKind::Spawned { .. }));
    // Nothing but hits and readings lies between the moment at which the worker stood still and its death.
    let standing = events[..died].iter().rev().take_while(|event| {
        matches!(
            event.event,
            EventKind::Killed { .. }
                | EventKind::FaultAnnounced { .. }
                | EventKind::Hit { .. }
                | EventKind::Ledger { .. }
        )
    });
    let mut views = on_the_dead.chain(standing).filter_map(|event| match &event.event {
        EventKind::Ledger { view, .. } if view.exact && view.rows.is_some() => Some(view),
        _ => None,
    });
    views.next()
}

/// Whether the recovery after a kill left a trace.
fn acted(kill: &Event, at_death: Option<&LedgerView>, events: &[Event]) -> bool {
    let from = events.partition_point(|event| event.seq <= kill.seq);
    let changed =
        |view: &LedgerView| at_death.is_some_and(|before| view.rows.is_some() && view.rows != before.rows);
    let mut restarted = false;
    events[from..].iter().any(|event| {
        let new_life = event.generation > kill.generation;
        restarted |= new_life && matches!(event.event, EventKind::Spawned { .. });
        match &event.event {
            EventKind::Provider(ProviderEvent::Received(_) | ProviderEvent::LookedUp(_)) => restarted,
            EventKind::Hit { hit, .. } => {
                new_life && matches!(hit.source, Some(Source::Mark | Source::Ledger))
            }
            EventKind::Exited { code: Some(0), .. } => new_life,
            EventKind::Ledger { view, .. } => restarted && changed(view),
            EventKind::Final { view, state_changed, .. } => *state_changed || changed(view),
            _ => false,
        }
    })
}

/// Whether nothing was left to do at the kill: every row decided, or without rows every effect of the
/// baseline already there.
fn nothing_owed(kill: &Event, at_death: Option<&LedgerView>, case: &Case<'_>) -> bool {
    let later = case.history.ledger_views().filter(|(seq, view)| *seq > kill.seq && view.rows.is_some());
    let view = at_death.or_else(|| later.map(|(_, view)| view).next());
    let decided = |view: &LedgerView| view.rows.iter().flatten().all(|row| row.state.is_terminal());
    let before = case.history.effects().filter(|(seq, _)| *seq < kill.seq).count();
    let done = case.baselines.first().is_some_and(|baseline| before >= baseline.effects().count().max(1));
    match view {
        Some(view) => decided(view) && (done || view.rows.as_ref().is_some_and(|rows| !rows.is_empty())),
        None => done,
    }
}

fn rules(sorted: &Sorted<'_>, plan: &Plan, missing: &mut Vec<String>) -> Option<bool> {
    if plan.rules.is_empty() {
        return None;
    }
    let fired: BTreeSet<&str> = (sorted.provider.iter())
        .filter_map(|(_, event)| match event {
            ProviderEvent::RuleFired { rule, .. } => Some(rule.as_str()),
            _ => None,
        })
        .collect();
    let mut complete = true;
    for rule in &plan.rules {
        if !fired.contains(rule.id.as_str()) {
            complete = false;
            missing.push(format!(
                "provider rule `{}` never fired: no request matched it; compare its `match` with the attempts of the baseline",
                rule.id
            ));
        }
    }
    Some(complete)
}

/// Every fault of the plan was announced and says that it took hold; deadly ones are known by their signal as well.
fn faults_landed(events: &[&Event], plan: &Plan, missing: &mut Vec<String>) -> Option<bool> {
    let mut complete = true;
    let mut waiting: Vec<(&HitName, &Fault)> = Vec::new();
    let mut planned: Vec<(&HitName, &Fault)> = plan.faults.iter().map(|due| (&due.at, &due.fault)).collect();
    for event in events {
        match &event.event {
            EventKind::FaultAnnounced { at, fault } => {
                waiting.push((at, fault));
                if let Some(index) = planned.iter().position(|due| *due == (at, fault)) {
                    planned.remove(index);
                }
            }
            EventKind::FaultDone { at, landed, note } => {
                let announced = waiting.iter().rposition(|(waiting, _)| *waiting == at);
                let name = announced.map_or("", |index| waiting.remove(index).1.name.as_str());
                if !landed {
                    complete = false;
                    missing.push(format!("the fault {name} at `{at}` did not take hold: {note}"));
                }
            }
            EventKind::PartKilled { part, processes: 0, worker } => {
                complete = false;
                missing.push(format!("worker {worker} had no {part} to kill: it has one process only"));
            }
            _ => {}
        }
    }
    for (at, fault) in waiting.iter().filter(|(_, fault)| !is_deadly(fault)) {
        complete = false;
        missing.push(format!(
            "the fault {} at `{at}` was announced and never done: give the trial more time",
            fault.name
        ));
    }
    // A kill that was not announced is told with the other kills.
    for (at, fault) in planned.into_iter().filter(|(_, fault)| !is_deadly(fault)) {
        complete = false;
        missing.push(format!(
            "the fault {} at `{at}` was never begun: its boundary was not reached while it could be done",
            fault.name
        ));
    }
    (!plan.faults.is_empty()).then_some(complete)
}

/// Whether nothing that the plan needs was lacking.
fn means_at_hand(events: &[&Event], missing: &mut Vec<String>) -> Option<bool> {
    let before = missing.len();
    for event in events {
        if let EventKind::Limitation { what, why } = &event.event {
            missing.push(format!("{what} is not to be had here: {why}"));
        }
    }
    (missing.len() > before).then_some(false)
}

/// Workers that a fault stopped and nobody let go on, as they are at the end of a trial.
fn still_stopped(events: &[&Event]) -> BTreeSet<u32> {
    let mut stopped = BTreeSet::new();
    for event in events {
        match &event.event {
            EventKind::Stopped { worker } => {
                stopped.insert(*worker);
            }
            EventKind::Resumed { worker }
            | EventKind::Killed { worker, .. }
            | EventKind::Exited { worker, .. }
            | EventKind::Spawned { worker, .. } => {
                stopped.remove(worker);
            }
            // What still lives is ended by the harness after that.
            EventKind::Settled { .. } | EventKind::NotSettled { .. } => break,
            _ => {}
        }
    }
    stopped
}

fn faults_over(events: &[&Event], plan: &Plan, missing: &mut Vec<String>) -> Option<bool> {
    let mut over = false;
    let mut looked = false;
    for event in events {
        match &event.event {
            EventKind::FaultsOver => over = true,
            EventKind::FaultAnnounced { .. } => over = false,
            EventKind::Final { .. } => looked = over,
            _ => {}
        }
    }
    // A fault announced after the last look spoils it.
    let mut complete = looked && over;
    for worker in still_stopped(events) {
        complete = false;
        missing.push(format!(
            "worker {worker} was still stopped when the trial came to rest: let the stop end before the deadline"
        ));
    }
    if !plan.is_baseline() && !complete {
        missing.push(
            "the faults were not over before the last look: let the last fault be reached, or give the trial more time"
                .to_owned(),
        );
    }
    (!plan.is_baseline()).then_some(complete)
}

fn settled(events: &[&Event], missing: &mut Vec<String>) -> bool {
    let complete =
        events.iter().any(|event| matches!(event.event, EventKind::Settled { window_complete: true, .. }))
            && !events.iter().any(|event| matches!(event.event, EventKind::NotSettled { .. }));
    if !complete {
        missing.push(
            "the trial did not come to rest with its whole settle window: raise `settle.deadline`, or see why the worker does not finish"
                .to_owned(),
        );
    }
    complete
}
