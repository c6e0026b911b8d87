//! Ledger presets: the three schemas that most workers of this kind start from, with the query that
//! shows their rows in canonical columns.
//!
//! A query leaves out what a check would compare and what the schema does not promise: a result that is
//! no message text, a key that is only derived when it is sent.

use killpoint_model::{ExecutionState, RowState};

/// A known schema and how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Unique kebab-case name.
    pub name: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
    /// SQL with canonical columns.
    pub query: &'static str,
}

/// Every preset.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "outbound-actions",
        summary: "one table `outbound_actions` with execution_state, delivery_state and idempotency_key",
        query: "\
select action_id as action, delivery_state as state, execution_state as execution,
       idempotency_key as key, provider_id, attempt_count as attempts, last_error as evidence
from outbound_actions",
    },
    Preset {
        name: "jobs",
        summary: "one table `jobs` with execution_state, delivery_state and attempt",
        query: "\
select id as action, delivery_state as state, execution_state as execution, attempt as attempts
from jobs",
    },
    // A run may have several steps. Where these disagree the run has no single execution state: NULL, which
    // claims nothing. Grouping keeps one row per delivery, so that steps don't look like second identities.
    Preset {
        name: "run-delivery",
        summary: "tables `executions` (run_id, execution_status) and `deliveries` (run_id, destination, delivery_status)",
        query: "\
select d.run_id as action, d.destination as destination, d.delivery_status as state,
       case when count(distinct e.execution_status) = 1 then max(e.execution_status) end as execution,
       d.provider_message_id as provider_id, d.attempt_count as attempts
from deliveries d left join executions e on e.run_id = d.run_id
group by d.delivery_id",
    },
];

/// Words for the state of a delivery, beside the canonical ones. `failed` is a decided failure; a worker
/// that retries its failed rows says so with `states = { failed = "created" }`.
pub const STATES: &[(&str, RowState)] = &[
    ("action_created", RowState::Created),
    ("pending", RowState::Created),
    ("queued", RowState::Created),
    ("retrying", RowState::Created),
    ("claimed", RowState::Dispatching),
    ("leased", RowState::Dispatching),
    ("dispatch_started", RowState::Dispatching),
    ("in_flight", RowState::Dispatching),
    ("sending", RowState::Dispatching),
    ("delivery_unknown", RowState::Unknown),
    ("accepted", RowState::Confirmed),
    ("acknowledged", RowState::Confirmed),
    ("delivered", RowState::Confirmed),
    ("delivery_confirmed", RowState::Confirmed),
    ("reconciled", RowState::Confirmed),
    ("sent", RowState::Confirmed),
    ("dead", RowState::Failed),
    ("delivery_failed", RowState::Failed),
    ("rejected", RowState::Failed),
    ("needs_review", RowState::Review),
    ("operator_review", RowState::Review),
    ("canceled", RowState::Cancelled),
];

/// Words for the state of an execution, beside the canonical ones.
pub(crate) const EXECUTIONS: &[(&str, ExecutionState)] = &[
    ("action_created", ExecutionState::Pending),
    ("created", ExecutionState::Pending),
    ("queued", ExecutionState::Pending),
    ("in_progress", ExecutionState::Running),
    ("started", ExecutionState::Running),
    ("completed", ExecutionState::Succeeded),
    ("dispatched", ExecutionState::Succeeded),
    ("done", ExecutionState::Succeeded),
    ("finished", ExecutionState::Succeeded),
    ("success", ExecutionState::Succeeded),
    ("error", ExecutionState::Failed),
];
