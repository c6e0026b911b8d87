//! `killpoint explain NAME`.

use clap::Args;
use killpoint::model::diagnostic::nearest;
use killpoint::model::{Diagnostic, ExitCode};

use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::names::{Named, everything, of_boundary};
use crate::show;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A name that `killpoint list` shows, a code such as unknown-key, an id such as K07, a boundary or an exit code
    name: String,
}

impl Explain {
    pub(crate) fn run(self) -> ExitCode {
        let all = everything();
        let name = self.name.trim();
        let found = found(&all, name);
        if found.is_empty() {
            return unknown(&all, name).complain();
        }
        // A name may be of several kinds: each of them is what may be meant.
        let texts: Vec<String> = found.into_iter().map(text).collect();
        show::lines_to_stdout(&texts.join("\n\n")).err().unwrap_or(ExitCode::Holds)
    }
}

/// What a user who writes `name` may mean.
fn found<'a>(all: &'a [Named], name: &str) -> Vec<&'a Named> {
    let called: Vec<&Named> = all.iter().filter(|named| named.is_called(name)).collect();
    if !called.is_empty() {
        return called;
    }
    let Some((kind, source)) = of_boundary(name) else { return called };
    all.iter().filter(|named| named.kind == kind && named.name == source).collect()
}

fn text(named: &Named) -> String {
    format!(
        "{} ({}): {}\n\n{}\n\n{}",
        named.name,
        named.one_of_kind(),
        named.summary,
        named.explanation,
        named.example
    )
}

fn unknown(all: &[Named], name: &str) -> Diagnosed {
    let names = all.iter().flat_map(|named| named.id.into_iter().chain([named.name.as_str()]));
    let help = match nearest(&name.to_ascii_lowercase(), names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`killpoint list` shows all names".to_owned(),
    };
    let what = format!("there is nothing to explain under the name `{name}`");
    Diagnosed::plain(vec![Diagnostic::error(Code::UnknownName, what).with_help(help)])
}
