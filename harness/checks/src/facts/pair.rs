//! Which unit of the baseline is which unit of the trial. Ids may be new in every trial, so several
//! likenesses are tried, the surest first, and each unit is used once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::facts::units::{Book, Paired, Unit};

/// Words by which a unit may be found again: recipient and what is alike.
type Likeness = fn(&Unit, Side) -> Vec<(String, String)>;

/// Whose unit it is: some likenesses are safe in one direction only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Trial,
    Baseline,
}

const LIKENESSES: [Likeness; 5] = [by_action, by_payload, by_text, by_recipient, by_nothing];

fn by_action(unit: &Unit, _: Side) -> Vec<(String, String)> {
    unit.actions.iter().map(|action| (unit.recipient.clone(), action.clone())).collect()
}

fn by_payload(unit: &Unit, _: Side) -> Vec<(String, String)> {
    unit.payloads.iter().map(|payload| (unit.recipient.clone(), payload.clone())).collect()
}

fn by_text(unit: &Unit, _: Side) -> Vec<(String, String)> {
    unit.texts.iter().map(|text| (unit.recipient.clone(), text.clone())).collect()
}

/// Only a row may stand for a message by its recipient alone: an alarm to the same recipient has none.
fn by_recipient(unit: &Unit, side: Side) -> Vec<(String, String)> {
    let may = side == Side::Baseline || !unit.rows.is_empty();
    if may { vec![(unit.recipient.clone(), String::new())] } else { Vec::new() }
}

/// The last resort: rows without destination that were never sent.
fn by_nothing(unit: &Unit, side: Side) -> Vec<(String, String)> {
    let may = side == Side::Baseline || (!unit.rows.is_empty() && unit.recipient.is_empty());
    if may { vec![Default::default()] } else { Vec::new() }
}

/// Pairs the units of a trial with those of its baseline. What the baseline has and the trial has not
/// becomes a unit of the trial, so that a loss can be seen.
pub(crate) fn pair(book: &mut Book<'_>, baseline: &Book<'_>) {
    let mut waiting: Vec<usize> = (0..baseline.units.len()).collect();
    for (round, likeness) in LIKENESSES.into_iter().enumerate() {
        let mut open: BTreeMap<(String, String), VecDeque<usize>> = BTreeMap::new();
        for (index, unit) in book.units.iter().enumerate().filter(|(_, unit)| is_open(unit)) {
            for like in likeness(unit, Side::Trial) {
                open.entry(like).or_default().push_back(index);
            }
        }
        waiting.retain(|index| {
            let unit = &baseline.units[*index];
            let found =
                likeness(unit, Side::Baseline).iter().find_map(|like| take(&mut open, like, book, unit));
            if let Some(at) = found {
                take_up(&mut book.units[at], unit);
            }
            found.is_none()
        });
        if round == 0 {
            spread(book, baseline, &mut waiting);
        }
    }
    for unit in waiting.iter().map(|index| &baseline.units[*index]) {
        add_missing(book, unit);
    }
    merge_variants(book);
}

fn is_open(unit: &Unit) -> bool {
    (unit.baseline.units as usize) < unit.rows.len().max(1)
}

fn take(
    open: &mut BTreeMap<(String, String), VecDeque<usize>>,
    like: &(String, String),
    book: &Book<'_>,
    wanted: &Unit,
) -> Option<usize> {
    let queue = open.get_mut(like)?;
    while queue.front().is_some_and(|index| !is_open(&book.units[*index])) {
        queue.pop_front();
    }
    let fits = |unit: &Unit| {
        let any = unit.operation.is_empty() || wanted.operation.is_empty();
        is_open(unit) && (any || unit.operation == wanted.operation)
    };
    queue.iter().copied().find(|index| fits(&book.units[*index]))
}

fn take_up(unit: &mut Unit, from: &Unit) {
    let paired = Paired::of(from);
    unit.baseline.units += paired.units;
    unit.baseline.effects += paired.effects;
    unit.baseline.rows += paired.rows;
    unit.baseline.attempts += paired.attempts;
    if unit.recipient.is_empty() {
        unit.recipient.clone_from(&from.recipient);
    }
    if unit.operation.is_empty() {
        unit.operation.clone_from(&from.operation);
    }
}

impl Paired {
    fn of(unit: &Unit) -> Self {
        Self {
            units: 1,
            effects: unit.effects.len() as u32,
            rows: unit.rows.len() as u32,
            attempts: unit.attempts.len() as u32,
        }
    }
}

/// A row without destination speaks for all recipients of its action: each gets a unit of its own.
fn spread(book: &mut Book<'_>, baseline: &Book<'_>, waiting: &mut Vec<usize>) {
    let mut undirected: BTreeMap<String, usize> = BTreeMap::new();
    for (index, unit) in book.units.iter().enumerate() {
        let rows = unit.rows.iter().map(|row| &book.ledger.rows[*row]);
        if !unit.rows.is_empty() && (!book.directed || rows.clone().all(|row| row.destination.is_none())) {
            undirected.extend(unit.actions.iter().map(|action| (action.clone(), index)));
        }
    }
    waiting.retain(|index| {
        let unit = &baseline.units[*index];
        let Some(at) = unit.actions.iter().find_map(|action| undirected.get(action)).copied() else {
            return true;
        };
        if book.units[at].recipient.is_empty() && is_open(&book.units[at]) {
            take_up(&mut book.units[at], unit);
            return false;
        }
        let rows = book.units[at].rows.clone();
        let actions = book.units[at].actions.clone();
        let texts = book.units[at].texts.clone();
        let mut other = Unit { actions, rows, texts, ..Unit::default() };
        take_up(&mut other, unit);
        book.units.push(other);
        false
    });
}

fn add_missing(book: &mut Book<'_>, from: &Unit) {
    if from.effects.is_empty() && (from.rows.is_empty() || book.ledger.final_rows().is_none()) {
        return;
    }
    book.units.push(Unit {
        actions: from.actions.clone(),
        recipient: from.recipient.clone(),
        operation: from.operation.clone(),
        texts: from.texts.clone(),
        payloads: from.payloads.clone(),
        baseline: Paired::of(from),
        ..Unit::default()
    });
}

/// A request that the baseline has not, with the words of one that it has and no identity of its own, is
/// another attempt of that one whose body differs (a counter, a time of sending).
fn merge_variants(book: &mut Book<'_>) {
    let mut known: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for (index, unit) in book.units.iter().enumerate().filter(|(_, unit)| unit.baseline.units > 0) {
        for text in &unit.texts {
            known.entry((unit.recipient.clone(), unit.operation.clone(), text.clone())).or_insert(index);
        }
    }
    let mut gone = BTreeSet::new();
    for index in 0..book.units.len() {
        let unit = &book.units[index];
        if unit.baseline.units > 0 || !unit.rows.is_empty() || !unit.actions.is_empty() {
            continue;
        }
        let into = unit.texts.iter().find_map(|text| {
            known.get(&(unit.recipient.clone(), unit.operation.clone(), text.clone())).copied()
        });
        if let Some(into) = into {
            book.merge(index, into);
            gone.insert(index);
        }
    }
    book.drop_units(&gone);
}
