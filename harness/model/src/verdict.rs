//! Verdicts and how they merge: worst wins, and a green needs every piece of evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{InvariantOutcome, InvariantStatus};
use crate::provider::Counters;
use crate::text_enum::text_enum;

text_enum! {
    /// The verdict on a trial or a run, best first: the derived order is the merge order.
    pub enum Verdict {
        /// Every check holds, with all the evidence.
        Holds = "holds",
        /// The trial did not do what it was for: nothing was proven.
        Vacuous = "vacuous",
        /// It can't be told.
        Inconclusive = "inconclusive",
        /// At least one violation, with evidence.
        Violated = "violated",
    }
}

impl Verdict {
    /// The worst of some verdicts; `Vacuous` of none, because nothing was shown.
    pub fn worst(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Vacuous)
    }
}

text_enum! {
    /// What became of one action at one destination.
    pub enum ActionVerdict {
        /// One effect, and the worker does not deny it.
        DeliveredOnce = "delivered-once",
        /// Parked as unknown or for review: right.
        ExplicitUnknown = "explicit-unknown",
        /// The worker says that it failed, and nothing was delivered.
        ExplicitFailure = "explicit-failure",
        /// More than one effect.
        Duplicate = "duplicate",
        /// No effect, and nothing says so.
        Lost = "lost",
        /// The worker says delivered; nobody received it.
        FalseSuccess = "false-success",
        /// The worker says failed; somebody received it.
        FalseFailure = "false-failure",
        /// Neither done nor given up.
        Stuck = "stuck",
        /// No effect, and without a ledger mapping parked and lost can't be told apart.
        Undetermined = "undetermined",
    }
}

/// One action with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionOutcome {
    /// The action, by the strongest identity that is known.
    pub action: String,
    /// Where it went.
    pub recipient: String,
    /// What became of it.
    pub verdict: ActionVerdict,
    /// Effects counted at the provider.
    pub effects: u32,
    /// Effects in the baseline, or rows in the ledger: what was owed.
    pub expected: u32,
    /// The worker's own final word.
    pub state: Option<String>,
    /// Events that show it.
    pub events: Vec<u64>,
}

/// The evidence without which a trial is vacuous. `None`: the plan has no such part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialEvidence {
    /// Every boundary of the plan was reached.
    pub boundary_reached: Option<bool>,
    /// Signal 9 landed on a live worker, for every kill.
    pub signal_landed: Option<bool>,
    /// A new generation came after every kill, and nothing of the old one was alive.
    pub generation_advanced: Option<bool>,
    /// Every fault of the plan took hold.
    pub faults_landed: Option<bool>,
    /// Everything that the plan needs of the machine and the worker was to be had.
    pub means_at_hand: Option<bool>,
    /// Every provider rule of the plan fired.
    pub provider_plan_fired: Option<bool>,
    /// Recovery did something, or the ledger shows that nothing was owed.
    pub recovery_acted: Option<bool>,
    /// The settle window was complete.
    pub settle_complete: Option<bool>,
    /// All faults were over before the last look.
    pub faults_over: Option<bool>,
    /// At least one invariant looked at something.
    pub invariants_looked: Option<bool>,
    /// What is missing, in words, each with what to do.
    pub missing: Vec<String>,
}

impl TrialEvidence {
    /// The fields with their names, in the order of a report.
    pub fn fields(&self) -> [(&'static str, Option<bool>); 10] {
        [
            ("boundary reached", self.boundary_reached),
            ("signal 9 landed", self.signal_landed),
            ("generation advanced", self.generation_advanced),
            ("faults took hold", self.faults_landed),
            ("means at hand", self.means_at_hand),
            ("provider plan fired", self.provider_plan_fired),
            ("recovery acted", self.recovery_acted),
            ("settle window complete", self.settle_complete),
            ("faults over", self.faults_over),
            ("invariants looked", self.invariants_looked),
        ]
    }

    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.fields().iter().all(|(_, value)| *value != Some(false))
    }
}

/// The judgement of one trial: a pure function of its history, the baselines and the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is not vacuous, or why it is.
    pub evidence: TrialEvidence,
    /// One per invariant, in the order of the slice.
    pub outcomes: Vec<InvariantOutcome>,
    /// One per action and destination.
    pub actions: Vec<ActionOutcome>,
    /// The provider's three numbers.
    pub counters: Counters,
}

impl TrialVerdict {
    /// The invariants that are violated, causes before what comes of them.
    pub fn violated(&self) -> impl Iterator<Item = &InvariantOutcome> {
        self.outcomes.iter().filter(|outcome| outcome.status == InvariantStatus::Violated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_wins_and_nothing_is_vacuous() {
        use Verdict::{Holds, Inconclusive, Vacuous, Violated};
        assert_eq!(Verdict::worst([Holds, Violated, Vacuous]), Violated);
        assert_eq!(Verdict::worst([Holds, Vacuous, Inconclusive]), Inconclusive);
        assert_eq!(Verdict::worst([Holds, Holds]), Holds);
        assert_eq!(Verdict::worst([]), Vacuous);
    }

    #[test]
    fn one_missing_piece_is_enough() {
        let complete = TrialEvidence { signal_landed: Some(true), ..TrialEvidence::default() };
        assert!(complete.is_complete());
        assert!(!TrialEvidence { faults_over: Some(false), ..complete }.is_complete());
    }
}
