//! `killpoint list`: what can be named.

use clap::Args;
use killpoint::model::ExitCode;

use crate::diagnostics::Diagnosed;
use crate::invocation::Form;
use crate::show;

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// scenarios, kinds, faults, boundaries, invariants, dialects, ledgers, formats, plans or profiles [default: all]
    kind: Option<String>,
    /// What standard output carries
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

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

/// Everything that can be named, scenarios included.
pub(crate) fn everything() -> Vec<Named> {
    let catalog = killpoint::catalog();
    let scenarios = killpoint::scenarios::LIBRARY.iter().filter_map(|entry| {
        let scenario = killpoint::scenarios::load_scenario(entry.text, entry.name, &catalog).value?;
        Some(Named {
            kind: "scenarios",
            name: entry.name.to_owned(),
            id: None,
            summary: scenario.summary,
            explanation: format!("{}\n\nSource: {}", scenario.explanation, scenario.source),
            example: format!("killpoint run --scenario {}", entry.name),
        })
    });
    let mut all: Vec<Named> = scenarios.collect();
    all.extend(killpoint::scenarios::KINDS.iter().map(kind_of_fault));
    for (kind, entries) in catalog.kinds() {
        all.extend(entries.iter().map(|entry| Named {
            kind,
            name: entry.name.to_owned(),
            id: None,
            summary: entry.summary.to_owned(),
            explanation: entry.explanation.to_owned(),
            example: entry.example.to_owned(),
        }));
    }
    all
}

fn kind_of_fault(kind: &killpoint::scenarios::Kind) -> Named {
    Named {
        kind: "kinds",
        name: kind.name.to_owned(),
        id: Some(kind.id),
        summary: format!("{}: {}", kind.id, kind.summary),
        explanation: format!(
            "What passes: {}.\n\nThe invariant that is about it: {}. The scenarios that stage it: {}.",
            kind.passes.trim_end_matches('.'),
            kind.invariant,
            kind.scenarios.join(", ")
        ),
        example: kind
            .scenarios
            .first()
            .map_or_else(String::new, |name| format!("killpoint run --scenario {name}")),
    }
}

impl List {
    pub(crate) fn run(self) -> ExitCode {
        let all = everything();
        let mut kinds: Vec<&str> = all.iter().map(|named| named.kind).collect();
        kinds.dedup();
        if let Some(kind) = &self.kind
            && !kinds.contains(&kind.as_str())
        {
            let what = killpoint::model::diagnostic::UnknownWord::new(kind, kinds);
            return Diagnosed::one("unknown-kind", &what.to_string()).complain();
        }
        let shown = all.iter().filter(|named| self.kind.as_deref().is_none_or(|kind| kind == named.kind));
        let text = match self.format {
            Form::Json => {
                let rows: Vec<_> = shown
                    .map(|named| serde_json::json!({ "kind": named.kind, "name": named.name, "summary": named.summary }))
                    .collect();
                serde_json::to_string_pretty(&rows).unwrap_or_default()
            }
            Form::Text => {
                let rows: Vec<&Named> = shown.collect();
                let width = rows.iter().map(|named| named.name.len()).max().unwrap_or_default();
                let mut lines = Vec::new();
                let mut kind = "";
                for named in rows {
                    if kind != named.kind {
                        kind = named.kind;
                        lines.push(format!("{}{kind}:", if lines.is_empty() { "" } else { "\n" }));
                    }
                    lines.push(format!("  {:width$}  {}", named.name, named.summary));
                }
                lines.join("\n")
            }
        };
        show::lines_to_stdout(&text).err().unwrap_or(ExitCode::Holds)
    }
}
