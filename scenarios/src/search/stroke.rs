//! What can be done at a moment, with the parameters that are worth trying: a short list, so that the space is
//! finite and each plan can be read.

use std::collections::BTreeSet;

use killpoint_model::{Fault, HitName};
use serde_json::Value;

use super::family::Family;

/// Where faults that belong together are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// All at one moment.
    Anywhere,
    /// All at one mark.
    Mark,
    /// At the mark in the producer's transaction.
    Producer,
    /// The first at one moment, the others at another.
    Apart,
}

/// Faults that belong together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stroke {
    pub(super) faults: Vec<Fault>,
    pub(super) place: Place,
    /// How many workers must be there from the beginning.
    pub(super) workers_min: u32,
}

impl Stroke {
    fn of(faults: impl Into<Vec<Fault>>) -> Self {
        Self { faults: faults.into(), place: Place::Anywhere, workers_min: 1 }
    }

    fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    fn among(self, workers_min: u32) -> Self {
        Self { workers_min, ..self }
    }
}

/// Whether a fault takes its time at a moment at which a request waits to be accepted. The request is accepted later than
/// any worker waits for an answer, and a lookup meanwhile denies it: without a provider that dedupes no worker is right
/// under that. Late acceptance is staged by provider plans, whose times a worker can be told.
pub fn delays_acceptance(at: &HitName, fault: &Fault) -> bool {
    let lasts = ["cleanup", "second-worker", "store-second", "stop"].contains(&fault.name.as_str());
    at.awaits_acceptance() && (lasts || fault.with.contains_key("answer-after"))
}

fn fault<const N: usize>(name: &str, with: [(&str, Value); N]) -> Fault {
    Fault { name: name.to_owned(), with: with.map(|(key, value)| (key.to_owned(), value)).into() }
}

fn lasting(name: &str, times: &[&str]) -> Vec<(u32, Stroke)> {
    times.iter().map(|time| (1, Stroke::of([fault(name, [("for", (*time).into())])]))).collect()
}

/// The strokes of these families with their weights, simplest first. `families` are those of the space: some
/// strokes of one family need what another one needs.
pub(super) fn strokes(chosen: &BTreeSet<Family>, families: &BTreeSet<Family>) -> Vec<(u32, Stroke)> {
    chosen.iter().flat_map(|family| of_family(*family, families)).collect()
}

fn of_family(family: Family, families: &BTreeSet<Family>) -> Vec<(u32, Stroke)> {
    match family {
        Family::Kill => kills(families),
        Family::Terminate => terminations(),
        Family::Stop => lasting("stop", &["250ms", "3s"]),
        Family::SecondWorker => second_workers(),
        Family::Barrier => {
            let barrier =
                |workers: u32| fault("barrier", [("workers", workers.into()), ("limit", "2s".into())]);
            [2, 3].map(|workers| (1, Stroke::of([barrier(workers)]).at(Place::Mark).among(workers))).into()
        }
        Family::ProviderClock => {
            let step = fault("provider-clock", [("by", "25h".into())]);
            let day = [fault("worker-clock", [("by", "25h".into())]), step.clone(), Fault::named("kill")];
            vec![(2, Stroke::of([step])), (2, Stroke::of(day))]
        }
        Family::WorkerClock => worker_clocks(families),
        Family::Cleanup => vec![(2, Stroke::of([Fault::named("cleanup")]))],
        Family::Producer => {
            let hold = |end: &str| fault("hold-producer", [("end", end.into()), ("quiet", "500ms".into())]);
            ["rollback", "commit"].map(|end| (1, Stroke::of([hold(end)]).at(Place::Producer))).into()
        }
        Family::Store => stores(),
        Family::StoreLoss => store_losses(families),
        Family::ProviderPlan | Family::Lookup | Family::Actions | Family::Workers => Vec::new(),
    }
}

fn kills(families: &BTreeSet<Family>) -> Vec<(u32, Stroke)> {
    let mut kills = vec![(12, Stroke::of([Fault::named("kill")]))];
    if families.contains(&Family::SecondWorker) {
        kills.push((2, Stroke::of([fault("kill", [("new-identity", true.into())])])));
    }
    if families.contains(&Family::Workers) {
        let one_of_two = |worker: u32| Stroke::of([fault("kill", [("worker", worker.into())])]).among(2);
        kills.extend([1, 2].map(|worker| (1, one_of_two(worker))));
    }
    kills
}

fn terminations() -> Vec<(u32, Stroke)> {
    let grace = |time: &str| fault("terminate", [("grace", time.into())]);
    let slow = fault("terminate", [("grace", "5s".into()), ("answer-after", "300ms".into())]);
    let all = [grace("5s"), grace("500ms"), grace("0s"), slow];
    all.map(|fault| (1, Stroke::of([fault]))).into()
}

fn second_workers() -> Vec<(u32, Stroke)> {
    let second = |with: &[(&str, Value)]| {
        let mut fault = fault("second-worker", [("quiet", "500ms".into())]);
        fault.with.extend(with.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        Stroke::of([fault])
    };
    vec![
        (2, second(&[])),
        (1, second(&[("then", "kill".into())])),
        (1, second(&[("stop", true.into())])),
        // Past most leases of a worker under test.
        (1, second(&[("stop", true.into()), ("quiet", "3s".into())])),
        (1, second(&[("same-identity", true.into())])),
        (1, second(&[("count", 2.into())])),
    ]
}

fn worker_clocks(families: &BTreeSet<Family>) -> Vec<(u32, Stroke)> {
    let offsets = ["5m", "-3h", "25h"];
    let restarted = |by: &str| Stroke::of([fault("worker-clock", [("by", by.into())]), Fault::named("kill")]);
    let mut clocks: Vec<(u32, Stroke)> = offsets.iter().map(|by| (1, restarted(by))).collect();
    if families.contains(&Family::SecondWorker) {
        let beside = |by: &str| {
            let clock = fault("worker-clock", [("worker", 2.into()), ("by", by.into())]);
            Stroke::of([clock, fault("second-worker", [("quiet", "500ms".into())])])
        };
        clocks.extend(["5m", "-3h"].iter().map(|by| (1, beside(by))));
    }
    clocks
}

fn stores() -> Vec<(u32, Stroke)> {
    let mut stores = lasting("store-busy", &["250ms", "2s"]);
    stores.push((1, Stroke::of([Fault::named("store-busy-snapshot")])));
    stores.extend(lasting("store-busy-snapshot", &["1s"]));
    stores.extend(lasting("store-read-only", &["250ms"]));
    stores.extend(lasting("store-no-space", &["250ms"]));
    stores.push((1, Stroke::of([fault("store-lock", [("file", "worker.pid".into())])])));
    stores
}

fn store_losses(families: &BTreeSet<Family>) -> Vec<(u32, Stroke)> {
    let copied = |then: Fault| Stroke::of([Fault::named("store-copy"), then]).at(Place::Apart);
    let mut losses = vec![
        // No commit that reached the disk is taken back here (`store-rollback`): no worker could be right under that.
        (2, Stroke::of([Fault::named("power-cut")])),
        (2, copied(Fault::named("store-restore"))),
    ];
    if families.contains(&Family::SecondWorker) {
        losses.push((1, copied(fault("store-second", [("quiet", "500ms".into())]))));
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::super::family::FAMILIES;
    use super::*;

    #[test]
    fn the_first_stroke_of_all_is_a_plain_kill() {
        let all: BTreeSet<Family> = FAMILIES.iter().map(|entry| entry.family).collect();
        let strokes = strokes(&all, &all);
        assert_eq!(strokes[0].1, Stroke::of([Fault::named("kill")]));
        assert!(strokes.len() > 30, "{}", strokes.len());
    }

    #[test]
    fn a_request_is_not_held_for_long_before_it_is_accepted() {
        let at = |text: &str| text.parse::<HitName>().unwrap();
        let second = fault("second-worker", []);
        assert!(delays_acceptance(&at("provider:received#2"), &second));
        assert!(delays_acceptance(&at("provider:connected[1]#1"), &fault("stop", [])));
        assert!(delays_acceptance(&at("provider:received#1"), &terminations()[3].1.faults[0]));
        assert!(!delays_acceptance(&at("provider:committed#1"), &second), "it is accepted already");
        assert!(!delays_acceptance(&at("mark:received#1"), &second), "a mark of that name");
        assert!(!delays_acceptance(&at("provider:received#1"), &Fault::named("kill")));
    }

    #[test]
    fn every_family_that_injects_has_strokes_unless_it_is_the_providers() {
        let all: BTreeSet<Family> = FAMILIES.iter().map(|entry| entry.family).collect();
        for entry in FAMILIES {
            let at_the_provider = matches!(entry.family, Family::ProviderPlan | Family::Lookup);
            let strokes = strokes(&[entry.family].into(), &all);
            assert_eq!(strokes.is_empty(), at_the_provider || !entry.family.injects(), "{}", entry.name);
        }
    }

    #[test]
    fn strokes_that_need_another_family_are_left_out_without_it() {
        let alone: BTreeSet<Family> = [Family::Kill, Family::StoreLoss].into();
        for (_, stroke) in strokes(&alone, &alone) {
            assert_eq!(stroke.workers_min, 1);
            assert!(stroke.faults.iter().all(|fault| fault.name != "store-second"), "{stroke:?}");
            assert!(stroke.faults.iter().all(|fault| !fault.with.contains_key("new-identity")), "{stroke:?}");
        }
    }
}
