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
    /// Attempts that ended with their owner: nobody saw an outcome.
    pub(crate) interruptions: u32,
    /// When the first attempt began.
    pub(crate) first_sent_at: Option<i64>,
    /// Whether it was read from a copy or a backup.
    pub(crate) suspect: bool,
    /// Who has claimed it.
    pub(crate) owner: Option<String>,
    /// How long the claim lasts, in milliseconds.
    pub(crate) lease_ms: i64,
    /// When the claim ends, by its owner's clock.
    pub(crate) lease_until: i64,
    key: String,
    token: i64,
}

impl Item {
    /// Its idempotency key: made with the item, the same in every life.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// What tells a claim from the next one, and from itself after it was renewed.
    pub(crate) fn claim(&self) -> (i64, i64) {
        (self.token, self.lease_until)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (id, payload): (String, String) = (row.get("delivery_id")?, row.get("payload")?);
        let stored: Option<String> = row.get("idempotency_key")?;
        let key = match stored {
            Some(key) => key,
            // Only where a bug left it out.
            None => identity::key(&row.get::<_, String>("epoch")?, &id, &payload),
        };
        Ok(Self {
            id,
            payload,
            status: Status::of(&row.get::<_, String>("delivery_status")?),
            attempts: row.get("attempt_count")?,
            doubts: row.get("doubts")?,
            interruptions: row.get("interruptions")?,
            first_sent_at: row.get("first_sent_at")?,
            suspect: row.get("suspect")?,
            owner: row.get("lease_owner")?,
            lease_ms: row.get("lease_ms")?,
            lease_until: row.get("lease_until")?,
            key,
            token: row.get("lease_token")?,
        })
    }
}

/// How an attempt begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin {
    /// Whether it counts here; where it does not, the claim was counted.
    pub(crate) counted: bool,
    /// Whether lookups found nothing of an earlier one.
    pub(crate) after_absence: bool,
    /// Whether the row says `delivered` from now on.
    pub(crate) confirmed: bool,
}

/// What an item is settled as. The texts become its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Accepted by the provider. The id is missing only where a bug made it so.
    Delivered { provider_id: Option<String>, found: bool, evidence: String },
    /// Not sent, and it will not be.
    Failed { evidence: String },
    /// For an operator.
    Review { evidence: String },
    /// It may have been accepted; to be asked for at a time. `interrupted` where its owner did not see the end.
    Unknown { ask_at: i64, interrupted: bool, evidence: String },
    /// To be taken up again at a time; never where there is none.
    Pending { next_attempt_at: Option<i64>, evidence: String },
}

impl Settlement {
    const fn word(&self) -> &'static str {
        match self {
            Self::Delivered { .. } => "delivered",
            Self::Failed { .. } => "failed",
            Self::Review { .. } => "review",
            Self::Unknown { .. } => "unknown",
            Self::Pending { .. } => "pending",
        }
    }

    pub(crate) fn evidence(&self) -> &str {
        match self {
            Self::Delivered { evidence, .. }
            | Self::Failed { evidence }
            | Self::Review { evidence }
            | Self::Unknown { evidence, .. }
            | Self::Pending { evidence, .. } => evidence,
        }
    }

    const fn next_attempt_at(&self) -> Option<i64> {
        match self {
            Self::Pending { next_attempt_at, .. } => *next_attempt_at,
            Self::Unknown { ask_at, .. } => Some(*ask_at),
            Self::Delivered { .. } | Self::Failed { .. } | Self::Review { .. } => None,
        }
    }
}

/// Items with what their keys are made of.
const ITEMS: &str = "SELECT d.*, ledger.epoch FROM deliveries d, ledger";

impl Store {
    /// The first item that nobody has claimed and that is due: to be sent, or to be asked for.
    /// What has been due since before `since` is not looked at.
    pub(crate) fn next_due(&self, since: i64) -> Result<Option<Item>, WorkerError> {
        let query = format!(
            "{ITEMS} JOIN queue USING (delivery_id)
             WHERE d.delivery_status IN ('pending', 'dispatching', 'unknown') AND d.lease_owner IS NULL
               AND d.next_attempt_at NOT BETWEEN ?1 + 1 AND ?1 + ?2 AND d.next_attempt_at >= ?3
             ORDER BY d.rowid LIMIT 1"
        );
        Ok(self.connection.query_row(&query, params![now_ms(), HORIZON_MS, since], Item::read).optional()?)
    }

    /// Every open item that somebody has claimed, alive or dead.
    pub(crate) fn claimed(&self) -> Result<Vec<Item>, WorkerError> {
        let mut statement = self.connection.prepare(&format!(
            "{ITEMS} WHERE d.delivery_status IN ('pending', 'dispatching', 'unknown') AND d.lease_owner IS NOT NULL
             ORDER BY d.rowid"
        ))?;
        Ok(statement.query_map([], Item::read)?.collect::<Result<_, _>>()?)
    }

    /// One item by its id.
    pub(crate) fn item(&self, id: &str) -> Result<Item, WorkerError> {
        let query = format!("{ITEMS} WHERE d.delivery_id = ?1");
        Ok(self.connection.query_row(&query, params![id], Item::read)?)
    }

    /// Claims an item, unless anybody touched it since it was read: compare and swap. The token alone is not enough,
    /// because an owner that comes back late settles or renews under its old one.
    pub(crate) fn claim(
        &self,
        item: &mut Item,
        owner: &str,
        lease_ms: i64,
        counted: bool,
    ) -> Result<bool, WorkerError> {
        let until = now_ms() + lease_ms;
        let changed = self.connection.execute(
            "UPDATE deliveries SET lease_owner = ?3, lease_ms = ?4, lease_until = ?5, lease_token = lease_token + 1,
                 attempt_count = attempt_count + ?8
             WHERE delivery_id = ?1 AND lease_token = ?2
               AND delivery_status = ?6 AND lease_until = ?7",
            params![
                item.id,
                item.token,
                owner,
                lease_ms,
                until,
                item.status.word(),
                item.lease_until,
                counted
            ],
        )?;
        let claimed = changed == 1;
        if claimed {
            item.token += 1;
            item.lease_until = until;
            item.attempts += u32::from(counted);
        }
        Ok(claimed)
    }

    /// The token that an owner must still have for its writes to count; `None` where nobody compares.
    fn token_of(&self, item: &Item) -> Option<i64> {
        self.fenced.then_some(item.token)
    }

    /// Commits the intent to send: state, attempt, key. Says whether the claim still held.
    pub(crate) fn begin_dispatch(
        &self,
        item: &mut Item,
        key: &str,
        lease_ms: i64,
        begin: Begin,
    ) -> Result<bool, WorkerError> {
        let now = now_ms();
        let changed = self.connection.execute(
            "UPDATE deliveries SET delivery_status = ?3, attempt_count = attempt_count + ?7, idempotency_key = ?4,
                 first_sent_at = COALESCE(first_sent_at, ?5), suspect = 0, not_found = not_found + ?8,
                 lease_ms = ?9, lease_until = ?6
             WHERE delivery_id = ?1 AND lease_token = COALESCE(?2, lease_token)",
            params![
                item.id,
                self.token_of(item),
                if begin.confirmed { "delivered" } else { "dispatching" },
                key,
                now,
                now + lease_ms,
                begin.counted,
                begin.after_absence,
                lease_ms
            ],
        )?;
        item.attempts += u32::from(begin.counted);
        item.lease_until = now + lease_ms;
        Ok(changed == 1)
    }

    /// Keeps a claim for longer. Says whether it still held.
    pub(crate) fn renew(&self, item: &mut Item, lease_ms: i64) -> Result<bool, WorkerError> {
        let until = now_ms() + lease_ms;
        let changed = self.connection.execute(
            "UPDATE deliveries SET lease_until = ?3
             WHERE delivery_id = ?1 AND lease_token = COALESCE(?2, lease_token)",
            params![item.id, self.token_of(item), until],
        )?;
        item.lease_until = until;
        Ok(changed == 1)
    }

    /// Gives a claim back and leaves all else as it is.
    pub(crate) fn release(&self, item: &Item) -> Result<(), WorkerError> {
        self.connection.execute(
            "UPDATE deliveries SET lease_owner = NULL, lease_until = 0
             WHERE delivery_id = ?1 AND lease_token = COALESCE(?2, lease_token)",
            params![item.id, self.token_of(item)],
        )?;
        Ok(())
    }

    /// Writes what became of an item and gives the claim back. Says whether the claim still held.
    pub(crate) fn settle(
        &self,
        item: &Item,
        settlement: &Settlement,
        accepted: bool,
    ) -> Result<bool, WorkerError> {
        let (mut id, mut is_found, mut is_interrupted) = (None, false, false);
        match settlement {
            Settlement::Delivered { provider_id, found, .. } => {
                (id, is_found) = (provider_id.as_deref(), *found);
            }
            Settlement::Unknown { interrupted, .. } => is_interrupted = *interrupted,
            Settlement::Failed { .. } | Settlement::Review { .. } | Settlement::Pending { .. } => {}
        }
        let is_delivered = matches!(settlement, Settlement::Delivered { .. });
        let evidence = settlement.evidence();
        let changed = self.connection.execute(
            "UPDATE deliveries SET delivery_status = ?3, provider_message_id = COALESCE(?4, provider_message_id),
                 acknowledged_at = ?5, next_attempt_at = ?6, doubts = doubts + ?7, last_error = COALESCE(?8, last_error),
                 evidence = evidence || iif(evidence = '', '', '; ') || ?9, lease_owner = NULL, lease_until = 0,
                 interruptions = interruptions + ?10, acceptances = acceptances + ?11, found = found + ?12
             WHERE delivery_id = ?1 AND lease_token = COALESCE(?2, lease_token)",
            params![
                item.id,
                self.token_of(item),
                settlement.word(),
                id,
                is_delivered.then(now_ms),
                settlement.next_attempt_at(),
                matches!(settlement, Settlement::Unknown { .. }),
                (!is_delivered).then_some(evidence),
                evidence,
                is_interrupted,
                accepted,
                is_found
            ],
        )?;
        Ok(changed == 1)
    }

    /// Whether an item is neither decided nor given up. `next_attempt_at` is there for every such item. Whoever
    /// takes nothing over does not wait for what others have claimed, and nobody for what lies before `since`.
    pub(crate) fn owes_delivery(&self, with_claimed: bool, since: i64) -> Result<bool, WorkerError> {
        Ok(self.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM deliveries JOIN queue USING (delivery_id)
                 WHERE delivery_status IN ('pending', 'dispatching', 'unknown') AND next_attempt_at IS NOT NULL
                   AND (lease_owner IS NULL AND next_attempt_at >= ?2 OR lease_owner IS NOT NULL AND ?1))",
            params![with_claimed, since],
            |row| row.get(0),
        )?)
    }

    /// What has been due since before `limit`, with its time.
    pub(crate) fn due_before(&self, limit: i64) -> Result<Vec<(String, i64)>, WorkerError> {
        let mut statement = self.connection.prepare(
            "SELECT delivery_id, next_attempt_at FROM deliveries
             WHERE delivery_status IN ('pending', 'dispatching', 'unknown') AND next_attempt_at < ?1
             UNION ALL SELECT run_id, created_at FROM executions
             WHERE execution_status IN ('pending', 'running') AND created_at < ?1",
        )?;
        let rows = statement.query_map(params![limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
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
    use crate::store::{Durability, ItemStart};

    const EVER: i64 = i64::MIN;
    const BEGIN: Begin = Begin { counted: true, after_absence: false, confirmed: false };

    fn ledger_with_one_item() -> Store {
        let mut store = Store::open(std::path::Path::new(":memory:"), Durability::Full).unwrap();
        store.enqueue("a", &["x".into()], "text").unwrap();
        let mut run = store.next_run().unwrap().unwrap();
        assert!(store.start_run(&mut run, "one", 1000, true).unwrap());
        let start = ItemStart { with_key: true, delivered: false };
        assert_eq!(
            store.commit_result(&run, "text", &run.destinations, start).unwrap(),
            Some(vec!["a/x".into()])
        );
        store
    }

    fn accepted() -> Settlement {
        Settlement::Delivered { provider_id: Some("m-1".into()), found: false, evidence: "accepted".into() }
    }

    #[test]
    fn one_of_two_that_read_the_same_free_item_gets_it() {
        let store = ledger_with_one_item();
        let (mut one, mut two) =
            (store.next_due(EVER).unwrap().unwrap(), store.next_due(EVER).unwrap().unwrap());
        assert!(store.claim(&mut one, "one", 1000, false).unwrap());
        assert!(!store.claim(&mut two, "two", 1000, false).unwrap());
        assert!(!store.begin_dispatch(&mut two, "k", 1000, BEGIN).unwrap(), "the loser has no token");
    }

    #[test]
    fn a_claim_hides_an_item_until_it_is_given_back_and_renewing_it_shows() {
        let store = ledger_with_one_item();
        let mut item = store.next_due(EVER).unwrap().unwrap();
        assert!(store.claim(&mut item, "one", 1000, false).unwrap());
        assert!(store.next_due(EVER).unwrap().is_none());
        let before = store.claimed().unwrap()[0].claim();
        assert!(store.renew(&mut item, 2000).unwrap());
        assert_ne!(store.claimed().unwrap()[0].claim(), before);
        store.release(&item).unwrap();
        assert!(store.claimed().unwrap().is_empty() && store.next_due(EVER).unwrap().is_some());
    }

    #[test]
    fn a_decided_item_is_not_claimed_by_whoever_read_it_before() {
        let store = ledger_with_one_item();
        let mut owner = store.next_due(EVER).unwrap().unwrap();
        assert!(store.claim(&mut owner, "one", 1000, false).unwrap());
        assert!(store.begin_dispatch(&mut owner, "k", -1, BEGIN).unwrap());
        let mut reader = store.claimed().unwrap().remove(0);
        assert_eq!(reader.status, Status::Dispatching);
        assert!(
            store.settle(&owner, &accepted(), true).unwrap(),
            "the owner was late, but nobody had taken over"
        );
        assert!(!store.claim(&mut reader, "two", 1000, false).unwrap());
        assert_eq!(store.item("a/x").unwrap().status, Status::Decided);
    }

    #[test]
    fn an_owner_that_was_taken_over_writes_nothing() {
        let store = ledger_with_one_item();
        let mut old = store.next_due(EVER).unwrap().unwrap();
        assert!(store.claim(&mut old, "one", -1, false).unwrap());
        let mut new = store.claimed().unwrap().remove(0);
        assert!(store.claim(&mut new, "two", 1000, false).unwrap());
        assert!(!store.begin_dispatch(&mut old, "k", 1000, BEGIN).unwrap());
        assert!(!store.renew(&mut old, 1000).unwrap());
        assert!(!store.settle(&old, &accepted(), true).unwrap());
        assert_eq!(store.item("a/x").unwrap().status, Status::Pending);
    }

    #[test]
    fn an_item_postponed_for_ever_is_neither_due_nor_owed() {
        let store = ledger_with_one_item();
        let item = store.next_due(EVER).unwrap().unwrap();
        let never = Settlement::Pending { next_attempt_at: None, evidence: "never".into() };
        assert!(store.settle(&item, &never, false).unwrap());
        assert!(store.next_due(EVER).unwrap().is_none());
        assert!(!store.owes_delivery(true, EVER).unwrap());
    }
}
