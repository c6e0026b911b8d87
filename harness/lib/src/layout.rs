//! Lines for a terminal: words wrapped at its width, and nothing in them that a terminal would obey.

use unicode_width::UnicodeWidthStr;

/// Narrower terminals get lines of this many columns all the same.
const WIDTH_MIN: usize = 40;

/// A page that is written line by line.
#[derive(Debug)]
pub(crate) struct Page {
    width: usize,
    lines: Vec<String>,
}

impl Page {
    /// An empty page for a terminal of so many columns.
    pub(crate) fn new(width: usize) -> Self {
        Self { width: width.max(WIDTH_MIN), lines: Vec::new() }
    }

    /// A heading, after a blank line where something stands before it.
    pub(crate) fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.lines.push(String::new());
        }
        self.put(0, text);
    }

    /// A paragraph, indented as a whole; further lines hang by two more. A word that is wider than a line stays
    /// whole, so that it can be copied.
    pub(crate) fn put(&mut self, indent: usize, text: &str) {
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut line = " ".repeat(indent);
        let mut empty = true;
        for word in plain.split_whitespace() {
            if !empty && line.width() + 1 + word.width() > self.width {
                self.lines.push(std::mem::replace(&mut line, " ".repeat(indent + 2)));
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.lines.push(line);
    }

    /// All lines, without a line feed at the end.
    pub(crate) fn text(self) -> String {
        self.lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_and_a_terminal_is_told_nothing() {
        let mut page = Page::new(10);
        page.heading("One");
        page.put(2, "some words that \x1b[31m need more than one line of forty columns");
        page.put(2, &"x".repeat(50));
        let text = page.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "One");
        assert_eq!(lines[1], "  some words that [31m need more than");
        assert_eq!(lines[2], "    one line of forty columns");
        assert_eq!(lines[3].len(), 52);
    }
}
