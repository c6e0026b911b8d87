//! Whether a store calls itself sound.

use std::path::Path;

use killpoint_model::event::EventKind;
use rusqlite::{Connection, OpenFlags};

/// Complaints that are kept.
const COMPLAINTS_MAX: u32 = 5;

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
    use std::fs;

    use super::*;

    fn verdict(event: &EventKind) -> (bool, &str) {
        match event {
            EventKind::Integrity { sound, detail } => (*sound, detail),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sound_copy_is_ok_and_no_database_is_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.db");
        assert_eq!(verdict(&integrity(&path)), (true, "there is no database yet"));
        let db = Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.execute_batch("create table t (x); insert into t values (1)").unwrap();
        let copy = folder.path().join("copy.db");
        fs::copy(&path, &copy).unwrap();
        fs::copy(folder.path().join("l.db-wal"), folder.path().join("copy.db-wal")).unwrap();
        assert_eq!(verdict(&integrity(&copy)), (true, "ok"));
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
