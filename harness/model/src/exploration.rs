//! What an exploration tried, what it found, and what it left out: a part of the record of its run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::text_enum::text_enum;

text_enum! {
    /// Why an exploration ended.
    pub enum ExplorationEnd {
        /// A counterexample was found and made small.
        Counterexample = "counterexample",
        /// The time that it was given was over.
        Time = "time",
        /// It tried as many cases as it was given.
        Cases = "cases",
        /// There was nothing left that had not been tried.
        Exhausted = "exhausted",
        /// It was interrupted.
        Interrupted = "interrupted",
    }
}

text_enum! {
    /// What became of a stored counterexample.
    pub enum RegressionOutcome {
        /// It is red again.
        Fails = "fails",
        /// It holds now; it is kept.
        Fixed = "fixed",
        /// It is red in some repetitions.
        Flaky = "flaky",
        /// A moment that it names does not exist any more, or nothing was shown.
        Stale = "stale",
    }
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KOfN {
    /// Trials that were red.
    pub red: u32,
    /// Trials.
    pub of: u32,
}

impl KOfN {
    /// Whether there were trials, and every one was red.
    pub fn is_all(self) -> bool {
        self.of > 0 && self.red == self.of
    }
}

impl std::fmt::Display for KOfN {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.red, self.of)
    }
}

/// A plan under which the worker is wrong, made as small as it could be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counterexample {
    /// The invariant that the history shows first.
    pub invariant: String,
    /// What was seen, in the last trial that was red.
    pub message: String,
    /// The plan as it was found.
    pub found: Plan,
    /// The case in which it was found, from 1; 0 for a stored one.
    pub case: u32,
    /// Repetitions of the plan as it was found.
    pub confirmed_before: KOfN,
    /// What is left of the plan. The plan itself where it is flaky.
    pub smallest: Plan,
    /// What is left of the plan, in one line.
    pub summary: String,
    /// Repetitions of what is left; the same as before where the plan is flaky.
    pub confirmed_after: KOfN,
    /// Trials that the shrinking took.
    pub shrink_trials: u32,
    /// Milliseconds that the shrinking took.
    pub shrink_ms: u64,
    /// The line for `killpoint replay`.
    pub token: String,
    /// The scenario file; absent where it could not be written.
    pub file: Option<String>,
    /// Folder of the last red trial of what is left.
    pub folder: String,
}

impl Counterexample {
    /// Whether the plan was red in every repetition when it was found.
    pub fn is_certain(&self) -> bool {
        self.confirmed_before.is_all()
    }
}

/// A stored counterexample that was tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Regression {
    /// Its file.
    pub file: String,
    /// What became of it.
    pub outcome: RegressionOutcome,
    /// What there is to say: the invariant, or the names nearest to those that don't exist.
    pub note: String,
}

/// A moment of one kind in one life of the worker, and how often trials came there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoveredPair {
    /// The boundary without its ordinal, such as `provider:committed`.
    pub boundary: String,
    /// What the provider did with the attempt concerned: `ok`, `drop-after-accept`, …
    pub outcome: String,
    /// Which life of the worker, from 1; the last one stands for all from it on.
    pub generation: u32,
    /// Moments that a live worker reached.
    pub reached: u64,
    /// Moments at which a fault took hold.
    pub struck: u64,
}

/// What an exploration did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exploration {
    /// The seed; the same one draws the same plans, as long as the worker does the same.
    pub seed: u64,
    /// Plans that were drawn and tried.
    pub cases: u32,
    /// About how many plans there are.
    pub plans_about: u64,
    /// Why it ended.
    pub ended: ExplorationEnd,
    /// Pairs that came, in order of their names.
    pub covered: Vec<CoveredPair>,
    /// Pairs that no fault met.
    pub unseen: Vec<CoveredPair>,
    /// Where two fault-free trials differ, if they do: then everything is told as k of n.
    pub differs: Option<String>,
    /// What was found.
    pub counterexamples: Vec<Counterexample>,
    /// What was stored before, tried again.
    pub regressions: Vec<Regression>,
}
