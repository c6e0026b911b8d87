//! A short timeline by generation: what happened, with the evidence marked and the rest capped.

use std::collections::BTreeSet;

use killpoint_model::Event;
use schemars::JsonSchema;
use serde::Serialize;

use super::narrate::Told;

/// Most steps that a timeline shows; evidence stays even beyond it.
const STEPS_MAX: usize = 40;

/// What a step is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// The trial's own frame: its state, its commands, its end.
    Trial,
    /// A life of the worker began or ended by itself, or its output.
    Worker,
    /// A boundary was reached.
    Boundary,
    /// A fault of the plan, or the end of all of them.
    Fault,
    /// A worker's whole tree was killed.
    Killed,
    /// A write that reached the provider's wire.
    Attempt,
    /// A side effect, or the news that there is none.
    Effect,
    /// How an exchange went on the wire.
    Reply,
    /// A read by which the worker reconciles.
    Lookup,
    /// Something that the provider did by itself or by its plan.
    Provider,
    /// What the worker's ledger says.
    Ledger,
    /// The trial came to rest, or did not.
    Settled,
    /// The last look.
    Final,
    /// The machine failed, not the worker.
    Machine,
}

impl StepKind {
    /// The word of reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trial => "trial",
            Self::Worker => "worker",
            Self::Boundary => "boundary",
            Self::Fault => "fault",
            Self::Killed => "killed",
            Self::Attempt => "attempt",
            Self::Effect => "effect",
            Self::Reply => "reply",
            Self::Lookup => "lookup",
            Self::Provider => "provider",
            Self::Ledger => "ledger",
            Self::Settled => "settled",
            Self::Final => "final",
            Self::Machine => "machine",
        }
    }
}

/// How much a timeline wants an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Only as evidence.
    Background,
    /// Where there is room.
    Minor,
    /// Before all others.
    Major,
}

/// One event of a timeline, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Step {
    /// How many steps are left out before this one.
    pub left_out_before: u32,
    /// The event's sequence number in the history.
    pub event: u64,
    /// Microseconds since the trial began.
    pub at_us: u64,
    /// What it is about.
    pub kind: StepKind,
    /// What happened. Holds text of the worker.
    pub text: String,
    /// Whether a finding or a bad action points at it.
    pub evidence: bool,
}

/// The steps of one life of the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Generation {
    /// 0 before the first start, 1 before the first kill, 2 after the restart, and so on.
    pub generation: u32,
    /// In order.
    pub steps: Vec<Step>,
    /// How many steps are left out after the last one.
    pub left_out_after: u32,
}

/// A trial in short. Events that say nothing new, such as an accepted connection, are no steps, unless
/// they are evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Timeline {
    /// In order.
    pub generations: Vec<Generation>,
    /// How many steps are left out in all.
    pub left_out: u32,
}

/// A step that may stay.
#[derive(Debug)]
struct Candidate {
    weight: Weight,
    step: Step,
}

/// What a draft holds of one stretch of a history.
#[derive(Debug)]
enum Piece {
    /// An event that may become a step.
    Candidate(Candidate),
    /// So many events in a row that are left out already.
    Gap(u32),
}

/// A timeline while its history is read. Holds the evidence and as many others as a timeline can show at most, and
/// counts the rest.
#[derive(Debug)]
pub(super) struct Draft {
    evidence: BTreeSet<u64>,
    /// Each with the life of the worker to which it belongs.
    pieces: Vec<(u32, Piece)>,
    evident: usize,
    major: usize,
    minor: usize,
}

impl Draft {
    /// `evidence` are the numbers of the events that stay in any case.
    pub(super) const fn new(evidence: BTreeSet<u64>) -> Self {
        Self { evidence, pieces: Vec::new(), evident: 0, major: 0, minor: 0 }
    }

    /// Takes the next event with what it tells.
    pub(super) fn take(&mut self, event: &Event, Told { kind, weight, text }: Told) {
        let evidence = self.evidence.contains(&event.seq);
        let count = match weight {
            _ if evidence => &mut self.evident,
            Weight::Major => &mut self.major,
            Weight::Minor => &mut self.minor,
            Weight::Background => return,
        };
        // None but the first of each weight can stay, however few of the others there are.
        let may_stay = evidence || *count < STEPS_MAX;
        *count += 1;
        if may_stay {
            let step =
                Step { left_out_before: 0, event: event.seq, at_us: event.at_us, kind, text, evidence };
            self.pieces.push((event.generation, Piece::Candidate(Candidate { weight, step })));
            return;
        }
        match self.pieces.last_mut() {
            Some((generation, Piece::Gap(events))) if *generation == event.generation => *events += 1,
            _ => self.pieces.push((event.generation, Piece::Gap(1))),
        }
    }

    /// The timeline: all evidence, then major steps, then minor ones, the earlier first, as far as there is room.
    pub(super) fn finish(self) -> Timeline {
        let room = STEPS_MAX.saturating_sub(self.evident);
        let major = self.major.min(room);
        let (mut major, mut minor) = (major, room - major);
        let mut timeline = Timeline { generations: Vec::new(), left_out: 0 };
        for (generation, piece) in self.pieces {
            let (step, events) = match piece {
                Piece::Gap(events) => (None, events),
                Piece::Candidate(Candidate { weight, step }) => {
                    let room = if weight == Weight::Major { &mut major } else { &mut minor };
                    let stays = step.evidence || *room > 0;
                    if stays && !step.evidence {
                        *room -= 1;
                    }
                    (stays.then_some(step), 1)
                }
            };
            timeline.push(generation, step, events);
        }
        timeline
    }
}

impl Timeline {
    /// Adds a step, or so many events that are none.
    fn push(&mut self, generation: u32, step: Option<Step>, events: u32) {
        if self.generations.last().is_none_or(|last| last.generation != generation) {
            self.generations.push(Generation { generation, steps: Vec::new(), left_out_after: 0 });
        }
        let Some(current) = self.generations.last_mut() else { return };
        if let Some(step) = step {
            let left_out_before = std::mem::take(&mut current.left_out_after);
            current.steps.push(Step { left_out_before, ..step });
        } else {
            current.left_out_after += events;
            self.left_out += events;
        }
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::EventKind;

    use super::*;

    fn draft(count: u64, evidence: impl IntoIterator<Item = u64>, weight: impl Fn(u64) -> Weight) -> Draft {
        let mut draft = Draft::new(evidence.into_iter().collect());
        for seq in 1..=count {
            let event = Event { seq, at_us: 0, generation: 1, event: EventKind::FaultsOver };
            draft.take(&event, Told { kind: StepKind::Trial, weight: weight(seq), text: String::new() });
        }
        draft
    }

    fn weight(seq: u64) -> Weight {
        match seq {
            60 => Weight::Background,
            90 => Weight::Major,
            _ => Weight::Minor,
        }
    }

    #[test]
    fn evidence_and_major_steps_outlive_the_cap_and_the_rest_is_counted() {
        let timeline = draft(100, [60], weight).finish();
        let generation = &timeline.generations[0];
        let shown: Vec<u64> = generation.steps.iter().map(|step| step.event).collect();
        assert_eq!(shown.len(), STEPS_MAX);
        assert_eq!(&shown[37..], &[38, 60, 90]);
        let gaps: Vec<u32> = generation.steps[37..].iter().map(|step| step.left_out_before).collect();
        assert_eq!((gaps, generation.left_out_after), (vec![0, 21, 29], 10));
        assert_eq!(timeline.left_out, 60);
    }

    #[test]
    fn more_evidence_than_the_cap_all_stays() {
        let timeline = draft(60, 6..=60, |_| Weight::Major).finish();
        assert_eq!((timeline.generations[0].steps.len(), timeline.left_out), (55, 5));
    }

    #[test]
    fn a_draft_stays_small_and_counts_exactly() {
        let draft = draft(1_000_000, [1_000_000], weight);
        assert!(draft.pieces.len() <= 2 * STEPS_MAX + 4, "{}", draft.pieces.len());
        let timeline = draft.finish();
        // Event 60 says nothing by itself, and is no step that could be left out.
        assert_eq!(timeline.left_out as usize, 1_000_000 - 1 - STEPS_MAX);
        let last = timeline.generations[0].steps.last().unwrap();
        assert_eq!((last.event, last.left_out_before), (1_000_000, 1_000_000 - 1 - 90));
    }
}
