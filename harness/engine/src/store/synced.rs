//! What a power cut would take: the part of the write-ahead log that was written and never synced.
//!
//! A SIGKILL keeps the page cache, so it can't show a missing fsync. The kernel says which pages of a file are
//! still dirty (`cachestat`), and those are just what a power cut may lose. It may also lose less, and it may
//! lose pages of other files: this loses the log's whole unsynced tail and nothing else, which is one of the
//! outcomes that are possible. A page that the kernel wrote back by itself meanwhile counts as kept: some file
//! systems do that once for a log that was truncated before, when the harness closes what it copied from.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use nix::unistd::{SysconfVar, sysconf};

use super::wal::{Cut, DeadLog, Wal};
use super::{Database, StoreError};
use crate::os::dirty_pages;

/// How large a page of the page cache is, where the system does not say.
const PAGE_BYTES_DEFAULT: u64 = 4096;

fn page_bytes() -> u64 {
    let answer = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    answer.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(PAGE_BYTES_DEFAULT)
}

/// The first byte of a file's log that may be missing from the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// Everything is on the disk.
    Nothing,
    /// The page that begins here was written since it was last synced, and none before it.
    From(u64),
}

/// Looks at the log of a database whose processes stand still; before they are killed, because closing a file
/// can sync it.
///
/// # Errors
/// A refusal where this kernel or file system does not show it.
pub(crate) fn unsynced(database: &Database) -> Result<Unsynced, StoreError> {
    let path = database.wal();
    if !path.exists() {
        return Err(StoreError::refused(
            "there is no write-ahead log here; only what was written to one can be taken back",
        ));
    }
    let file = File::open(&path).map_err(StoreError::io(format!("opening {}", path.display())))?;
    let first = first_dirty_page(&file).map_err(unseen)?;
    if first == Unsynced::Nothing {
        // Such an answer is worth something only where a dirty page would have been seen.
        probe(path.parent().unwrap_or(Path::new("/"))).map_err(unseen)?;
    }
    Ok(first)
}

fn unseen(error: io::Error) -> StoreError {
    StoreError::refused(format!(
        "which pages are on the disk can't be seen here ({error}); it needs Linux 6.5, a container that permits \
         `cachestat`, and a run directory on a disk's file system such as ext4, not tmpfs or overlay"
    ))
}

fn first_dirty_page(file: &File) -> io::Result<Unsynced> {
    let page = page_bytes();
    let pages = file.metadata()?.len().div_ceil(page);
    let dirty = |from: u64, to: u64| {
        Ok::<_, io::Error>(to > from && dirty_pages(file, from * page, (to - from) * page)? > 0)
    };
    if !dirty(0, pages)? {
        return Ok(Unsynced::Nothing);
    }
    let (mut low, mut high) = (0, pages);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if dirty(low, middle)? { high = middle } else { low = middle }
    }
    Ok(Unsynced::From(low * page))
}

/// Whether a page that is written shows as dirty in this folder, and as clean once it is synced.
fn probe(folder: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    let page = page_bytes();
    file.write_all(&vec![1; page as usize])?;
    let written = dirty_pages(&file, 0, page)?;
    file.sync_data()?;
    if written > 0 && dirty_pages(&file, 0, page)? == 0 {
        return Ok(());
    }
    Err(io::Error::other("a written page does not show as dirty"))
}

/// The first frame of a log that is surely not on the disk whole.
///
/// A frame that begins on a clean page counts as synced: its end may share the first dirty page with the next
/// one's beginning. Where several frames can begin on one page, it isn't known which of them made it dirty, and
/// all of them count as synced.
fn first_lost_frame(wal: &Wal, first_dirty: u64, page: u64) -> u32 {
    let frame_bytes = wal.frame_start(2) - wal.frame_start(1);
    let surely_from = if frame_bytes > page { first_dirty } else { first_dirty + page };
    surely_from.saturating_sub(wal.frame_start(1)).div_ceil(frame_bytes) as u32 + 1
}

/// Takes from a dead database what a power cut would have taken at the moment of `unsynced`.
///
/// # Errors
/// A refusal where there is no log, or it is not known what was checkpointed.
pub(crate) fn cut_power(database: &Database, unsynced: Unsynced) -> Result<Cut, StoreError> {
    let Unsynced::From(offset) = unsynced else {
        let reading = StoreError::io(format!("reading {}", database.wal().display()));
        let wal = Wal::read(&database.wal()).map_err(reading)?;
        return Ok(Cut { lost: 0, kept: wal.map_or(0, |wal| wal.commits.len()) });
    };
    let log = DeadLog::open(database)?;
    let lost_from = first_lost_frame(&log.wal, offset, page_bytes());
    let on_disk = log.wal.commits.iter().filter(|commit| commit.frames < lost_from).count();
    // A checkpoint may have put unsynced commits into the database file; these are left where they are.
    let kept = on_disk.max(log.checkpointed());
    log.cut(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;
    use rusqlite::config::DbConfig;

    /// A database as a worker with this synchronous level leaves it, and what a power cut leaves of it; `None`
    /// where the file system does not show dirty pages.
    fn rows_after_power_cut(page_size: u32, synchronous: &str, rows: u32) -> Option<Vec<u32>> {
        let folder = tempfile::tempdir().unwrap();
        let live = Database::new(folder.path().join("l.db"));
        let db = Connection::open(live.path()).unwrap();
        db.pragma_update(None, "page_size", page_size).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        db.pragma_update(None, "synchronous", "full").unwrap();
        db.execute_batch("create table t (x integer primary key, y); insert into t values (1, null)")
            .unwrap();
        db.pragma_update(None, "synchronous", synchronous).unwrap();
        for row in 2..=rows {
            db.execute("insert into t values (?1, randomblob(3000))", [row]).unwrap();
        }
        let seen = match unsynced(&live) {
            Ok(seen) => seen,
            Err(StoreError::Refused(why)) => {
                assert!(why.contains("cachestat"), "{why}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let dead = Database::new(folder.path().join("dead.db"));
        std::fs::copy(live.path(), dead.path()).unwrap();
        std::fs::copy(live.wal(), dead.wal()).unwrap();
        std::fs::copy(live.shm(), dead.shm()).unwrap();
        cut_power(&dead, seen).unwrap();
        let db = Connection::open(dead.path()).unwrap();
        let sound: String = db.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        let mut statement = db.prepare("select x from t").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        Some(rows.collect::<Result<_, _>>().unwrap())
    }

    #[test]
    fn full_keeps_every_commit_and_what_is_not_synced_is_lost() {
        let all: Vec<u32> = (1..=6).collect();
        let Some(full) = rows_after_power_cut(4096, "full", 6) else { return };
        assert_eq!(full, all);
        assert_eq!(rows_after_power_cut(1024, "full", 6).unwrap(), all);
        for synchronous in ["off", "normal"] {
            assert_eq!(rows_after_power_cut(4096, synchronous, 6).unwrap(), [1], "{synchronous}");
            assert!(rows_after_power_cut(1024, synchronous, 6).unwrap().len() < 6, "{synchronous}");
        }
    }

    #[test]
    fn a_file_system_that_shows_nothing_is_refused() {
        let shared_memory = Path::new("/dev/shm");
        if !shared_memory.is_dir() {
            return;
        }
        let folder = tempfile::tempdir_in(shared_memory).unwrap();
        let database = Database::new(folder.path().join("l.db"));
        let db = Connection::open(database.path()).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.execute_batch("create table t (x)").unwrap();
        assert!(matches!(unsynced(&database), Err(StoreError::Refused(why)) if why.contains("tmpfs")));
    }
}
