//! Which lookups were answered for which unit, and when.

use std::collections::BTreeSet;

use crate::facts::index::Index;
use crate::facts::units::{Book, Unit};
use crate::volatile::leaves;

/// Answered lookups in order of their evaluation, with the earliest answer of each and all later ones.
#[derive(Debug, Default)]
struct Series {
    looked: Vec<u64>,
    earliest_answer: Vec<u64>,
}

impl Series {
    fn of(pairs: Vec<(u64, u64)>) -> Self {
        let looked = pairs.iter().map(|(looked, _)| *looked).collect();
        let mut earliest = u64::MAX;
        let mut earliest_answer: Vec<u64> = (pairs.iter().rev())
            .map(|(_, answered)| {
                earliest = earliest.min(*answered);
                earliest
            })
            .collect();
        earliest_answer.reverse();
        Self { looked, earliest_answer }
    }

    fn within(&self, after: u64, before: u64) -> bool {
        let from = self.looked.partition_point(|looked| *looked <= after);
        self.earliest_answer.get(from).is_some_and(|answered| *answered < before)
    }
}

/// Answered lookups, by what was asked for.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    listings: Series,
    series: Vec<Series>,
    /// For each unit the series of its names.
    of_unit: Vec<Vec<usize>>,
    /// For each unit the first answered lookup that showed its effect.
    found: Vec<Option<u64>>,
}

impl Lookups {
    /// Reads the answered lookups of a book.
    pub(crate) fn read(book: &Book<'_>) -> Self {
        let mut effect_ids: Index<&str, usize> = Index::default();
        if !book.wire.lookups.is_empty() {
            effect_ids
                .extend(book.wire.effects.iter().enumerate().map(|(at, fact)| (fact.effect.id.as_str(), at)));
        }
        let mut numbers: Index<&str, usize> = Index::default();
        let mut pairs: Vec<Vec<(u64, u64)>> = Vec::new();
        let mut listings = Vec::new();
        let mut found = vec![None; book.units.len()];
        for fact in &book.wire.lookups {
            let Some(answered) = fact.answered() else { continue };
            let pair = (fact.seq, answered);
            if fact.lookup.subject.is_empty() {
                listings.push(pair);
            }
            for name in names_in(&fact.lookup.subject) {
                let number = *numbers.entry(name).or_insert_with(|| {
                    pairs.push(Vec::new());
                    pairs.len() - 1
                });
                pairs[number].push(pair);
            }
            for effect in fact.lookup.found.iter().filter_map(|id| effect_ids.get(id.as_str())) {
                found[book.unit_of_effect[*effect]].get_or_insert(fact.seq);
            }
        }
        let of_unit = (book.units.iter()).map(|unit| series_of(book, unit, &numbers)).collect();
        let series = pairs.into_iter().map(Series::of).collect();
        Self { listings: Series::of(listings), series, of_unit, found }
    }

    /// Whether a lookup that concerns the unit was evaluated after one event and answered before another.
    pub(crate) fn answered_between(&self, unit: usize, after: u64, before: u64) -> bool {
        let own = self.of_unit[unit].iter().map(|index| &self.series[*index]);
        own.chain([&self.listings]).any(|series| series.within(after, before))
    }

    /// The first answered lookup that showed an effect of the unit.
    pub(crate) fn found(&self, unit: usize) -> Option<u64> {
        self.found[unit]
    }
}

/// A subject as a whole, and its words: a search term may wrap the key.
fn names_in(subject: &str) -> BTreeSet<&str> {
    let words = subject.split(|c: char| !(c.is_alphanumeric() || "-_.:@".contains(c)));
    words.chain([subject]).filter(|name| !name.is_empty()).collect()
}

/// The series of everything that a lookup could name a unit by.
fn series_of(book: &Book<'_>, unit: &Unit, numbers: &Index<&str, usize>) -> Vec<usize> {
    let mut series = Vec::new();
    if numbers.is_empty() {
        return series;
    }
    let mut add = |name: &str| series.extend(numbers.get(name));
    unit.actions.iter().for_each(|action| add(action));
    for row in &unit.rows {
        let mut before = None;
        for (_, row) in &book.ledger.rows[*row].sightings {
            let names = (row.key.as_deref(), row.provider_id.as_deref());
            if before.replace(names) != Some(names) {
                names.0.into_iter().chain(names.1).for_each(&mut add);
            }
        }
    }
    let mut strings = Vec::new();
    for fact in unit.attempts.iter().map(|index| &book.wire.attempts[*index]) {
        strings.extend(fact.attempt.key.as_deref());
        leaves(&fact.attempt.body, &mut strings);
    }
    for effect in unit.effects.iter().map(|index| book.wire.effects[*index].effect) {
        strings.push(&effect.id);
        strings.extend(effect.recognizers.iter().map(|found| found.value.as_str()));
    }
    strings.into_iter().for_each(add);
    series.sort_unstable();
    series.dedup();
    series
}
