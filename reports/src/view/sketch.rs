//! What a report keeps of one history. Taken in event by event, and small whatever the history's length.

use killpoint_model::event::{Containment, ProcessLimit};
use killpoint_model::provider::Counters;
use killpoint_model::{Event, EventKind, HitName, TrialRecord};

use super::detail::Marked;
use super::narrate::Narrator;
use super::timeline::{Draft, Timeline};

/// Most hits of one trial that are listed.
const HITS_MAX: usize = 10_000;

/// How a trial's history was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// From the first event to the end of the trial.
    Whole,
    /// To its last whole event, which is not the end of the trial.
    Truncated,
    /// There is none.
    Missing,
}

/// How a worker was held together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) containment: Containment,
    pub(super) reason: Option<String>,
    pub(super) process_limit: ProcessLimit,
}

/// What a report keeps of one history.
#[derive(Debug)]
pub(super) struct Sketch {
    /// The hits in order, each with whether its moment is exact.
    pub(super) hits: Vec<(HitName, bool)>,
    /// How many more hits there are.
    pub(super) hits_left_out: u64,
    /// Absent where the trial did not begin.
    pub(super) held: Option<Held>,
    /// The provider's three numbers.
    pub(super) counters: Counters,
    /// What happened in short, where it was asked for.
    pub(super) timeline: Option<Timeline>,
}

/// Makes a sketch.
pub(super) struct Sketcher<'a> {
    sketch: Sketch,
    telling: Option<(Narrator<'a>, Draft)>,
}

impl<'a> Sketcher<'a> {
    /// For the history of a trial; with its timeline where `marked` says what is evidence in it.
    pub(super) fn new(trial: &'a TrialRecord, marked: Option<Marked>) -> Self {
        let telling = marked
            .map(|Marked { events, subjects }| (Narrator::new(&trial.plan, subjects), Draft::new(events)));
        let sketch = Sketch {
            hits: Vec::new(),
            hits_left_out: 0,
            held: None,
            counters: Counters::default(),
            timeline: None,
        };
        Self { sketch, telling }
    }

    pub(super) fn take(&mut self, event: &Event) {
        match &event.event {
            EventKind::TrialStarted { containment, containment_reason, process_limit, .. } => {
                self.sketch.held = Some(Held {
                    containment: *containment,
                    reason: containment_reason.clone(),
                    process_limit: *process_limit,
                });
            }
            EventKind::Hit { hit, exact, .. } if self.sketch.hits.len() < HITS_MAX => {
                self.sketch.hits.push((hit.clone(), *exact));
            }
            EventKind::Hit { .. } => self.sketch.hits_left_out += 1,
            EventKind::Provider(event) => self.sketch.counters.add(event),
            _ => {}
        }
        if let Some((narrator, draft)) = &mut self.telling {
            draft.take(event, narrator.tell(&event.event));
        }
    }

    pub(super) fn finish(self) -> Sketch {
        Sketch { timeline: self.telling.map(|(_, draft)| draft.finish()), ..self.sketch }
    }
}
