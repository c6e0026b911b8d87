//! Known failures, and what changed since the stored boundaries.

use std::io;

use killpoint_model::changed::ChangedRecord;
use killpoint_model::known::{Baseline, BaselineUpdate, KnownFailure, SeenFailure};

use super::page::{self, Page, Tone, span};
use super::{counted, more};
use crate::View;

/// Most entries of one list.
const ENTRIES_MAX: usize = 20;

/// What there is to say of both as plain clean text, for formats that quote it; empty where there is nothing.
pub(crate) fn quoted_gate(view: &View) -> String {
    page::quoted(|page| write(page, view))
}

/// Both, where there is something to say.
pub(super) fn write(page: &mut Page, view: &View) -> io::Result<()> {
    if let Some(known) = &view.baseline {
        baseline(page, known)?;
    }
    view.changed.as_ref().map_or(Ok(()), |record| changed(page, record))
}

fn baseline(page: &mut Page, baseline: &Baseline) -> io::Result<()> {
    let heading = format!("known failures of {}", baseline.file);
    let summary =
        format!(": {}, {} new", counted(baseline.known.len() as u32, "known violation"), baseline.new.len());
    page.text(0, &[span(Tone::Strong, heading), span(Tone::Doubt, summary)])?;
    list(page, "known", Tone::Doubt, baseline.known.iter().map(seen))?;
    list(page, "new", Tone::Bad, baseline.new.iter().map(seen))?;
    list(
        page,
        "stale: take it out of the file, or run with --update-baseline",
        Tone::Bad,
        entries(&baseline.stale),
    )?;
    list(page, "flaky, not seen this time", Tone::Doubt, entries(&baseline.unseen))?;
    list(page, "not judged this time", Tone::Doubt, entries(&baseline.unclear))?;
    list(page, "not part of this run, left alone", Tone::Dim, entries(&baseline.not_run))?;
    match &baseline.update {
        Some(update) => page.text(2, &[span(Tone::Plain, updated(update, &baseline.file))]),
        None => Ok(()),
    }
}

fn updated(update: &BaselineUpdate, file: &str) -> String {
    let BaselineUpdate { written, added, removed } = update;
    let what = format!("{added} put in, {removed} taken out");
    if *written {
        format!("{file} was written: {what}")
    } else {
        format!("{file} was not written, though: {what}")
    }
}

fn list(page: &mut Page, what: &str, tone: Tone, entries: impl Iterator<Item = String>) -> io::Result<()> {
    let entries: Vec<String> = entries.collect();
    if entries.is_empty() {
        return Ok(());
    }
    page.text(2, &[span(tone, what)])?;
    for entry in entries.iter().take(ENTRIES_MAX) {
        page.headed(4, &[span(Tone::Plain, "- ")], &[span(Tone::Plain, entry)])?;
    }
    more(page, 4, entries.len(), ENTRIES_MAX)
}

fn entries(entries: &[KnownFailure]) -> impl Iterator<Item = String> {
    entries.iter().map(one)
}

fn seen(seen: &SeenFailure) -> String {
    let share = if seen.of > 1 { format!(" ({} of {})", seen.red, seen.of) } else { String::new() };
    format!("{}{share}", one(&seen.failure))
}

fn one(failure: &KnownFailure) -> String {
    format!("{}: {}: {}", failure.trial, failure.invariant, failure.finding)
}

fn changed(page: &mut Page, changed: &ChangedRecord) -> io::Result<()> {
    let ChangedRecord { file, is_first, changes, uncovered, skipped, of, written, not_written } = changed;
    let summary = if *is_first {
        format!("there was no {file}: nothing could be compared, and nothing was left out")
    } else if changes.is_empty() {
        format!("none since {file}")
    } else {
        format!("since {file}")
    };
    page.text(0, &[span(Tone::Strong, "changes of boundaries: "), span(Tone::Plain, summary)])?;
    let names = |hits: &[killpoint_model::HitName]| hits.iter().map(ToString::to_string).collect::<Vec<_>>();
    let counts = changes.counts.iter().map(|one| format!("{}: {} → {}", one.series, one.before, one.now));
    for (what, hits) in [
        ("new", names(&changes.new)),
        ("gone", names(&changes.gone)),
        ("changed in number", counts.collect()),
        ("in another place", names(&changes.moved)),
    ] {
        if !hits.is_empty() {
            let shown = hits.iter().take(ENTRIES_MAX).cloned().collect::<Vec<_>>().join(", ");
            page.headed(2, &[span(Tone::Plain, format!("{what}: "))], &[span(Tone::Plain, shown)])?;
            more(page, 4, hits.len(), ENTRIES_MAX)?;
        }
    }
    list(
        page,
        "new, and no trial, scenario or regression acts there",
        Tone::Bad,
        names(uncovered).into_iter(),
    )?;
    if *skipped > 0 {
        let text = format!(
            "{skipped} of {of} trials of the sweep were left out: nothing changed where they act. What is said here is not \
             said of the whole; a run without --changed is"
        );
        page.text(2, &[span(Tone::Doubt, text)])?;
    }
    match (written, not_written) {
        (true, _) => page.text(2, &[span(Tone::Plain, format!("{file} was written"))]),
        (false, Some(why)) => page.text(2, &[span(Tone::Doubt, format!("{file} was not written: {why}"))]),
        (false, None) => Ok(()),
    }
}
