//! The scenarios that come with the program.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use killpoint::scenarios::{LIBRARY, load_scenario};

use super::{heading, table};

pub(super) fn render() -> Result<String> {
    let catalog = killpoint::catalog();
    let loaded = LIBRARY.iter().map(|entry| {
        let scenario = load_scenario(entry.text, entry.name, &catalog).value;
        scenario.with_context(|| format!("scenario {} can't be read", entry.name))
    });
    let scenarios = loaded.collect::<Result<Vec<_>>>()?;
    let rows = LIBRARY
        .iter()
        .zip(&scenarios)
        .map(|(entry, scenario)| vec![format!("[`{0}`](#{0})", entry.name), scenario.summary.clone()]);
    let mut text = heading("Scenarios");
    text += "The library, run by `killpoint run --scenario NAME`, all of it by `killpoint run --strategy scenario`.\n\n";
    text += &table(&["name", "summary"], rows);
    for (entry, scenario) in LIBRARY.iter().zip(&scenarios) {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n## {0}\n\n{1}\n\nSource: {2}\n\n[{0}.toml](../../scenarios/library/{0}.toml)\n",
            entry.name, scenario.explanation, scenario.source
        );
    }
    Ok(text)
}
