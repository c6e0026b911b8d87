//! `killpoint list`: what can be named.

use clap::Args;
use killpoint::model::ExitCode;

use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::invocation::Form;
use crate::names::{Named, everything};
use crate::show;

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// One kind only, such as scenarios, faults, invariants or diagnostics [default: all, under their kinds]
    kind: Option<String>,
    /// What standard output carries
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
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
            return Diagnosed::one(Code::UnknownKind, &what.to_string()).complain();
        }
        let shown = all.iter().filter(|named| self.kind.as_deref().is_none_or(|kind| kind == named.kind));
        let text = match self.format {
            Form::Json => {
                let rows: Vec<_> = shown
                    .map(|named| {
                        serde_json::json!({
                            "kind": named.kind, "name": named.name, "summary": named.summary,
                            "explanation": named.explanation, "example": named.example,
                        })
                    })
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
