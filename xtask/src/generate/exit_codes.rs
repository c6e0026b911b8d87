//! The table of exit codes.

use killpoint::model::ExitCode;

use super::{heading, table};

pub(super) fn render() -> String {
    let mut text = heading("Exit codes");
    text += "Every command of `killpoint` ends with one of these. The numbers never change.\n\n";
    text += &rows();
    text += KNOWN;
    text
}

/// What the flags of a gate add.
const KNOWN: &str = "
With `--baseline FILE` ([known failures](../gate.md#known-failures)):

- A run whose violations are all in the file, and in which nothing else is wrong, ends with 0. The verdict stays
  `violated`, and the report names each known violation.
- A violation that is not in the file ends it with 1.
- An entry whose trial was done and does not violate any more ends it with 2, until it is taken out.
- What is vacuous or inconclusive is never excused: 2.
- A file that is not there, without `--update-baseline`, is 3.

With `--changed` ([changed boundaries](../gate.md#changed-boundaries)) the code is that of the trials that were done.
";

/// The table alone.
pub(super) fn rows() -> String {
    let rows = ExitCode::ALL.iter().map(|code| vec![code.code().to_string(), code.meaning().to_owned()]);
    table(&["code", "meaning"], rows)
}
