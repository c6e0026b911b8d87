//! What only the seeded bugs do to the ledger.

use rusqlite::params;

use super::executions::{NewItem, finish_run, insert_item, insert_items};
use super::{Item, ItemStart, Run, Status, Store, identity};
use crate::clock::now_ms;
use crate::error::WorkerError;

impl Store {
    /// Claims an item whoever has it: what a worker does that does not compare.
    pub(crate) fn claim_unconditionally(
        &self,
        item: &mut Item,
        owner: &str,
        lease_ms: i64,
    ) -> Result<(), WorkerError> {
        let until = now_ms() + lease_ms;
        self.connection.execute(
            "UPDATE deliveries SET lease_owner = ?2, lease_ms = ?3, lease_until = ?4 WHERE delivery_id = ?1",
            params![item.id, owner, lease_ms, until],
        )?;
        item.lease_until = until;
        Ok(())
    }

    /// Claims an item whatever became of it since it was read.
    pub(crate) fn claim_anyway(
        &self,
        item: &mut Item,
        owner: &str,
        lease_ms: i64,
    ) -> Result<bool, WorkerError> {
        *item = self.item(&item.id)?;
        item.status = Status::Dispatching;
        let until = now_ms() + lease_ms;
        self.connection.execute(
            "UPDATE deliveries SET delivery_status = 'dispatching', lease_until = ?2 WHERE delivery_id = ?1",
            params![item.id, until],
        )?;
        item.lease_until = until;
        self.claim(item, owner, lease_ms, false)
    }

    /// Makes everything pending that is in flight, and takes it from its owner without a new token.
    pub(crate) fn reset_in_flight(&self) -> Result<(), WorkerError> {
        self.connection.execute(
            "UPDATE deliveries SET delivery_status = 'pending', attempt_count = 0, first_sent_at = NULL,
                 lease_owner = NULL, lease_until = 0
             WHERE delivery_status = 'dispatching'",
            [],
        )?;
        Ok(())
    }

    /// Puts an item back as if it had never been sent.
    pub(crate) fn requeue(&self, item: &Item) -> Result<(), WorkerError> {
        self.connection.execute(
            "UPDATE deliveries SET delivery_status = 'pending', attempt_count = attempt_count - 1,
                 first_sent_at = NULL, lease_owner = NULL, lease_until = 0
             WHERE delivery_id = ?1",
            params![item.id],
        )?;
        Ok(())
    }

    /// Makes the delivered items of the same run pending as if they had never been sent.
    pub(crate) fn reopen_siblings(&self, item: &Item) -> Result<(), WorkerError> {
        self.connection.execute(
            "UPDATE deliveries SET delivery_status = 'pending', attempt_count = 0, first_sent_at = NULL,
                 next_attempt_at = ?2
             WHERE delivery_status = 'delivered' AND delivery_id <> ?1
               AND run_id = (SELECT run_id FROM deliveries WHERE delivery_id = ?1)",
            params![item.id, now_ms()],
        )?;
        Ok(())
    }

    /// Makes failed items pending again.
    pub(crate) fn reopen_failed(&self) -> Result<(), WorkerError> {
        self.connection.execute(
            "UPDATE deliveries SET delivery_status = 'pending', next_attempt_at = ?1
             WHERE delivery_status = 'failed'",
            params![now_ms()],
        )?;
        Ok(())
    }

    /// Begins every schedule again at its first occurrence.
    pub(crate) fn rewind_schedules(&self) -> Result<(), WorkerError> {
        self.connection.execute("UPDATE schedules SET next = 1", [])?;
        Ok(())
    }

    /// Commits a run's result, and says whether the run was still its worker's. The items are another commit.
    pub(crate) fn commit_result_alone(&mut self, run: &Run, text: &str) -> Result<bool, WorkerError> {
        let transaction = self.immediate()?;
        let held = finish_run(&transaction, run, text)?;
        transaction.commit()?;
        Ok(held)
    }

    /// Commits a run's items after its result.
    pub(crate) fn commit_items_alone(
        &mut self,
        run: &Run,
        text: &str,
        destinations: &[String],
        start: ItemStart,
    ) -> Result<Vec<String>, WorkerError> {
        let transaction = self.immediate()?;
        let items = insert_items(&transaction, run, text, destinations, start)?;
        transaction.commit()?;
        Ok(items)
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
            let item = NewItem {
                delivery_id: &delivery_id,
                run_id,
                result_ref,
                destination: &destination,
                text,
                suspect: false,
            };
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
}
