//! The table of exit codes.

use killpoint_model::ExitCode;

use super::{heading, table};

pub(super) fn render() -> String {
    let rows = ExitCode::ALL.iter().map(|code| vec![code.code().to_string(), code.meaning().to_owned()]);
    let mut text = heading("Exit codes");
    text += "Every command of `killpoint` ends with one of these. The numbers never change.\n\n";
    text += &table(&["code", "meaning"], rows);
    text
}
