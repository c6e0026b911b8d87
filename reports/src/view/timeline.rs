//! A short timeline by generation: what happened, with the evidence marked and the rest capped.

use killpoint_model::{History, Plan};
use schemars::JsonSchema;
use serde::Serialize;

use super::detail::Marked;
use super::narrate::{Narrator, Told};

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

struct Candidate {
    generation: u32,
    weight: Weight,
    step: Step,
}

/// Tells a history in short.
pub(super) fn tell(history: &History, plan: &Plan, marked: &Marked) -> Timeline {
    let mut narrator = Narrator::new(plan, &marked.subjects);
    let candidates: Vec<Candidate> = history
        .events
        .iter()
        .filter_map(|event| {
            let Told { kind, weight, text } = narrator.tell(&event.event);
            let evidence = marked.events.contains(&event.seq);
            let (seq, at_us, generation) = (event.seq, event.at_us, event.generation);
            (evidence || weight > Weight::Background).then_some(Candidate {
                generation,
                weight,
                step: Step { left_out_before: 0, event: seq, at_us, kind, text, evidence },
            })
        })
        .collect();
    let kept = choose(&candidates);
    arrange(candidates, &kept)
}

/// Which candidates stay: all evidence, then major ones, then minor ones, the earlier first.
fn choose(candidates: &[Candidate]) -> Vec<bool> {
    let mut kept: Vec<bool> = candidates.iter().map(|candidate| candidate.step.evidence).collect();
    let mut room = STEPS_MAX.saturating_sub(kept.iter().filter(|kept| **kept).count());
    for weight in [Weight::Major, Weight::Minor] {
        for (candidate, kept) in candidates.iter().zip(&mut kept) {
            if room > 0 && !*kept && candidate.weight == weight {
                *kept = true;
                room -= 1;
            }
        }
    }
    kept
}

fn arrange(candidates: Vec<Candidate>, kept: &[bool]) -> Timeline {
    let mut timeline = Timeline { generations: Vec::new(), left_out: 0 };
    for (Candidate { generation, mut step, .. }, kept) in candidates.into_iter().zip(kept) {
        if timeline.generations.last().is_none_or(|last| last.generation != generation) {
            timeline.generations.push(Generation { generation, steps: Vec::new(), left_out_after: 0 });
        }
        let Some(current) = timeline.generations.last_mut() else { continue };
        if *kept {
            step.left_out_before = std::mem::take(&mut current.left_out_after);
            current.steps.push(step);
        } else {
            current.left_out_after += 1;
            timeline.left_out += 1;
        }
    }
    timeline
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(event: u64, weight: Weight, evidence: bool) -> Candidate {
        let (kind, text) = (StepKind::Trial, String::new());
        Candidate {
            generation: 1,
            weight,
            step: Step { left_out_before: 0, event, at_us: 0, kind, text, evidence },
        }
    }

    #[test]
    fn evidence_and_major_steps_outlive_the_cap_and_the_rest_is_counted() {
        let candidates: Vec<Candidate> = (1..=100)
            .map(|seq| match seq {
                60 => candidate(seq, Weight::Background, true),
                90 => candidate(seq, Weight::Major, false),
                _ => candidate(seq, Weight::Minor, false),
            })
            .collect();
        let kept = choose(&candidates);
        let timeline = arrange(candidates, &kept);
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
        let candidates: Vec<Candidate> = (1..=60).map(|seq| candidate(seq, Weight::Major, seq > 5)).collect();
        assert_eq!(choose(&candidates).iter().filter(|kept| **kept).count(), 55);
    }
}
