//! SQLite's write-ahead log: which commits it holds, and cutting it back to an earlier one.
//!
//! The log is a header of 32 bytes and frames of 24 bytes and one page. A frame belongs to the log as long as
//! its salts are the header's and the running checksum holds; one whose second word is not 0 ends a
//! transaction. What follows the last of these was never committed, or is left from before a restart.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::{Database, StoreError};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Checksums are over little-endian words, or, with the lowest bit set, over big-endian ones.
const MAGIC: u32 = 0x377f_0682;

/// One committed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Frames of the log up to its last one.
    pub(crate) frames: u32,
    /// Bytes of the log up to there.
    pub(crate) end_bytes: u64,
}

/// What a log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wal {
    salts: [u8; 8],
    page_bytes: u32,
    /// In order.
    pub(crate) commits: Vec<Commit>,
}

/// Running checksum.
#[derive(Debug, Clone, Copy)]
struct Checksum {
    sums: [u32; 2],
    big_endian: bool,
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let word = |four: &[u8]| {
            let four = [four[0], four[1], four[2], four[3]];
            if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        for eight in bytes.chunks_exact(8) {
            self.sums[0] = self.sums[0].wrapping_add(word(&eight[..4])).wrapping_add(self.sums[1]);
            self.sums[1] = self.sums[1].wrapping_add(word(&eight[4..])).wrapping_add(self.sums[0]);
        }
    }

    fn is(&self, bytes: &[u8]) -> bool {
        self.sums == [be32(bytes, 0), be32(bytes, 4)]
    }
}

/// A number of the file format; every caller has that many bytes.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Wal {
    /// Reads a log; `None` where it is empty or its header is not whole.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(File::open(path)?);
        let Some((mut wal, sum)) = Self::read_header(&mut reader)? else { return Ok(None) };
        wal.read_frames(&mut reader, sum)?;
        Ok(Some(wal))
    }

    /// Reads the header; gives a log without commits, and the checksum that goes on from there.
    fn read_header(reader: &mut impl Read) -> io::Result<Option<(Self, Checksum)>> {
        let mut header = [0; HEADER_BYTES];
        if !fill(reader, &mut header)? {
            return Ok(None);
        }
        let (magic, page_bytes) = (be32(&header, 0), be32(&header, 8));
        let mut sum = Checksum { sums: [0; 2], big_endian: magic & 1 == 1 };
        sum.add(&header[..24]);
        let is_page = page_bytes.is_power_of_two() && (512..=65_536).contains(&page_bytes);
        if magic & !1 != MAGIC || !is_page || !sum.is(&header[24..]) {
            return Ok(None);
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        Ok(Some((Self { salts, page_bytes, commits: Vec::new() }, sum)))
    }

    fn read_frames(&mut self, reader: &mut impl Read, mut sum: Checksum) -> io::Result<()> {
        let mut frame = vec![0; FRAME_HEADER_BYTES + self.page_bytes as usize];
        let mut frames = 0_u32;
        while fill(reader, &mut frame)? {
            sum.add(&frame[..8]);
            sum.add(&frame[FRAME_HEADER_BYTES..]);
            if be32(&frame, 0) == 0 || frame[8..16] != self.salts || !sum.is(&frame[16..24]) {
                break;
            }
            frames += 1;
            if be32(&frame, 4) != 0 {
                self.commits.push(Commit { frames, end_bytes: self.frame_start(frames + 1) });
            }
        }
        Ok(())
    }

    /// Where a frame, counted from 1, begins in the file.
    pub(crate) fn frame_start(&self, frame: u32) -> u64 {
        let frame_bytes = FRAME_HEADER_BYTES as u64 + u64::from(self.page_bytes);
        HEADER_BYTES as u64 + u64::from(frame.saturating_sub(1)) * frame_bytes
    }

    /// Committed frames.
    pub(crate) fn frames(&self) -> u32 {
        self.commits.last().map_or(0, |commit| commit.frames)
    }
}

/// Fills the buffer; `false` at the end of the file, whole or not.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The log of a database that nobody has open, with what is known about its checkpoints.
#[derive(Debug)]
pub(crate) struct DeadLog {
    database: Database,
    /// What it holds.
    pub(crate) wal: Wal,
    /// Frames that a checkpoint has copied, or begun to copy, into the database file: these can't be taken
    /// away any more, the pages in the file are newer.
    backfilled: u32,
}

/// What a cut took away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Commits that are gone.
    pub(crate) lost: usize,
    /// Commits that are left in the log.
    pub(crate) kept: usize,
}

impl DeadLog {
    /// Reads the log and the index of a database whose processes are all dead.
    ///
    /// # Errors
    /// A refusal where there is no log, or where it is not known what of it was checkpointed.
    pub(crate) fn open(database: &Database) -> Result<Self, StoreError> {
        let reading = |path: &Path| StoreError::io(format!("reading {}", path.display()));
        if !database.path().exists() {
            return Err(StoreError::refused(format!("there is no {}", database.path().display())));
        }
        if !database.uses_wal().map_err(reading(database.path()))? {
            return Err(StoreError::refused(
                "the ledger has no write-ahead log, only a rollback journal; this fault needs `pragma journal_mode = wal`",
            ));
        }
        let nothing =
            || StoreError::refused("the write-ahead log holds no commit: everything is in the database file");
        let path = database.wal();
        let wal = if path.exists() { Wal::read(&path).map_err(reading(&path))? } else { None };
        let wal = wal.filter(|wal| !wal.commits.is_empty()).ok_or_else(nothing)?;
        let backfilled = backfilled(database, &wal)?;
        Ok(Self { database: database.clone(), wal, backfilled })
    }

    /// Commits that can't be taken away because a checkpoint has them.
    pub(crate) fn checkpointed(&self) -> usize {
        self.wal.commits.iter().filter(|commit| commit.frames <= self.backfilled).count()
    }

    /// Cuts the log after so many commits.
    ///
    /// # Errors
    /// A refusal where a checkpoint has more than that.
    pub(crate) fn cut(self, kept: usize) -> Result<Cut, StoreError> {
        let last = kept.checked_sub(1).and_then(|index| self.wal.commits.get(index));
        if last.map_or(0, |commit| commit.frames) < self.backfilled {
            return Err(StoreError::refused(format!(
                "a checkpoint has {} of the log's {} frames in the database file already: they can't be rolled back \
                 without damage; raise `wal_autocheckpoint`, or choose an earlier boundary",
                self.backfilled,
                self.wal.frames()
            )));
        }
        let end_bytes = last.map_or(HEADER_BYTES as u64, |commit| commit.end_bytes);
        let path = self.database.wal();
        let cutting = || StoreError::io(format!("cutting {}", path.display()));
        let file = OpenOptions::new().write(true).open(&path).map_err(cutting())?;
        file.set_len(end_bytes).map_err(cutting())?;
        Ok(Cut { lost: self.wal.commits.len().saturating_sub(kept), kept })
    }
}

/// What the living connections of a log see of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visible {
    /// Bytes of the log up to the end of the last commit.
    pub(crate) end_bytes: u64,
    /// Whether there is a frame after that: a transaction is being written.
    pub(crate) is_being_written: bool,
}

/// What the living connections of a log see of it: up to the last commit that is in the index which they share. A commit
/// is written to the log first, and put into the index when that is done; whoever dies in between has not committed
/// for those who live on, and has for whoever opens the database when all are dead. `None` where the index is not
/// there, is being written, or is that of another log: then all of it counts.
/// (<https://www.sqlite.org/walformat.html>, sections 2.1 and 2.3.1)
///
/// # Errors
/// What the file system says.
pub(crate) fn visible(shm: &Path, wal: &Path) -> io::Result<Option<Visible>> {
    /// The index begins with two equal headers, of which one is written after the other.
    const INDEX_HEADER: usize = 48;
    const LAST_FRAME: usize = 16;

    if !shm.exists() || !wal.exists() {
        return Ok(None);
    }
    let mut index = [0; 2 * INDEX_HEADER];
    if !fill(&mut File::open(shm)?, &mut index)? {
        return Ok(None);
    }
    let (header, again) = index.split_at(INDEX_HEADER);
    let mut file = File::open(wal)?;
    let log = Wal::read_header(&mut file)?;
    let is_of = |log: &Wal| header == again && header[INITIALISED] != 0 && header[SALTS] == log.salts;
    let Some(log) = log.map(|(log, _)| log).filter(is_of) else { return Ok(None) };
    let end_bytes = log.frame_start(native32(header, LAST_FRAME).saturating_add(1));
    let mut next = [0; FRAME_HEADER_BYTES];
    file.seek(SeekFrom::Start(end_bytes))?;
    let is_being_written = fill(&mut file, &mut next)? && next[8..16] == log.salts;
    Ok(Some(Visible { end_bytes, is_being_written }))
}

/// Where the index says whether it is made, and which log it is about.
const INITIALISED: usize = 12;
const SALTS: std::ops::Range<usize> = 32..40;

/// A number of the index, which is in the machine's own order; every caller has that many bytes.
fn native32(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// How many frames of the log a checkpoint has taken up, by the index that the dead connections shared.
fn backfilled(database: &Database, wal: &Wal) -> Result<u32, StoreError> {
    /// Where the index holds the checkpointer's progress.
    const BACKFILLED: usize = 96;
    const BACKFILL_ATTEMPTED: usize = 128;
    const READ_BYTES: u64 = 136;

    let unknown = || {
        StoreError::refused(
            "the log's index (-shm) is not there or not made, so what was checkpointed isn't known; \
             `locking_mode = exclusive` has none",
        )
    };
    let path = database.shm();
    let mut index = Vec::new();
    let file = File::open(&path).map_err(|_| unknown())?;
    file.take(READ_BYTES)
        .read_to_end(&mut index)
        .map_err(StoreError::io(format!("reading {}", path.display())))?;
    if index.len() < READ_BYTES as usize || index[INITIALISED] == 0 {
        return Err(unknown());
    }
    if index[SALTS] != wal.salts {
        return Err(StoreError::refused(
            "all commits of the log were checkpointed: it is about to be begun anew",
        ));
    }
    Ok(native32(&index, BACKFILLED).max(native32(&index, BACKFILL_ATTEMPTED)))
}

/// Takes the last commits of a dead database away.
///
/// # Errors
/// A refusal where the log does not hold so many, or a checkpoint has them.
pub(crate) fn roll_back(database: &Database, commits: usize) -> Result<Cut, StoreError> {
    let log = DeadLog::open(database)?;
    let held = log.wal.commits.len();
    let kept = held.checked_sub(commits).ok_or_else(|| {
        StoreError::refused(format!(
            "the write-ahead log holds {held} commits, so {commits} can't be rolled back"
        ))
    })?;
    log.cut(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;
    use rusqlite::config::DbConfig;
    use tempfile::TempDir;

    /// A database whose connection is leaked, so that its files stay as a SIGKILL would leave them.
    struct Killed {
        folder: TempDir,
        database: Database,
    }

    fn killed(page_bytes: u32, rows: u32, also: &str) -> Killed {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("live.db");
        let db = Connection::open(&live).unwrap();
        db.pragma_update(None, "page_size", page_bytes).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        db.execute_batch("create table t (x integer primary key)").unwrap();
        for row in 1..=rows {
            db.execute("insert into t values (?1)", [row]).unwrap();
        }
        db.execute_batch(also).unwrap();
        let database = Database::new(folder.path().join("dead.db"));
        for end in ["", "-wal", "-shm"] {
            let name = |base: &str| folder.path().join(format!("{base}.db{end}"));
            std::fs::copy(name("live"), name("dead")).unwrap();
        }
        Killed { folder, database }
    }

    fn rows(killed: &Killed) -> Vec<u32> {
        // The index of a killed one is made anew: nobody else has it.
        let db = Connection::open(killed.database.path()).unwrap();
        let sound: String = db.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        let mut statement = db.prepare("select x from t order by x").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn exactly_the_last_commits_are_rolled_back_for_every_page_size() {
        for page_bytes in [512, 1024, 4096, 65_536] {
            for lost in 0..=5 {
                let killed = killed(page_bytes, 5, "");
                let cut = roll_back(&killed.database, lost).unwrap();
                assert_eq!(cut.lost, lost, "{page_bytes}");
                let left: Vec<u32> = (1..=5 - lost as u32).collect();
                assert_eq!(rows(&killed), left, "{page_bytes}: {lost}");
            }
        }
    }

    #[test]
    fn what_was_not_committed_is_no_commit() {
        let big = "pragma cache_size = 1; begin; \
             with recursive n (i) as (select 100 union all select i + 1 from n where i < 3000) insert into t select i from n;";
        let killed = killed(512, 2, big);
        let wal = Wal::read(&killed.database.wal()).unwrap().unwrap();
        let spilled = std::fs::metadata(killed.database.wal()).unwrap().len();
        assert!(
            wal.commits.last().unwrap().end_bytes < spilled,
            "pages of the open transaction are in the log"
        );
        roll_back(&killed.database, 1).unwrap();
        assert_eq!(rows(&killed), [1]);
        assert!(killed.folder.path().exists());
    }

    #[test]
    fn a_torn_or_changed_frame_ends_the_log() {
        let killed = killed(4096, 4, "");
        let path = killed.database.wal();
        let commits = Wal::read(&path).unwrap().unwrap().commits;
        let mut bytes = std::fs::read(&path).unwrap();
        let third = commits[2].end_bytes as usize;
        bytes[third - 1] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Wal::read(&path).unwrap().unwrap().commits, commits[..2]);
        for (length, left) in [(third - 1, 2), (40, 0)] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(Wal::read(&path).unwrap().unwrap().commits.len(), left);
        }
        bytes[5] ^= 1;
        for broken in [&bytes[..], &bytes[..31], &[]] {
            std::fs::write(&path, broken).unwrap();
            assert_eq!(Wal::read(&path).unwrap(), None);
        }
    }

    #[test]
    fn what_a_checkpoint_has_is_not_rolled_back() {
        let refused = |killed: &Killed, commits| match roll_back(&killed.database, commits) {
            Err(StoreError::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        let checkpointed = killed(4096, 3, "pragma wal_checkpoint(passive)");
        assert!(refused(&checkpointed, 1).contains("a checkpoint has"));
        let later = killed(4096, 3, "pragma wal_checkpoint(passive); insert into t values (4), (5)");
        roll_back(&later.database, 1).unwrap();
        assert_eq!(rows(&later), [1, 2, 3], "the log was begun anew after its checkpoint");
        let restarted = killed(4096, 3, "");
        let mut index = std::fs::read(restarted.database.shm()).unwrap();
        index[35] ^= 1;
        std::fs::write(restarted.database.shm(), index).unwrap();
        assert!(refused(&restarted, 1).contains("all commits of the log were checkpointed"));
        assert!(refused(&killed(4096, 3, ""), 5).contains("holds 4 commits"));
        let emptied = killed(4096, 3, "pragma wal_checkpoint(truncate)");
        assert!(refused(&emptied, 1).contains("no commit"));
        let mut without = killed(4096, 3, "");
        std::fs::remove_file(without.database.shm()).unwrap();
        assert!(refused(&without, 1).contains("-shm"));
        without.database = Database::new(without.folder.path().join("journal.db"));
        Connection::open(without.database.path()).unwrap().execute_batch("create table t (x)").unwrap();
        assert!(refused(&without, 1).contains("journal_mode"));
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_log_is_a_shorter_one(at in 0_usize..50_000, change in 1_u8.., length in 0_usize..50_000) {
            static WHOLE: std::sync::OnceLock<(Vec<u8>, Vec<Commit>)> = std::sync::OnceLock::new();
            let (whole, commits) = WHOLE.get_or_init(|| {
                let killed = killed(4096, 9, "");
                let commits = Wal::read(&killed.database.wal()).unwrap().unwrap().commits;
                (std::fs::read(killed.database.wal()).unwrap(), commits)
            });
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("damaged-wal");
            let mut bytes = whole[..length.min(whole.len())].to_vec();
            let sound = at.min(bytes.len()) as u64;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= change;
            }
            std::fs::write(&path, &bytes).unwrap();
            let left = Wal::read(&path).unwrap().map(|wal| wal.commits).unwrap_or_default();
            // The words of a header that only name its version and its checkpoint are covered by its checksum, too.
            let expected = commits.iter().filter(|commit| sound >= 32 && commit.end_bytes <= sound).count();
            assert_eq!(left, commits[..expected]);
        }
    }
}
