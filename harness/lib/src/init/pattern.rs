//! Regular expressions that are written in this folder, with the lines of what they match.

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
    pub(super) fn new(text: &str) -> Self {
        Self(Regex::new(text).ok())
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
        Regex::new(text).is_ok()
    }
}

/// The lines from the one that holds `at` on.
pub(super) fn lines_from(text: &str, at: usize, count: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.match_indices('\n').nth(count).map_or(rest.len(), |(end, _)| end);
    &rest[..end]
}
