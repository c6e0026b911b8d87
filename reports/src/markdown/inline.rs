//! Hostile text as code: in it nothing is markup, a link, a mention or a reference.

use crate::sanitise::{clean, first_lines, shorten};

/// Most characters of one piece of code.
const CHARS_MAX: usize = 240;

/// A piece of code within a line. It fits into a cell of a table too, in which a bar ends the cell even in code.
pub(super) fn code(text: &str) -> String {
    let text = shorten(&clean(text), CHARS_MAX).replace('<', "\\x3c").replace('|', "\\x7c");
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    // One space on each side is not shown; it keeps the text's own backticks and spaces apart.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A block of code of a text that was cleaned, of limited size.
pub(super) fn fenced(text: &str, bytes_max: usize) -> String {
    let text = first_lines(text.trim_end(), bytes_max).replace('<', "\\x3c");
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}

/// Backticks in a row, at most.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_holds_any_text() {
        assert_eq!(code("kill"), "`kill`");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`b`"), "`` `b` ``");
        assert_eq!(code("a|b<c\nd"), "`a\\x7cb\\x3cc\\nd`");
        assert_eq!(code(" \u{200b}"), "` \\u{200b}`".replace("` ", "`  ").replace("}`", "} `"));
        assert_eq!(code(""), "(empty)");
        assert_eq!(code(&"x".repeat(500)).chars().count(), CHARS_MAX + 2);
    }

    #[test]
    fn a_block_is_not_ended_by_its_text() {
        assert_eq!(fenced("a\n```\nb", 100), "````text\na\n```\nb\n````");
        assert_eq!(fenced("a\nb\nc", 3), "```text\na\n… 2 more lines\n```");
    }
}
