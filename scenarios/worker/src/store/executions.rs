//! The execution's state machine: pending, running under a lease, succeeded; or put aside.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde_json::json;

use super::{HORIZON_MS, Store, identity};
use crate::clock::now_ms;
use crate::error::WorkerError;

/// What became of an action that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// It is in the ledger: now, or already with the same contents.
    Committed,
    /// The id is in the ledger with other contents.
    Conflict,
}

/// An action that is to become a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRun {
    /// The logical action.
    pub(crate) id: String,
    /// Where its result goes.
    pub(crate) destinations: Vec<String>,
    /// The text to work on.
    pub(crate) input: String,
}

/// One run that is to be executed.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The logical action.
    pub(crate) id: String,
    /// The text to work on.
    pub(crate) input: String,
    /// Where its result goes, as asked for.
    pub(crate) destinations: Vec<String>,
    /// How often it was begun before.
    pub(crate) starts: u32,
    /// Whether it was read from a copy or a backup.
    pub(crate) suspect: bool,
    token: i64,
}

impl Run {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let destinations: String = row.get("destinations")?;
        Ok(Self {
            id: row.get("run_id")?,
            input: row.get("input")?,
            destinations: serde_json::from_str(&destinations).unwrap_or_default(),
            starts: row.get("starts")?,
            suspect: row.get("suspect")?,
            token: row.get("lease_token")?,
        })
    }
}

/// How delivery items begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemStart {
    /// Whether the key is stored with the new row.
    pub(crate) with_key: bool,
    /// Whether the row begins as delivered.
    pub(crate) delivered: bool,
}

impl Store {
    /// Commits one action as a pending execution.
    pub(crate) fn enqueue(
        &mut self,
        id: &str,
        destinations: &[String],
        input: &str,
    ) -> Result<Enqueued, WorkerError> {
        let run = NewRun { id: id.to_owned(), destinations: destinations.to_vec(), input: input.to_owned() };
        let conflicts = self.enqueue_all(std::slice::from_ref(&run), || Ok(()))?;
        Ok(if conflicts.is_empty() { Enqueued::Committed } else { Enqueued::Conflict })
    }

    /// Commits actions together, after `before_commit`. Returns the ids that are there with other contents; then
    /// nothing is committed.
    pub(crate) fn enqueue_all(
        &mut self,
        runs: &[NewRun],
        before_commit: impl FnOnce() -> Result<(), WorkerError>,
    ) -> Result<Vec<String>, WorkerError> {
        let transaction = self.immediate()?;
        let mut conflicts = Vec::new();
        for run in runs {
            insert_run(&transaction, &run.id, &run.destinations, &run.input)?;
            let stored: String = transaction.query_row(
                "SELECT input_hash FROM executions WHERE run_id = ?1",
                params![run.id],
                |row| row.get(0),
            )?;
            if stored != input_hash(&run.destinations, &run.input) {
                conflicts.push(run.id.clone());
            }
        }
        if conflicts.is_empty() {
            before_commit()?;
            transaction.commit()?;
        }
        Ok(conflicts)
    }

    /// The first run that is pending, or running under a lease that has ended.
    pub(crate) fn next_run(&self) -> Result<Option<Run>, WorkerError> {
        Ok(self
            .connection
            .query_row(
                "SELECT * FROM executions
                 WHERE execution_status = 'pending'
                    OR execution_status = 'running' AND lease_until NOT BETWEEN ?1 + 1 AND ?1 + ?2
                 ORDER BY rowid LIMIT 1",
                params![now_ms(), HORIZON_MS],
                Run::read,
            )
            .optional()?)
    }

    /// Claims a run, unless somebody else did since it was read, and counts the start in the same commit: what
    /// kills its worker must not come back uncounted.
    pub(crate) fn start_run(
        &self,
        run: &mut Run,
        owner: &str,
        lease_ms: i64,
        counted: bool,
    ) -> Result<bool, WorkerError> {
        let now = now_ms();
        let changed = self.connection.execute(
            "UPDATE executions SET execution_status = 'running', started_at = ?3, starts = starts + ?6,
                 lease_owner = ?4, lease_until = ?5, lease_token = lease_token + 1
             WHERE run_id = ?1 AND lease_token = ?2 AND execution_status IN ('pending', 'running')",
            params![run.id, run.token, now, owner, now + lease_ms, counted],
        )?;
        let claimed = changed == 1;
        if claimed {
            run.token += 1;
        }
        Ok(claimed)
    }

    /// Puts a run aside for an operator, unless somebody else claimed it since it was read.
    pub(crate) fn quarantine(&self, run: &Run, evidence: &str) -> Result<bool, WorkerError> {
        let changed = self.connection.execute(
            "UPDATE executions SET execution_status = 'quarantined', finished_at = ?3, evidence = ?4,
                 lease_owner = NULL, lease_until = 0, lease_token = lease_token + 1
             WHERE run_id = ?1 AND lease_token = ?2 AND execution_status IN ('pending', 'running')",
            params![run.id, run.token, now_ms(), evidence],
        )?;
        Ok(changed == 1)
    }

    /// Commits a run's result and its delivery items in one transaction, so that no crash can come between.
    /// Returns the items, or `None` where the run has a new owner.
    pub(crate) fn commit_result(
        &mut self,
        run: &Run,
        text: &str,
        destinations: &[String],
        start: ItemStart,
    ) -> Result<Option<Vec<String>>, WorkerError> {
        let transaction = self.immediate()?;
        if !finish_run(&transaction, run, text)? {
            return Ok(None);
        }
        let items = insert_items(&transaction, run, text, destinations, start)?;
        transaction.commit()?;
        Ok(Some(items))
    }

    /// Whether a run is pending or running.
    pub(crate) fn owes_execution(&self) -> Result<bool, WorkerError> {
        Ok(self.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM executions WHERE execution_status IN ('pending', 'running'))",
            [],
            |row| row.get(0),
        )?)
    }
}

fn input_hash(destinations: &[String], input: &str) -> String {
    identity::hash(&format!("{}\n{input}", json!(destinations)))
}

/// Makes a pending run, unless there is one with that id. Says whether it did.
pub(super) fn insert_run(
    transaction: &Transaction<'_>,
    id: &str,
    destinations: &[String],
    input: &str,
) -> Result<bool, WorkerError> {
    let inserted = transaction.execute(
        "INSERT INTO executions (run_id, input, input_hash, destinations, execution_status, created_at)
         VALUES (?1, ?2, ?3, ?4, 'pending', ?5) ON CONFLICT (run_id) DO NOTHING",
        params![id, input, input_hash(destinations, input), json!(destinations).to_string(), now_ms()],
    )?;
    Ok(inserted == 1)
}

fn result_ref(run: &Run, text: &str) -> String {
    format!("{}:{}", run.id, &identity::hash(text)[..16])
}

/// Writes the result. Says whether the run was still its worker's.
pub(super) fn finish_run(transaction: &Transaction<'_>, run: &Run, text: &str) -> Result<bool, WorkerError> {
    let result_ref = result_ref(run, text);
    transaction.execute(
        "INSERT INTO results (result_ref, run_id, text) VALUES (?1, ?2, ?3) ON CONFLICT (result_ref) DO NOTHING",
        params![result_ref, run.id, text],
    )?;
    let changed = transaction.execute(
        "UPDATE executions SET execution_status = 'succeeded', executions = executions + 1, result_ref = ?3,
             finished_at = ?4, lease_owner = NULL, lease_until = 0
         WHERE run_id = ?1 AND lease_token = ?2 AND execution_status = 'running'",
        params![run.id, run.token, result_ref, now_ms()],
    )?;
    Ok(changed == 1)
}

/// Makes one item per destination. Returns their ids.
pub(super) fn insert_items(
    transaction: &Transaction<'_>,
    run: &Run,
    text: &str,
    destinations: &[String],
    start: ItemStart,
) -> Result<Vec<String>, WorkerError> {
    let result_ref = result_ref(run, text);
    let mut items = Vec::new();
    for destination in destinations {
        let delivery_id = identity::delivery_id(&run.id, destination);
        let item = NewItem {
            delivery_id: &delivery_id,
            run_id: &run.id,
            result_ref: &result_ref,
            destination,
            text,
            suspect: run.suspect,
        };
        insert_item(transaction, &item, start)?;
        items.push(delivery_id);
    }
    Ok(items)
}

/// A delivery item that is to be made.
pub(super) struct NewItem<'a> {
    pub(super) delivery_id: &'a str,
    pub(super) run_id: &'a str,
    pub(super) result_ref: &'a str,
    pub(super) destination: &'a str,
    pub(super) text: &'a str,
    pub(super) suspect: bool,
}

/// An item that is there already stays as it is: its identity was committed once and for all.
pub(super) fn insert_item(
    transaction: &Transaction<'_>,
    item: &NewItem<'_>,
    start: ItemStart,
) -> Result<(), WorkerError> {
    let payload = json!({ "to": item.destination, "body": item.text, "ref": item.delivery_id }).to_string();
    let epoch: String = transaction.query_row("SELECT epoch FROM ledger", [], |row| row.get(0))?;
    let key = start.with_key.then(|| identity::key(&epoch, item.delivery_id, &payload));
    let status = if start.delivered { "delivered" } else { "pending" };
    let inserted = transaction.execute(
        "INSERT INTO deliveries
             (delivery_id, run_id, result_ref, destination, payload, payload_hash, delivery_status, idempotency_key,
              next_attempt_at, suspect)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (delivery_id) DO NOTHING",
        params![
            item.delivery_id,
            item.run_id,
            item.result_ref,
            item.destination,
            payload,
            identity::hash(&payload),
            status,
            key,
            now_ms(),
            item.suspect
        ],
    )?;
    if inserted == 1 {
        transaction.execute("INSERT INTO queue (delivery_id) VALUES (?1)", params![item.delivery_id])?;
    }
    Ok(())
}
