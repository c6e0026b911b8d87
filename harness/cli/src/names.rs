//! Everything that has a name: what `list` shows and `explain` explains.

use clap::CommandFactory;
use killpoint::model::hit::CANONICAL;
use killpoint::model::{Entry, ExitCode, HitName, Verdict};
use killpoint::scenarios::{self, Kind};

use crate::code;

/// One thing that can be named.
pub(crate) struct Named {
    /// The kind's plural, as in `list KIND`.
    pub(crate) kind: &'static str,
    /// The name.
    pub(crate) name: String,
    /// Another one, such as `K07`.
    pub(crate) id: Option<&'static str>,
    /// One line.
    pub(crate) summary: String,
    /// Paragraphs.
    pub(crate) explanation: String,
    /// A use of it.
    pub(crate) example: String,
}

/// One thing of each kind, as `explain` names it.
const SINGULARS: &[(&str, &str)] = &[
    ("commands", "command"),
    ("scenarios", "scenario"),
    ("kinds", "kind of fault"),
    ("faults", "fault"),
    ("boundaries", "source of boundaries"),
    ("canonical", "canonical boundary"),
    ("invariants", "invariant"),
    ("dialects", "dialect"),
    ("ledgers", "ledger"),
    ("presets", "ledger preset"),
    ("needs", "need of a scenario"),
    ("formats", "report format"),
    ("plans", "provider plan"),
    ("profiles", "profile"),
    ("verdicts", "verdict"),
    ("exit-codes", "exit code"),
    ("diagnostics", "code of a diagnostic"),
];

impl Named {
    fn new(kind: &'static str, name: impl Into<String>, texts: [String; 3]) -> Self {
        let [summary, explanation, example] = texts;
        Self { kind, name: name.into(), id: None, summary, explanation, example }
    }

    fn of(kind: &'static str, entry: &Entry) -> Self {
        Self::new(kind, entry.name, [entry.summary, entry.explanation, entry.example].map(str::to_owned))
    }

    /// The kind in the singular.
    pub(crate) fn one_of_kind(&self) -> &'static str {
        SINGULARS.iter().find(|(kind, _)| *kind == self.kind).map_or(self.kind, |(_, singular)| singular)
    }

    /// Whether a user who writes `text` means this.
    pub(crate) fn is_called(&self, text: &str) -> bool {
        self.name.eq_ignore_ascii_case(text) || self.id.is_some_and(|id| id.eq_ignore_ascii_case(text))
    }
}

/// Everything that can be named, in the order in which it is listed.
pub(crate) fn everything() -> Vec<Named> {
    let catalog = killpoint::catalog();
    let mut all = commands();
    all.extend(scenarios::LIBRARY.iter().filter_map(|entry| {
        let scenario = scenarios::load_scenario(entry.text, entry.name, &catalog).value?;
        let explanation = format!("{}\n\nSource: {}", scenario.explanation, scenario.source);
        let example = format!("killpoint run --scenario {}", entry.name);
        Some(Named::new("scenarios", entry.name, [scenario.summary, explanation, example]))
    }));
    all.extend(scenarios::KINDS.iter().map(kind_of_fault));
    for (kind, entries) in catalog.kinds() {
        all.extend(entries.iter().map(|entry| Named::of(kind, entry)));
        match kind {
            "boundaries" => all.extend(canonical()),
            "ledgers" => {
                all.extend(scenarios::PRESETS.iter().map(preset));
                all.extend(scenarios::NEEDS.iter().map(need));
            }
            _ => {}
        }
    }
    all.extend(Verdict::ALL.iter().copied().map(verdict));
    all.extend(ExitCode::ALL.iter().copied().map(exit_code));
    all.extend(code::entries().map(|entry| Named::of("diagnostics", entry)));
    all
}

/// What a boundary with its ordinal or selector, such as `provider:committed#2`, is an occurrence of.
pub(crate) fn of_boundary(text: &str) -> Option<(&'static str, String)> {
    let hit: HitName = text.parse().ok()?;
    Some(match hit.source {
        Some(source) => ("boundaries", source.as_str().to_owned()),
        None => ("canonical", hit.point),
    })
}

fn commands() -> Vec<Named> {
    let of = |command: &clap::Command| {
        let name = command.get_name().to_owned();
        let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
        let help = format!("killpoint {name} --help");
        Named::new("commands", name, [summary, format!("`{help}` shows its arguments and flags."), help])
    };
    crate::Arguments::command().get_subcommands().map(of).collect()
}

fn kind_of_fault(kind: &Kind) -> Named {
    let explanation = format!(
        "What passes: {}.\n\nThe invariant that is about it: {}. The scenarios that stage it: {}.",
        kind.passes.trim_end_matches('.'),
        kind.invariant,
        kind.scenarios.join(", ")
    );
    let example =
        kind.scenarios.first().map_or_else(String::new, |name| format!("killpoint run --scenario {name}"));
    let summary = format!("{}: {}", kind.id, kind.summary);
    Named { id: Some(kind.id), ..Named::new("kinds", kind.name, [summary, explanation, example]) }
}

fn canonical() -> impl Iterator<Item = Named> {
    CANONICAL.iter().map(|(name, meaning)| {
        let explanation = format!(
            "A name without a source, as scenarios use it. It means what `[boundaries]` of the configuration says; or \
             else a mark of that name, where the fault-free trial made one; or else `{meaning}`."
        );
        let example = format!("[boundaries]\n{name} = \"mark:{name}\"");
        Named::new("canonical", *name, [format!("means `{meaning}` unless told otherwise"), explanation, example])
    })
}

fn preset(preset: &scenarios::Preset) -> Named {
    let explanation = format!("Reads the worker's rows with this query:\n\n{}", preset.query);
    let example = format!("[ledger]\npath = \"{{state}}/ledger.db\"\npreset = \"{}\"", preset.name);
    Named::new("presets", preset.name, [preset.summary.to_owned(), explanation, example])
}

fn need(need: &scenarios::Need) -> Named {
    let explanation =
        format!("A scenario that needs it is vacuous without it, never green. What to do: {}.", need.help);
    Named::new(
        "needs",
        need.name,
        [need.what.to_owned(), explanation, format!("needs = [\"{}\"]", need.name)],
    )
}

fn verdict(verdict: Verdict) -> Named {
    let (summary, explanation) = match verdict {
        Verdict::Holds => (
            "every check holds, with all the evidence",
            "The fault landed where it was meant to, the worker came to rest, and every invariant that looked at \
             something is satisfied.",
        ),
        Verdict::Vacuous => (
            "the trial did not do what it was for: nothing was proven",
            "A boundary was not reached, a fault did not land, or nothing was sent. This is never green, because nothing \
             was tried. The report names what was missing.",
        ),
        Verdict::Inconclusive => (
            "it can't be told",
            "The worker did not come to rest in time, its record could not be read, or the run was cut short. This is \
             never green. The report names what could not be told.",
        ),
        Verdict::Violated => (
            "at least one violation, with evidence",
            "An invariant is broken, and the events that show it are named. `killpoint explain INVARIANT` says what right \
             looks like; the report's last lines say how to do the trial again.",
        ),
    };
    let texts = [summary, explanation, "killpoint report RUN"].map(str::to_owned);
    Named::new("verdicts", verdict.as_str(), texts)
}

fn exit_code(code: ExitCode) -> Named {
    let explanation =
        format!("A command of killpoint that ends with {} says: {}.", code.code(), code.meaning());
    let example = "killpoint run; echo $?".to_owned();
    Named::new("exit-codes", code.code().to_string(), [code.meaning().to_owned(), explanation, example])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_singular_and_every_name_its_texts() {
        for named in everything() {
            assert!(SINGULARS.iter().any(|(kind, _)| *kind == named.kind), "{}", named.kind);
            let texts = [&named.name, &named.summary, &named.explanation, &named.example];
            assert!(texts.iter().all(|text| !text.trim().is_empty()), "{}", named.name);
        }
    }

    #[test]
    fn examples_are_command_lines_and_toml_that_can_be_read() {
        use clap::Parser;
        for named in everything() {
            let line = named.example.lines().next().unwrap_or_default();
            if line.starts_with("killpoint ") {
                let words = line.split([';', '#', '|']).next().unwrap_or_default().split_whitespace();
                let read = crate::Arguments::try_parse_from(words);
                let problem = read.err().filter(clap::Error::use_stderr);
                assert!(problem.is_none(), "{}: {line}\n{}", named.name, problem.unwrap());
            } else if named.kind == "diagnostics" && !line.starts_with("iconv ") {
                named
                    .example
                    .parse::<toml::Table>()
                    .unwrap_or_else(|error| panic!("{}: {error}", named.name));
            }
        }
    }

    #[test]
    fn names_are_unique_within_their_kind() {
        let mut names: Vec<_> = everything().into_iter().map(|named| (named.kind, named.name)).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
