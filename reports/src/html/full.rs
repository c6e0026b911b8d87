//! One trial in full, as the page's script draws it.

use killpoint_model::verdict::ActionOutcome;
use killpoint_model::{Finding, InvariantStatus};
use serde::Serialize;

use super::texts::Texts;
use crate::view::is_bad;
use crate::{Detail, Judged, Step, StepKind, Timeline};

/// Most findings of one invariant, and notes.
const FINDINGS_MAX: usize = 12;
/// Most actions, those that are not right first.
const ACTIONS_MAX: usize = 40;
/// Most event numbers behind one sentence.
const EVENTS_MAX: usize = 24;

/// Every kind of step; the data names them by their place.
pub(super) const KINDS: &[StepKind] = &[
    StepKind::Trial,
    StepKind::Worker,
    StepKind::Boundary,
    StepKind::Fault,
    StepKind::Killed,
    StepKind::Attempt,
    StepKind::Effect,
    StepKind::Reply,
    StepKind::Lookup,
    StepKind::Provider,
    StepKind::Ledger,
    StepKind::Settled,
    StepKind::Final,
    StepKind::Machine,
];

/// A trial in full.
#[derive(Debug, Serialize)]
pub(super) struct Full {
    judged: Vec<JudgedData>,
    missing: Vec<usize>,
    evidence: Vec<(usize, Option<bool>)>,
    notes: Findings,
    actions: Vec<ActionData>,
    actions_more: usize,
    /// Absent where there is no history.
    timeline: Option<Vec<GenerationData>>,
    /// Whether the timeline is left out to keep the page small.
    cut: bool,
}

/// Findings, and how many more there are.
#[derive(Debug, Serialize)]
struct Findings(Vec<FindingData>, usize);

/// Invariant, status, how many it looked at, findings.
#[derive(Debug, Serialize)]
struct JudgedData(usize, InvariantStatus, u32, Findings);

/// Invariant, message, subject, events, how many more events.
#[derive(Debug, Serialize)]
struct FindingData(usize, usize, usize, Vec<u64>, usize);

/// Verdict, whether it is bad, action, recipient, effects, expected, state (-1 where there is none), events.
#[derive(Debug, Serialize)]
struct ActionData(&'static str, bool, usize, usize, u32, u32, i64, Vec<u64>);

/// Generation, steps, how many are left out after the last.
#[derive(Debug, Serialize)]
struct GenerationData(u32, Vec<StepData>, u32);

/// Event, microseconds, kind, text, whether it is evidence, how many are left out before.
#[derive(Debug, Serialize)]
struct StepData(u64, u64, usize, usize, u8, u32);

impl Full {
    pub(super) fn new(detail: &Detail, with_timeline: bool, texts: &mut Texts) -> Self {
        let (bad, good): (Vec<_>, Vec<_>) = detail.actions.iter().partition(|one| is_bad(one.verdict));
        let actions = bad.into_iter().chain(good).take(ACTIONS_MAX);
        let timeline = detail.timeline.as_ref().filter(|_| with_timeline);
        Self {
            actions: actions.map(|outcome| action(outcome, texts)).collect(),
            actions_more: detail.actions.len().saturating_sub(ACTIONS_MAX),
            judged: detail.judged.iter().map(|judged| judged_data(judged, texts)).collect(),
            missing: detail.missing.iter().map(|text| texts.place(text)).collect(),
            evidence: detail.evidence.iter().map(|piece| (texts.place(&piece.name), piece.present)).collect(),
            notes: findings(&detail.notes, texts),
            timeline: timeline.map(|timeline| generations(timeline, texts)),
            cut: !with_timeline && detail.timeline.is_some(),
        }
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// How many bytes it takes in the page, without its texts.
    pub(super) fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |json| json.len())
    }

    /// How many bytes a trial takes at most, about.
    pub(super) fn bytes_about(detail: &Detail) -> usize {
        let steps = detail.timeline.iter().flat_map(|timeline| &timeline.generations);
        let steps = steps.flat_map(|generation| &generation.steps);
        Self::bytes_without_timeline_about(detail) + steps.map(|step| step.text.len() + 40).sum::<usize>()
    }

    /// The same without its timeline.
    pub(super) fn bytes_without_timeline_about(detail: &Detail) -> usize {
        let findings = detail.judged.iter().flat_map(|judged| judged.findings.iter().take(FINDINGS_MAX));
        let findings = findings.chain(detail.notes.iter().take(FINDINGS_MAX));
        let findings = findings.map(|one| one.message.len() + one.subject.len() + 60).sum::<usize>();
        let actions = detail.actions.iter().take(ACTIONS_MAX);
        let actions = actions.map(|one| one.action.len() + one.recipient.len() + 60).sum::<usize>();
        findings + actions + detail.missing.iter().map(String::len).sum::<usize>() + 300
    }
}

fn judged_data(judged: &Judged, texts: &mut Texts) -> JudgedData {
    let invariant = texts.place(&judged.invariant);
    JudgedData(invariant, judged.status, judged.looked_at, findings(&judged.findings, texts))
}

fn findings(findings: &[Finding], texts: &mut Texts) -> Findings {
    let shown = findings.iter().take(FINDINGS_MAX).map(|finding| {
        FindingData(
            texts.place(&finding.invariant),
            texts.place(&finding.message),
            texts.place(&finding.subject),
            finding.events.iter().take(EVENTS_MAX).copied().collect(),
            finding.events.len().saturating_sub(EVENTS_MAX),
        )
    });
    Findings(shown.collect(), findings.len().saturating_sub(FINDINGS_MAX))
}

fn action(outcome: &ActionOutcome, texts: &mut Texts) -> ActionData {
    ActionData(
        outcome.verdict.as_str(),
        is_bad(outcome.verdict),
        texts.place(&outcome.action),
        texts.place(&outcome.recipient),
        outcome.effects,
        outcome.expected,
        outcome.state.as_ref().map_or(-1, |state| texts.place(state) as i64),
        outcome.events.iter().take(EVENTS_MAX).copied().collect(),
    )
}

fn generations(timeline: &Timeline, texts: &mut Texts) -> Vec<GenerationData> {
    let mut step = |step: &Step| {
        let kind = KINDS.iter().position(|kind| *kind == step.kind).unwrap_or_default();
        let text = texts.place(&step.text);
        StepData(step.event, step.at_us, kind, text, u8::from(step.evidence), step.left_out_before)
    };
    let generations = timeline.generations.iter();
    generations
        .map(|one| {
            GenerationData(one.generation, one.steps.iter().map(&mut step).collect(), one.left_out_after)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_step_has_its_place() {
        let last = KINDS.last().map(|kind| *kind as usize);
        assert_eq!(last, Some(StepKind::Machine as usize));
        assert!(KINDS.iter().enumerate().all(|(place, kind)| *kind as usize == place));
    }
}
