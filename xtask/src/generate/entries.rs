//! Pages made of the entries of the extension points.

use std::fmt::Write as _;

use killpoint::model::Entry;
use killpoint::model::hit::CANONICAL;

use super::{heading, table};

pub(super) fn faults() -> String {
    page(
        "Faults",
        "What can be done at a hit, while the worker's tree stands still.",
        &killpoint::catalog().faults,
    )
}

pub(super) fn boundaries() -> String {
    let introduction = "Where named moments come from. A hit is written `source:point[selector]#ordinal`; the ordinal counts \
                        from 1 over the whole process tree of a trial.";
    let mut text = page("Boundaries", introduction, &killpoint::catalog().boundaries);
    text += "\n## Canonical names\n\nNames without a source, as scenarios use them. Each means what `[boundaries]` of the \
             configuration says; or else a mark of that name, where the baseline made one; or else this:\n\n";
    let rows = CANONICAL.iter().map(|(name, meaning)| vec![format!("`{name}`"), format!("`{meaning}`")]);
    text += &table(&["name", "meaning"], rows);
    text
}

pub(super) fn invariants() -> String {
    page("Invariants", "What is checked on every trial's history.", &killpoint::catalog().invariants)
}

pub(super) fn dialects() -> String {
    page("Dialects", "Wire contracts that the fake provider speaks.", &killpoint::catalog().dialects)
}

pub(super) fn ledgers() -> String {
    let mut text =
        page("Ledgers", "Kinds of worker's ledgers that can be read.", &killpoint::catalog().ledgers);
    text += "\n## Presets\n\nQueries for known schemas, chosen by `preset` in place of `query`.\n";
    for preset in killpoint::scenarios::PRESETS {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n### {}\n\n{}.\n\n```sql\n{}\n```\n",
            preset.name,
            upper(preset.summary),
            preset.query
        );
    }
    text
}

pub(super) fn formats() -> String {
    page("Report formats", "How a run is shown.", &killpoint::catalog().formats)
}

fn page(title: &str, introduction: &str, entries: &[Entry]) -> String {
    let rows =
        entries.iter().map(|entry| vec![format!("[`{0}`](#{0})", entry.name), entry.summary.to_owned()]);
    let mut text = heading(title);
    let _ = write!(text, "{introduction}\n\n{}", table(&["name", "summary"], rows));
    for entry in entries {
        text += &section(entry);
    }
    text
}

/// One entry: its name, its explanation, its example.
pub(super) fn section(entry: &Entry) -> String {
    let language = if entry.example.starts_with("killpoint ") { "sh" } else { "toml" };
    format!("\n## {}\n\n{}\n\n```{language}\n{}\n```\n", entry.name, entry.explanation, entry.example)
}

/// A sentence from a fragment.
fn upper(fragment: &str) -> String {
    let mut letters = fragment.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_shown_in_its_language() {
        let toml = Entry { name: "a", summary: "s", explanation: "e", example: "[checks]\nattempts-max = 3" };
        assert_eq!(section(&toml), "\n## a\n\ne\n\n```toml\n[checks]\nattempts-max = 3\n```\n");
        let command = Entry { example: "killpoint run", ..toml };
        assert!(section(&command).contains("```sh\nkillpoint run\n```"));
    }

    #[test]
    fn every_entry_has_its_section() {
        let text = invariants();
        for entry in killpoint::catalog().invariants {
            assert!(text.contains(&format!("\n## {}\n", entry.name)), "{}", entry.name);
        }
        assert!(ledgers().contains("### run-delivery\n\nTables"));
    }
}
