//! A look at an SQLite database that belongs to nobody's trial: from a copy, as everywhere.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::ledgers::sqlite::column_words;
use crate::state::copy_file;

/// What was seen of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// Its `create table` statements, by name of the table.
    pub schema: Vec<String>,
    /// Values of columns that have few of them: table, column, value.
    pub values: Vec<(String, String, String)>,
}

/// Copies a database with its write-ahead log and rollback journal, and looks at the copy.
///
/// # Errors
/// In SQLite's or the operating system's words, with what was being done.
pub fn glimpse(path: &Path) -> Result<Glimpse, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("making a folder for a copy: {error}"))?;
    let copy = folder.path().join("copy.db");
    for end in ["", "-wal", "-journal"] {
        let source = format!("{}{end}", path.display());
        if Path::new(&source).is_file() {
            let target = folder.path().join(format!("copy.db{end}"));
            copy_file(Path::new(&source), &target).map_err(|error| format!("copying it: {error}"))?;
        }
    }
    let reading = |error: rusqlite::Error| format!("reading it: {error}");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&copy, flags).map_err(reading)?;
    let query = "select sql from sqlite_master where type = 'table' and sql is not null and name not like 'sqlite_%' \
                 order by name";
    let mut statement = db.prepare(query).map_err(reading)?;
    let schema = statement.query_map([], |row| row.get(0)).map_err(reading)?;
    let schema = schema.collect::<Result<Vec<String>, _>>().map_err(reading)?;
    drop(statement);
    drop(db);
    let mut words = BTreeSet::new();
    column_words(&copy, &mut words);
    let split = |word: String| {
        let (column, value) = word.split_once('=')?;
        let (table, column) = column.rsplit_once('.')?;
        Some((table.to_owned(), column.to_owned(), value.to_owned()))
    };
    Ok(Glimpse { schema, values: words.into_iter().filter_map(split).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_in_the_log_is_seen_and_the_files_stay() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.db");
        let db = Connection::open(&path)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.execute_batch(
            "create table q (id int, status text); insert into q values (1, 'new'), (2, 'sent')",
        )?;
        let wal = folder.path().join("a.db-wal");
        let before = std::fs::read(&wal)?;
        let seen = glimpse(&path)?;
        assert_eq!(seen.schema, ["CREATE TABLE q (id int, status text)"]);
        assert!(seen.values.contains(&("q".into(), "status".into(), "sent".into())), "{seen:?}");
        assert_eq!(std::fs::read(&wal)?, before);
        // A log would mend it.
        let broken = folder.path().join("broken.db");
        std::fs::write(&broken, "SQLite format 3\0 broken")?;
        assert!(glimpse(&broken).is_err());
        Ok(())
    }
}
