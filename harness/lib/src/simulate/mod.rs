//! A model check of the checker: workers, provider and harness in memory, so that millions of schedules can be
//! judged, each with the truth beside the verdict.
//!
//! [`simulate`] runs a plan as a real trial does, without processes, sockets and waiting: the provider is the real
//! state machine, the events are those of a real trial in the same order, the clock is a number. A modelled worker
//! is a coroutine that does one durable or visible act at a time, between which it can be stopped or killed; its
//! ledger outlives it, its memory does not. The [`Truth`] is what the model itself knows of what happened; where
//! [`disagreements`] are found, an invariant, the provider or the model is wrong.
//!
//! Reading order: `life` (what a worker does), `act` (how it asks for it), `world` (who acts next), `process`, `wire`,
//! `hits` and `faults` (what is done to it), `truth`, `disagree`.

mod act;
mod dice;
mod disagree;
mod exchange;
mod faults;
mod hits;
mod ledger;
mod life;
mod process;
mod record;
mod scene;
mod truth;
mod wire;
mod workers;
mod world;

use fake_provider::core::Core;
use killpoint_model::settings::{Lifecycle, SettleBy};
use killpoint_model::{History, Plan, Settings};

pub use disagree::disagreements;
pub use scene::{Scene, SceneKind, Tried, plan_for};
pub use truth::{Message, Truth};
pub use workers::{MODEL_WORKERS, ModelWorker};

use world::World;

/// A trial that was modelled.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// What a real trial would have put on record.
    pub history: History,
    /// What happened.
    pub truth: Truth,
}

/// Something that a model can't do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} can't be modelled: run it on a real worker")]
pub struct Unsupported {
    /// What.
    pub what: String,
}

/// Runs a plan on a modelled worker. The same arguments give the same history; `seed` says who acts first where
/// several could.
///
/// # Errors
/// What of the plan or the settings can't be modelled.
pub fn simulate(
    plan: &Plan,
    settings: &Settings,
    worker: &ModelWorker,
    seed: u64,
) -> Result<Simulated, Unsupported> {
    if let Some(what) = unsupported(plan, settings) {
        return Err(Unsupported { what });
    }
    let core = Core::new(settings.provider.clone(), plan.rules.clone())
        .map_err(|error| Unsupported { what: error.to_string() })?;
    let mut world = World::new(plan, settings, *worker, core, seed);
    world.run();
    let truth = Truth::of(&world, worker);
    Ok(Simulated { history: world.record.into_history(&plan.name), truth })
}

/// What of a plan or of settings can't be modelled.
fn unsupported(plan: &Plan, settings: &Settings) -> Option<String> {
    let lifecycle = settings.worker.lifecycle;
    if lifecycle != Lifecycle::Drains || settings.settle.by != SettleBy::Exit {
        return Some(format!("a worker that {lifecycle}"));
    }
    if settings.inbound.is_some() || settings.state.from.is_some() || settings.state.provider.is_some() {
        return Some("a feed, or a state that was there before".into());
    }
    if world::actions(plan, settings).iter().any(|action| action.body.trim() == "poison") {
        return Some("an action that kills its worker".into());
    }
    let bound =
        |fault: &&killpoint_model::plan::FaultAt| fault.at.source.is_none() || fault.at.selector.is_some();
    if let Some(fault) = plan.faults.iter().find(bound) {
        return Some(format!("the boundary `{}`, which is bound to no hit", fault.at));
    }
    plan.faults.iter().find_map(|fault| faults::unsupported(&fault.fault))
}

#[cfg(test)]
mod tests;
