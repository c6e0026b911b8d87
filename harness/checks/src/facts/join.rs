//! Which rows of the ledger a request is about.

use std::collections::{BTreeSet, HashMap};

use killpoint_model::{LedgerRow, Settings};
use serde_json::Value;

use crate::facts::ledger::Ledger;
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

/// Rows by a name and a destination, in order. Looked up and never iterated, so its order can't show.
type ByDestination<'a> = HashMap<(&'a str, Option<&'a str>), Vec<usize>>;

/// Rows by all that can name them.
pub(crate) struct Joiner<'a> {
    by_action: ByDestination<'a>,
    by_key: ByDestination<'a>,
    by_provider_id: ByDestination<'a>,
    by_text: ByDestination<'a>,
    by_destination: HashMap<&'a str, Vec<usize>>,
    /// The action behind a name, whatever the destination.
    actions: HashMap<&'a str, &'a str>,
    texts: HashMap<usize, &'a str>,
}

impl<'a> Joiner<'a> {
    /// Indexes the rows. Without `directed`, destinations in rows are in other words than recipients on
    /// the wire, and are not compared.
    pub(crate) fn new(ledger: &Ledger<'a>, directed: bool) -> Self {
        let mut joiner = Self {
            by_action: HashMap::with_capacity(ledger.rows.len()),
            by_key: HashMap::new(),
            by_provider_id: HashMap::new(),
            by_text: HashMap::new(),
            by_destination: HashMap::new(),
            actions: HashMap::with_capacity(ledger.rows.len()),
            texts: HashMap::new(),
        };
        for (index, row) in ledger.rows.iter().enumerate() {
            let destination = row.destination.filter(|_| directed);
            put(&mut joiner.by_action, (row.action, destination), index);
            joiner.actions.insert(row.action, row.action);
            if let Some(destination) = destination {
                joiner.by_destination.entry(destination).or_default().push(index);
            }
            let mut before: Option<&LedgerRow> = None;
            for (_, sighting) in &row.sightings {
                joiner.add(sighting, before.replace(sighting), (index, destination), row.action);
            }
        }
        joiner
    }

    /// Takes the names of one sighting that the sighting before did not have.
    fn add(
        &mut self,
        row: &'a LedgerRow,
        before: Option<&LedgerRow>,
        (index, destination): (usize, Option<&'a str>),
        action: &'a str,
    ) {
        let is_new =
            |of: fn(&LedgerRow) -> &Option<String>| before.is_none_or(|before| of(before) != of(row));
        if let Some(key) = row.key.as_deref().filter(|_| is_new(|row| &row.key)) {
            put(&mut self.by_key, (key, destination), index);
            self.actions.entry(key).or_insert(action);
        }
        if let Some(id) = row.provider_id.as_deref().filter(|_| is_new(|row| &row.provider_id)) {
            put(&mut self.by_provider_id, (id, destination), index);
        }
        if let Some(text) = row.text.as_deref().filter(|_| is_new(|row| &row.text)) {
            put(&mut self.by_text, (text, destination), index);
            self.texts.insert(index, text);
        }
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
        let action: Vec<&str> = fact.attempt.action.as_deref().into_iter().collect();
        let key: Vec<&str> = fact.attempt.key.as_deref().into_iter().collect();
        let by_own = [(&self.by_action, &action), (&self.by_key, &key)];
        if let Some(rows) = by_own.into_iter().find_map(|level| found(&[level], recipient)) {
            return Joined::Rows(rows);
        }
        let ids: Vec<&str> = made().map(|effect| effect.id.as_str()).collect();
        if let Some(rows) = found(&[(&self.by_provider_id, &ids)], recipient) {
            return Joined::Rows(rows);
        }
        let mut names: Vec<&str> = Vec::new();
        leaves(&fact.attempt.body, &mut names);
        names.extend(made().flat_map(|effect| effect.recognizers.iter().map(|found| found.value.as_str())));
        names.retain(|name| name.len() >= NAME_CHARS_MIN);
        let text: Vec<&str> = text.into_iter().collect();
        let by_name = found(&[(&self.by_action, &names), (&self.by_key, &names)], recipient);
        if let Some(rows) = by_name.or_else(|| found(&[(&self.by_text, &text)], recipient)) {
            return Joined::Rows(rows);
        }
        let known = action.iter().chain(&key).chain(&names).find_map(|name| self.actions.get(name));
        match (known, self.alone(recipient, text.first().copied())) {
            (Some(action), _) => Joined::Retargeted((*action).to_owned()),
            (None, Some(row)) => Joined::Rows(vec![row]),
            (None, None) => Joined::Nothing,
        }
    }

    /// The only row of a recipient, unless its text is another one.
    fn alone(&self, recipient: &str, text: Option<&str>) -> Option<usize> {
        let rows = self.by_destination.get(recipient)?;
        let row = *rows.first()?;
        let alike = match (self.texts.get(&row), text) {
            (Some(committed), Some(sent)) => sent.contains(committed),
            _ => true,
        };
        (rows.len() == 1 && alike).then_some(row)
    }
}

fn put<'a>(index: &mut ByDestination<'a>, place: (&'a str, Option<&'a str>), row: usize) {
    let rows = index.entry(place).or_default();
    if rows.last() != Some(&row) {
        rows.push(row);
    }
}

/// Rows that some word names, in order; `None` where there are none.
fn found<'b>(level: &[(&ByDestination<'_>, &Vec<&'b str>)], recipient: &'b str) -> Option<Vec<usize>> {
    let mut rows: Vec<usize> = Vec::new();
    for (index, words) in level {
        for place in words.iter().flat_map(|word| [(*word, Some(recipient)), (*word, None)]) {
            rows.extend(index.get(&place).into_iter().flatten());
        }
    }
    rows.sort_unstable();
    rows.dedup();
    (!rows.is_empty()).then_some(rows)
}

/// Whether rows name their destinations in the words of the wire: at least one of them was a recipient.
pub(crate) fn is_directed(ledger: &Ledger<'_>, wires: &[&Wire<'_>]) -> bool {
    let destinations: BTreeSet<&str> = ledger.rows.iter().filter_map(|row| row.destination).collect();
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
