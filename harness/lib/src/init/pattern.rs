//! Regular expressions that are written in this folder, with the lines of what they match.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;

use super::project::{Place, SourceFile};

/// Matches of one pattern in one file that are looked at.
const MATCHES_MAX: usize = 500;

/// One pattern; one that does not compile matches nothing, and each detector's test sees to it that all do.
#[derive(Debug)]
pub(super) struct Pattern(Option<Regex>);

/// One match.
#[derive(Debug, Clone)]
pub(super) struct Match<'t> {
    /// First byte.
    pub(super) start: usize,
    /// One past the last byte.
    pub(super) end: usize,
    /// Its groups, from the first; empty where one took no part.
    pub(super) groups: Vec<&'t str>,
}

impl Match<'_> {
    pub(super) fn place(&self, file: &SourceFile) -> Place {
        file.place(self.start)
    }
}

impl Pattern {
    /// Compiles it, once for each text.
    pub(super) fn new(text: &str) -> Self {
        static KNOWN: LazyLock<Mutex<BTreeMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);

        // An entry is whole once it is there, so a panic elsewhere spoils nothing.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Self(known.entry(text.to_owned()).or_insert_with(|| Regex::new(&ascii(text)).ok()).clone())
    }

    pub(super) fn matches<'t>(&self, text: &'t str) -> Vec<Match<'t>> {
        let Some(regex) = &self.0 else { return Vec::new() };
        regex
            .captures_iter(text)
            .take(MATCHES_MAX)
            .filter_map(|captures| {
                let whole = captures.get(0)?;
                let group = |found: Option<regex::Match<'t>>| found.map_or("", |found| found.as_str());
                let groups = captures.iter().skip(1).map(group).collect();
                Some(Match { start: whole.start(), end: whole.end(), groups })
            })
            .collect()
    }

    pub(super) fn first<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.matches(text).into_iter().next()
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    #[cfg(test)]
    pub(super) fn compiles(text: &str) -> bool {
        Regex::new(&ascii(text)).is_ok()
    }
}

/// The pattern with `\w`, `\d`, `\s` and `\b` of ASCII alone: names in programs are, and matching is faster.
fn ascii(text: &str) -> String {
    let mut made = String::with_capacity(2 * text.len());
    let (mut in_class, mut characters) = (false, text.chars());
    while let Some(character) = characters.next() {
        let class = match (character, in_class) {
            ('[', false) | (']', true) => {
                in_class = !in_class;
                made.push(character);
                continue;
            }
            ('\\', _) => characters.next(),
            _ => {
                made.push(character);
                continue;
            }
        };
        let plain = match class {
            Some('w') => "0-9A-Za-z_",
            Some('d') => "0-9",
            Some('s') => " \\t\\r\\n",
            Some('b') if !in_class => {
                made.push_str("(?-u:\\b)");
                continue;
            }
            other => {
                made.push('\\');
                made.extend(other);
                continue;
            }
        };
        if in_class {
            made.push_str(plain);
        } else {
            made.push('[');
            made.push_str(plain);
            made.push(']');
        }
    }
    made
}

/// The lines from the one that holds `at` on.
pub(super) fn lines_from(text: &str, at: usize, count: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.match_indices('\n').nth(count).map_or(rest.len(), |(end, _)| end);
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_ascii() {
        assert_eq!(ascii(r"\b[\w-]+\s*\(\["), r"(?-u:\b)[0-9A-Za-z_-]+[ \t\r\n]*\(\[");
        assert!(Pattern::new(r"^\w+$").is_in("name_1") && !Pattern::new(r"^\w+$").is_in("n\u{e4}me"));
        assert_eq!(lines_from("a\nb\nc", 0, 1), "a\nb");
    }
}
