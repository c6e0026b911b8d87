//! What trials have shown so far, read from their histories: which moments came, and at which of them something
//! was done.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::event::EventKind;
use killpoint_model::plan::{Aftermath, Visible};
use killpoint_model::provider::ProviderEvent;
use killpoint_model::{History, HitName, ProviderPlan, Source};
use serde::{Deserialize, Serialize};

use super::space::{GENERATIONS_MAX, Space};
use crate::rule::plan_name;

/// Series of boundaries that are remembered at most: a worker may put an id into each mark's name.
const BOUNDARIES_MAX: usize = 1000;
/// Hits that are remembered at most.
const HITS_MAX: usize = 4000;

/// A moment of one kind in one life of the worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pair {
    /// The boundary without its ordinal, such as `provider:committed`.
    pub boundary: String,
    /// What the provider does with the attempt that the moment is about, or else with the last one before it:
    /// `ok`, `drop-after-accept`, …; for a lookup what its reader sees: `ok`, `status(503)`, `hang`, …
    pub outcome: String,
    /// Which life of the worker, from 1; [`GENERATIONS_MAX`] stands for all from that one on.
    pub generation: u32,
}

/// How often a pair came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Moments that a live worker reached.
    pub reached: u64,
    /// Moments at which a fault took hold.
    pub struck: u64,
}

/// Boundary to outcome to generation to how often.
pub type Matrix = BTreeMap<String, BTreeMap<String, BTreeMap<u32, Seen>>>;

/// What became of one hit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HitTally {
    /// Trials in which it came.
    pub(super) came: u32,
    /// Trials that waited for it with a fault.
    pub(super) asked: u32,
    /// Those of them in which it came.
    pub(super) answered: u32,
}

/// What trials have shown so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    trials: u64,
    matrix: Matrix,
    hits: BTreeMap<HitName, HitTally>,
    /// Operations of lookups, with how often each came.
    lookups: BTreeMap<String, u64>,
    /// What is not to be had on this machine or with this worker.
    lacking: BTreeSet<String>,
}

impl Coverage {
    /// Takes a trial's history into account.
    pub fn note(&mut self, history: &History) {
        self.trials += 1;
        let outcomes = Outcomes::of(history);
        let mut latest = "ok";
        let mut asked = BTreeSet::new();
        let mut came: BTreeMap<&HitName, Pair> = BTreeMap::new();
        let mut announced = BTreeSet::new();
        for event in &history.events {
            match &event.event {
                EventKind::TrialStarted { plan, .. } => {
                    asked.extend(plan.faults.iter().map(|fault| &fault.at));
                }
                EventKind::Provider(ProviderEvent::Received(attempt)) => {
                    latest = outcomes.attempt(attempt.id);
                }
                EventKind::Provider(ProviderEvent::LookedUp(lookup)) => {
                    *self.lookups.entry(lookup.operation.clone()).or_default() += 1;
                }
                EventKind::Hit { hit, live: true, subject, .. } if hit.source.is_some() => {
                    let outcome = outcomes.at(hit, subject.as_deref()).unwrap_or(latest);
                    let pair = Pair {
                        boundary: hit.series(),
                        outcome: outcome.to_owned(),
                        generation: event.generation.clamp(1, GENERATIONS_MAX),
                    };
                    self.count(&pair, |seen| seen.reached += 1);
                    came.insert(hit, pair);
                }
                EventKind::FaultAnnounced { at, .. } => drop(announced.insert(at)),
                EventKind::FaultDone { at, landed: true, .. } => {
                    if let Some(pair) = came.get(at) {
                        self.count(pair, |seen| seen.struck += 1);
                    }
                }
                EventKind::Limitation { what, .. } => drop(self.lacking.insert(what.clone())),
                _ => {}
            }
        }
        for hit in came.keys() {
            self.tally(hit, |tally| tally.came += 1);
        }
        for hit in asked {
            self.tally(hit, |tally| {
                tally.asked += 1;
                tally.answered += u32::from(announced.contains(hit));
            });
        }
    }

    fn count(&mut self, pair: &Pair, count: fn(&mut Seen)) {
        if self.matrix.len() < BOUNDARIES_MAX || self.matrix.contains_key(&pair.boundary) {
            let row = self.matrix.entry(pair.boundary.clone()).or_default();
            let cell = row.entry(pair.outcome.clone()).or_default().entry(pair.generation).or_default();
            count(cell);
        }
    }

    fn tally(&mut self, hit: &HitName, count: impl FnOnce(&mut HitTally)) {
        if self.hits.len() < HITS_MAX || self.hits.contains_key(hit) {
            count(self.hits.entry(hit.clone()).or_default());
        }
    }

    /// Counts a fault at a pair without a history.
    #[cfg(test)]
    pub(super) fn strike(&mut self, pair: &Pair) {
        self.count(pair, |seen| seen.struck += 1);
    }

    /// Histories that were noted.
    pub fn trials(&self) -> u64 {
        self.trials
    }

    /// Boundary × outcome × generation to how often.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// The pairs at which a fault took hold.
    pub fn seen(&self) -> BTreeSet<Pair> {
        let mut seen = BTreeSet::new();
        for (boundary, row) in &self.matrix {
            for (outcome, lives) in row {
                let struck = lives.iter().filter(|(_, seen)| seen.struck > 0);
                seen.extend(struck.map(|(generation, _)| Pair {
                    boundary: boundary.clone(),
                    outcome: outcome.clone(),
                    generation: *generation,
                }));
            }
        }
        seen
    }

    /// The pairs of a space at which no fault took hold so far: those of the first life first.
    pub fn unseen(&self, space: &Space) -> Vec<Pair> {
        let struck = |pair: &Pair| {
            let cell = self.matrix.get(&pair.boundary)?.get(&pair.outcome)?.get(&pair.generation)?;
            (cell.struck > 0).then_some(())
        };
        space.pairs(self).into_iter().filter(|pair| struck(pair).is_none()).collect()
    }

    pub(super) fn hit(&self, hit: &HitName) -> HitTally {
        self.hits.get(hit).copied().unwrap_or_default()
    }

    pub(super) fn tallies(&self) -> impl Iterator<Item = (&HitName, &HitTally)> {
        self.hits.iter()
    }

    /// The hits that came in trials, by name.
    pub(super) fn hits(&self) -> impl Iterator<Item = &HitName> {
        self.hits.iter().filter(|(hit, tally)| tally.came > 0 && hit.source.is_some()).map(|(hit, _)| hit)
    }

    /// The boundaries that were reached, by name.
    pub(super) fn boundaries(&self) -> impl Iterator<Item = &str> {
        self.matrix.keys().map(String::as_str)
    }

    pub(super) fn lookups(&self) -> &BTreeMap<String, u64> {
        &self.lookups
    }

    /// Whether a trial said that a fault can't be done here.
    pub(super) fn lacks(&self, fault: &str) -> bool {
        self.lacking.contains(fault) || (fault == "hold-producer" && self.lacking.contains("producer"))
    }
}

/// What the provider does with a write, whatever lookups see later.
pub(super) fn outcome_of(plan: ProviderPlan) -> String {
    plan_name(ProviderPlan { visible: Visible::Now, aftermath: Aftermath::None, ..plan })
}

/// What the provider did with each request of a trial.
struct Outcomes {
    attempts: BTreeMap<u32, String>,
    lookups: BTreeMap<u32, String>,
}

impl Outcomes {
    fn of(history: &History) -> Self {
        let mut outcomes = Self { attempts: BTreeMap::new(), lookups: BTreeMap::new() };
        for (_, event) in history.provider() {
            let ProviderEvent::RuleFired { attempt, lookup, plan, .. } = event else { continue };
            if *lookup {
                outcomes.lookups.insert(*attempt, plan.reply.to_string());
            } else {
                outcomes.attempts.insert(*attempt, outcome_of(*plan));
            }
        }
        outcomes
    }

    fn attempt(&self, id: u32) -> &str {
        self.attempts.get(&id).map_or("ok", String::as_str)
    }

    /// The outcome of the request that a hit is about; `None` for one that is about none.
    fn at(&self, hit: &HitName, subject: Option<&str>) -> Option<&str> {
        if hit.source != Some(Source::Provider) || hit.point == "connected" {
            return None;
        }
        let id = subject?.parse().ok()?;
        Some(match hit.point.as_str() {
            "lookup" => self.lookups.get(&id).map_or("ok", String::as_str),
            _ => self.attempt(id),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, history, hit, kills, received};
    use super::*;
    use killpoint_model::event::{Containment, ProcessLimit};
    use killpoint_model::provider::Lookup;
    use killpoint_model::{Fault, Plan, named_plan};

    fn started(plan: Plan) -> (u32, EventKind) {
        let event = EventKind::TrialStarted {
            plan,
            containment: Containment::PidNamespace,
            containment_reason: None,
            process_limit: ProcessLimit::Rlimit,
        };
        (0, event)
    }

    fn fired(attempt: u32, lookup: bool, plan: ProviderPlan) -> EventKind {
        EventKind::Provider(ProviderEvent::RuleFired { rule: "rule-1".into(), attempt, lookup, plan })
    }

    fn announced(at: &str) -> EventKind {
        EventKind::FaultAnnounced { at: at.parse().unwrap(), fault: Fault::named("kill") }
    }

    fn done(at: &str, landed: bool) -> EventKind {
        EventKind::FaultDone { at: at.parse().unwrap(), landed, note: String::new() }
    }

    fn lookup(id: u32) -> EventKind {
        EventKind::Provider(ProviderEvent::LookedUp(Lookup {
            id,
            connection: 1,
            operation: "list".into(),
            target: "GET /v1/messages".into(),
            subject: String::new(),
            found: Vec::new(),
            at_ms: 0,
        }))
    }

    /// Killed at a mark after a lost reply, then at a lookup that fails; the third fault never comes.
    fn trial() -> History {
        let lost = named_plan::find("drop-after-accept").unwrap().plan;
        let lags = ProviderPlan { visible: Visible::After { ms: 500 }, ..lost };
        let fails = ProviderPlan { reply: killpoint_model::plan::Reply::Hang, ..ProviderPlan::default() };
        history(vec![
            started(kills(&["mark:saved#1", "provider:lookup#1", "provider:received#7"])),
            (1, hit("mark:before-claim#1", None, true)),
            (1, received(1)),
            (1, fired(1, false, lags)),
            (1, hit("provider:committed#1", Some(1), true)),
            (1, hit("mark:saved#1", None, true)),
            (1, announced("mark:saved#1")),
            (2, done("mark:saved#1", true)),
            (2, lookup(1)),
            (2, fired(1, true, fails)),
            (2, hit("provider:lookup#1", Some(1), true)),
            (2, announced("provider:lookup#1")),
            (2, done("provider:lookup#1", false)),
            (9, hit("ledger:removed#1", None, false)),
            (9, hit("ledger:confirmed#1", None, true)),
        ])
    }

    fn pair(boundary: &str, outcome: &str, generation: u32) -> Pair {
        Pair { boundary: boundary.into(), outcome: outcome.into(), generation }
    }

    #[test]
    fn a_history_says_what_came_and_what_was_struck() {
        let mut coverage = Coverage::default();
        coverage.note(&trial());
        let cell = |boundary: &str, outcome: &str, generation: u32| {
            let lives = coverage.matrix().get(boundary).and_then(|row| row.get(outcome));
            lives.and_then(|lives| lives.get(&generation)).map(|seen| (seen.reached, seen.struck))
        };
        assert_eq!(cell("mark:before-claim", "ok", 1), Some((1, 0)), "before the first request");
        assert_eq!(cell("provider:committed", "drop-after-accept", 1), Some((1, 0)));
        assert_eq!(cell("mark:saved", "drop-after-accept", 1), Some((1, 1)), "in the life that it ended");
        assert_eq!(cell("provider:lookup", "hang", 2), Some((1, 0)), "the kill did not land");
        assert_eq!(cell("ledger:removed", "drop-after-accept", 3), None, "nobody lived");
        assert_eq!(
            cell("ledger:confirmed", "drop-after-accept", 3),
            Some((1, 0)),
            "the third life and later"
        );
        assert_eq!(coverage.seen(), [pair("mark:saved", "drop-after-accept", 1)].into());
        assert_eq!(coverage.trials(), 1);
    }

    #[test]
    fn what_was_waited_for_in_vain_is_known() {
        let mut coverage = Coverage::default();
        coverage.note(&trial());
        coverage.note(&trial());
        let tally = |name: &str| {
            let tally = coverage.hit(&name.parse().unwrap());
            (tally.came, tally.asked, tally.answered)
        };
        assert_eq!(tally("mark:saved#1"), (2, 2, 2));
        assert_eq!(tally("provider:received#7"), (0, 2, 0));
        assert_eq!(tally("provider:committed#1"), (2, 0, 0));
        assert_eq!(coverage.lookups().get("list"), Some(&2));
    }

    #[test]
    fn struck_pairs_are_unseen_no_more_and_recovery_adds_its_own() {
        let space = fixture::space();
        let mut coverage = Coverage::default();
        let before = coverage.unseen(&space);
        assert!(before.contains(&pair("mark:before-claim", "rejected", 2)));
        assert!(before.iter().all(|pair| pair.boundary != "mark:saved"));
        coverage.note(&trial());
        let after = coverage.unseen(&space);
        assert!(!after.contains(&pair("mark:saved", "drop-after-accept", 1)));
        assert!(after.contains(&pair("mark:saved", "drop-after-accept", 2)));
        assert!(after.contains(&pair("provider:lookup", "fin", 2)));
        assert!(after.len() > before.len());
    }

    #[test]
    fn coverage_can_be_stored_and_taken_up_again() {
        let mut coverage = Coverage::default();
        coverage.note(&trial());
        let text = serde_json::to_string(&coverage).unwrap();
        assert_eq!(serde_json::from_str::<Coverage>(&text).unwrap(), coverage);
    }

    #[test]
    fn a_worker_that_puts_ids_into_its_marks_does_not_fill_the_memory() {
        let mut coverage = Coverage::default();
        for trial in 0..50 {
            let events = (0..200).map(|id| (1, hit(&format!("mark:item-{trial}-{id}#1"), None, true)));
            coverage.note(&history(events.collect()));
        }
        assert_eq!((coverage.matrix().len(), coverage.hits.len()), (BOUNDARIES_MAX, HITS_MAX));
    }
}
