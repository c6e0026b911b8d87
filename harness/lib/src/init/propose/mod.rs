//! Findings to a proposal: what goes into `killpoint.toml`, and what has to be asked.

mod commands;
mod ledger;
mod life;
mod places;

use super::finding::{Findings, Sure};
use super::project::{Place, Project};

/// One line of the proposed file, with where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumed {
    /// The section, such as `worker`; empty for keys before any section.
    pub section: &'static str,
    /// The key.
    pub key: String,
    /// The value, as TOML.
    pub value: String,
    /// How sure it is.
    pub sure: Sure,
    /// Where it was seen, where it was seen anywhere.
    pub place: Option<Place>,
    /// Why, a fragment.
    pub why: String,
}

/// Something that could not be guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What is missing.
    pub what: String,
    /// Why it could not be guessed, with places.
    pub why: String,
    /// What to write or to do.
    pub to_do: String,
}

/// What goes into the file, and what does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposal {
    /// Lines of the file, in its order.
    pub assumed: Vec<Assumed>,
    /// What is left to the user.
    pub gaps: Vec<Gap>,
}

/// The sections in the order of the file.
pub(super) const SECTIONS: &[&str] =
    &["", "worker", "worker.env", "state", "settle", "provider", "provider.idempotency", "ledger", "cleanup"];

/// Proposes a configuration. Without a program that could be the worker there is nothing in it but the gaps.
pub fn propose(project: &Project, findings: &Findings) -> Proposal {
    let mut proposal = Proposal::default();
    let Some(worker) = commands::worker(findings) else {
        proposal.gap(
            "the worker",
            "no file is a script, and no manifest names a program",
            "write how it is started under `[worker]`: `command = [\"./worker\", \"run\"]`",
        );
        return proposal;
    };
    let places = places::propose(findings, &worker, &mut proposal);
    commands::propose(project, findings, &worker, &places, &mut proposal);
    let mapped = ledger::propose(findings, &places, &mut proposal);
    life::propose(findings, &worker, mapped, &mut proposal);
    let order = |section: &str| SECTIONS.iter().position(|known| *known == section);
    proposal.assumed.sort_by_key(|assumed| order(assumed.section));
    proposal
}

impl Proposal {
    /// Whether there is enough for a file.
    pub fn has_worker(&self) -> bool {
        self.assumed.iter().any(|assumed| assumed.section == "worker" && assumed.key == "command")
    }

    fn add(
        &mut self,
        (section, key): (&'static str, &str),
        value: String,
        sure: Sure,
        (place, why): (Option<&Place>, &str),
    ) {
        self.assumed.push(Assumed {
            section,
            key: key.to_owned(),
            value,
            sure,
            place: place.cloned(),
            why: why.to_owned(),
        });
    }

    fn gap(&mut self, what: &str, why: impl Into<String>, to_do: impl Into<String>) {
        self.gaps.push(Gap { what: what.to_owned(), why: why.into(), to_do: to_do.into() });
    }
}

/// A text as TOML.
pub(super) fn text(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

/// Words as TOML.
pub(super) fn list<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| text(word)).collect();
    format!("[{}]", words.join(", "))
}
