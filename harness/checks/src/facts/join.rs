//! Which rows of the ledger a request is about.

use std::cell::OnceCell;

use killpoint_model::Settings;
use serde_json::Value;

use crate::facts::index::{Few, Index, Lot};
use crate::facts::ledger::{Ledger, RowFact};
use crate::facts::wire::{AttemptFact, EffectFact, Wire};
use crate::volatile::leaves;

/// Shorter strings in a body name nothing: they would match by accident.
const NAME_CHARS_MIN: usize = 4;

/// What a request turned out to be about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// These rows; more than one only where nothing in the request tells them apart.
    Rows(Vec<usize>),
    /// A known action, but none of its rows goes to this recipient.
    Retargeted(String),
    /// No row.
    Nothing,
}

/// Rows by a name and a destination, in order.
type ByDestination<'a> = Index<(&'a str, Option<&'a str>), Few>;

/// Rows by all that can name them.
pub(crate) struct Joiner<'b, 'a> {
    by_action: ByDestination<'a>,
    by_key: ByDestination<'a>,
    /// The action behind a name, whatever the destination.
    actions: Index<&'a str, &'a str>,
    rest: OnceCell<Rest<'a>>,
    rows: &'b [RowFact<'a>],
    directed: bool,
}

/// What is asked for only where neither action nor key names a row.
#[derive(Default)]
struct Rest<'a> {
    by_provider_id: ByDestination<'a>,
    by_text: ByDestination<'a>,
    by_destination: Index<&'a str, Few>,
    texts: Index<usize, &'a str>,
}

impl<'b, 'a> Joiner<'b, 'a> {
    /// Indexes the rows. Without `directed`, destinations in rows are in other words than recipients on
    /// the wire, and are not compared.
    pub(crate) fn new(rows: &'b [RowFact<'a>], directed: bool) -> Self {
        let mut joiner = Self {
            by_action: Index::default(),
            by_key: Index::default(),
            actions: Index::default(),
            rest: OnceCell::new(),
            rows,
            directed,
        };
        joiner.by_action.reserve(rows.len());
        joiner.by_key.reserve(rows.len());
        joiner.actions.reserve(2 * rows.len());
        for (index, row) in rows.iter().enumerate() {
            let destination = row.destination.filter(|_| directed);
            put(&mut joiner.by_action, (row.action, destination), index);
            joiner.actions.insert(row.action, row.action);
            let mut before = None;
            for key in row.sightings.iter().map(|(_, row)| row.key.as_deref()) {
                if let Some(key) = key.filter(|_| before.replace(key) != Some(key)) {
                    put(&mut joiner.by_key, (key, destination), index);
                    joiner.actions.entry(key).or_insert(row.action);
                }
            }
        }
        joiner
    }

    fn rest(&self) -> &Rest<'a> {
        self.rest.get_or_init(|| {
            let mut rest = Rest::default();
            for (index, row) in self.rows.iter().enumerate() {
                let destination = row.destination.filter(|_| self.directed);
                if let Some(destination) = destination {
                    rest.by_destination
                        .entry(destination)
                        .and_modify(|rows| rows.add(index))
                        .or_insert_with(|| Few::one(index));
                }
                for (_, row) in &row.sightings {
                    if let Some(id) = &row.provider_id {
                        put(&mut rest.by_provider_id, (id, destination), index);
                    }
                    if let Some(text) = &row.text {
                        put(&mut rest.by_text, (text, destination), index);
                        rest.texts.insert(index, text);
                    }
                }
            }
            rest
        })
    }

    /// Finds the rows of an attempt at one recipient: the strongest identity that finds any wins.
    pub(crate) fn join(
        &self,
        fact: &AttemptFact<'a>,
        effects: &[EffectFact<'a>],
        recipient: &str,
        text: Option<&str>,
    ) -> Joined {
        let made = || fact.effects.iter().map(|index| effects[*index].effect);
        let (action, key) = (fact.attempt.action.as_deref(), fact.attempt.key.as_deref());
        let by_own = [(&self.by_action, action.as_slice()), (&self.by_key, key.as_slice())];
        if let Some(rows) = by_own.into_iter().find_map(|level| found(&[level], recipient)) {
            return Joined::Rows(rows);
        }
        let rest = self.rest();
        let ids: Vec<&str> = made().map(|effect| effect.id.as_str()).collect();
        if let Some(rows) = found(&[(&rest.by_provider_id, &ids)], recipient) {
            return Joined::Rows(rows);
        }
        let mut names: Vec<&str> = Vec::new();
        leaves(&fact.attempt.body, &mut names);
        names.extend(made().flat_map(|effect| effect.recognizers.iter().map(|found| found.value.as_str())));
        names.retain(|name| name.len() >= NAME_CHARS_MIN);
        let by_name = found(&[(&self.by_action, &names), (&self.by_key, &names)], recipient);
        if let Some(rows) = by_name.or_else(|| found(&[(&rest.by_text, text.as_slice())], recipient)) {
            return Joined::Rows(rows);
        }
        let known = action.iter().chain(&key).chain(&names).find_map(|name| self.actions.get(name));
        match (known, self.alone(recipient, text)) {
            (Some(action), _) => Joined::Retargeted((*action).to_owned()),
            (None, Some(row)) => Joined::Rows(vec![row]),
            (None, None) => Joined::Nothing,
        }
    }

    /// The only row of a recipient, unless its text is another one.
    fn alone(&self, recipient: &str, text: Option<&str>) -> Option<usize> {
        let rest = self.rest();
        let row = rest.by_destination.get(recipient)?.only()?;
        let alike = match (rest.texts.get(&row), text) {
            (Some(committed), Some(sent)) => sent.contains(committed),
            _ => true,
        };
        alike.then_some(row)
    }
}

fn put<'a>(index: &mut ByDestination<'a>, place: (&'a str, Option<&'a str>), row: usize) {
    index.entry(place).and_modify(|rows| rows.add(row)).or_insert_with(|| Few::one(row));
}

/// Rows that some word names, in order; `None` where there are none.
fn found<'w>(level: &[(&ByDestination<'_>, &[&'w str])], recipient: &'w str) -> Option<Vec<usize>> {
    let mut rows: Vec<usize> = Vec::new();
    for (index, words) in level {
        for place in words.iter().flat_map(|word| [(*word, Some(recipient)), (*word, None)]) {
            rows.extend(index.get(&place).into_iter().flat_map(Few::iter));
        }
    }
    rows.sort_unstable();
    rows.dedup();
    (!rows.is_empty()).then_some(rows)
}

/// Whether rows name their destinations in the words of the wire: at least one of them was a recipient.
pub(crate) fn is_directed(ledger: &Ledger<'_>, wires: &[&Wire<'_>]) -> bool {
    let destinations: Lot<&str> = ledger.rows.iter().filter_map(|row| row.destination).collect();
    let attempts = wires.iter().flat_map(|wire| &wire.attempts);
    let mut recipients = attempts
        .map(|fact| fact.attempt.recipient.as_str())
        .chain(wires.iter().flat_map(|wire| &wire.effects).map(|fact| fact.effect.recipient.as_str()))
        .peekable();
    recipients.peek().is_none() || recipients.any(|recipient| destinations.contains(recipient))
}

/// What a human would read in a request: the committed text, or the configured pointers' first match.
pub(crate) fn text_of<'a>(
    fact: &AttemptFact<'a>,
    effects: &[EffectFact<'a>],
    settings: &Settings,
) -> Option<&'a str> {
    if let Some(index) = fact.effects.first() {
        return Some(effects[*index].effect.text.as_str());
    }
    let body = &fact.attempt.body;
    body.as_str()
        .or_else(|| settings.provider.text.iter().find_map(|at| body.pointer(at).and_then(Value::as_str)))
}
