//! The ledger: one SQLite file, and every change of it one immediate transaction or one statement.

mod deliveries;
mod executions;
mod identity;
mod schema;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use crate::error::WorkerError;

pub(crate) use deliveries::{Item, Settlement, Status};
pub(crate) use executions::{Enqueued, ItemStart, Run};

/// How long a statement waits for another writer, in milliseconds.
const BUSY_TIMEOUT_MS: u64 = 5000;

/// No lease and no retry is ever granted further ahead than this, in milliseconds. A time beyond it was written
/// before the clock was stepped back, and nobody must wait for it.
pub(crate) const HORIZON_MS: i64 = 60_000;

/// An open ledger.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
}

impl Store {
    /// Opens the ledger, and makes it where there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, WorkerError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == 0 {
            transaction.execute_batch(schema::SCHEMA)?;
        }
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// Opens a ledger that is there already, and changes nothing.
    pub(crate) fn open_existing(path: &Path) -> Result<Self, WorkerError> {
        if !path.is_file() {
            return Err(WorkerError::NoLedger(PathBuf::from(path)));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
        Ok(Self { connection })
    }

    /// For reads that belong to no state machine.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Notes that a worker of this id begins a life, and says which one it is, from 1.
    pub(crate) fn begin_life(&self, worker_id: &str) -> Result<u32, WorkerError> {
        Ok(self.connection.query_row(
            "INSERT INTO lives (worker_id, count) VALUES (?1, 1)
             ON CONFLICT (worker_id) DO UPDATE SET count = count + 1 RETURNING count",
            params![worker_id],
            |row| row.get(0),
        )?)
    }

    fn immediate(&mut self) -> Result<Transaction<'_>, WorkerError> {
        // Deferred would read first and then fail at once when another worker has written meanwhile.
        Ok(self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
    }
}
