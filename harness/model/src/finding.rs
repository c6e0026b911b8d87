//! What an invariant says about a history: evidence is data, prose is made later.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// One violation, or one fact that needs a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The invariant's name.
    pub invariant: String,
    /// What was seen, one lower-case sentence with the numbers.
    pub message: String,
    /// The action or recipient that it is about.
    pub subject: String,
    /// Sequence numbers of the events that show it, in order; never empty.
    pub events: Vec<u64>,
}

text_enum! {
    /// What came out of one invariant on one history.
    pub enum InvariantStatus {
        /// It looked at something and all of it is right.
        Holds = "holds",
        /// At least one finding.
        Violated = "violated",
        /// It can't be told from this history.
        Inconclusive = "inconclusive",
        /// The configuration or the worker gives it nothing to look at.
        NotShown = "not-shown",
    }
}

/// The result of one invariant on one history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvariantOutcome {
    /// The invariant's name.
    pub invariant: String,
    /// What came out.
    pub status: InvariantStatus,
    /// How many things it looked at.
    pub looked_at: u32,
    /// Violations, or for `inconclusive` the doubts.
    pub findings: Vec<Finding>,
    /// Things that are reported but are no violation under the promise.
    pub notes: Vec<Finding>,
    /// For `not-shown`: why, and what to configure.
    pub reason: Option<String>,
}

impl InvariantOutcome {
    /// Sequence number of the event with which the first finding was complete; `None` without findings. Of two
    /// invariants that a trial violates, the one that was complete first is nearer to the cause.
    pub fn complete_at(&self) -> Option<u64> {
        self.findings.iter().filter_map(|finding| finding.events.iter().max().copied()).min()
    }
}
