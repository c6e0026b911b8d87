//! What killpoint knows by name: one [`Entry`] per fault, boundary, invariant, dialect, ledger, format
//! and provider plan. Help, `list`, `explain` and the reference pages are made from these.

use serde::Serialize;

/// One named thing that a user can write down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Unique kebab-case name within its slice.
    pub name: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
    /// What it is, why it matters, what right looks like. Plain paragraphs.
    pub explanation: &'static str,
    /// A piece of TOML, or a command, that uses it.
    pub example: &'static str,
}

/// All the entries that the program was built with, by kind.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Catalog {
    /// What can be done at a hit.
    pub faults: Vec<Entry>,
    /// Sources of boundaries.
    pub boundaries: Vec<Entry>,
    /// What is checked.
    pub invariants: Vec<Entry>,
    /// Wire contracts that the fake provider speaks.
    pub dialects: Vec<Entry>,
    /// Kinds of worker's ledgers that can be read.
    pub ledgers: Vec<Entry>,
    /// Report formats.
    pub formats: Vec<Entry>,
    /// Named points of the provider's plan space.
    pub plans: Vec<Entry>,
    /// Ready-made selections of trials.
    pub profiles: Vec<Entry>,
}

impl Catalog {
    /// The kinds with their entries, in the order in which `list` shows them.
    pub fn kinds(&self) -> [(&'static str, &[Entry]); 8] {
        [
            ("faults", &self.faults),
            ("boundaries", &self.boundaries),
            ("invariants", &self.invariants),
            ("dialects", &self.dialects),
            ("ledgers", &self.ledgers),
            ("formats", &self.formats),
            ("plans", &self.plans),
            ("profiles", &self.profiles),
        ]
    }
}

/// Checks one slice of an extension point: unique kebab-case names, and no empty text. Used by the
/// tests of every slice.
pub fn slice_problems(entries: &[Entry]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let kebab = !entry.name.is_empty()
            && entry.name.split('-').all(|word| {
                !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            });
        if !kebab {
            problems.push(format!("`{}` is not kebab-case", entry.name));
        }
        if entries[..index].iter().any(|other| other.name == entry.name) {
            problems.push(format!("`{}` is registered twice", entry.name));
        }
        if entry.summary.is_empty() || entry.summary.contains('\n') || entry.summary.ends_with('.') {
            problems.push(format!("`{}`: the summary must be one line without a full stop", entry.name));
        }
        if entry.explanation.len() < 40 || entry.example.is_empty() {
            problems.push(format!("`{}`: an explanation and an example are needed", entry.name));
        }
    }
    problems
}
