//! The judgement of one trial: every invariant, the evidence, and the worst of it all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use killpoint_model::event::EventKind;
use killpoint_model::finding::{Finding, InvariantOutcome, InvariantStatus};
use killpoint_model::run::TrialRole;
use killpoint_model::verdict::{ActionOutcome, TrialEvidence, TrialVerdict, Verdict};
use killpoint_model::{History, Settings};

use crate::evidence;
use crate::facts::Facts;
use crate::invariants::{INVARIANTS, Invariant};

/// One trial with all that its judgement depends on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What the user configured.
    pub settings: &'a Settings,
    /// What the trial is for.
    pub role: TrialRole,
    /// Its history.
    pub history: &'a History,
    /// The fault-free trials, first and second; may be empty when a baseline itself is judged.
    pub baselines: &'a [History],
}

/// Judges one trial. Worst wins: a violation, then what can't be told, then what was not shown. A
/// checker that crashes makes the trial inconclusive, never green.
pub fn judge(case: &Case<'_>) -> TrialVerdict {
    judge_with(case, INVARIANTS)
}

pub(crate) fn judge_with(case: &Case<'_>, invariants: &[&dyn Invariant]) -> TrialVerdict {
    let last_seq = case.history.events.last().map_or(1, |event| event.seq);
    let facts = catch_unwind(AssertUnwindSafe(|| Facts::gather(case)));
    let outcomes: Vec<InvariantOutcome> = invariants
        .iter()
        .map(|invariant| {
            let facts = facts.as_ref().map_err(|_| ());
            facts
                .and_then(|facts| {
                    catch_unwind(AssertUnwindSafe(|| invariant.check(facts).into_outcome())).map_err(|_| ())
                })
                .unwrap_or_else(|()| crashed(invariant.entry().name, last_seq))
        })
        .collect();
    let mut evidence = evidence::collect(case, &outcomes);
    let doubts = doubts(case, facts.as_ref().ok());
    let verdict = merge(&evidence, &outcomes, !doubts.is_empty());
    evidence.missing.extend(doubts);
    TrialVerdict {
        verdict,
        evidence,
        outcomes,
        actions: facts.as_ref().map(actions).unwrap_or_default(),
        counters: case.history.counters(),
    }
}

fn crashed(invariant: &str, last_seq: u64) -> InvariantOutcome {
    let finding = Finding {
        invariant: invariant.to_owned(),
        message: "the checker crashed on this history: please report it with the history file".into(),
        subject: "the checker itself".into(),
        events: vec![last_seq],
    };
    InvariantOutcome {
        invariant: invariant.to_owned(),
        status: InvariantStatus::Inconclusive,
        looked_at: 0,
        findings: vec![finding],
        notes: Vec::new(),
        reason: None,
    }
}

fn merge(evidence: &TrialEvidence, outcomes: &[InvariantOutcome], doubted: bool) -> Verdict {
    let of_outcomes = outcomes.iter().map(|outcome| match outcome.status {
        InvariantStatus::Violated => Verdict::Violated,
        InvariantStatus::Inconclusive => Verdict::Inconclusive,
        InvariantStatus::Holds | InvariantStatus::NotShown => Verdict::Holds,
    });
    let of_evidence = if evidence.is_complete() { Verdict::Holds } else { Verdict::Vacuous };
    let of_doubts = if doubted { Verdict::Inconclusive } else { Verdict::Holds };
    Verdict::worst(of_outcomes.chain([of_evidence, of_doubts]))
}

/// Why the whole history can't carry a verdict, in words.
fn doubts(case: &Case<'_>, facts: Option<&Facts<'_>>) -> Vec<String> {
    let mut doubts = Vec::new();
    if case.history.truncated {
        doubts.push("the history ends before the end of the trial: run the trial again".to_owned());
    }
    for event in &case.history.events {
        if let EventKind::Infrastructure { doing, error } = &event.event {
            doubts
                .push(format!("the machine failed while {doing} ({error}): free the resource and run again"));
        }
    }
    match facts {
        Some(facts) => {
            doubts.extend(facts.baselines_differ.as_ref().map(ToString::to_string));
            if case.role == TrialRole::Faulted && case.baselines.is_empty() && !facts.is_mapped() {
                doubts.push(
                    "nothing says what was owed: run the fault-free trials first, or map the ledger"
                        .to_owned(),
                );
            }
        }
        None => doubts.push("the facts of this history could not be computed: please report it".to_owned()),
    }
    doubts
}

fn actions(facts: &Facts<'_>) -> Vec<ActionOutcome> {
    let told = facts.units().filter(|(_, unit, account)| {
        let touched = !unit.attempts.is_empty() || account.total > 0 || account.expected > 0;
        touched && !account.preexisting
    });
    told.map(|(_, unit, account)| ActionOutcome {
        action: unit.label(),
        recipient: unit.recipient.clone(),
        verdict: account.verdict,
        effects: account.total,
        expected: account.expected,
        state: account.state_words(),
        events: account.events.clone(),
    })
    .collect()
}
