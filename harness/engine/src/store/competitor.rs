//! Another writer on the worker's live database.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{Database, StoreError, locks};
use crate::trial::ActiveFault;

/// Pause between two commits of a [`Rush`].
const RUSH_PAUSE: Duration = Duration::from_millis(2);

fn open(path: &Path) -> Result<File, StoreError> {
    let opening = StoreError::io(format!("opening {}", path.display()));
    OpenOptions::new().read(true).write(true).open(path).map_err(opening)
}

fn locking(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    StoreError::io(format!("locking {}", path.display()))
}

/// The index of a log that some connection has open.
fn open_index(database: &Database) -> Result<File, StoreError> {
    let nobody = || {
        StoreError::refused("no connection has the database open here; choose a boundary at which one has")
    };
    let path = database.shm();
    if !path.exists() {
        return Err(nobody());
    }
    let index = open(&path)?;
    if locks::is_held(&index, locks::WAL_OPEN).map_err(locking(&path))? { Ok(index) } else { Err(nobody()) }
}

/// A connection in the middle of a write transaction, as the other connections see it. It writes nothing.
#[derive(Debug)]
pub(crate) struct Writer {
    files: Vec<File>,
    path: PathBuf,
    until: Instant,
}

impl Writer {
    /// Takes the write lock, to be held until a time.
    ///
    /// # Errors
    /// A refusal where there is no database, or somebody is writing.
    pub(crate) fn begin(database: &Database, until: Instant) -> Result<Self, StoreError> {
        let path = database.path();
        if !path.exists() {
            return Err(StoreError::refused(format!("there is no {}", path.display())));
        }
        let taken = || {
            StoreError::refused(
                "a connection of the worker holds the write lock here; choose a boundary outside of its transaction",
            )
        };
        let uses_wal = database.uses_wal().map_err(StoreError::io(format!("reading {}", path.display())))?;
        let main = open(path)?;
        if !locks::take(&main, locks::SHARED, false).map_err(locking(path))? {
            return Err(taken());
        }
        let mut files = vec![main];
        let range = if uses_wal {
            let index = open_index(database)?;
            // As long as it is there, no other connection is the first or the last one.
            if !locks::take(&index, locks::WAL_OPEN, false).map_err(locking(path))? {
                return Err(taken());
            }
            files.push(index);
            locks::WAL_WRITE
        } else {
            locks::RESERVED
        };
        let locked =
            files.last().map(|file| locks::take(file, range, true)).transpose().map_err(locking(path))?;
        if locked != Some(true) {
            return Err(taken());
        }
        Ok(Self { files, path: path.to_owned(), until })
    }
}

impl ActiveFault for Writer {
    fn name(&self) -> &'static str {
        "store-busy"
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    fn end(&mut self) -> String {
        self.files.clear();
        "the other writer gave its lock back, and has written nothing".into()
    }
}

/// Whether some connection holds a snapshot of the log.
///
/// # Errors
/// A refusal where no connection has the database open.
fn snapshot_is_held(database: &Database) -> Result<bool, StoreError> {
    let index = open_index(database)?;
    locks::is_held(&index, locks::WAL_READ).map_err(locking(database.path()))
}

/// Commits a transaction that changes nothing that a reader can see, under the feet of whoever holds a
/// snapshot: their next write fails at once, however long they are ready to wait.
///
/// # Errors
/// A refusal where nobody holds a snapshot, or somebody is writing.
pub(crate) fn overtake(database: &Database) -> Result<(), StoreError> {
    let path = database.path();
    if !path.exists()
        || !database.uses_wal().map_err(StoreError::io(format!("reading {}", path.display())))?
    {
        return Err(StoreError::refused(
            "only a database with a write-ahead log has snapshots; this one has none",
        ));
    }
    if !snapshot_is_held(database)? {
        return Err(StoreError::refused(
            "no connection holds a snapshot here; choose a boundary between the read and the write of a transaction, \
             or give `for`",
        ));
    }
    commit_nothing(path)
        .map_err(|error| StoreError::refused(format!("the other writer could not commit: {error}")))
}

/// Rewrites the user version with the value that it has: one frame in the log, no change of data or schema.
fn commit_nothing(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    // It must neither checkpoint nor sync: both would hide what a crash of the worker can lose.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.pragma_update(None, "synchronous", "off")?;
    db.busy_timeout(Duration::ZERO)?;
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    db.pragma_update(None, "user_version", version)
}

/// Overtakes every snapshot that anybody takes, again and again, for a time.
#[derive(Debug)]
pub(crate) struct Rush {
    path: PathBuf,
    until: Instant,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<u32>>,
}

impl Rush {
    /// Begins.
    ///
    /// # Errors
    /// A refusal where the database has no log or nobody has it open.
    pub(crate) fn begin(database: &Database, until: Instant) -> Result<Self, StoreError> {
        snapshot_is_held(database)?;
        let (stop, stopped) = mpsc::channel();
        let target = database.clone();
        let rush = move || {
            let mut commits = 0;
            while Instant::now() < until {
                commits += u32::from(overtake(&target).is_ok());
                if stopped.recv_timeout(RUSH_PAUSE) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            commits
        };
        let thread = thread::Builder::new()
            .name("killpoint-writer".into())
            .spawn(rush)
            .map_err(StoreError::io("starting the other writer's thread"))?;
        Ok(Self { path: database.path().to_owned(), until, stop: Some(stop), thread: Some(thread) })
    }
}

impl ActiveFault for Rush {
    fn name(&self) -> &'static str {
        "store-busy-snapshot"
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    fn end(&mut self) -> String {
        drop(self.stop.take());
        let commits = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(0);
        format!("the other writer overtook {commits} snapshots, and changed nothing that can be read")
    }
}

impl Drop for Rush {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ErrorCode;

    // A connection of this process loses its own locks whenever one of its files is closed here, so what needs
    // these is tested on a worker's process.

    fn database(journal: &str) -> (tempfile::TempDir, Database, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::new(folder.path().join("l.db"));
        let db = Connection::open(database.path()).unwrap();
        db.pragma_update(None, "journal_mode", journal).unwrap();
        db.execute_batch("create table t (x); insert into t values (1)").unwrap();
        db.busy_timeout(Duration::ZERO).unwrap();
        (folder, database, db)
    }

    fn until() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn while_another_writer_is_there_a_write_is_busy_and_a_read_is_not() {
        for journal in ["wal", "delete"] {
            let (_folder, database, db) = database(journal);
            let mut writer = Writer::begin(&database, until()).unwrap();
            let error = db.execute("insert into t values (2)", []).unwrap_err();
            assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "{journal}");
            // The harness reads its copies in the same process meanwhile.
            drop(std::fs::read(database.path()).unwrap());
            drop(std::fs::read(database.shm()));
            assert!(db.execute("insert into t values (2)", []).is_err(), "{journal}");
            let count =
                |db: &Connection| db.query_row("select count(*) from t", [], |row| row.get::<_, u32>(0));
            assert_eq!(count(&db), Ok(1), "{journal}");
            writer.end();
            db.execute("insert into t values (2)", []).unwrap();
            assert_eq!(count(&db), Ok(2), "{journal}");
        }
    }

    #[test]
    fn a_database_that_nobody_has_open_stays_closed() {
        let (_folder, database, db) = database("wal");
        drop(db);
        let refused = |error| matches!(error, StoreError::Refused(_));
        assert!(Writer::begin(&database, until()).is_err_and(refused));
        assert!(overtake(&database).is_err_and(refused));
        assert!(Rush::begin(&database, until()).is_err_and(refused));
        assert!(!database.wal().exists() && !database.shm().exists());
        let nowhere = Database::new("/nowhere/l.db".into());
        assert!(Writer::begin(&nowhere, until()).is_err_and(refused));
        assert!(overtake(&nowhere).is_err_and(refused));
    }

    #[test]
    fn the_other_writers_commit_adds_one_frame_and_changes_nothing() {
        let (_folder, database, db) = database("wal");
        db.pragma_update(None, "user_version", 7).unwrap();
        let frames = || super::super::wal::Wal::read(&database.wal()).unwrap().unwrap().frames();
        let (main, before) = (std::fs::read(database.path()).unwrap(), frames());
        commit_nothing(database.path()).unwrap();
        assert_eq!(frames(), before + 1);
        assert_eq!(std::fs::read(database.path()).unwrap(), main, "no checkpoint");
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        let count: u32 = db.query_row("select count(*) from t", [], |row| row.get(0)).unwrap();
        assert_eq!((version, count), (7, 1));
    }
}
