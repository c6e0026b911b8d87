//! `killpoint explain NAME`.

use clap::Args;
use killpoint::model::ExitCode;
use killpoint::model::diagnostic::nearest;

use super::list::everything;
use crate::diagnostics::Diagnosed;
use crate::show;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A name that `killpoint list` shows, or the id of a kind of fault, such as K07
    name: String,
}

impl Explain {
    pub(crate) fn run(self) -> ExitCode {
        let all = everything();
        let found: Vec<String> = all
            .iter()
            .filter(|named| {
                named.name == self.name || named.id.is_some_and(|id| id.eq_ignore_ascii_case(&self.name))
            })
            .map(|named| {
                let kind = named.kind.trim_end_matches('s');
                format!(
                    "{} ({kind}): {}\n\n{}\n\n{}",
                    named.name, named.summary, named.explanation, named.example
                )
            })
            .collect();
        if found.is_empty() {
            let near = nearest(
                &self.name,
                all.iter().flat_map(|named| named.id.into_iter().chain([named.name.as_str()])),
            );
            let help = near
                .map_or("`killpoint list` shows all names".into(), |near| format!("did you mean `{near}`?"));
            return Diagnosed::one("unknown-name", &format!("nobody knows `{}`; {help}", self.name))
                .complain();
        }
        show::lines_to_stdout(&found.join("\n\n")).err().unwrap_or(ExitCode::Holds)
    }
}
