//! Each preset's query on a real database with the schema that it is for.

use std::str::FromStr;

use killpoint_model::catalog::slice_problems;
use killpoint_model::{Entry, ExecutionState, LedgerRow, RowState};
use killpoint_scenarios::{PRESETS, load_config};
use rusqlite::{Connection, Row};

use crate::catalog;

/// Reads the rows as a ledger would: by the names of the columns.
fn rows(preset: &str, schema_and_data: &str) -> Vec<LedgerRow> {
    let text =
        format!("[worker]\ncommand = [\"a\"]\n[ledger]\npath = \"{{state}}/l.db\"\npreset = \"{preset}\"\n");
    let loaded = load_config(&text, "killpoint.toml", "/project".as_ref(), &catalog());
    let ledger = loaded.value.unwrap().ledger.unwrap();
    let database = Connection::open_in_memory().unwrap();
    database.execute_batch(schema_and_data).unwrap();
    let mut statement = database.prepare(ledger.query.as_deref().unwrap()).unwrap();
    for column in statement.column_names() {
        let row = serde_json::to_value(full_row()).unwrap();
        assert!(row.get(column).is_some(), "`{column}` is no canonical column");
    }
    let text = |row: &Row, name: &str| row.get::<_, Option<String>>(name).unwrap_or_default();
    let read = |row: &Row| {
        let raw_state = text(row, "state").unwrap();
        Ok(LedgerRow {
            action: text(row, "action").unwrap(),
            state: ledger.states[&raw_state],
            destination: text(row, "destination"),
            execution: text(row, "execution").map(|word| ledger.executions[&word]),
            key: text(row, "key"),
            provider_id: text(row, "provider_id"),
            attempts: row.get("attempts").unwrap_or_default(),
            evidence: text(row, "evidence"),
            ..LedgerRow::new("", RowState::Created)
        })
    };
    let rows: Result<Vec<LedgerRow>, _> = statement.query_map([], read).unwrap().collect();
    rows.unwrap()
}

fn full_row() -> LedgerRow {
    let some = || Some(String::new());
    LedgerRow {
        raw_state: some(),
        destination: some(),
        execution: ExecutionState::from_str("pending").ok(),
        executions: Some(1),
        key: some(),
        provider_id: some(),
        attempts: Some(1),
        text: some(),
        evidence: some(),
        ..LedgerRow::new("", RowState::Created)
    }
}

#[test]
fn the_slice_is_well_formed() {
    let entries: Vec<Entry> = PRESETS
        .iter()
        .map(|preset| Entry {
            name: preset.name,
            summary: preset.summary,
            explanation: preset.query,
            example: preset.name,
        })
        .collect();
    assert_eq!(slice_problems(&entries), Vec::<String>::new());
}

#[test]
fn outbound_actions() {
    let rows = rows(
        "outbound-actions",
        "CREATE TABLE outbound_actions (
           action_id TEXT PRIMARY KEY, provider TEXT NOT NULL, operation TEXT NOT NULL,
           idempotency_key TEXT NOT NULL UNIQUE, execution_state TEXT NOT NULL, delivery_state TEXT NOT NULL,
           provider_id TEXT, attempt_count INTEGER NOT NULL DEFAULT 0, last_error TEXT,
           created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
         INSERT INTO outbound_actions VALUES
           ('deploy-42-notify', 'mail', 'send', 'k1', 'succeeded', 'delivery_unknown', NULL, 1, 'timeout', 't', 't'),
           ('deploy-43-notify', 'mail', 'send', 'k2', 'action_created', 'action_created', NULL, 0, NULL, 't', 't');",
    );
    let unknown = LedgerRow {
        execution: Some(ExecutionState::Succeeded),
        key: Some("k1".into()),
        attempts: Some(1),
        evidence: Some("timeout".into()),
        ..LedgerRow::new("deploy-42-notify", RowState::Unknown)
    };
    let created = LedgerRow {
        execution: Some(ExecutionState::Pending),
        key: Some("k2".into()),
        attempts: Some(0),
        ..LedgerRow::new("deploy-43-notify", RowState::Created)
    };
    assert_eq!(rows, [unknown, created]);
}

#[test]
fn jobs() {
    let rows = rows(
        "jobs",
        "CREATE TABLE IF NOT EXISTS jobs (
           id TEXT PRIMARY KEY, input_json TEXT NOT NULL, result_json TEXT, execution_state TEXT NOT NULL,
           delivery_state TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0, updated_at TEXT NOT NULL);
         INSERT INTO jobs VALUES ('job-1', '{}', '{}', 'succeeded', 'pending', 2, 't');",
    );
    let pending = LedgerRow {
        execution: Some(ExecutionState::Succeeded),
        attempts: Some(2),
        ..LedgerRow::new("job-1", RowState::Created)
    };
    assert_eq!(rows, [pending]);
}

#[test]
fn run_delivery() {
    let rows = rows(
        "run-delivery",
        "CREATE TABLE executions (
           run_id TEXT, step_id TEXT, input_hash TEXT, execution_status TEXT, result_ref TEXT,
           started_at TEXT, finished_at TEXT, PRIMARY KEY (run_id, step_id)) WITHOUT ROWID;
         CREATE TABLE deliveries (
           delivery_id TEXT PRIMARY KEY, run_id TEXT, result_ref TEXT, destination TEXT, payload_hash TEXT,
           delivery_status TEXT, provider_message_id TEXT, attempt_count INTEGER, next_attempt_at TEXT,
           acknowledged_at TEXT);
         INSERT INTO executions (run_id, step_id, execution_status) VALUES
           ('run-1', 'a', 'succeeded'), ('run-1', 'b', 'succeeded'),
           ('run-2', 'a', 'succeeded'), ('run-2', 'b', 'running');
         INSERT INTO deliveries (delivery_id, run_id, destination, delivery_status, provider_message_id, attempt_count) VALUES
           ('d1', 'run-1', 'ann', 'acknowledged', 'm1', 1), ('d2', 'run-1', 'bob', 'claimed', NULL, 1),
           ('d3', 'run-2', 'ann', 'pending', NULL, 0), ('d4', 'run-3', 'ann', 'operator_review', NULL, 1);",
    );
    let row =
        |run: &str, destination: &str, state, execution, provider_id: Option<&str>, attempts| LedgerRow {
            destination: Some(destination.into()),
            execution,
            provider_id: provider_id.map(str::to_owned),
            attempts: Some(attempts),
            ..LedgerRow::new(run, state)
        };
    let succeeded = Some(ExecutionState::Succeeded);
    assert_eq!(
        rows,
        [
            row("run-1", "ann", RowState::Confirmed, succeeded, Some("m1"), 1),
            row("run-1", "bob", RowState::Dispatching, succeeded, None, 1),
            row("run-2", "ann", RowState::Created, None, None, 0),
            row("run-3", "ann", RowState::Review, None, None, 1),
        ]
    );
}
