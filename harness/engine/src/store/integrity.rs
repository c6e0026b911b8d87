//! Whether a store calls itself sound.

use std::path::Path;
use std::{fs, io};

use killpoint_model::event::EventKind;
use rusqlite::{Connection, OpenFlags};

use super::Database;

/// Complaints that are kept.
const COMPLAINTS_MAX: u32 = 5;

/// Copies a database into `scratch` and checks the copy. Nothing may write to it meanwhile.
///
/// # Errors
/// What the file system says about the copying.
pub(crate) fn check_integrity(database: &Database, scratch: &Path) -> io::Result<EventKind> {
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    fs::create_dir_all(scratch)?;
    for source in database.durable_files().iter().filter(|source| source.exists()) {
        crate::state::copy_file(source, &scratch.join(source.file_name().unwrap_or_default()))?;
    }
    Ok(integrity(&scratch.join(database.path().file_name().unwrap_or_default())))
}

/// Checks a copied database file, whose log and journal lie beside it. The copy is written to.
pub(crate) fn integrity(copy: &Path) -> EventKind {
    if !copy.exists() {
        return EventKind::Integrity { sound: true, detail: "there is no database yet".into() };
    }
    match complaints(copy) {
        Ok(words) => EventKind::Integrity { sound: words == ["ok"], detail: words.join("; ") },
        Err(error) => EventKind::Integrity { sound: false, detail: error.to_string() },
    }
}

fn complaints(copy: &Path) -> rusqlite::Result<Vec<String>> {
    // Read-write: recovery of a hot journal or a log writes.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(copy, flags)?;
    db.pragma_update(None, "synchronous", "off")?;
    let mut statement = db.prepare(&format!("pragma integrity_check({COMPLAINTS_MAX})"))?;
    let words = statement.query_map([], |row| row.get(0))?;
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(event: &EventKind) -> (bool, &str) {
        match event {
            EventKind::Integrity { sound, detail } => (*sound, detail),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sound_copy_is_ok_and_the_original_is_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::new(folder.path().join("l.db"));
        let db = Connection::open(database.path()).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.execute_batch("create table t (x); insert into t values (1)").unwrap();
        let before = fs::read(database.wal()).unwrap();
        let scratch = folder.path().join("scratch");
        assert_eq!(verdict(&check_integrity(&database, &scratch).unwrap()), (true, "ok"));
        assert_eq!(fs::read(database.wal()).unwrap(), before);
        let nowhere = Database::new(folder.path().join("none.db"));
        assert!(verdict(&check_integrity(&nowhere, &scratch).unwrap()).0, "nothing is not damage");
    }

    #[test]
    fn damage_is_told_in_the_stores_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch("create table t (x); create index i on t (x); insert into t values (1), (2)")
            .unwrap();
        drop(db);
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len();
        bytes[length - 4096..].fill(0x55);
        fs::write(&path, &bytes).unwrap();
        let event = integrity(&path);
        assert!(!verdict(&event).0, "{event:?}");
        fs::write(&path, [7; 4096]).unwrap();
        assert!(verdict(&integrity(&path)).1.contains("not a database"));
    }
}
