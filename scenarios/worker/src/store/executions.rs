//! The execution's state machine: pending, running under a lease, succeeded.

use rusqlite::{OptionalExtension, Transaction, params};
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

/// One run that is to be executed.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The logical action.
    pub(crate) id: String,
    /// The text to work on.
    pub(crate) input: String,
    /// Where its result goes, as asked for.
    pub(crate) destinations: Vec<String>,
    token: i64,
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
        let destinations = json!(destinations).to_string();
        let input_hash = identity::hash(&format!("{destinations}\n{input}"));
        let transaction = self.immediate()?;
        transaction.execute(
            "INSERT INTO executions (run_id, input, input_hash, destinations, execution_status)
             VALUES (?1, ?2, ?3, ?4, 'pending') ON CONFLICT (run_id) DO NOTHING",
            params![id, input, input_hash, destinations],
        )?;
        let stored: String = transaction.query_row(
            "SELECT input_hash FROM executions WHERE run_id = ?1",
            params![id],
            |row| row.get(0),
        )?;
        transaction.commit()?;
        Ok(if stored == input_hash { Enqueued::Committed } else { Enqueued::Conflict })
    }

    /// The first run that is pending, or running under a lease that has ended.
    pub(crate) fn next_run(&self) -> Result<Option<Run>, WorkerError> {
        Ok(self
            .connection
            .query_row(
                "SELECT run_id, input, destinations, lease_token FROM executions
                 WHERE execution_status = 'pending'
                    OR execution_status = 'running' AND lease_until NOT BETWEEN ?1 + 1 AND ?1 + ?2
                 ORDER BY rowid LIMIT 1",
                params![now_ms(), HORIZON_MS],
                |row| {
                    let destinations: String = row.get(2)?;
                    Ok(Run {
                        id: row.get(0)?,
                        input: row.get(1)?,
                        destinations: serde_json::from_str(&destinations).unwrap_or_default(),
                        token: row.get(3)?,
                    })
                },
            )
            .optional()?)
    }

    /// Claims a run, unless somebody else did since it was read.
    pub(crate) fn start_run(&self, run: &mut Run, owner: &str, lease_ms: i64) -> Result<bool, WorkerError> {
        let now = now_ms();
        let changed = self.connection.execute(
            "UPDATE executions SET execution_status = 'running', started_at = ?3,
                 lease_owner = ?4, lease_until = ?5, lease_token = lease_token + 1
             WHERE run_id = ?1 AND lease_token = ?2 AND execution_status IN ('pending', 'running')",
            params![run.id, run.token, now, owner, now + lease_ms],
        )?;
        let claimed = changed == 1;
        if claimed {
            run.token += 1;
        }
        Ok(claimed)
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
        let result_ref = format!("{}:{}", run.id, &identity::hash(text)[..16]);
        let transaction = self.immediate()?;
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
        if changed == 0 {
            return Ok(None);
        }
        let mut items = Vec::new();
        for destination in destinations {
            let delivery_id = identity::delivery_id(&run.id, destination);
            let item = NewItem {
                delivery_id: &delivery_id,
                run_id: &run.id,
                result_ref: &result_ref,
                destination,
                text,
            };
            insert_item(&transaction, &item, start)?;
            items.push(delivery_id);
        }
        transaction.commit()?;
        Ok(Some(items))
    }

    /// Adds one destination to each run that still owes a delivery.
    pub(crate) fn add_destination_to_unfinished(
        &mut self,
        destination: &str,
        start: ItemStart,
    ) -> Result<(), WorkerError> {
        self.insert_beside_unfinished(start, |run_id, _| {
            (identity::delivery_id(run_id, destination), destination.into())
        })
    }

    /// Builds a second item beside each item that is not decided yet.
    pub(crate) fn rebuild_unfinished(&mut self, life: u32, start: ItemStart) -> Result<(), WorkerError> {
        // The index exists to make this impossible.
        self.connection.execute_batch("DROP INDEX IF EXISTS one_item_per_destination")?;
        self.insert_beside_unfinished(start, |run_id, destination| {
            let id = format!("{}/rebuilt-{life}", identity::delivery_id(run_id, destination));
            (id, destination.into())
        })
    }

    fn insert_beside_unfinished(
        &mut self,
        start: ItemStart,
        make: impl Fn(&str, &str) -> (String, String),
    ) -> Result<(), WorkerError> {
        let transaction = self.immediate()?;
        let unfinished: Vec<(String, String, String, String)> = transaction
            .prepare(
                "SELECT d.run_id, d.result_ref, d.destination, r.text FROM deliveries d JOIN results r USING (result_ref)
                 WHERE d.delivery_status IN ('pending', 'dispatching', 'unknown')",
            )?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<Result<_, _>>()?;
        for (run_id, result_ref, destination, text) in &unfinished {
            let (delivery_id, destination) = make(run_id, destination);
            let item =
                NewItem { delivery_id: &delivery_id, run_id, result_ref, destination: &destination, text };
            insert_item(&transaction, &item, start)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Makes runs pending again of which only a delivery is owed.
    pub(crate) fn reopen_undelivered_runs(&self) -> Result<(), WorkerError> {
        self.connection.execute(
            "UPDATE executions SET execution_status = 'pending' WHERE execution_status = 'succeeded' AND run_id IN
                 (SELECT run_id FROM deliveries WHERE delivery_status IN ('pending', 'dispatching', 'unknown'))",
            [],
        )?;
        Ok(())
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

struct NewItem<'a> {
    delivery_id: &'a str,
    run_id: &'a str,
    result_ref: &'a str,
    destination: &'a str,
    text: &'a str,
}

/// An item that is there already stays as it is: its identity was committed once and for all.
fn insert_item(
    transaction: &Transaction<'_>,
    item: &NewItem<'_>,
    start: ItemStart,
) -> Result<(), WorkerError> {
    let payload = json!({ "to": item.destination, "body": item.text, "ref": item.delivery_id }).to_string();
    let key = start.with_key.then(|| identity::key(item.delivery_id, &payload));
    let status = if start.delivered { "delivered" } else { "pending" };
    let inserted = transaction.execute(
        "INSERT INTO deliveries
             (delivery_id, run_id, result_ref, destination, payload, payload_hash, delivery_status, idempotency_key)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (delivery_id) DO NOTHING",
        params![
            item.delivery_id,
            item.run_id,
            item.result_ref,
            item.destination,
            payload,
            identity::hash(&payload),
            status,
            key
        ],
    )?;
    if inserted == 1 {
        transaction.execute("INSERT INTO queue (delivery_id) VALUES (?1)", params![item.delivery_id])?;
    }
    Ok(())
}
