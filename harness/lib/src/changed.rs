//! The boundaries of the run's fault-free trials held against stored ones: what changed is told, and a sweep is
//! narrowed to it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use killpoint_model::changed::{ChangedRecord, compare, live_hits, steady};
use killpoint_model::known::Baseline;
use killpoint_model::{HitName, Plan, Verdict};

use crate::agree::Part;
use crate::error::RunError;
use crate::explore::stored;
use crate::known::write;
use crate::progress::Progress;
use crate::run::Runner;

/// The moment that every narrowed sweep tries, so that none is empty.
const ALWAYS: &str = "provider:committed#1";

/// Stored boundaries, as a run is given them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBoundaries {
    /// The file.
    pub file: PathBuf,
    /// What it holds; absent where there is no file yet.
    pub hits: Option<Vec<HitName>>,
    /// Whether a sweep leaves out what did not change.
    pub narrow: bool,
    /// Whether the file is written after the run. It always is where there is none yet.
    pub update: bool,
}

impl<P: Progress> Runner<'_, P> {
    /// The live hits of the two fault-free trials of the worker's own actions.
    fn fault_free_hits(&self) -> [Vec<HitName>; 2] {
        let of = |index: usize| self.baselines.first().and_then(|pair| pair.get(index)).map(live_hits);
        let one = of(0).unwrap_or_default();
        [one.clone(), of(1).unwrap_or(one)]
    }

    /// Compares the boundaries, and puts on record what changed.
    pub(crate) fn note_changes(&mut self) {
        let Some(asked) = &self.request.changed else { return };
        let [one, other] = self.fault_free_hits();
        let changes = asked.hits.as_ref().map(|stored| compare(stored, &one, &other));
        self.record.changed = Some(ChangedRecord {
            file: asked.file.display().to_string(),
            is_first: changes.is_none(),
            changes: changes.unwrap_or_default(),
            ..ChangedRecord::default()
        });
    }

    /// The trials of a sweep that are about something that changed, and the one that is always tried.
    pub(crate) fn narrowed(&mut self, sweep: Vec<(Plan, usize)>) -> Vec<(Plan, usize)> {
        let narrow = self.request.changed.as_ref().is_some_and(|asked| asked.narrow);
        let Some(record) = self.record.changed.as_mut().filter(|record| narrow && !record.is_first) else {
            return sweep;
        };
        let is_always = |plan: &Plan| plan.faults.iter().any(|fault| fault.at.to_string() == ALWAYS);
        let always = sweep.iter().position(|(plan, _)| is_always(plan)).unwrap_or(0);
        record.of = sweep.len() as u32;
        let kept: Vec<_> = sweep
            .into_iter()
            .enumerate()
            .filter(|(index, (plan, _))| *index == always || record.changes.concern(plan))
            .map(|(_, planned)| planned)
            .collect();
        record.skipped = record.of - kept.len() as u32;
        kept
    }

    /// Names the new boundaries at which neither a trial of this run nor a kept counterexample does anything.
    pub(crate) fn note_uncovered(&mut self, plans: &[(Plan, usize)]) -> Result<(), RunError> {
        let Some(record) = &self.record.changed else { return Ok(()) };
        let kept = match &self.request.regressions {
            Some(folder) if !record.changes.new.is_empty() => stored(folder)?,
            _ => Vec::new(),
        };
        let reached = self.reached(0);
        let kept = kept.iter().map(|(_, plan)| killpoint_scenarios::bind(plan, &self.settings, &reached).0);
        let covered: BTreeSet<HitName> = plans
            .iter()
            .map(|(plan, _)| plan.clone())
            .chain(kept)
            .flat_map(|plan| plan.faults.into_iter().map(|fault| fault.at))
            .collect();
        let new = record.changes.new.iter();
        let uncovered = new.filter(|hit| !covered.contains(hit)).cloned().collect();
        if let Some(record) = &mut self.record.changed {
            record.uncovered = uncovered;
        }
        Ok(())
    }

    /// Writes the boundaries, where that is asked for or there were none, after a run that was carried through and in
    /// which nothing new is wrong: otherwise the next narrowed run would leave out what is red now.
    pub(crate) fn keep_boundaries(&mut self, carried_through: bool) -> Result<(), RunError> {
        let Some(asked) = &self.request.changed else { return Ok(()) };
        let known = Baseline::of(&self.record);
        let verdict = known.as_ref().map_or(self.record.verdict, |known| known.rest);
        let stale = known.is_some_and(|known| !known.stale.is_empty());
        let hits = {
            let [one, other] = self.fault_free_hits();
            steady(&one, &other)
        };
        let Some(record) = self.record.changed.as_mut().filter(|record| asked.update || record.is_first)
        else {
            return Ok(());
        };
        let not = if !carried_through || self.record.interrupted {
            Some("the run was not carried through".to_owned())
        } else if self.record.shard.is_some() {
            Some("a shard does not know what the others found".to_owned())
        } else if verdict != Verdict::Holds || stale {
            Some("the run is not green, and a later run must not leave out what is wrong now".to_owned())
        } else {
            None
        };
        if not.is_none() {
            write(&asked.file, &killpoint_scenarios::boundaries_toml(&hits))?;
            record.written = true;
        }
        record.not_written = not;
        Ok(())
    }
}

/// What a run says that is put together from parts: what its parts said, where they agree.
pub(crate) fn merged(parts: &[Part]) -> Option<ChangedRecord> {
    let mut records = parts.iter().map(|part| part.record.changed.as_ref());
    let first = records.next().flatten()?;
    records.all(|other| other.is_some_and(|other| other.skipped == first.skipped)).then(|| first.clone())
}
