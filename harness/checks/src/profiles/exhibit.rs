//! One judged trial, and what can be seen in it. Each look gives the events that show it; none: it is not so.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::event::EventKind;
use killpoint_model::finding::{InvariantOutcome, InvariantStatus};
use killpoint_model::provider::{ProviderEvent, Unanswered};
use killpoint_model::verdict::TrialVerdict;
use killpoint_model::{Event, History, HitName, LedgerRow, LedgerView, Plan, Verdict};

/// Workers from this number on are commands of the harness.
const PRODUCER: u32 = 90;

/// A judged trial.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit<'a> {
    /// Its folder within the run directory.
    pub folder: &'a str,
    /// What was to be done.
    pub plan: &'a Plan,
    /// The judgement.
    pub judged: &'a TrialVerdict,
    /// What happened.
    pub history: &'a History,
}

impl<'a> Exhibit<'a> {
    /// Whether it did what it was for, and it can be told what came of it: only such a trial shows that
    /// something is right.
    pub(super) fn is_sound(&self) -> bool {
        self.judged.evidence.is_complete()
            && !matches!(self.judged.verdict, Verdict::Vacuous | Verdict::Inconclusive)
    }

    /// What an invariant came to.
    pub(super) fn outcome(&self, invariant: &str) -> Option<&'a InvariantOutcome> {
        self.judged.outcomes.iter().find(|outcome| outcome.invariant == invariant)
    }

    /// Whether an invariant looked at something and all of it was right.
    pub(super) fn holds(&self, invariant: &str) -> bool {
        self.outcome(invariant)
            .is_some_and(|outcome| outcome.status == InvariantStatus::Holds && outcome.looked_at > 0)
    }

    /// Whether the trial rewinds the store further than any fault of a machine could: what is lost then says
    /// nothing about the worker.
    pub(super) fn is_what_if(&self) -> bool {
        !self.landed(&["store-rollback"]).is_empty()
    }

    /// Events before the harness begins to clear up.
    fn going_on(&self) -> impl Iterator<Item = &'a Event> {
        self.history.events.iter().take_while(|event| {
            !matches!(event.event, EventKind::Settled { .. } | EventKind::NotSettled { .. })
        })
    }

    /// Faults of these names that took hold: announcement and end of each.
    pub(super) fn landed(&self, names: &[&str]) -> Vec<u64> {
        let mut open = None;
        let mut events = Vec::new();
        for event in &self.history.events {
            match &event.event {
                EventKind::FaultAnnounced { at, fault } => {
                    open = names.contains(&fault.name.as_str()).then_some((at, event.seq));
                }
                EventKind::FaultDone { at, landed: true, .. } => {
                    if let Some((_, announced)) = open.take_if(|(announced, _)| *announced == at) {
                        events.extend([announced, event.seq]);
                    }
                }
                _ => {}
            }
        }
        events
    }

    /// What a fault of these names said when it did not take hold, and what the machine lacks for it.
    pub(super) fn refusal(&self, names: &[&str]) -> Option<&'a str> {
        let wanted = |at: &HitName| {
            self.plan.faults.iter().any(|fault| fault.at == *at && names.contains(&fault.fault.name.as_str()))
        };
        self.history.events.iter().find_map(|event| match &event.event {
            EventKind::Limitation { what, why } if names.contains(&what.as_str()) => Some(why.as_str()),
            EventKind::FaultDone { at, landed: false, note } if wanted(at) => Some(note.as_str()),
            _ => None,
        })
    }

    /// Kills of a living worker by signal 9, with the start of the next life of each.
    fn kills(&self) -> Vec<(u64, u64)> {
        let mut kills = Vec::new();
        let mut open: Option<&Event> = None;
        for event in self.going_on() {
            match &event.event {
                EventKind::Killed { proof, .. }
                    if proof.was_alive && proof.signal == Some(9) && proof.survivors == 0 =>
                {
                    open = Some(event);
                }
                EventKind::Spawned { .. } => {
                    if let Some(kill) = open.take_if(|kill| event.generation > kill.generation) {
                        kills.push((kill.seq, event.seq));
                    }
                }
                _ => {}
            }
        }
        kills
    }

    /// Restarts after a kill: the kill and the start.
    pub(super) fn restarts(&self) -> Vec<u64> {
        self.kills().into_iter().flat_map(|(kill, start)| [kill, start]).collect()
    }

    /// Starts of workers beside the first.
    pub(super) fn second_workers(&self) -> Vec<u64> {
        let starts = self.going_on().filter(|event| {
            matches!(event.event, EventKind::Spawned { worker, .. } if (2..PRODUCER).contains(&worker))
        });
        starts.map(|event| event.seq).collect()
    }

    /// Readings of the ledger that gave rows, the last look included.
    pub(super) fn views(&self) -> impl Iterator<Item = (u64, &'a [LedgerRow])> {
        let rows = |view: &'a LedgerView| view.rows.as_deref();
        self.history.ledger_views().filter_map(move |(seq, view)| Some((seq, rows(view)?)))
    }

    /// Restarts after a kill that found such a row in the ledger, as it was last read before: the reading, the
    /// kill and the start.
    pub(super) fn restarts_on(&self, row: impl Fn(&LedgerRow) -> bool) -> Vec<u64> {
        let mut events = Vec::new();
        for (kill, start) in self.kills() {
            let last = self.views().take_while(|(seq, _)| *seq < start).last();
            if let Some((seq, _)) = last.filter(|(_, rows)| rows.iter().any(&row)) {
                events.extend([seq, kill, start]);
            }
        }
        events
    }

    /// The first reading after an event that has such a row.
    pub(super) fn row_after(&self, seq: u64, row: impl Fn(&LedgerRow) -> bool) -> Option<u64> {
        self.views().find(|(at, rows)| *at > seq && rows.iter().any(&row)).map(|(at, _)| at)
    }

    /// Replies that were lost although the provider had accepted: acceptance and loss of each.
    pub(super) fn lost_after_acceptance(&self) -> Vec<u64> {
        let mut accepted = BTreeMap::new();
        let mut events = Vec::new();
        for (seq, event) in self.history.provider() {
            match event {
                ProviderEvent::Committed(effect) => {
                    accepted.insert(effect.attempt, seq);
                }
                ProviderEvent::Unanswered { attempt, .. } => {
                    events.extend(accepted.get(attempt).into_iter().flat_map(|at| [*at, seq]));
                }
                _ => {}
            }
        }
        events
    }

    /// Attempts that ended without an answer because it took too long.
    pub(super) fn timeouts(&self) -> Vec<u64> {
        self.unanswered(|how| matches!(how, Unanswered::Hang | Unanswered::ClientGone))
    }

    /// Attempts that ended without an answer, for whatever reason.
    pub(super) fn doubts(&self) -> Vec<u64> {
        self.unanswered(|_| true)
    }

    fn unanswered(&self, wanted: impl Fn(Unanswered) -> bool) -> Vec<u64> {
        let events = self
            .history
            .provider()
            .filter(|(_, event)| matches!(event, ProviderEvent::Unanswered { how, .. } if wanted(*how)));
        events.map(|(seq, _)| seq).collect()
    }

    /// The first lookup after an event that was answered.
    pub(super) fn lookup_after(&self, seq: u64) -> Option<u64> {
        let mut answers = self.history.provider().filter(|(at, event)| {
            *at > seq && matches!(event, ProviderEvent::LookupReplied { status, .. } if *status < 500)
        });
        answers.next().map(|(at, _)| at)
    }

    /// Attempts under a key that was used before: the earlier one and the later one. With `restarted` only
    /// where a life of the worker lies between.
    pub(super) fn same_key_again(&self, restarted: bool) -> Vec<u64> {
        let mut first: BTreeMap<&str, &Event> = BTreeMap::new();
        let mut events = Vec::new();
        for event in &self.history.events {
            let EventKind::Provider(ProviderEvent::Received(attempt)) = &event.event else { continue };
            let Some(key) = attempt.key.as_deref() else { continue };
            let earlier = *first.entry(key).or_insert(event);
            if earlier.seq < event.seq && (!restarted || earlier.generation < event.generation) {
                events.extend([earlier.seq, event.seq]);
            }
        }
        events
    }

    /// Effects that exist before an event and after another one.
    pub(super) fn effects_between(&self, from: u64, to: u64) -> Vec<u64> {
        self.history.effects().map(|(seq, _)| seq).filter(|seq| (from..to).contains(seq)).collect()
    }

    /// Effects whose key another one has had: the earlier and the later one.
    pub(super) fn effects_of_one_key(&self) -> Vec<u64> {
        let mut first: BTreeMap<&str, u64> = BTreeMap::new();
        let mut events = Vec::new();
        for (seq, effect) in self.history.effects() {
            let Some(key) = effect.key.as_deref() else { continue };
            let earlier = *first.entry(key).or_insert(seq);
            if earlier < seq {
                events.extend([earlier, seq]);
            }
        }
        events
    }

    /// Ids of all effects.
    pub(super) fn effect_ids(&self) -> BTreeSet<&'a str> {
        self.history.effects().map(|(_, effect)| effect.id.as_str()).collect()
    }

    /// Readings of the worker's own metrics.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (u64, &'a BTreeMap<String, u64>)> {
        self.history.events.iter().filter_map(|event| match &event.event {
            EventKind::Metrics { values, error: None } => Some((event.seq, values)),
            _ => None,
        })
    }

    /// Where a store that was looked at after a kill called itself damaged.
    pub(super) fn damage(&self) -> Option<(u64, &'a str)> {
        self.history.events.iter().find_map(|event| match &event.event {
            EventKind::Integrity { sound: false, detail } => Some((event.seq, detail.as_str())),
            _ => None,
        })
    }
}
