//! The line of a file that a diagnostic points into, bounded however long it is.

use annotate_snippets::{Annotation, AnnotationKind, Snippet};
use killpoint::model::Span;

/// Characters of a line that are shown, and how many of them before the mark.
const LINE_MAX: usize = 120;
const BEFORE_MAX: usize = 60;

/// One line, or a piece of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Line and column of the mark in the file, from 1; columns are characters.
    line: usize,
    column: usize,
    /// What is shown, without a line's end.
    text: String,
    /// The bytes of `text` that are marked.
    mark: (usize, usize),
}

impl Excerpt {
    /// The line that a span begins in. There is none for a span outside the text.
    pub(crate) fn of(text: &str, span: Span) -> Option<Self> {
        let before = text.get(..span.start)?;
        text.get(span.start..span.end)?;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let rest = &text[start..];
        let line = rest[..rest.find('\n').unwrap_or(rest.len())].trim_end_matches('\r');
        // A mark over several lines is shown on its first one.
        let from = (span.start - start).min(line.len());
        let to = (span.end - start).clamp(from, line.len());
        let column = line[..from].chars().count() + 1;
        let (text, mark) = shortened(line, column - 1, (from, to));
        Some(Self { line: before.matches('\n').count() + 1, column, text, mark })
    }

    /// The line with its mark.
    pub(crate) fn snippet<'a>(&self, file: &'a str) -> Snippet<'a, Annotation<'a>> {
        let mark = AnnotationKind::Primary.span(self.mark.0..self.mark.1);
        Snippet::source(self.text.clone()).line_start(self.line).path(file).annotation(mark)
    }

    /// What was drawn, with the column of the line where only a piece of it was drawn.
    pub(crate) fn placed(&self, drawn: String, file: &str) -> String {
        let shown = self.text[..self.mark.0].chars().count() + 1;
        let place = |column| format!("--> {file}:{}:{column}\n", self.line);
        if shown == self.column { drawn } else { drawn.replacen(&place(shown), &place(self.column), 1) }
    }
}

/// The line, or what of it lies around the mark. `skipped` characters are before the mark.
fn shortened(line: &str, skipped: usize, mark: (usize, usize)) -> (String, (usize, usize)) {
    let byte_of = |nth: usize| line.char_indices().nth(nth).map_or(line.len(), |(at, _)| at);
    let first = skipped.saturating_sub(BEFORE_MAX);
    // A line that fits is shown from its beginning.
    let fits = line.char_indices().nth(LINE_MAX).is_none();
    let begin = if fits { 0 } else { byte_of(first) };
    let end = if fits { line.len() } else { byte_of(first + LINE_MAX) };
    let dots = if begin > 0 { "…" } else { "" };
    let more = if end < line.len() { "…" } else { "" };
    let moved = |at: usize| at.clamp(begin, end) - begin + dots.len();
    (format!("{dots}{}{more}", &line[begin..end]), (moved(mark.0), moved(mark.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line, column and marked text of the first `what` in a text.
    fn found(text: &str, what: &str) -> (usize, usize, String) {
        let start = text.find(what).unwrap();
        let excerpt = Excerpt::of(text, Span { start, end: start + what.len() }).unwrap();
        let marked = excerpt.text[excerpt.mark.0..excerpt.mark.1].to_owned();
        assert!(excerpt.text.chars().count() <= LINE_MAX + 2 && !excerpt.text.contains(['\r', '\n']));
        (excerpt.line, excerpt.column, marked)
    }

    #[test]
    fn line_ends_of_windows_and_tabs_do_not_move_the_mark() {
        let text = "a = 1\r\n[worker]\r\n\té = 1\tcomand = 2\r\n";
        assert_eq!(found(text, "comand"), (3, 8, "comand".to_owned()));
        assert_eq!(found(&text.replace('\r', ""), "comand"), (3, 8, "comand".to_owned()));
        assert_eq!(found(text, "comand = 2\r\n"), (3, 8, "comand = 2".to_owned()));
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("a = 1\nb = [{}7, {}]\n", "é, ".repeat(100_000), "x, ".repeat(100_000));
        assert_eq!(found(&text, "7"), (2, 300_006, "7".to_owned()));
        assert_eq!(found(&text, "b = ").1, 1);
        let whole = found(&text, &text[6..text.len() - 1]);
        assert_eq!((whole.0, whole.1), (2, 1));
    }

    #[test]
    fn the_end_of_a_file_can_be_pointed_at_and_nothing_beyond_it() {
        let end = Excerpt::of("a\n", Span { start: 2, end: 2 }).unwrap();
        assert_eq!((end.line, end.column, end.text.as_str()), (2, 1, ""));
        assert!(Excerpt::of("", Span { start: 0, end: 0 }).is_some());
        for (start, end) in [(0, 9), (9, 9), (2, 1), (1, 2)] {
            assert_eq!(Excerpt::of("é\n", Span { start, end }), None, "{start}..{end}");
        }
    }
}
