//! Which rows of the ledger a request is about.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::Settings;
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

type ByDestination<'a> = BTreeMap<(&'a str, Option<&'a str>), BTreeSet<usize>>;

/// Rows by all that can name them.
pub(crate) struct Joiner<'a> {
    by_action: ByDestination<'a>,
    by_key: ByDestination<'a>,
    by_provider_id: ByDestination<'a>,
    by_text: ByDestination<'a>,
    by_destination: BTreeMap<&'a str, BTreeSet<usize>>,
    /// The action behind a name, whatever the destination.
    actions: BTreeMap<&'a str, &'a str>,
    texts: BTreeMap<usize, &'a str>,
}

impl<'a> Joiner<'a> {
    /// Indexes the rows. Without `directed`, destinations in rows are in other words than recipients on
    /// the wire, and are not compared.
    pub(crate) fn new(ledger: &Ledger<'a>, directed: bool) -> Self {
        let mut joiner = Self {
            by_action: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_provider_id: BTreeMap::new(),
            by_text: BTreeMap::new(),
            by_destination: BTreeMap::new(),
            actions: BTreeMap::new(),
            texts: BTreeMap::new(),
        };
        for (index, row) in ledger.rows.iter().enumerate() {
            let destination = row.destination.filter(|_| directed);
            joiner.by_action.entry((row.action, destination)).or_default().insert(index);
            joiner.actions.insert(row.action, row.action);
            if let Some(destination) = destination {
                joiner.by_destination.entry(destination).or_default().insert(index);
            }
            for (_, sighting) in &row.sightings {
                if let Some(key) = &sighting.key {
                    joiner.by_key.entry((key, destination)).or_default().insert(index);
                    joiner.actions.entry(key).or_insert(row.action);
                }
                if let Some(id) = &sighting.provider_id {
                    joiner.by_provider_id.entry((id, destination)).or_default().insert(index);
                }
                if let Some(text) = &sighting.text {
                    joiner.by_text.entry((text, destination)).or_default().insert(index);
                    joiner.texts.insert(index, text);
                }
            }
        }
        joiner
    }

    /// Finds the rows of an attempt at one recipient: the strongest identity that finds any wins.
    pub(crate) fn join(
        &self,
        fact: &AttemptFact<'a>,
        effects: &[EffectFact<'a>],
        recipient: &str,
        text: Option<&str>,
    ) -> Joined {
        let attempt = fact.attempt;
        let mut names: Vec<&str> = Vec::new();
        leaves(&attempt.body, &mut names);
        let made = || fact.effects.iter().map(|index| effects[*index].effect);
        names.extend(made().flat_map(|effect| effect.recognizers.iter().map(|found| found.value.as_str())));
        names.retain(|name| name.len() >= NAME_CHARS_MIN);

        let action: Vec<&str> = attempt.action.as_deref().into_iter().collect();
        let key: Vec<&str> = attempt.key.as_deref().into_iter().collect();
        let ids: Vec<&str> = made().map(|effect| effect.id.as_str()).collect();
        let text: Vec<&str> = text.into_iter().collect();
        let levels: [&[(&ByDestination<'a>, &[&str])]; 5] = [
            &[(&self.by_action, &action)],
            &[(&self.by_key, &key)],
            &[(&self.by_provider_id, &ids)],
            &[(&self.by_action, &names), (&self.by_key, &names)],
            &[(&self.by_text, &text)],
        ];
        for level in levels {
            let rows: BTreeSet<usize> =
                level.iter().flat_map(|(index, words)| found(index, words, recipient)).collect();
            if !rows.is_empty() {
                return Joined::Rows(rows.into_iter().collect());
            }
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

fn found(index: &ByDestination<'_>, words: &[&str], recipient: &str) -> BTreeSet<usize> {
    let places = words.iter().flat_map(|word| [(*word, Some(recipient)), (*word, None)]);
    places.filter_map(|place| index.get(&place)).flatten().copied().collect()
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
