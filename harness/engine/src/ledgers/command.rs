//! Every other store, through the user's own command: it is pointed at a copy of the state directory and
//! prints canonical rows as JSON lines.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use killpoint_model::ledger::LedgerRow;
use killpoint_model::settings::{CommandSettings, LedgerSettings};
use killpoint_model::{Entry, json_words};

use super::{Ledger, Read, Reading, canonical};
use crate::template::Templates;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(20);
/// Bytes that it may print.
const OUTPUT_MAX: u64 = 16 << 20;

/// The `command` ledger.
#[derive(Debug)]
pub(super) struct Command;

static ENTRY: Entry = Entry {
    name: "command",
    summary: "any other store, through a command that prints JSON lines",
    explanation: "The whole state directory is copied while the worker's tree stands still, and the command is run with {copy} \
        as the copy's path. It prints one JSON object per line with the fields of a ledger row: action and state are required, \
        and state may be the store's own word where `states` maps it. Use it for JSON files, a journal, a Maildir, or a \
        library's own API.",
    example: "[ledger]\nkind = \"command\"\ncommand = [\"python3\", \"status.py\", \"{copy}\"]\nstates = { sent = \"confirmed\" }",
};

impl Ledger for Command {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn sources(&self, _: &LedgerSettings, templates: &Templates) -> Vec<PathBuf> {
        vec![PathBuf::from(templates.fill("{state}"))]
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read, String> {
        let command = reading.settings.command.as_ref().ok_or("the ledger has no command")?;
        let state = reading.templates.fill("{state}");
        let folder = reading.copy.join(std::path::Path::new(&state).file_name().unwrap_or_default());
        let mut templates = reading.templates.clone();
        templates.set("copy", folder.display().to_string());
        let output = run(command, &templates)?;
        let rows = output
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| row_of(line, reading.settings))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Read { rows: Some(rows), ..Read::default() })
    }
}

fn row_of(line: &str, settings: &LedgerSettings) -> Result<LedgerRow, String> {
    let bad =
        |why: &str| format!("ledger command: line `{}`: {why}", line.chars().take(120).collect::<String>());
    let mut value: serde_json::Value =
        serde_json::from_str(line).map_err(|error| bad(&json_words(&error)))?;
    let object = value.as_object_mut().ok_or_else(|| bad("it is no JSON object"))?;
    let word = object
        .get("state")
        .and_then(|state| state.as_str())
        .ok_or_else(|| bad("`state` is missing"))?
        .to_owned();
    let state = canonical(&word, &settings.states, "state")?;
    object.insert("state".into(), state.as_str().into());
    object.entry("raw_state").or_insert(word.into());
    if let Some(word) = object.get("execution").and_then(|word| word.as_str()).map(str::to_owned) {
        let execution = canonical(&word, &settings.executions, "execution")?;
        object.insert("execution".into(), execution.as_str().into());
    }
    object.retain(|_, value| !value.is_null());
    serde_json::from_value(value).map_err(|error| bad(&json_words(&error)))
}

fn run(command: &CommandSettings, templates: &Templates) -> Result<String, String> {
    let argv: Vec<String> = command.argv.iter().map(|word| templates.fill(word)).collect();
    let (program, arguments) = argv.split_first().ok_or("the ledger's command is empty")?;
    let mut child = Process::new(program)
        .args(arguments)
        .env_clear()
        .envs(crate::environment::inherited(command))
        .envs(command.env.iter().map(|(name, value)| (name, templates.fill(value))))
        .current_dir(&command.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("ledger command: {program}: {error}"))?;
    // Readers of their own, so that neither a full pipe nor a silent command can hold us.
    let streams = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let errors =
            std::thread::spawn(move || streams.1.map(|stream| text_of(stream, 64 << 10)).unwrap_or_default());
        let output = streams.0.map(|stream| text_of(stream, OUTPUT_MAX)).unwrap_or_default();
        // The receiver is gone only when the limit has passed.
        let _ = sender.send((output, errors.join().unwrap_or_default()));
    });
    let ended = receiver.recv_timeout(LIMIT);
    if ended.is_err() {
        // Already dead is fine; the wait below tells.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("ledger command: {error}"))?;
    let (output, errors) =
        ended.map_err(|_| format!("ledger command: `{program}` did not end within {} s", LIMIT.as_secs()))?;
    if status.success() {
        return Ok(output);
    }
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(format!("ledger command: `{program}` failed ({status}): {last}"))
}

fn text_of(stream: impl std::io::Read, bytes_max: u64) -> String {
    let mut bytes = Vec::new();
    // A read error ends the text; the exit status tells whether that matters.
    let _ = stream.take(bytes_max).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::RowState;

    fn settings(script: &str) -> LedgerSettings {
        LedgerSettings {
            kind: "command".into(),
            path: None,
            query: None,
            command: Some(CommandSettings {
                argv: ["sh", "-c", script, "sh", "{copy}"].map(str::to_owned).to_vec(),
                env: std::collections::BTreeMap::new(),
                cwd: "/".into(),
                inherit: None,
            }),
            states: [("sent".to_owned(), RowState::Confirmed)].into(),
            executions: std::collections::BTreeMap::new(),
            absent: None,
            boundaries: Vec::new(),
            sample_ms: 20,
        }
    }

    fn read(script: &str) -> Result<Vec<LedgerRow>, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let state = folder.path().join("state");
        std::fs::create_dir(&state).map_err(|error| error.to_string())?;
        std::fs::write(state.join("a.json"), "a").map_err(|error| error.to_string())?;
        let mut templates = Templates::default();
        templates.set("state", state.display().to_string());
        let settings = settings(script);
        let reader =
            super::super::LedgerReader::new(&settings, None, &templates, &folder.path().join("scratch"));
        let reader = reader.ok_or("no reader")?;
        let copy = reader.copy(false).map_err(|error| error.to_string())?;
        let (view, _) = reader.read(&copy, true);
        view.error.map_or(Ok(view.rows.unwrap_or_default()), Err)
    }

    #[test]
    fn rows_come_from_the_copy_with_the_stores_own_words() {
        let rows = read(
            r#"for f in "$1"/*.json; do echo "{\"action\":\"$(basename $f .json)\",\"state\":\"sent\",\"key\":null}"; done"#,
        );
        let summary: Result<Vec<_>, _> = rows.map(|rows| {
            rows.into_iter().map(|row| (row.action, row.state, row.raw_state, row.key)).collect()
        });
        assert_eq!(summary, Ok(vec![("a".into(), RowState::Confirmed, Some("sent".into()), None)]));
    }

    #[test]
    fn failures_are_errors_with_the_commands_own_words() {
        assert!(read("echo 'no journal' >&2; exit 3").is_err_and(|error| error.contains("no journal")));
        assert!(read("echo not json").is_err_and(|error| error.contains("not json")));
        assert!(read(r#"echo '{"action":"a"}'"#).is_err_and(|error| error.contains("`state` is missing")));
        assert!(
            read(r#"echo '{"action":"a","state":"odd"}'"#).is_err_and(|error| error.contains("not mapped"))
        );
        assert!(
            read(r#"echo '{"action":"a","state":"sent","colour":1}'"#)
                .is_err_and(|error| error.contains("colour"))
        );
    }
}
