//! A block for each trial that does not hold.

use std::io;

use killpoint_model::verdict::{ActionOutcome, ActionVerdict};
use killpoint_model::{Finding, InvariantStatus, Verdict};

use super::page::{self, Page, Tone, span};
use super::{counted, duration, events_text, mark_and_word, more, tone_of};
use crate::view::is_bad;
use crate::{Detail, Generation, Judged, Step, Timeline};

/// Most blocks that are shown in full.
const BLOCKS_MAX: usize = 12;
/// Most trials that are named in short after them.
const SHORT_MAX: usize = 50;
/// Most further repetitions that are named with a block.
const REPETITIONS_MAX: usize = 5;
/// Most findings of one invariant, and notes.
const FINDINGS_MAX: usize = 10;
/// Most actions, those of the findings first.
const ACTIONS_MAX: usize = 10;
/// From this width on a timeline has columns.
const TIMELINE_COLUMNS_FROM: usize = 72;

pub(super) fn write_all(page: &mut Page, details: &[Detail]) -> io::Result<()> {
    let groups = groups(details);
    for (index, group) in groups.iter().enumerate().take(BLOCKS_MAX + SHORT_MAX) {
        let [first, others @ ..] = group.as_slice() else { continue };
        page.blank()?;
        if index == BLOCKS_MAX {
            page.text(0, &[span(Tone::Strong, "more trials that do not hold, in short")])?;
        }
        if index < BLOCKS_MAX {
            full(page, first)?;
        } else {
            title(page, first)?;
            replay(page, first)?;
        }
        for other in others.iter().take(REPETITIONS_MAX) {
            let text = format!("the same verdict in repetition {} ({})", other.repetition, other.folder);
            page.text(2, &[span(Tone::Plain, text)])?;
            replay(page, other)?;
        }
        more(page, 2, others.len(), REPETITIONS_MAX)?;
    }
    more(page, 0, groups.len(), BLOCKS_MAX + SHORT_MAX)
}

/// Repetitions with the same verdict belong together: the first stands for all.
fn groups(details: &[Detail]) -> Vec<Vec<&Detail>> {
    let mut groups: Vec<Vec<&Detail>> = Vec::new();
    for detail in details {
        let same = |group: &&mut Vec<&Detail>| {
            group.first().is_some_and(|first| {
                (first.verdict, first.role) == (detail.verdict, detail.role)
                    && first.plan == detail.plan
                    && first.scenario == detail.scenario
            })
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(detail),
            None => groups.push(vec![detail]),
        }
    }
    groups
}

/// Everything about a trial as plain clean text, for formats that quote it.
pub(crate) fn quoted(detail: &Detail, with_timeline: bool) -> String {
    page::quoted(|page| {
        title(page, detail)?;
        body(page, detail, with_timeline)
    })
}

fn full(page: &mut Page, detail: &Detail) -> io::Result<()> {
    page.rule()?;
    title(page, detail)?;
    body(page, detail, true)
}

fn body(page: &mut Page, detail: &Detail, with_timeline: bool) -> io::Result<()> {
    let counters = detail.counters;
    let counted = format!(
        "{}, {}, {} acknowledged, in {}",
        counted(counters.attempts, "attempt"),
        counted(counters.effects, "effect"),
        counters.acknowledged,
        duration(detail.duration_ms)
    );
    page.text(2, &[span(Tone::Plain, format!("trial {}: {counted}", detail.folder))])?;
    for judged in &detail.judged {
        invariant(page, judged)?;
    }
    missing(page, detail)?;
    actions(page, &detail.actions)?;
    notes(page, &detail.notes)?;
    if let Some(timeline) = detail.timeline.as_ref().filter(|_| with_timeline) {
        page.blank()?;
        write_timeline(page, timeline)?;
    }
    page.blank()?;
    replay(page, detail)
}

fn title(page: &mut Page, detail: &Detail) -> io::Result<()> {
    let scenario = detail.scenario.as_ref().map(|name| format!(" · scenario {name}")).unwrap_or_default();
    let what = format!("  {} × {}{scenario}", detail.boundary, detail.provider_plan);
    page.text(0, &[span(tone_of(detail.verdict), mark_and_word(detail.verdict)), span(Tone::Strong, what)])
}

fn replay(page: &mut Page, detail: &Detail) -> io::Result<()> {
    page.as_it_is(2, &[span(Tone::Dim, "replay: "), span(Tone::Strong, &detail.replay)])
}

fn invariant(page: &mut Page, judged: &Judged) -> io::Result<()> {
    let tone = if judged.status == InvariantStatus::Violated { Tone::Bad } else { Tone::Doubt };
    page.blank()?;
    page.text(
        2,
        &[
            span(tone, format!("{} {}", judged.invariant, judged.status)),
            span(Tone::Dim, format!(", looked at {}", judged.looked_at)),
        ],
    )?;
    for finding in judged.findings.iter().take(FINDINGS_MAX) {
        write_finding(page, finding)?;
    }
    more(page, 4, judged.findings.len(), FINDINGS_MAX)
}

fn write_finding(page: &mut Page, finding: &Finding) -> io::Result<()> {
    let about =
        if finding.subject.is_empty() { String::new() } else { format!("about {}, ", finding.subject) };
    page.headed(4, &[span(Tone::Plain, "- ")], &[span(Tone::Plain, &finding.message)])?;
    page.text(6, &[span(Tone::Dim, format!("{about}{}", events_text(&finding.events)))])
}

fn missing(page: &mut Page, detail: &Detail) -> io::Result<()> {
    let absent: Vec<&str> = detail
        .evidence
        .iter()
        .filter(|piece| piece.present == Some(false))
        .map(|piece| piece.name.as_str())
        .collect();
    if absent.is_empty() && detail.missing.is_empty() {
        return Ok(());
    }
    page.blank()?;
    let heading = match detail.verdict {
        Some(Verdict::Vacuous) => "nothing was proven; evidence that is missing",
        _ => "evidence that is missing",
    };
    let names = if absent.is_empty() { String::new() } else { format!(": {}", absent.join(", ")) };
    page.text(2, &[span(Tone::Doubt, heading), span(Tone::Plain, names)])?;
    for sentence in &detail.missing {
        page.headed(4, &[span(Tone::Plain, "- ")], &[span(Tone::Plain, sentence)])?;
    }
    Ok(())
}

fn actions(page: &mut Page, actions: &[ActionOutcome]) -> io::Result<()> {
    if actions.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(2, &[span(Tone::Strong, "actions")])?;
    let (bad, good): (Vec<_>, Vec<_>) = actions.iter().partition(|outcome| is_bad(outcome.verdict));
    for outcome in bad.iter().chain(&good).take(ACTIONS_MAX) {
        let (tone, mark) = match outcome.verdict {
            ActionVerdict::Undetermined => (Tone::Doubt, "?"),
            verdict if is_bad(verdict) => (Tone::Bad, "✗"),
            _ => (Tone::Good, "✓"),
        };
        let state = outcome.state.as_ref().map(|state| format!(", the worker says {state}"));
        let text = format!(
            "{} to {}: {} of {} expected{}; {}",
            outcome.action,
            outcome.recipient,
            counted(outcome.effects, "effect"),
            outcome.expected,
            state.unwrap_or_default(),
            events_text(&outcome.events)
        );
        let head = span(tone, format!("{mark} {:<16}  ", outcome.verdict));
        page.headed(4, &[head], &[span(Tone::Plain, text)])?;
    }
    more(page, 4, actions.len(), ACTIONS_MAX)
}

fn notes(page: &mut Page, notes: &[Finding]) -> io::Result<()> {
    if notes.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(2, &[span(Tone::Strong, "notes"), span(Tone::Dim, " (no violation under this promise)")])?;
    for note in notes.iter().take(FINDINGS_MAX) {
        write_finding(page, note)?;
    }
    more(page, 4, notes.len(), FINDINGS_MAX)
}

fn write_timeline(page: &mut Page, timeline: &Timeline) -> io::Result<()> {
    page.text(2, &[span(Tone::Strong, "timeline"), span(Tone::Dim, " (* marks evidence)")])?;
    for generation in &timeline.generations {
        page.text(4, &[span(Tone::Dim, generation_name(generation))])?;
        for step in &generation.steps {
            left_out(page, step.left_out_before)?;
            write_step(page, step)?;
        }
        left_out(page, generation.left_out_after)?;
    }
    Ok(())
}

fn generation_name(generation: &Generation) -> String {
    match generation.generation {
        0 => "before the first start".to_owned(),
        1 => "generation 1".to_owned(),
        number => format!("generation {number}, after a restart"),
    }
}

fn write_step(page: &mut Page, step: &Step) -> io::Result<()> {
    let (mark, tone) = if step.evidence { ("*", Tone::Strong) } else { (" ", Tone::Plain) };
    let kind = step.kind.as_str();
    let head = if page.width() >= TIMELINE_COLUMNS_FROM {
        let at = format!("+{}", duration(step.at_us / 1000));
        format!("{mark} {:>4}  {at:>7}  {kind:<8}  ", step.event)
    } else {
        format!("{mark} {:>3} {kind} ", step.event)
    };
    page.headed(4, &[span(tone, head)], &[span(tone, &step.text)])
}

fn left_out(page: &mut Page, steps: u32) -> io::Result<()> {
    match steps {
        0 => Ok(()),
        steps => page.text(6, &[span(Tone::Dim, format!("… {steps} more"))]),
    }
}
