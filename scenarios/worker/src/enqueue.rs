//! Enqueueing: each action becomes one pending execution, with its destinations as they were asked for.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::Deserialize;

use crate::error::WorkerError;
use crate::store::{Enqueued, Store};

/// One line of the file of actions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Action {
    id: String,
    to: Vec<String>,
    body: String,
}

/// Commits the actions one by one, and writes `enqueued ID` after each commit. An action that is in the ledger
/// already is left as it is, so that an interrupted enqueue can be repeated.
pub(crate) fn enqueue(store: &mut Store, actions: &Path, output: &mut dyn Write) -> Result<(), WorkerError> {
    let unreadable = |cause| WorkerError::Actions { path: actions.to_owned(), cause };
    let file = std::fs::File::open(actions).map_err(unreadable)?;
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        let bad = |why: String| WorkerError::BadAction { path: actions.to_owned(), line: index + 1, why };
        let action = parse(&line).map_err(bad)?;
        if store.enqueue(&action.id, &action.to, &action.body)? == Enqueued::Conflict {
            return Err(bad(format!(
                "`{}` is in the ledger with other contents; give it another id",
                action.id
            )));
        }
        writeln!(output, "enqueued {}", action.id)?;
        output.flush()?;
    }
    Ok(())
}

fn parse(line: &str) -> Result<Action, String> {
    let mut action: Action = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let mut unique: Vec<String> = Vec::new();
    for destination in action.to {
        if destination.trim().is_empty() {
            return Err("a destination is empty".into());
        }
        if !unique.contains(&destination) {
            unique.push(destination);
        }
    }
    if action.id.trim().is_empty() || unique.is_empty() {
        return Err("an action needs an id and at least one destination".into());
    }
    action.to = unique;
    Ok(action)
}
