//! What holds for the run as a whole, what was not shown, and the summary line.

use std::io;

use super::page::{Page, Tone, span};
use super::{counted, events_text, gate, more, summary};
use crate::{Boundary, Precision, TrialNote, View};

/// Most sentences of one list.
const SENTENCES_MAX: usize = 30;

pub(super) fn write(page: &mut Page, view: &View, run_dir: Option<&str>) -> io::Result<()> {
    page.blank()?;
    page.rule()?;
    boundaries(page, &view.boundaries)?;
    containments(page, view)?;
    notes(page, view)?;
    divided(page, view)?;
    gate::write(page, view)?;
    not_shown(page, view)?;
    list(page, "warnings", &view.warnings)?;
    if let Some(run_dir) = run_dir {
        page.text(0, &[span(Tone::Dim, "recorded in "), span(Tone::Plain, run_dir)])?;
    }
    if view.interrupted {
        page.text(0, &[span(Tone::Doubt, "the run was interrupted: what was recorded is kept")])?;
    }
    summary(page, view)
}

fn boundaries(page: &mut Page, boundaries: &[Boundary]) -> io::Result<()> {
    for (in_baseline, heading) in
        [(true, "boundaries that the baseline reached"), (false, "boundaries reached only under faults")]
    {
        if !boundaries.iter().any(|boundary| boundary.in_baseline == in_baseline) {
            continue;
        }
        page.text(0, &[span(Tone::Strong, heading)])?;
        for precision in [Precision::Exact, Precision::Sampled, Precision::Mixed] {
            let these = boundaries
                .iter()
                .filter(|boundary| boundary.in_baseline == in_baseline && boundary.precision == precision);
            let names = folded(these);
            if !names.is_empty() {
                let head = span(Tone::Dim, format!("{:<9}", precision.as_str()));
                page.headed(2, &[head], &[span(Tone::Plain, names.join(", "))])?;
            }
        }
    }
    Ok(())
}

/// Hits of one series as one name: `provider:committed#1–3`.
pub(crate) fn folded<'a>(boundaries: impl Iterator<Item = &'a Boundary>) -> Vec<String> {
    let mut series: Vec<(&str, Vec<u32>)> = Vec::new();
    for boundary in boundaries {
        match series.iter_mut().find(|(name, _)| *name == boundary.series) {
            Some((_, ordinals)) => ordinals.push(boundary.ordinal),
            None => series.push((&boundary.series, vec![boundary.ordinal])),
        }
    }
    series
        .into_iter()
        .flat_map(|(name, mut ordinals)| {
            ordinals.sort_unstable();
            let ranges: Vec<String> = ordinals
                .chunk_by(|a, b| a.checked_add(1) == Some(*b))
                .map(|chunk| match chunk {
                    [first, .., last] => format!("{name}#{first}–{last}"),
                    [one] => format!("{name}#{one}"),
                    [] => String::new(),
                })
                .collect();
            ranges
        })
        .collect()
}

fn containments(page: &mut Page, view: &View) -> io::Result<()> {
    let alone = view.containments.len() == 1;
    for used in &view.containments {
        let reason = used.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let trials = if alone { String::new() } else { format!(", in {}", counted(used.trials, "trial")) };
        let text = format!("{}{reason}, process limit {}{trials}", used.containment, used.process_limit);
        page.text(0, &[span(Tone::Strong, "held together by "), span(Tone::Plain, text)])?;
    }
    Ok(())
}

fn notes(page: &mut Page, view: &View) -> io::Result<()> {
    let sentences: Vec<String> = view
        .notes
        .iter()
        .map(|TrialNote { folder, boundary, provider_plan, note }| {
            let events = events_text(&note.events);
            format!(
                "{}: {} ({boundary} × {provider_plan}, trial {folder}, {events})",
                note.invariant, note.message
            )
        })
        .collect();
    list(page, "notes on trials that hold (no violation under this promise)", &sentences)
}

/// What a part of a run leaves to the others, or what of them is not there.
fn divided(page: &mut Page, view: &View) -> io::Result<()> {
    if let Some(shard) = &view.shard {
        let text = format!(
            "one of {}: {} are planned in all; `killpoint merge RUN…` puts them together and says what is missing",
            counted(shard.count, "shard"),
            counted(shard.planned, "trial")
        );
        page.text(0, &[span(Tone::Strong, format!("shard {} is ", shard.index)), span(Tone::Plain, text)])?;
    }
    let Some(merged) = &view.merged else { return Ok(()) };
    let lacking =
        merged.lacking.iter().map(|one| format!("shard {}/{}: {}", one.index, merged.count, one.why));
    list(page, "shards that are not whole", &lacking.collect::<Vec<_>>())?;
    let missing = merged.missing.iter().map(|one| {
        let again = if one.trial.repetition > 1 {
            format!(", repetition {}", one.trial.repetition)
        } else {
            String::new()
        };
        format!("{}{again} (shard {})", one.trial.name, one.shard)
    });
    list(page, "trials that are missing", &missing.collect::<Vec<_>>())
}

fn not_shown(page: &mut Page, view: &View) -> io::Result<()> {
    let invariants = view.not_shown.iter().map(|one| {
        let trials = if one.trials == one.of {
            String::new()
        } else {
            format!(" (in {} of {} trials)", one.trials, one.of)
        };
        format!("{}{trials}: {}", one.invariant, one.reason)
    });
    let sentences: Vec<String> = invariants.chain(view.not_claimed.iter().cloned()).collect();
    list(page, "not shown", &sentences)
}

fn list(page: &mut Page, heading: &str, sentences: &[String]) -> io::Result<()> {
    if sentences.is_empty() {
        return Ok(());
    }
    page.text(0, &[span(Tone::Strong, heading)])?;
    for sentence in sentences.iter().take(SENTENCES_MAX) {
        page.headed(2, &[span(Tone::Plain, "- ")], &[span(Tone::Plain, sentence)])?;
    }
    more(page, 2, sentences.len(), SENTENCES_MAX)
}
