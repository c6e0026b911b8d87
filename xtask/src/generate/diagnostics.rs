//! The codes of diagnostics, as the built program lists them.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::cli::Program;
use super::{heading, table};

pub(super) fn render(program: &Program) -> Result<String> {
    page(&program.data(&["list", "diagnostics", "--format", "json"])?)
}

fn page(listed: &str) -> Result<String> {
    let rows: Vec<Value> = serde_json::from_str(listed).context("the list of codes")?;
    let mut text = heading("Diagnostics");
    text += "What killpoint says of a mistake begins with `error[CODE]` or `warning[CODE]`; a warning of a run has its \
             code in brackets. A code never changes its meaning. `killpoint explain CODE` prints what stands here.\n\n";
    let words = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    text += &table(
        &["code", "summary"],
        rows.iter().map(|row| vec![format!("[`{0}`](#{0})", words(row, "name")), words(row, "summary")]),
    );
    for row in &rows {
        let example = words(row, "example");
        // Parts of files, and commands about files that are not here: none can be tried as it stands. Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\n```text\n{example}\n```\n",
            words(row, "name"),
            words(row, "explanation")
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_row_and_its_section() {
        let listed = r#"[{ "name": "syntax", "summary": "s", "explanation": "e", "example": "a = 1" },
            { "name": "usage", "summary": "t", "explanation": "f", "example": "killpoint run" }]"#;
        let text = page(listed).unwrap();
        assert!(text.contains("| [`syntax`](#syntax) | s |\n"));
        assert!(text.contains("\n## syntax\n\ne\n\n```text\na = 1\n```\n"));
        assert!(text.ends_with("\n## usage\n\nf\n\n```text\nkillpoint run\n```\n"));
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        assert!(page("codes").is_err());
    }
}
