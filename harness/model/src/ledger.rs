//! What the worker believes, in canonical words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

text_enum! {
    /// The delivery state of one row.
    pub enum RowState {
        /// Committed, nothing sent yet.
        Created = "created",
        /// Claimed or in flight.
        Dispatching = "dispatching",
        /// The worker says that it does not know.
        Unknown = "unknown",
        /// The worker says that it was accepted.
        Confirmed = "confirmed",
        /// The worker says that it was not sent and will not be.
        Failed = "failed",
        /// Parked for a human, with evidence.
        Review = "review",
        /// Called off.
        Cancelled = "cancelled",
    }
}

impl RowState {
    /// Whether the row needs no more work by the worker itself. `unknown` is one of these: parked.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Created | Self::Dispatching)
    }

    /// Whether the row says openly that the message may not have been delivered.
    pub const fn is_explicit_doubt(self) -> bool {
        matches!(self, Self::Unknown | Self::Review)
    }
}

text_enum! {
    /// The execution state of the work behind a row, kept apart from its delivery.
    pub enum ExecutionState {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        Running = "running",
        /// The result is committed.
        Succeeded = "succeeded",
        /// It failed for good.
        Failed = "failed",
    }
}

/// One row of the worker's ledger, mapped. Optional fields are `None` where the mapping has no such column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerRow {
    /// The logical action.
    pub action: String,
    /// Delivery state.
    pub state: RowState,
    /// The state in the worker's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_state: Option<String>,
    /// Where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Execution state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionState>,
    /// How often the work was executed, where the worker counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions: Option<u32>,
    /// The stable key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The provider's id, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Attempts by the worker's own count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The message's text as committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Who holds it: the owner of its lease or lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// When it is due, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at_ms: Option<u64>,
    /// Error or evidence kept with the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl LedgerRow {
    /// A row with nothing but its identity and state.
    pub fn new(action: impl Into<String>, state: RowState) -> Self {
        Self {
            action: action.into(),
            state,
            raw_state: None,
            destination: None,
            execution: None,
            executions: None,
            key: None,
            provider_id: None,
            attempts: None,
            text: None,
            evidence: None,
            owner: None,
            due_at_ms: None,
        }
    }
}

/// One reading of the ledger, from a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerView {
    /// Whether the worker's whole tree stood still while the copy was taken.
    pub exact: bool,
    /// Canonical rows, sorted; `None` where no mapping is configured.
    pub rows: Option<Vec<LedgerRow>>,
    /// Named queries of the configuration with their values as text.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub values: std::collections::BTreeMap<String, String>,
    /// Why it could not be read, in the store's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
