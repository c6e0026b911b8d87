//! The delivery's state machine. Every change after a claim is guarded by the claim's token: an owner whose
//! lease was taken over changes nothing any more.

use rusqlite::{OptionalExtension, Row, params};

use super::{HORIZON_MS, Store, identity};
use crate::clock::now_ms;
use crate::error::WorkerError;

/// The states in which the worker has something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// To be sent.
    Pending,
    /// The intent to send is committed; the outcome is not.
    Dispatching,
    /// Sent, perhaps accepted.
    Unknown,
    /// Decided, or called off.
    Decided,
}

impl Status {
    const OPEN: [Self; 3] = [Self::Pending, Self::Dispatching, Self::Unknown];

    fn of(word: &str) -> Self {
        Self::OPEN.into_iter().find(|status| status.word() == word).unwrap_or(Self::Decided)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dispatching => "dispatching",
            Self::Unknown => "unknown",
            Self::Decided => "decided",
        }
    }
}

/// One delivery, as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its identity.
    pub(crate) id: String,
    /// The request's body.
    pub(crate) payload: String,
    /// Its state.
    pub(crate) status: Status,
    /// Attempts whose intent was committed.
    pub(crate) attempts: u32,
    /// Attempts whose outcome was unknown.
    pub(crate) doubts: u32,
    /// When the first attempt began.
    pub(crate) first_sent_at: Option<i64>,
    /// Who claimed it last.
    pub(crate) owner: Option<String>,
    /// When the claim ends.
    pub(crate) lease_until: i64,
    key: Option<String>,
    token: i64,
}

impl Item {
    /// Its idempotency key: made with the item, the same in every life.
    pub(crate) fn key(&self) -> String {
        self.key.clone().unwrap_or_else(|| identity::key(&self.id, &self.payload))
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("delivery_id")?,
            payload: row.get("payload")?,
            status: Status::of(&row.get::<_, String>("delivery_status")?),
            attempts: row.get("attempt_count")?,
            doubts: row.get("doubts")?,
            first_sent_at: row.get("first_sent_at")?,
            owner: row.get("lease_owner")?,
            lease_until: row.get("lease_until")?,
            key: row.get("idempotency_key")?,
            token: row.get("lease_token")?,
        })
    }
}

/// What an item is settled as. The texts become its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Accepted by the provider. The id is missing only where a bug made it so.
    Delivered { provider_id: Option<String>, evidence: String },
    /// Not sent, and it will not be.
    Failed { evidence: String },
    /// For an operator.
    Review { evidence: String },
    /// It may have been accepted.
    Unknown { evidence: String },
    /// To be taken up again at a time; never where there is none.
    Pending { next_attempt_at: Option<i64>, evidence: String },
}

impl Store {
    /// The first item that is free and due: to be sent, to be asked for, or left behind in flight.
    pub(crate) fn next_due(&self) -> Result<Option<Item>, WorkerError> {
        Ok(self
            .connection
            .query_row(
                "SELECT d.* FROM deliveries d JOIN queue USING (delivery_id)
                 WHERE d.delivery_status IN ('pending', 'dispatching', 'unknown')
                   AND d.lease_until NOT BETWEEN ?1 + 1 AND ?1 + ?2
                   AND d.next_attempt_at NOT BETWEEN ?1 + 1 AND ?1 + ?2
                 ORDER BY d.rowid LIMIT 1",
                params![now_ms(), HORIZON_MS],
                Item::read,
            )
            .optional()?)
    }

    /// One item by its id.
    pub(crate) fn item(&self, id: &str) -> Result<Item, WorkerError> {
        Ok(self.connection.query_row(
            "SELECT * FROM deliveries WHERE delivery_id = ?1",
            params![id],
            Item::read,
        )?)
    }

    /// Claims an item, unless anybody touched it since it was read: compare and swap. The token alone is not enough,
    /// because an owner that comes back late settles or renews under its old one.
    pub(crate) fn claim(&self, item: &mut Item, owner: &str, lease_ms: i64) -> Result<bool, WorkerError> {
        let until = now_ms() + lease_ms;
        let changed = self.connection.execute(
            "UPDATE deliveries SET lease_owner = ?3, lease_until = ?4, lease_token = lease_token + 1
             WHERE delivery_id = ?1 AND lease_token = ?2 AND delivery_status = ?5 AND lease_until = ?6",
            params![item.id, item.token, owner, until, item.status.word(), item.lease_until],
        )?;
        let claimed = changed == 1;
        if claimed {
            item.token += 1;
            item.lease_until = until;
        }
        Ok(claimed)
    }

    /// Claims an item whoever has it: what a worker does that does not compare.
    pub(crate) fn claim_unconditionally(
        &self,
        item: &mut Item,
        owner: &str,
        lease_ms: i64,
    ) -> Result<(), WorkerError> {
        let until = now_ms() + lease_ms;
        self.connection.execute(
            "UPDATE deliveries SET lease_owner = ?2, lease_until = ?3 WHERE delivery_id = ?1",
            params![item.id, owner, until],
        )?;
        item.lease_until = until;
        Ok(())
    }

    /// Commits the intent to send: state, attempt, key. Says whether the claim still held.
    pub(crate) fn begin_dispatch(
        &self,
        item: &mut Item,
        key: &str,
        lease_ms: i64,
        confirmed: bool,
    ) -> Result<bool, WorkerError> {
        let now = now_ms();
        let changed = self.connection.execute(
            "UPDATE deliveries SET delivery_status = ?3, attempt_count = attempt_count + 1, idempotency_key = ?4,
                 first_sent_at = COALESCE(first_sent_at, ?5), lease_until = ?6
             WHERE delivery_id = ?1 AND lease_token = ?2",
            params![
                item.id,
                item.token,
                if confirmed { "delivered" } else { "dispatching" },
                key,
                now,
                now + lease_ms
            ],
        )?;
        item.attempts += 1;
        item.lease_until = now + lease_ms;
        Ok(changed == 1)
    }

    /// Keeps a claim for longer. Says whether it still held.
    pub(crate) fn renew(&self, item: &mut Item, lease_ms: i64) -> Result<bool, WorkerError> {
        let until = now_ms() + lease_ms;
        let changed = self.connection.execute(
            "UPDATE deliveries SET lease_until = ?3 WHERE delivery_id = ?1 AND lease_token = ?2",
            params![item.id, item.token, until],
        )?;
        item.lease_until = until;
        Ok(changed == 1)
    }

    /// Writes what became of an item and gives the claim back. Says whether the claim still held.
    pub(crate) fn settle(&self, item: &Item, settlement: &Settlement) -> Result<bool, WorkerError> {
        let now = now_ms();
        let (word, evidence) = match settlement {
            Settlement::Delivered { evidence, .. } => ("delivered", evidence),
            Settlement::Failed { evidence } => ("failed", evidence),
            Settlement::Review { evidence } => ("review", evidence),
            Settlement::Unknown { evidence } => ("unknown", evidence),
            Settlement::Pending { evidence, .. } => ("pending", evidence),
        };
        let provider_id = match settlement {
            Settlement::Delivered { provider_id, .. } => provider_id.as_deref(),
            _ => None,
        };
        let next_attempt_at = match settlement {
            Settlement::Pending { next_attempt_at, .. } => *next_attempt_at,
            _ => Some(0),
        };
        let delivered = word == "delivered";
        let changed = self.connection.execute(
            "UPDATE deliveries SET delivery_status = ?3, provider_message_id = COALESCE(?4, provider_message_id),
                 acknowledged_at = ?5, next_attempt_at = ?6, doubts = doubts + ?7, last_error = COALESCE(?8, last_error),
                 evidence = evidence || iif(evidence = '', '', '; ') || ?9, lease_owner = NULL, lease_until = 0
             WHERE delivery_id = ?1 AND lease_token = ?2",
            params![
                item.id,
                item.token,
                word,
                provider_id,
                delivered.then_some(now),
                next_attempt_at,
                u32::from(matches!(settlement, Settlement::Unknown { .. })),
                (!delivered).then_some(evidence),
                evidence
            ],
        )?;
        Ok(changed == 1)
    }

    /// Whether an item is neither decided nor given up. `next_attempt_at` is there for every such item.
    pub(crate) fn owes_delivery(&self) -> Result<bool, WorkerError> {
        Ok(self.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM deliveries JOIN queue USING (delivery_id)
                 WHERE delivery_status IN ('pending', 'dispatching', 'unknown') AND next_attempt_at IS NOT NULL)",
            [],
            |row| row.get(0),
        )?)
    }

    /// Takes decided items off the queue, and deletes their rows as well where a bug wants it.
    pub(crate) fn dequeue_decided(&mut self, with_rows: bool) -> Result<(), WorkerError> {
        const DECIDED: &str = "delivery_status IN ('delivered', 'failed', 'review', 'cancelled')";
        let transaction = self.immediate()?;
        transaction.execute(
            &format!(
                "DELETE FROM queue WHERE delivery_id IN (SELECT delivery_id FROM deliveries WHERE {DECIDED})"
            ),
            [],
        )?;
        if with_rows {
            transaction.execute(&format!("DELETE FROM deliveries WHERE {DECIDED}"), [])?;
        }
        transaction.commit()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ItemStart;

    fn ledger_with_one_item() -> Store {
        let mut store = Store::open(std::path::Path::new(":memory:")).unwrap();
        store.enqueue("a", &["x".into()], "text").unwrap();
        let mut run = store.next_run().unwrap().unwrap();
        assert!(store.start_run(&mut run, "one", 1000).unwrap());
        let start = ItemStart { with_key: true, delivered: false };
        assert_eq!(
            store.commit_result(&run, "text", &run.destinations, start).unwrap(),
            Some(vec!["a/x".into()])
        );
        store
    }

    fn accepted() -> Settlement {
        Settlement::Delivered { provider_id: Some("m-1".into()), evidence: "accepted".into() }
    }

    #[test]
    fn one_of_two_that_read_the_same_free_item_gets_it() {
        let store = ledger_with_one_item();
        let (mut one, mut two) = (store.next_due().unwrap().unwrap(), store.next_due().unwrap().unwrap());
        assert!(store.claim(&mut one, "one", 1000).unwrap());
        assert!(!store.claim(&mut two, "two", 1000).unwrap());
        assert!(!store.begin_dispatch(&mut two, "k", 1000, false).unwrap(), "the loser has no token");
    }

    #[test]
    fn a_live_lease_hides_an_item_and_an_ended_one_does_not() {
        let store = ledger_with_one_item();
        let mut item = store.next_due().unwrap().unwrap();
        assert!(store.claim(&mut item, "one", 1000).unwrap());
        assert!(store.next_due().unwrap().is_none());
        assert!(store.renew(&mut item, -1).unwrap());
        assert!(store.next_due().unwrap().is_some());
    }

    #[test]
    fn a_decided_item_is_not_claimed_by_whoever_read_it_before() {
        let store = ledger_with_one_item();
        let mut owner = store.next_due().unwrap().unwrap();
        assert!(store.claim(&mut owner, "one", 1000).unwrap());
        assert!(store.begin_dispatch(&mut owner, "k", -1, false).unwrap());
        let mut reader = store.next_due().unwrap().unwrap();
        assert_eq!(reader.status, Status::Dispatching);
        assert!(store.settle(&owner, &accepted()).unwrap(), "the owner was late, but nobody had taken over");
        assert!(!store.claim(&mut reader, "two", 1000).unwrap());
        assert_eq!(store.item("a/x").unwrap().status, Status::Decided);
    }

    #[test]
    fn an_owner_that_was_taken_over_writes_nothing() {
        let store = ledger_with_one_item();
        let mut old = store.next_due().unwrap().unwrap();
        assert!(store.claim(&mut old, "one", -1).unwrap());
        let mut new = store.next_due().unwrap().unwrap();
        assert!(store.claim(&mut new, "two", 1000).unwrap());
        assert!(!store.begin_dispatch(&mut old, "k", 1000, false).unwrap());
        assert!(!store.renew(&mut old, 1000).unwrap());
        assert!(!store.settle(&old, &accepted()).unwrap());
        assert_eq!(store.item("a/x").unwrap().status, Status::Pending);
    }

    #[test]
    fn an_item_postponed_for_ever_is_neither_due_nor_owed() {
        let store = ledger_with_one_item();
        let item = store.next_due().unwrap().unwrap();
        let never = Settlement::Pending { next_attempt_at: None, evidence: "never".into() };
        assert!(store.settle(&item, &never).unwrap());
        assert!(store.next_due().unwrap().is_none());
        assert!(!store.owes_delivery().unwrap());
    }
}
