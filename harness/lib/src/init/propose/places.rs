//! Where the worker finds the provider and its state: variables and options.

use std::collections::BTreeSet;

use super::super::finding::{Findings, Holds, LongOption, Program, Variable};
use super::super::project::Place;
use super::{Proposal, text};

/// What the worker is told.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// SQLite files in `{state}`, without a scheme, with where they were seen.
    pub(super) stores: Vec<(String, Place)>,
    /// Files whose provider is set by a variable, and those whose store is.
    provider_by_variable: bool,
    store_by_variable: bool,
}

impl Places {
    /// An option with its value; `None` where a variable says the same.
    pub(super) fn option(&self, option: &LongOption) -> Option<[String; 2]> {
        let value = match &option.holds {
            Holds::Provider(path) if !self.provider_by_variable => format!("{{provider.rest}}{path}"),
            Holds::Store(path) if !self.store_by_variable => path.clone(),
            _ => return None,
        };
        Some([option.flag.clone(), value])
    }
}

/// A value that is no credential, for a worker that does not start without one.
const NO_CREDENTIAL: &str = "not-a-credential";

pub(super) fn propose(findings: &Findings, worker: &Program, proposal: &mut Proposal) -> Places {
    let mut places = Places::default();
    for variable in &findings.variables {
        let set = |value: &str| (("worker.env", variable.name.as_str()), text(value));
        match &variable.holds {
            Holds::Provider(path) => {
                places.provider_by_variable = true;
                let (key, value) = set(&format!("{{provider.rest}}{path}"));
                let why = "a base address, so that requests reach the fake provider";
                proposal.add(key, value, variable.sure, (Some(&variable.place), why));
            }
            Holds::Store(path) => {
                places.store_by_variable = true;
                places.stores.push((path.clone(), variable.place.clone()));
                let (key, value) = set(path);
                let why = "a place for state, in the trial's own directory";
                proposal.add(key, value, variable.sure, (Some(&variable.place), why));
            }
            Holds::Secret => {
                let (key, value) = set(NO_CREDENTIAL);
                let why = "a credential by its name; the fake provider takes any";
                proposal.add(key, value, variable.sure, (Some(&variable.place), why));
            }
            Holds::Server => server(variable, proposal),
            Holds::Other => {}
        }
    }
    for option in findings.options.iter().filter(|option| Some(&option.file) == worker.file.as_ref()) {
        if let (Holds::Store(path), false) = (&option.holds, places.store_by_variable) {
            places.stores.push((path.clone(), option.place.clone()));
        }
    }
    provider_gap(findings, worker, &places, proposal);
    store_gap(findings, &places, proposal);
    other_variables(findings, proposal);
    places
}

fn server(variable: &Variable, proposal: &mut Proposal) {
    proposal.gap(
        &variable.name,
        format!("it seems to name another server than the provider ({})", variable.place),
        format!(
            "if the worker needs it, set `{}` under `[worker.env]` to one that trials may share, \
             or to SQLite in `{{state}}`",
            variable.name
        ),
    );
}

fn provider_gap(findings: &Findings, worker: &Program, places: &Places, proposal: &mut Proposal) {
    let by_option = findings.options.iter().any(|option| {
        Some(&option.file) == worker.file.as_ref() && matches!(option.holds, Holds::Provider(_))
    });
    if places.provider_by_variable || by_option {
        return;
    }
    let fixed: Vec<String> =
        findings.fixed_addresses.iter().take(3).map(|one| format!("{} ({})", one.text, one.place)).collect();
    let why = if fixed.is_empty() {
        "no variable and no option looks like a base address".to_owned()
    } else {
        format!(
            "the sources name it outright, so that a trial would reach the real one: {}",
            fixed.join(", ")
        )
    };
    proposal.gap(
        "the provider's address",
        why,
        "let the worker read its base address from a variable, and write under `[worker.env]`: \
         `PROVIDER_URL = \"{provider.rest}\"`",
    );
}

fn store_gap(findings: &Findings, places: &Places, proposal: &mut Proposal) {
    if !places.stores.is_empty() {
        return;
    }
    let why = match findings.fixed_stores.first() {
        Some(fixed) => format!(
            "the database `{}` is named outright ({}), so that trials would share it",
            fixed.text, fixed.place
        ),
        None => "no variable and no option looks like a database or a directory".to_owned(),
    };
    proposal.gap(
        "the worker's state",
        why,
        "let the worker read the place from a variable, and write under `[worker.env]`: \
         `WORKER_DB = \"{state}/worker.db\"`; without state nothing is needed",
    );
}

/// Variables without a meaning that the worker fails without, and those of `.env` files that nobody set here.
fn other_variables(findings: &Findings, proposal: &mut Proposal) {
    let unknown = findings.variables.iter().filter(|variable| variable.holds == Holds::Other);
    for variable in unknown.clone().filter(|variable| variable.required) {
        proposal.gap(
            &variable.name,
            format!("the worker fails without it ({}), and its name says nothing", variable.place),
            format!("write a value under `[worker.env]`: `{} = \"…\"`", variable.name),
        );
    }
    let waits = |variable: &&Variable| {
        let name = variable.name.to_ascii_uppercase();
        ["LEASE", "TIMEOUT", "VISIBILITY", "RETRY", "BACKOFF"].iter().any(|word| name.contains(word))
    };
    for variable in unknown.filter(|variable| !variable.required).filter(waits) {
        proposal.gap(
            &variable.name,
            format!("it seems to say how long the worker waits ({}), and its own default is kept", variable.place),
            format!(
                "where that is longer than `settle.deadline`, what it would repair later counts as stuck: set a \
                 short one, such as `{} = \"2\"`, under `[worker.env]`",
                variable.name
            ),
        );
    }
    let known: BTreeSet<&str> = findings.variables.iter().map(|variable| variable.name.as_str()).collect();
    let unread: Vec<&str> =
        findings.env_files.iter().map(|one| one.text.as_str()).filter(|name| !known.contains(name)).collect();
    if let (Some(first), false) = (findings.env_files.first(), unread.is_empty()) {
        proposal.gap(
            "the rest of the environment",
            format!("{} names {}; values were not read", first.place.file, unread.join(", ")),
            "if the worker loads that file by itself, see that no live credential reaches it: set these under \
             `[worker.env]`",
        );
    }
}

/// A file's path of what a variable or an option holds: no scheme.
pub(super) fn sqlite_path(value: &str) -> Option<&str> {
    let path = value.rsplit_once(":///").map_or(value, |(_, path)| path);
    let name = path.rsplit('/').next()?;
    let ends = [".db", ".sqlite", ".sqlite3", ".db3"];
    (path.starts_with("{state}") && ends.iter().any(|end| name.ends_with(end))).then_some(path)
}
