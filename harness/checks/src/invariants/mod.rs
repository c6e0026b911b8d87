//! What is checked. One invariant per file, and one line in [`INVARIANTS`].

use killpoint_model::Entry;
use killpoint_model::finding::{Finding, InvariantOutcome, InvariantStatus};

use crate::facts::Facts;

mod acknowledged_is_durable;
mod attempt_count_true;
mod attempts_bounded;
mod audit_survives;
mod budget_not_eaten;
mod claim_is_exclusive;
mod confirmed_after_acceptance;
mod counters_agree;
mod decided_in_time;
mod decided_is_final;
mod due_is_served;
mod execution_not_repeated;
mod intent_before_dispatch;
mod no_blind_resend;
mod no_duplicate_effect;
mod no_false_failure;
mod no_false_success;
mod no_lost_action;
mod no_manufactured_item;
mod no_secret_leak;
mod nothing_from_rollback;
mod one_identity_per_destination;
mod poison_is_contained;
mod processed_equals_fed;
mod refusal_is_final;
mod replay_faithful;
mod retry_after_honoured;
mod stable_key;
mod stop_is_graceful;
mod terminal_state_explicit;
mod unknown_is_explicit;

/// A pure function from the facts of a trial to what it saw.
pub trait Invariant: Sync {
    /// Name and texts.
    fn entry(&self) -> &'static Entry;
    /// Looks at a trial.
    fn check(&self, facts: &Facts<'_>) -> Looked;
}

/// Every invariant, in the order of reports: causes before what comes of them, so that the first red one is nearest
/// to what must be changed.
pub static INVARIANTS: &[&dyn Invariant] = &[
    &claim_is_exclusive::ClaimIsExclusive,
    &intent_before_dispatch::IntentBeforeDispatch,
    &nothing_from_rollback::NothingFromRollback,
    &processed_equals_fed::ProcessedEqualsFed,
    &no_manufactured_item::NoManufacturedItem,
    &replay_faithful::ReplayFaithful,
    &stable_key::StableKey,
    &one_identity_per_destination::OneIdentityPerDestination,
    &execution_not_repeated::ExecutionNotRepeated,
    &poison_is_contained::PoisonIsContained,
    &stop_is_graceful::StopIsGraceful,
    &acknowledged_is_durable::AcknowledgedIsDurable,
    &decided_is_final::DecidedIsFinal,
    &refusal_is_final::RefusalIsFinal,
    &retry_after_honoured::RetryAfterHonoured,
    &attempts_bounded::AttemptsBounded,
    &budget_not_eaten::BudgetNotEaten,
    &no_blind_resend::NoBlindResend,
    &attempt_count_true::AttemptCountTrue,
    &confirmed_after_acceptance::ConfirmedAfterAcceptance,
    &unknown_is_explicit::UnknownIsExplicit,
    &due_is_served::DueIsServed,
    &decided_in_time::DecidedInTime,
    &no_duplicate_effect::NoDuplicateEffect,
    &no_lost_action::NoLostAction,
    &no_false_success::NoFalseSuccess,
    &no_false_failure::NoFalseFailure,
    &terminal_state_explicit::TerminalStateExplicit,
    &audit_survives::AuditSurvives,
    &counters_agree::CountersAgree,
    &no_secret_leak::NoSecretLeak,
];

/// The entries of every invariant, for help, `list` and `explain`.
pub fn entries() -> Vec<Entry> {
    INVARIANTS.iter().map(|invariant| *invariant.entry()).collect()
}

/// What an invariant looked at and saw.
#[derive(Debug)]
pub struct Looked {
    entry: &'static Entry,
    things: u32,
    violations: Vec<Finding>,
    doubts: Vec<Finding>,
    notes: Vec<Finding>,
    nothing_because: &'static str,
}

impl Looked {
    /// Nothing yet. `nothing_because` says, for the case that nothing comes, why and what to configure.
    pub fn new(entry: &'static Entry, nothing_because: &'static str) -> Self {
        Self {
            entry,
            things: 0,
            violations: Vec::new(),
            doubts: Vec::new(),
            notes: Vec::new(),
            nothing_because,
        }
    }

    /// One more thing was looked at.
    pub fn look(&mut self) {
        self.things += 1;
    }

    /// Some more things were looked at.
    pub fn look_at(&mut self, things: u32) {
        self.things = self.things.saturating_add(things);
    }

    /// Whether nothing was looked at so far.
    pub fn is_empty(&self) -> bool {
        self.things == 0
    }

    /// It is wrong, as `events` show.
    pub fn violation(&mut self, subject: impl Into<String>, message: impl Into<String>, events: Vec<u64>) {
        self.violations.push(self.finding(subject.into(), message.into(), events));
    }

    /// It can't be told.
    pub fn doubt(&mut self, subject: impl Into<String>, message: impl Into<String>, events: Vec<u64>) {
        self.doubts.push(self.finding(subject.into(), message.into(), events));
    }

    /// It is worth a line, but no violation.
    pub fn note(&mut self, subject: impl Into<String>, message: impl Into<String>, events: Vec<u64>) {
        self.notes.push(self.finding(subject.into(), message.into(), events));
    }

    /// A violation, or under a promise that allows it a note.
    pub fn violation_or_note(&mut self, is_note: bool, subject: String, message: String, events: Vec<u64>) {
        if is_note { self.note(subject, message, events) } else { self.violation(subject, message, events) }
    }

    fn finding(&self, subject: String, message: String, mut events: Vec<u64>) -> Finding {
        events.sort_unstable();
        events.dedup();
        Finding { invariant: self.entry.name.to_owned(), message, subject, events }
    }

    /// The outcome for the report. Violations hide doubts: they stand without them.
    pub fn into_outcome(self) -> InvariantOutcome {
        let status = match (self.violations.is_empty(), self.doubts.is_empty(), self.things) {
            (false, _, _) => InvariantStatus::Violated,
            (true, false, _) => InvariantStatus::Inconclusive,
            (true, true, 0) => InvariantStatus::NotShown,
            (true, true, _) => InvariantStatus::Holds,
        };
        let reason = (status == InvariantStatus::NotShown).then(|| self.nothing_because.to_owned());
        let findings = if self.violations.is_empty() { self.doubts } else { self.violations };
        InvariantOutcome {
            invariant: self.entry.name.to_owned(),
            status,
            looked_at: self.things,
            findings,
            notes: self.notes,
            reason,
        }
    }
}

/// The doubt of every invariant that needs the final rows, when they could not be read or can't be
/// matched with requests.
fn doubt_unusable_rows(facts: &Facts<'_>, looked: &mut Looked) {
    if facts.unjoined {
        looked.doubt(
            "the ledger",
            "no row could be matched with any request: give the mapping a `key`, `destination` or `text` that the requests carry, or set `provider.action`",
            vec![facts.final_seq],
        );
    }
    if !facts.is_mapped() || facts.final_rows().is_some() {
        return;
    }
    let last = facts.book.ledger.last.map(|view| facts.book.ledger.views[view].view);
    let why = match last {
        None => "the trial has no last look",
        Some(view) => view.error.as_deref().unwrap_or("the last look has no rows"),
    };
    looked.doubt(
        "the ledger",
        format!("the ledger could not be read at the end ({why}): correct its path, query or command"),
        vec![facts.final_seq],
    );
}

#[cfg(test)]
mod tests {
    use killpoint_model::catalog::slice_problems;

    use super::entries;

    #[test]
    fn the_slice_is_sound() {
        assert_eq!(slice_problems(&entries()), Vec::<String>::new());
    }
}
