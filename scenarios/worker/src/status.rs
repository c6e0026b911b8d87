//! The ledger in canonical words: what `status` prints, and the query for a harness that reads the file itself.

use std::collections::BTreeMap;
use std::io::Write;

use rusqlite::types::ValueRef;
use serde_json::Value;

use crate::error::WorkerError;
use crate::store::Store;

/// The text of [`LEDGER_QUERY`], which [`METRICS_QUERY`] counts over.
macro_rules! ledger_query {
    () => {
        "\
SELECT e.run_id AS action,
       coalesce(d.destination, wanted.value) AS destination,
       CASE e.execution_status WHEN 'cancelled' THEN 'cancelled' WHEN 'quarantined' THEN 'review'
            ELSE coalesce(d.delivery_status, 'pending') END AS state,
       CASE e.execution_status WHEN 'cancelled' THEN NULL WHEN 'quarantined' THEN 'failed'
            ELSE e.execution_status END AS execution,
       e.executions AS executions,
       d.idempotency_key AS key,
       d.provider_message_id AS provider_id,
       coalesce(d.attempt_count, 0) AS attempts,
       json_extract(d.payload, '$.body') AS text,
       coalesce(d.lease_owner, e.lease_owner) AS owner,
       iif(d.run_id IS NULL, iif(e.execution_status IN ('pending', 'running'), e.created_at, NULL),
           d.next_attempt_at) AS due_at_ms,
       coalesce(nullif(d.evidence, ''), d.last_error, e.evidence) AS evidence
FROM executions e
LEFT JOIN deliveries d ON d.run_id = e.run_id
LEFT JOIN json_each(e.destinations) wanted ON d.run_id IS NULL
WHERE d.run_id IS NOT NULL OR e.execution_status <> 'succeeded'
ORDER BY e.rowid, d.rowid, wanted.key"
    };
}

/// One row per delivery with canonical columns; one per requested destination where there is none yet, or will
/// be none. The states are the worker's own words, to be mapped by [`LEDGER_STATES`].
pub const LEDGER_QUERY: &str = ledger_query!();

/// Rows of name and value: the counters, kept apart. All but `awaiting-review` only grow; `unknown` counts
/// outcomes, whatever became of them.
pub const METRICS_QUERY: &str = concat!(
    "WITH ledger AS (",
    ledger_query!(),
    ")
SELECT 'created' AS name, count(*) AS value FROM ledger
UNION ALL SELECT 'attempts', coalesce(sum(attempt_count), 0) FROM deliveries
UNION ALL SELECT 'acceptances', coalesce(sum(acceptances), 0) FROM deliveries
UNION ALL SELECT 'unknown', coalesce(sum(doubts), 0) FROM deliveries
UNION ALL SELECT 'reconciled-successes', coalesce(sum(found), 0) FROM deliveries
UNION ALL SELECT 'reconciled-failures', coalesce(sum(not_found), 0) FROM deliveries
UNION ALL SELECT 'awaiting-review', count(*) FROM ledger WHERE state = 'review'
UNION ALL SELECT 'execution-failures', count(*) FROM executions WHERE execution_status IN ('failed', 'quarantined')
UNION ALL SELECT 'delivery-failures', count(*) FROM deliveries WHERE delivery_status = 'failed'"
);

/// The worker's own words for delivery states, each with the canonical one.
pub const LEDGER_STATES: &[(&str, &str)] = &[
    ("pending", "created"),
    ("dispatching", "dispatching"),
    ("unknown", "unknown"),
    ("delivered", "confirmed"),
    ("failed", "failed"),
    ("review", "review"),
    ("cancelled", "cancelled"),
];

/// Writes the ledger as JSON lines.
pub(crate) fn print_status(store: &Store, output: &mut dyn Write) -> Result<(), WorkerError> {
    for row in rows(store)? {
        // A map of our own values always serialises.
        let line = serde_json::to_string(&row).unwrap_or_default();
        writeln!(output, "{line}")?;
    }
    Ok(())
}

/// Writes the counters as JSON lines.
pub(crate) fn print_metrics(store: &Store, output: &mut dyn Write) -> Result<(), WorkerError> {
    let mut statement = store.connection().prepare(METRICS_QUERY)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, value): (String, i64) = (row.get(0)?, row.get(1)?);
        writeln!(output, "{}", serde_json::json!({ "name": name, "value": value }))?;
    }
    Ok(())
}

/// The rows without their empty columns.
pub(crate) fn rows(store: &Store) -> Result<Vec<BTreeMap<String, Value>>, WorkerError> {
    let mut statement = store.connection().prepare(LEDGER_QUERY)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut columns = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            let value = match row.get_ref(index)? {
                ValueRef::Integer(number) => Value::from(number),
                ValueRef::Text(bytes) => Value::from(String::from_utf8_lossy(bytes)),
                _ => continue,
            };
            columns.insert(name.clone(), if name == "state" { canonical(value) } else { value });
        }
        found.push(columns);
    }
    Ok(found)
}

fn canonical(word: Value) -> Value {
    LEDGER_STATES.iter().find(|(own, _)| word == *own).map_or(word, |(_, canonical)| Value::from(*canonical))
}
