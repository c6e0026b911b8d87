//! What can be seen of the machine and of the worker's files beside the histories.
//!
//! Nothing here opens a database: the harness's copy of an SQLite file is read for its header alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use killpoint_model::checklist::{HostFacts, LogLine};
use killpoint_model::{History, RunRecord, Settings};

use crate::folder::RunFolder;

/// Lines of one captured file that are read for the name of an action.
const LINES_MAX: usize = 20_000;
/// A shorter action id could be anything.
const ID_CHARS_MIN: usize = 4;
/// The SQLite header, as far as it is read: the write version is at 18, the user version at 60.
const HEADER_BYTES: usize = 64;
const HEADER_MAGIC: &[u8] = b"SQLite format 3\0";

/// Looks at the file system below a trial's folder, and at the copy of its ledger.
pub(crate) fn observe(trial: &Path, settings: &Settings) -> HostFacts {
    let header = ledger_copy(trial, settings).and_then(|path| header(&path));
    HostFacts {
        file_system: fs::read_to_string("/proc/self/mountinfo")
            .ok()
            .and_then(|mounts| file_system(&mounts, trial)),
        journal_mode: header.map(|header| if header[18] == 2 { "wal".into() } else { "rollback".into() }),
        schema_version: header.map(|header| be32(&header, 60)),
        log: None,
    }
}

fn ledger_copy(trial: &Path, settings: &Settings) -> Option<PathBuf> {
    let ledger = settings.ledger.as_ref().filter(|ledger| ledger.kind == "sqlite")?;
    let name = Path::new(ledger.path.as_ref()?).file_name()?;
    Some(trial.join("ledger-copy").join(name))
}

fn header(path: &Path) -> Option<[u8; HEADER_BYTES]> {
    let mut bytes = [0; HEADER_BYTES];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    bytes.starts_with(HEADER_MAGIC).then_some(bytes)
}

fn be32(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The type of the file system that holds a path, from the text of `/proc/self/mountinfo`.
///
/// Source: the manual page proc_pid_mountinfo(5): the mount point is the fifth field, the type follows ` - `.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mount = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let point = unescaped(place.split(' ').nth(4)?);
        path.starts_with(&point).then(|| (point.len(), kind.split(' ').next().unwrap_or_default().to_owned()))
    };
    // Of two mounts on one point the later one covers the other.
    mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// A field with its octal escapes (blank, tab, line feed, backslash) undone.
fn unescaped(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (escape, character)| text.replace(escape, character))
}

/// Finds the line of the worker's output that says most in the whole run, for the profile's checklist.
pub(crate) fn read_logs(record: &mut RunRecord, folder: &RunFolder, histories: &BTreeMap<String, History>) {
    let Some(host) = &mut record.host else { return };
    for trial in &record.trials {
        let Some(history) = histories.get(&trial.folder) else { continue };
        let line = log_line(&folder.trial(&trial.folder), &trial.folder, history);
        let says_most = line.as_ref().is_some_and(|line| line.names_attempt);
        if says_most || host.log.is_none() {
            host.log = line;
        }
        if says_most {
            return;
        }
    }
}

/// A line of a trial's captured output that names one of its actions; one with the attempt, if there is one.
fn log_line(folder: &Path, name: &str, history: &History) -> Option<LogLine> {
    let ids = action_ids(history);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut best: Option<LogLine> = None;
    for path in files.iter().filter(|path| is_output(path)) {
        let Ok(file) = fs::File::open(path) else { continue };
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok).take(LINES_MAX);
        for (index, bytes) in lines.enumerate() {
            let line = String::from_utf8_lossy(&bytes);
            if !ids.iter().any(|id| line.contains(id)) {
                continue;
            }
            let names_attempt = line.to_ascii_lowercase().contains("attempt");
            if best.is_none() || names_attempt {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let (trial, line) = (name.to_owned(), index as u32 + 1);
                best = Some(LogLine { trial, file, line, names_attempt });
            }
            if names_attempt {
                return best;
            }
        }
    }
    best
}

fn is_output(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stream = path.extension().unwrap_or_default();
    name.starts_with("worker") && (stream == "stdout" || stream == "stderr")
}

fn action_ids(history: &History) -> Vec<&str> {
    let rows = history.final_rows().map_or(&[][..], |(_, rows)| rows);
    let of_rows = rows.iter().map(|row| row.action.as_str());
    let of_attempts = history.attempts().filter_map(|(_, attempt)| attempt.action.as_deref());
    of_rows.chain(of_attempts).filter(|id| id.len() >= ID_CHARS_MIN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::event::EventKind;
    use killpoint_model::history::Header;
    use killpoint_model::settings::LedgerSettings;
    use killpoint_model::{Event, LedgerRow, LedgerView, RowState};

    #[test]
    fn the_innermost_mount_holds_a_path() {
        let mounts = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 21 0:25 / /tmp rw - tmpfs tmpfs rw
31 30 8:2 / /tmp/with\\040blank rw - xfs /dev/sdb rw
32 21 0:9 / /tmpfoo rw - nfs4 host:/x rw
";
        let of = |path: &str| file_system(mounts, Path::new(path)).unwrap_or_default();
        assert_eq!(of("/home/me/run"), "ext4");
        assert_eq!(of("/tmp/run"), "tmpfs");
        assert_eq!(of("/tmp/with blank/run"), "xfs");
        assert_eq!(of("/tmpfoo/run"), "nfs4");
        assert_eq!(file_system("nonsense", Path::new("/a")), None);
    }

    fn settings() -> Settings {
        let ledger = LedgerSettings {
            kind: "sqlite".into(),
            path: Some("{state}/outbox.db".into()),
            query: None,
            command: None,
            states: BTreeMap::new(),
            executions: BTreeMap::new(),
            absent: None,
            boundaries: Vec::new(),
            sample_ms: 20,
        };
        Settings { ledger: Some(ledger), ..Settings::default() }
    }

    #[test]
    fn a_header_says_journal_and_version() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("ledger-copy");
        fs::create_dir(&copy).unwrap();
        let nothing = observe(folder.path(), &settings());
        assert_eq!((nothing.journal_mode, nothing.schema_version), (None, None));
        let mut bytes = [0; 100];
        bytes[..16].copy_from_slice(HEADER_MAGIC);
        bytes[18] = 2;
        bytes[63] = 7;
        fs::write(copy.join("outbox.db"), bytes).unwrap();
        let facts = observe(folder.path(), &settings());
        assert_eq!(facts.journal_mode.as_deref(), Some("wal"));
        assert_eq!(facts.schema_version, Some(7));
        bytes[18] = 1;
        fs::write(copy.join("outbox.db"), bytes).unwrap();
        assert_eq!(observe(folder.path(), &settings()).journal_mode.as_deref(), Some("rollback"));
        fs::write(copy.join("outbox.db"), "not a database").unwrap();
        assert_eq!(observe(folder.path(), &settings()).schema_version, None);
    }

    #[test]
    fn the_line_that_says_most_is_found() {
        let rows = vec![LedgerRow::new("deploy-42", RowState::Confirmed)];
        let view = LedgerView { exact: true, rows: Some(rows), values: BTreeMap::new(), error: None };
        let last = EventKind::Final { view, words: Vec::new(), state_changed: false };
        let events = vec![Event { seq: 1, at_us: 0, generation: 1, event: last }];
        let history = History { header: Header::new("a"), events, truncated: false };
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let line = || log_line(folder.path(), "0001-a", &history);
        write("history.jsonl", "deploy-42 attempt 1");
        assert_eq!(line(), None);
        write("worker1-generation1.stderr", "hello\nsending deploy-42\n");
        assert_eq!(line().map(|line| (line.line, line.names_attempt)), Some((2, false)));
        write("worker1-generation1.stdout", "Attempt 1 of deploy-42\n");
        let best = line().unwrap();
        assert_eq!(
            (best.file.as_str(), best.line, best.names_attempt),
            ("worker1-generation1.stdout", 1, true)
        );
    }
}
