//! Lines on a page of a given width. The one place where text reaches the terminal, so that nothing gets
//! there uncleaned.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::sanitise::{clean, columns, cut, split_at_column};

/// A page is never narrower.
const WIDTH_MIN: usize = 40;
/// Columns of a text that another format quotes.
const QUOTED_COLUMNS: usize = 100;
/// Most columns of one span of running text.
const SPAN_COLUMNS_MAX: usize = 800;

/// How a text is meant; the words themselves must say it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Strong,
    Dim,
    Good,
    Bad,
    Doubt,
}

impl Tone {
    const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default().bold(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Doubt => AnsiColor::Yellow.on_default().bold(),
        }
    }
}

/// A piece of a line.
#[derive(Debug)]
pub(super) struct Span {
    tone: Tone,
    text: String,
}

/// A piece of a line, made harmless.
pub(super) fn span(tone: Tone, text: impl AsRef<str>) -> Span {
    Span { tone, text: clean(text.as_ref()) }
}

/// What is written to.
pub(super) struct Page<'a> {
    out: &'a mut dyn Write,
    width: usize,
    color: bool,
}

/// What is written on a page as plain clean text, for formats that quote it.
pub(super) fn quoted(write: impl FnOnce(&mut Page<'_>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    let written = write(&mut Page::new(&mut out, QUOTED_COLUMNS, false));
    debug_assert!(written.is_ok(), "writing into memory does not fail");
    String::from_utf8_lossy(&out).into_owned()
}

impl<'a> Page<'a> {
    pub(super) fn new(out: &'a mut dyn Write, width: usize, color: bool) -> Self {
        Self { out, width: width.max(WIDTH_MIN), color }
    }

    /// Columns of the page.
    pub(super) const fn width(&self) -> usize {
        self.width
    }

    pub(super) fn blank(&mut self) -> io::Result<()> {
        self.end_line()
    }

    /// A line across the page.
    pub(super) fn rule(&mut self) -> io::Result<()> {
        let rule = "─".repeat(self.width);
        self.as_it_is(0, &[span(Tone::Dim, rule)])
    }

    /// A line that is neither wrapped nor cut: rows that were made to fit, and commands to copy.
    pub(super) fn as_it_is(&mut self, indent: usize, spans: &[Span]) -> io::Result<()> {
        self.pad(indent)?;
        for Span { tone, text } in spans {
            self.put(*tone, text)?;
        }
        self.end_line()
    }

    /// Running text, wrapped; later lines are indented by two more columns.
    pub(super) fn text(&mut self, indent: usize, spans: &[Span]) -> io::Result<()> {
        self.pad(indent)?;
        self.wrapped(indent, indent + 2, spans)
    }

    /// Running text after a head that is not wrapped; later lines begin under the text, as far as
    /// the head leaves room.
    pub(super) fn headed(&mut self, indent: usize, head: &[Span], body: &[Span]) -> io::Result<()> {
        self.pad(indent)?;
        for Span { tone, text } in head {
            self.put(*tone, text)?;
        }
        let column = indent + head.iter().map(|span| columns(&span.text)).sum::<usize>();
        let hang = if column > self.width / 3 { indent + 6 } else { column };
        self.wrapped(column, hang, body)
    }

    /// Writes words from `column` on, and from `hang` on in later lines, and ends the line.
    fn wrapped(&mut self, mut column: usize, hang: usize, spans: &[Span]) -> io::Result<()> {
        let mut fresh = false;
        for Span { tone, text } in spans {
            let text = cut(text, SPAN_COLUMNS_MAX);
            for (index, word) in text.split(' ').enumerate() {
                let space = usize::from(index > 0);
                let mut rest = word;
                if column + space + columns(rest) > self.width && column > hang {
                    self.end_line()?;
                    self.pad(hang)?;
                    column = hang;
                    fresh = true;
                } else if space > 0 && !fresh {
                    self.put(*tone, " ")?;
                    column += 1;
                }
                while column + columns(rest) > self.width && !rest.is_empty() {
                    let end = split_at_column(rest, self.width.saturating_sub(column));
                    self.put(*tone, &rest[..end])?;
                    rest = &rest[end..];
                    column = hang;
                    if !rest.is_empty() {
                        self.end_line()?;
                        self.pad(hang)?;
                    }
                }
                self.put(*tone, rest)?;
                column += columns(rest);
                fresh &= rest.is_empty();
            }
        }
        self.end_line()
    }

    fn pad(&mut self, spaces: usize) -> io::Result<()> {
        write!(self.out, "{:spaces$}", "")
    }

    fn end_line(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    fn put(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        let style = tone.style();
        if !self.color || text.trim().is_empty() || style.is_plain() {
            return write!(self.out, "{text}");
        }
        write!(self.out, "{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(color: bool, write: impl FnOnce(&mut Page) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Page::new(&mut out, 40, color)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_wraps_under_its_head_and_breaks_words_that_are_too_long() {
        let body = format!("one two three four five six seven eight {}", "z".repeat(50));
        let text =
            page_of(false, |page| page.headed(2, &[span(Tone::Plain, "head: ")], &[span(Tone::Plain, body)]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  head: one two three four five six");
        assert_eq!(lines[1], "        seven eight");
        assert!(lines.iter().all(|line| columns(line) <= 40), "{text}");
        assert_eq!(text.matches('z').count(), 50);
    }

    #[test]
    fn colour_is_ours_alone() {
        let text = page_of(true, |page| page.text(0, &[span(Tone::Bad, "a\x1b[32mb")]));
        assert_eq!(text, "\x1b[1m\x1b[31ma\\x1b[32mb\x1b[0m\n");
    }
}
