//! Most lines ask the same: was it staged, and what did the invariants that speak of it see?

use killpoint_model::checklist::Skipped;
use killpoint_model::finding::{InvariantOutcome, InvariantStatus};

use super::answer::{Answer, proofs};
use super::dossier::Dossier;
use super::exhibit::Exhibit;

/// A line that is answered by invariants in trials in which something was staged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    /// What must have been staged, in words that follow "a trial with".
    pub(super) staged: &'static str,
    /// The events that show that it was.
    pub(super) look: fn(&Exhibit<'_>) -> Vec<u64>,
    /// Faults that stage it: what they say where they don't take hold is told.
    pub(super) faults: &'static [&'static str],
    /// Invariants that must hold where it was staged.
    pub(super) holds: &'static [&'static str],
    /// Invariants whose violation anywhere is a counterexample.
    pub(super) broken_by: &'static [&'static str],
    /// What makes it shown.
    pub(super) to_do: &'static str,
}

impl Claim {
    pub(super) fn answer(&self, dossier: &Dossier<'_>) -> Answer {
        let staged = dossier.with(self.look);
        if let Some(no) = self.counterexample(dossier, &staged) {
            return no;
        }
        let sound: Vec<_> = staged.iter().filter(|(exhibit, _)| exhibit.is_sound()).cloned().collect();
        if sound.is_empty() {
            return Answer::not_shown(self.why_not_staged(dossier, &staged), self.to_do);
        }
        for invariant in self.holds {
            if let Some(not_shown) = self.not_shown_by(invariant, &sound) {
                return not_shown;
            }
        }
        let because = format!(
            "{} with {}: {} {}",
            counted(sound.len()),
            self.staged,
            self.holds.join(", "),
            if self.holds.len() == 1 { "holds" } else { "hold" }
        );
        let best = |(exhibit, _): &(&Exhibit<'_>, Vec<u64>)| {
            self.holds.iter().filter(|invariant| !exhibit.holds(invariant)).count()
        };
        let mut sound = sound;
        sound.sort_by_key(best);
        Answer::yes(because, proofs(sound))
    }

    fn counterexample(&self, dossier: &Dossier<'_>, staged: &[(&Exhibit<'_>, Vec<u64>)]) -> Option<Answer> {
        let anywhere = dossier.exhibits.iter().filter(|exhibit| !exhibit.is_what_if());
        let anywhere = anywhere.flat_map(|exhibit| violations(exhibit, self.broken_by));
        let there = staged.iter().flat_map(|(exhibit, _)| violations(exhibit, self.holds));
        let found: Vec<(&Exhibit<'_>, &InvariantOutcome)> = anywhere.chain(there).collect();
        let (_, first) = found.first()?;
        let message = first.findings.first().map_or("violated", |finding| finding.message.as_str());
        let because = format!("{}: {message}", first.invariant);
        let to_do = format!("`killpoint explain {}` says what right looks like", first.invariant);
        let events = |outcome: &InvariantOutcome| {
            outcome.findings.iter().flat_map(|finding| finding.events.clone()).collect()
        };
        Some(Answer::no(
            because,
            proofs(found.into_iter().map(|(exhibit, outcome)| (exhibit, events(outcome)))),
            to_do,
        ))
    }

    fn why_not_staged(&self, dossier: &Dossier<'_>, staged: &[(&Exhibit<'_>, Vec<u64>)]) -> String {
        let refusal = dossier.exhibits.iter().find_map(|exhibit| {
            exhibit.refusal(self.faults).map(|why| format!(" (in {}: {why})", exhibit.folder))
        });
        let unsound = staged.first().map(|(exhibit, _)| {
            let missing = exhibit.judged.evidence.missing.first();
            let why = missing.map_or("its verdict can't be relied on", String::as_str);
            format!(" ({} has it, but: {why})", exhibit.folder)
        });
        let concerns =
            |one: &&Skipped| self.faults.iter().any(|name| one.faults.iter().any(|fault| fault == name));
        // A kill is everywhere, and no single scenario stands for it.
        let skipped = dossier.skipped.iter().find(concerns).filter(|_| self.faults != ["kill"]);
        let skipped = skipped.map(|one| format!(" ({})", one.why));
        let detail = unsound.or(refusal).or(skipped).unwrap_or_default();
        format!("no trial with {}{detail}", self.staged)
    }

    /// Why an invariant does not carry a `yes`.
    fn not_shown_by(&self, invariant: &str, sound: &[(&Exhibit<'_>, Vec<u64>)]) -> Option<Answer> {
        let outcomes =
            || sound.iter().filter_map(|(exhibit, _)| Some((exhibit, exhibit.outcome(invariant)?)));
        let doubtful = outcomes().find(|(_, outcome)| outcome.status == InvariantStatus::Inconclusive);
        if let Some((exhibit, outcome)) = doubtful {
            let doubt =
                outcome.findings.first().map_or("it can't be told", |finding| finding.message.as_str());
            return Some(Answer::not_shown(
                format!("{invariant} is inconclusive in {}: {doubt}", exhibit.folder),
                self.to_do,
            ));
        }
        if sound.iter().any(|(exhibit, _)| exhibit.holds(invariant)) {
            return None;
        }
        let reason = outcomes().find_map(|(_, outcome)| outcome.reason.as_deref());
        let reason = reason.unwrap_or("it had nothing to look at");
        Some(Answer::not_shown(
            format!("in trials with {}, {invariant} is not shown: {reason}", self.staged),
            self.to_do,
        ))
    }
}

/// `1 trial`, `2 trials`.
pub(super) fn counted(trials: usize) -> String {
    format!("{trials} {}", if trials == 1 { "trial" } else { "trials" })
}

fn violations<'e>(
    exhibit: &'e Exhibit<'e>,
    invariants: &'static [&'static str],
) -> impl Iterator<Item = (&'e Exhibit<'e>, &'e InvariantOutcome)> {
    let outcomes = invariants.iter().filter_map(|invariant| exhibit.outcome(invariant));
    outcomes
        .filter(|outcome| outcome.status == InvariantStatus::Violated)
        .map(move |outcome| (exhibit, outcome))
}
