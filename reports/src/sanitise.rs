//! Hostile text made harmless: a worker chooses its names, messages and bodies.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// Whether a character could move the cursor, colour the screen, reverse the reading order or hide
/// itself.
pub(crate) fn is_hazard(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text with every hazard shown as an escape, such as `\x1b` or `\u{202e}`.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => cleaned.push_str("\\n"),
            '\r' => cleaned.push_str("\\r"),
            '\t' => cleaned.push_str("\\t"),
            c if !is_hazard(c) => cleaned.push(c),
            c if (c as u32) < 0x100 => {
                let _ = write!(cleaned, "\\x{:02x}", c as u32);
            }
            c => {
                let _ = write!(cleaned, "\\u{{{:x}}}", c as u32);
            }
        }
    }
    cleaned
}

/// Columns that a clean text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Bytes of the longest head of a clean text that takes at most `columns_max` columns.
fn head_bytes(text: &str, columns_max: usize) -> usize {
    let mut used = 0;
    let first_outside = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns_max
    });
    first_outside.map_or(text.len(), |(index, _)| index)
}

/// Where a clean text must be split so that its head takes at most `columns_max` columns. Takes at
/// least one character, so that a loop over it ends.
pub(crate) fn split_at_column(text: &str, columns_max: usize) -> usize {
    head_bytes(text, columns_max).max(text.chars().next().map_or(0, char::len_utf8))
}

/// A clean text cut to `columns_max` columns, with `…` where something is missing.
pub(crate) fn cut(text: &str, columns_max: usize) -> String {
    if columns(text) <= columns_max {
        return text.to_owned();
    }
    let end = head_bytes(text, columns_max.saturating_sub(1));
    format!("{}…", &text[..end])
}

/// A raw text shortened to `chars_max` characters, with `…` where something is missing.
pub(crate) fn shorten(text: &str, chars_max: usize) -> String {
    if text.chars().nth(chars_max).is_none() {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{head}…")
}

/// The first whole lines of a text that take at most `bytes_max` bytes, and how many more there are.
pub(crate) fn first_lines(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.char_indices().map_while(|(at, c)| (at < bytes_max).then_some((at, c)));
    let end = end.filter(|(_, c)| *c == '\n').last().map_or(0, |(at, _)| at + 1);
    format!("{}… {} more lines\n", &text[..end], text[end..].lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hazards_are_shown_as_text() {
        assert_eq!(clean("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
        assert_eq!(clean("a\u{202e}b\u{9b}c\r\n\t\u{7f}"), "a\\u{202e}b\\x9bc\\r\\n\\t\\x7f");
        assert_eq!(clean("grüße ✓ 漢字"), "grüße ✓ 漢字");
    }

    #[test]
    fn cuts_count_columns_and_say_so() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(shorten("abcdefg", 6), "abcde…");
        assert_eq!(split_at_column("漢字", 1), 3, "a split always takes a character");
        assert_eq!(first_lines("a\nb\nc\nd\n", 8), "a\nb\nc\nd\n");
        assert_eq!(first_lines("a\nb\nc\nd\n", 5), "a\nb\n… 2 more lines\n");
        assert_eq!(first_lines("abcdefg", 5), "… 1 more lines\n");
    }
}
