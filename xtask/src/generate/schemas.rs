//! JSON schemas of what killpoint writes.

use anyhow::Result;
use killpoint::model::{Event, RunRecord};
use serde_json::Value;

/// One line of a history after the first.
pub(super) fn history_event() -> Result<String> {
    text(&schemars::schema_for!(Event).to_value())
}

/// The report of the format `json`.
pub(super) fn report() -> Result<String> {
    text(&killpoint::reports::json_schema())
}

/// `run.json` of a run's folder.
pub(super) fn run() -> Result<String> {
    text(&schemars::schema_for!(RunRecord).to_value())
}

fn text(schema: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(schema)? + "\n")
}
