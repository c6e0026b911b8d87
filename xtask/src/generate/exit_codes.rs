//! The table of exit codes.

use killpoint::model::ExitCode;

use super::{heading, table};

pub(super) fn render() -> String {
    let mut text = heading("Exit codes");
    text += "Every command of `killpoint` ends with one of these. The numbers never change.\n\n";
    text += &rows();
    text
}

/// The table alone.
pub(super) fn rows() -> String {
    let rows = ExitCode::ALL.iter().map(|code| vec![code.code().to_string(), code.meaning().to_owned()]);
    table(&["code", "meaning"], rows)
}
