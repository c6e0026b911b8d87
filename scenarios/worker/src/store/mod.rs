//! The ledger: one SQLite file, and every change of it one immediate transaction or one statement.

mod deliveries;
mod executions;
mod home;
mod identity;
mod inbox;
mod schedules;
mod schema;
mod wrong;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use crate::error::WorkerError;

pub(crate) use deliveries::{Begin, Item, Settlement, Status};
pub(crate) use executions::{Enqueued, ItemStart, NewRun, Run};
pub(crate) use inbox::FeedItem;
pub(crate) use schedules::Schedule;

/// How long a statement waits for another writer, in milliseconds.
const BUSY_TIMEOUT_MS: u64 = 5000;

/// No lease and no retry is ever granted further ahead than this, in milliseconds. A time beyond it was written
/// before the clock was stepped back, and nobody must wait for it.
pub(crate) const HORIZON_MS: i64 = 60_000;

/// What a commit survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Durability {
    /// The process's death.
    Off,
    /// That, and the database stays sound over a power cut.
    Normal,
    /// A power cut.
    #[default]
    Full,
}

impl Durability {
    const fn word(self) -> &'static str {
        match self {
            Self::Off => "OFF",
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
        }
    }
}

/// An open ledger.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    /// Whether an owner changes an item only while nobody else has claimed it.
    fenced: bool,
}

impl Store {
    /// Opens the ledger, and makes it where there is none.
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Self, WorkerError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", durability.word())?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let is_new = version_of(&transaction)? == 0;
        if is_new {
            transaction.execute_batch(schema::SCHEMA)?;
        }
        transaction.commit()?;
        let mut store = Self::of_version(connection, path)?;
        if is_new {
            store.move_in()?;
        }
        Ok(store)
    }

    /// Opens a ledger that is there already, and changes nothing.
    pub(crate) fn open_existing(path: &Path) -> Result<Self, WorkerError> {
        if !path.is_file() {
            return Err(WorkerError::NoLedger(PathBuf::from(path)));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
        Self::of_version(connection, path)
    }

    fn of_version(connection: Connection, path: &Path) -> Result<Self, WorkerError> {
        let version = version_of(&connection)?;
        if version != schema::VERSION {
            return Err(WorkerError::OtherVersion {
                path: PathBuf::from(path),
                version,
                expected: schema::VERSION,
            });
        }
        Ok(Self { connection, fenced: true })
    }

    /// Fails at once when another writer is at work.
    pub(crate) fn wait_for_nobody(&self) -> Result<(), WorkerError> {
        Ok(self.connection.busy_timeout(Duration::ZERO)?)
    }

    /// Lets owners write that have lost their claim.
    pub(crate) fn unfence(&mut self) {
        self.fenced = false;
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

fn version_of(connection: &Connection) -> Result<i64, WorkerError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}
