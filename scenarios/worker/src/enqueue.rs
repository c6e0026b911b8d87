//! Enqueueing: each action becomes one pending execution, with its destinations as they were asked for.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use killpoint_mark::mark;
use serde::Deserialize;

use crate::error::WorkerError;
use crate::policy::Policy;
use crate::store::{Enqueued, NewRun, Store};

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
    each_action(actions, |line, run| {
        if store.enqueue(&run.id, &run.destinations, &run.input)? == Enqueued::Conflict {
            return Err(conflict(actions, line, &run.id));
        }
        tell(output, &run.id)
    })
}

/// Commits the actions in one transaction, as the business change that they belong to would. Before the commit it
/// makes the mark `producer-open`; whoever dies there has enqueued nothing.
pub(crate) fn produce(
    store: &mut Store,
    actions: &Path,
    suffix: &str,
    policy: Policy,
    output: &mut dyn Write,
) -> Result<(), WorkerError> {
    let mut runs = Vec::new();
    each_action(actions, |_, mut run| {
        run.id.push_str(suffix);
        run.input.push_str(suffix);
        runs.push(run);
        Ok(())
    })?;
    if policy.enqueue_outside {
        for run in &runs {
            store.enqueue(&run.id, &run.destinations, &run.input)?;
        }
    }
    let conflicts = store.enqueue_all(&runs, || Ok(mark("producer-open")?))?;
    if let Some(id) = conflicts.first() {
        let line = 1 + runs.iter().position(|run| run.id == *id).unwrap_or_default();
        return Err(conflict(actions, line, id));
    }
    runs.iter().try_for_each(|run| tell(output, &run.id))
}

fn tell(output: &mut dyn Write, id: &str) -> Result<(), WorkerError> {
    writeln!(output, "enqueued {id}")?;
    Ok(output.flush()?)
}

fn conflict(actions: &Path, line: usize, id: &str) -> WorkerError {
    let why = format!("`{id}` is in the ledger with other contents; give it another id");
    WorkerError::BadAction { path: actions.to_owned(), line, why }
}

/// Reads the file of actions, line by line.
fn each_action(
    actions: &Path,
    mut then: impl FnMut(usize, NewRun) -> Result<(), WorkerError>,
) -> Result<(), WorkerError> {
    let unreadable = |cause| WorkerError::Actions { path: actions.to_owned(), cause };
    let file = std::fs::File::open(actions).map_err(unreadable)?;
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        let bad = |why| WorkerError::BadAction { path: actions.to_owned(), line: index + 1, why };
        let Action { id, to, body } = parse(&line).map_err(bad)?;
        then(index + 1, NewRun { id, destinations: to, input: body })?;
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
