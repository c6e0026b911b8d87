//! SQLite databases, through a query that gives canonical columns.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use killpoint_model::Entry;
use killpoint_model::ledger::{LedgerRow, RowState};
use killpoint_model::settings::LedgerSettings;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

use super::{Ledger, Read, Reading, canonical};
use crate::store::Database;
use crate::store::wal::visible;
use crate::template::Templates;

/// Rows of a mapping that are read at most.
const ROWS_MAX: usize = 100_000;
/// Distinct values of one column that can be states; more than that is content.
const CATEGORY_MAX: usize = 12;

/// The `sqlite` ledger.
#[derive(Debug)]
pub struct Sqlite;

static ENTRY: Entry = Entry {
    name: "sqlite",
    summary: "an SQLite database, read through a query",
    explanation: "The database file, its write-ahead log and its rollback journal are copied while the worker's tree stands \
        still, and the copy is opened, so that the worker's own files are never touched. The query gives columns named as the \
        fields of a ledger row: action and state are required; destination, key, execution, executions, provider_id, \
        attempts, text and evidence are read where they are there.",
    example: "[ledger]\nkind = \"sqlite\"\npath = \"{state}/ledger.db\"\nquery = \"select id as action, status as state from jobs\"\nstates = { done = \"confirmed\" }",
};

impl Ledger for Sqlite {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn sources(&self, settings: &LedgerSettings, templates: &Templates) -> Vec<PathBuf> {
        let path = templates.fill(settings.path.as_deref().unwrap_or_default());
        // The -shm file is an index over the -wal that every first reader rebuilds; copied, it could be stale.
        ["", "-wal", "-journal"].iter().map(|end| PathBuf::from(format!("{path}{end}"))).collect()
    }

    fn trim_to_the_living(&self, sources: &[PathBuf], copy: &Path) -> std::io::Result<bool> {
        let Some(path) = sources.first() else { return Ok(true) };
        let copied = Database::new(copy.join(path.file_name().unwrap_or_default())).wal();
        let Some(seen) = visible(&Database::new(path.clone()).shm(), &copied)? else { return Ok(true) };
        if seen.end_bytes < std::fs::metadata(&copied)?.len() {
            File::options().write(true).open(&copied)?.set_len(seen.end_bytes)?;
        }
        Ok(!seen.is_being_written)
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read, String> {
        let path = reading.templates.fill(reading.settings.path.as_deref().unwrap_or_default());
        let copy = reading.copy.join(Path::new(&path).file_name().unwrap_or_default());
        let mut read = Read::default();
        if !copy.exists() {
            if reading.must_exist {
                return Err(format!("{path}: there is no such file at the end of the trial"));
            }
            read.rows = reading.settings.query.as_ref().map(|_| Vec::new());
            return Ok(read);
        }
        let db = open_copy(&copy)?;
        let must_exist = reading.must_exist;
        if let Some(query) = &reading.settings.query {
            let rows = missing_is_none(mapped_rows(&db, query, reading.settings), must_exist)?;
            read.rows = Some(rows.unwrap_or_default());
        }
        for boundary in &reading.settings.boundaries {
            let value = first_value(&db, &boundary.query)
                .map_err(|error| format!("boundary `{}`: {error}", boundary.name));
            let value = missing_is_none(value, must_exist)?;
            read.values.extend(value.map(|value| (boundary.name.clone(), value)));
        }
        if let Some(query) = reading.settle_query {
            let value = first_value(&db, query).map_err(|error| format!("settle query: {error}"));
            read.settle_value = missing_is_none(value, must_exist)?;
        }
        Ok(read)
    }
}

/// Before the end a table may not have been made yet.
fn missing_is_none<T>(result: Result<T, String>, must_exist: bool) -> Result<Option<T>, String> {
    match result {
        Err(error) if !must_exist && error.contains("no such table") => Ok(None),
        other => other.map(Some),
    }
}

fn open_copy(path: &Path) -> Result<Connection, String> {
    // Read-write: recovery of a hot journal or a WAL writes, and this is our own copy.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(|error| error.to_string())?;
    db.pragma_update(None, "synchronous", "off").map_err(|error| error.to_string())?;
    Ok(db)
}

fn mapped_rows(db: &Connection, query: &str, settings: &LedgerSettings) -> Result<Vec<LedgerRow>, String> {
    let fail = |error: rusqlite::Error| format!("ledger query: {error}");
    let mut statement = db.prepare(query).map_err(fail)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    for required in ["action", "state"] {
        if !columns.iter().any(|column| column == required) {
            return Err(format!("ledger query: it gives no column `{required}`; write `… as {required}`"));
        }
    }
    let mut rows = statement.query([]).map_err(fail)?;
    let mut mapped = Vec::new();
    while let Some(row) = rows.next().map_err(fail)? {
        if mapped.len() == ROWS_MAX {
            return Err(format!("ledger query: more than {ROWS_MAX} rows"));
        }
        mapped.push(mapped_row(row, &columns, settings)?);
    }
    Ok(mapped)
}

fn mapped_row(row: &Row<'_>, columns: &[String], settings: &LedgerSettings) -> Result<LedgerRow, String> {
    let mut mapped = LedgerRow::new("", RowState::Created);
    for (index, column) in columns.iter().enumerate() {
        let value = row.get_ref(index).map_err(|error| error.to_string())?;
        let Some(text) = text_of(value) else {
            if column == "action" || column == "state" {
                return Err(format!("ledger query: `{column}` is null in a row"));
            }
            continue;
        };
        let count = |text: &str| {
            text.parse().map_err(|_| format!("ledger query: `{column}` is `{text}`, not a count"))
        };
        match column.as_str() {
            "action" => mapped.action = text,
            "state" => {
                mapped.state = canonical(&text, &settings.states, "state")?;
                mapped.raw_state = Some(text);
            }
            "execution" => mapped.execution = Some(canonical(&text, &settings.executions, "execution")?),
            "executions" => mapped.executions = Some(count(&text)?),
            "attempts" => mapped.attempts = Some(count(&text)?),
            "destination" => mapped.destination = Some(text),
            "key" => mapped.key = Some(text),
            "provider_id" => mapped.provider_id = Some(text),
            "text" => mapped.text = Some(text),
            "evidence" => mapped.evidence = Some(text),
            "owner" => mapped.owner = Some(text),
            "due_at_ms" => {
                let number =
                    text.parse::<f64>().map_err(|_| format!("ledger query: `due_at_ms` is `{text}`"))?;
                mapped.due_at_ms = Some(number.max(0.0) as u64);
            }
            other => return Err(format!("ledger query: nobody knows the column `{other}`")),
        }
    }
    Ok(mapped)
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

fn first_value(db: &Connection, query: &str) -> Result<String, String> {
    let value = db.query_row(query, [], |row| Ok(text_of(row.get_ref(0)?)));
    match value {
        Ok(text) => Ok(text.unwrap_or_default()),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(String::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// Rows of a name and a number. The path must be a copy's.
pub(super) fn named_values(
    path: &Path,
    query: &str,
) -> Result<std::collections::BTreeMap<String, f64>, String> {
    let fail = |error: rusqlite::Error| format!("metrics query: {error}");
    let db = open_copy(path)?;
    let mut statement = db.prepare(query).map_err(fail)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fail)?;
    rows.collect::<Result<_, _>>().map_err(fail)
}

/// Adds `table.column=value` for every column that has few distinct values: those can be states. An
/// unreadable database adds nothing. The path must be a copy's.
pub fn column_words(path: &Path, found: &mut BTreeSet<String>) {
    let Ok(db) = open_copy(path) else { return };
    let names = |query: &str| -> Vec<String> {
        let Ok(mut statement) = db.prepare(query) else { return Vec::new() };
        let rows = statement.query_map([], |row| row.get::<_, String>(0));
        rows.map(|rows| rows.flatten().collect()).unwrap_or_default()
    };
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    for table in names("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'") {
        for column in names(&format!("select name from pragma_table_info('{}')", table.replace('\'', "''"))) {
            let distinct = format!(
                "select distinct cast({0} as text) from {1} where {0} is not null limit {2}",
                quoted(&column),
                quoted(&table),
                CATEGORY_MAX + 1
            );
            let values = names(&distinct);
            if values.len() <= CATEGORY_MAX {
                found.extend(
                    values
                        .iter()
                        .filter(|value| value.len() <= 64)
                        .map(|value| format!("{table}.{column}={value}")),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::settings::LedgerQuery;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    fn settings(query: &str) -> LedgerSettings {
        LedgerSettings {
            kind: "sqlite".into(),
            path: Some("{state}/l.db".into()),
            query: Some(query.into()),
            command: None,
            states: [("done".to_owned(), RowState::Confirmed)].into(),
            executions: std::collections::BTreeMap::new(),
            absent: None,
            boundaries: vec![LedgerQuery { name: "n".into(), query: "select count(*) from jobs".into() }],
            sample_ms: 20,
        }
    }

    fn read(settings: &LedgerSettings, state: &Path, must_exist: bool) -> Result<Read, String> {
        read_of(settings, state, must_exist, false)
    }

    fn read_of(
        settings: &LedgerSettings,
        state: &Path,
        must_exist: bool,
        living: bool,
    ) -> Result<Read, String> {
        let mut templates = Templates::default();
        templates.set("state", state.display().to_string());
        let scratch = state.join("copy");
        let reader =
            super::super::LedgerReader::new(settings, None, &templates, &scratch).ok_or("no reader")?;
        let copy = reader.copy(living).map_err(|error| error.to_string())?;
        let reading =
            Reading { settings, copy: &copy.folder, templates: &templates, settle_query: None, must_exist };
        Sqlite.read(&reading)
    }

    #[test]
    fn a_commit_that_is_half_done_is_there_for_the_dead_and_not_for_the_living() -> Outcome {
        let folder = tempfile::tempdir()?;
        let db = Connection::open(folder.path().join("l.db"))?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.execute_batch("create table jobs (id text, status text); insert into jobs values ('a', 'done')")?;
        let settings = settings("select id as action, status as state from jobs");
        let seen = |living| {
            read_of(&settings, folder.path(), true, living).map(|read| read.rows.map(|rows| rows.len()))
        };
        assert_eq!((seen(true)?, seen(false)?), (Some(1), Some(1)));
        let index = folder.path().join("l.db-shm");
        let before = std::fs::read(&index)?;
        db.execute_batch("insert into jobs values ('b', 'done')")?;
        assert_eq!((seen(true)?, seen(false)?), (Some(2), Some(2)));
        // As it is between the write to the log and that to the index: all of it was in the log.
        std::os::unix::fs::FileExt::write_all_at(
            &File::options().write(true).open(&index)?,
            &before[..96],
            0,
        )?;
        assert_eq!((seen(true)?, seen(false)?), (Some(1), Some(2)));
        // Between the writes to the two headers nobody can read it before it is recovered.
        std::os::unix::fs::FileExt::write_all_at(&File::options().write(true).open(&index)?, &[7; 4], 8)?;
        assert_eq!((seen(true)?, seen(false)?), (Some(2), Some(2)));
        Ok(())
    }

    #[test]
    fn uncheckpointed_rows_are_read_from_the_copy_and_the_live_wal_stays() -> Outcome {
        let folder = tempfile::tempdir()?;
        let db = Connection::open(folder.path().join("l.db"))?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.execute_batch(
            "create table jobs (id text, status text, n int); insert into jobs values ('a', 'done', 2)",
        )?;
        let wal = folder.path().join("l.db-wal");
        let before = std::fs::read(&wal)?;
        let settings = settings("select id as action, status as state, n as attempts from jobs");
        let read = read(&settings, folder.path(), true)?;
        let rows = read.rows.ok_or("rows")?;
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].state, rows[0].attempts), (RowState::Confirmed, Some(2)));
        assert_eq!(read.values.get("n").map(String::as_str), Some("1"));
        assert_eq!(std::fs::read(&wal)?, before, "the live files are untouched");
        Ok(())
    }

    #[test]
    fn what_is_wrong_with_a_mapping_is_said() -> Outcome {
        let folder = tempfile::tempdir()?;
        let db = Connection::open(folder.path().join("l.db"))?;
        db.execute_batch("create table jobs (id text, status text); insert into jobs values ('a', 'odd')")?;
        let error = |query: &str| read(&settings(query), folder.path(), true).map(|_| ()).unwrap_err();
        assert!(
            error("select id as action, status as state from jobs").contains("state `odd` is not mapped")
        );
        assert!(error("select id as action from jobs").contains("no column `state`"));
        assert!(error("select id as action, 'done' as state, 1 as colour from jobs").contains("`colour`"));
        assert!(error("select nonsense").contains("no such column"));
        let missing = settings("select id as action, status as state from nowhere");
        assert!(read(&missing, folder.path(), false).is_ok_and(|read| read.rows == Some(Vec::new())));
        assert!(read(&missing, folder.path(), true).is_err());
        Ok(())
    }

    #[test]
    fn a_damaged_file_is_an_error_not_an_empty_ledger() -> Outcome {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("l.db"), vec![7; 4096])?;
        let error = read(&settings("select id as action, status as state from jobs"), folder.path(), false);
        assert!(error.is_err_and(|error| error.contains("not a database")));
        Ok(())
    }
}
