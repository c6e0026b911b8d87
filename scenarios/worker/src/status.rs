//! The ledger in canonical words: what `status` prints, and the query for a harness that reads the file itself.

use std::collections::BTreeMap;
use std::io::Write;

use rusqlite::types::ValueRef;
use serde_json::Value;

use crate::error::WorkerError;
use crate::store::Store;

/// One row per delivery with canonical columns; one per requested destination where the work is not done yet.
/// The states are the worker's own words, to be mapped by [`LEDGER_STATES`].
pub const LEDGER_QUERY: &str = "\
SELECT e.run_id AS action,
       coalesce(d.destination, wanted.value) AS destination,
       coalesce(d.delivery_status, 'pending') AS state,
       e.execution_status AS execution,
       e.executions AS executions,
       d.idempotency_key AS key,
       d.provider_message_id AS provider_id,
       coalesce(d.attempt_count, 0) AS attempts,
       json_extract(d.payload, '$.body') AS text,
       coalesce(nullif(d.evidence, ''), d.last_error) AS evidence
FROM executions e
LEFT JOIN deliveries d ON d.run_id = e.run_id
LEFT JOIN json_each(e.destinations) wanted ON d.run_id IS NULL
WHERE d.run_id IS NOT NULL OR e.execution_status IN ('pending', 'running')
ORDER BY e.rowid, d.rowid, wanted.key";

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
