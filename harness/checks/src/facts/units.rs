//! Units: one action at one recipient, with its rows, attempts and effects, in one history.
//!
//! Two rows, or two payloads, that nothing tells apart are one unit of which several are owed: counting
//! stays right, and nothing is guessed.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::Settings;

use crate::facts::index::Index;
use crate::facts::join::{Joined, Joiner, is_directed, text_of};
use crate::facts::ledger::Ledger;
use crate::facts::names::Names;
use crate::facts::sorted::Sorted;
use crate::facts::wire::Wire;
use crate::volatile::normalised;

/// One action at one recipient.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unit {
    /// Logical ids; empty where none is known.
    pub(crate) actions: Names,
    /// Empty where only a row without destination is known.
    pub(crate) recipient: String,
    pub(crate) operation: String,
    /// Its rows, by index.
    pub(crate) rows: Vec<usize>,
    /// Its attempts, by index, in order.
    pub(crate) attempts: Vec<usize>,
    /// Its effects, by index, in order.
    pub(crate) effects: Vec<usize>,
    /// Bodies sent, without volatile fields.
    pub(crate) payloads: Names,
    /// What a human would read, as sent or as committed in the row.
    pub(crate) texts: Names,
    /// The same unit in the baseline.
    pub(crate) baseline: Paired,
}

/// What the baseline says about a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Paired {
    /// Units of the baseline that were found to be this one.
    pub(crate) units: u32,
    /// Effects that they had.
    pub(crate) effects: u32,
    /// Rows that they had.
    pub(crate) rows: u32,
    /// Attempts that they had.
    pub(crate) attempts: u32,
}

impl Unit {
    /// By what a reader knows it.
    pub(crate) fn label(&self) -> String {
        if let (1, Some(action)) = (self.actions.len(), self.actions.first()) {
            return action.clone();
        }
        let actions: Vec<&str> = self.actions.iter().map(String::as_str).collect();
        match (actions.join(" or "), self.texts.first()) {
            (actions, _) if !actions.is_empty() => actions,
            (_, Some(text)) => {
                let short: String = text.chars().take(60).collect();
                format!("\"{short}\"")
            }
            _ => format!("a message to {}", self.recipient),
        }
    }

    /// Action and recipient in one phrase.
    pub(crate) fn subject(&self) -> String {
        if self.recipient.is_empty() {
            self.label()
        } else {
            format!("{} to {}", self.label(), self.recipient)
        }
    }
}

/// The units of one history.
#[derive(Debug, Default)]
pub(crate) struct Book<'a> {
    pub(crate) wire: Wire<'a>,
    pub(crate) ledger: Ledger<'a>,
    pub(crate) units: Vec<Unit>,
    pub(crate) unit_of_attempt: Vec<usize>,
    pub(crate) unit_of_effect: Vec<usize>,
    /// Whether rows name their destinations in the words of the wire.
    pub(crate) directed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    Rows(usize),
    Action(String),
    Payload(String),
}

/// One attempt at one recipient: a request may reach several.
struct Parcel<'a> {
    attempt: usize,
    recipient: &'a str,
    about: Joined,
}

impl Parcel<'_> {
    fn identity(&self, action: Option<&str>, payload: &str, pools: &Pools) -> Identity {
        match (&self.about, action) {
            (Joined::Rows(rows), _) => Identity::Rows(pools.roots[rows[0]]),
            (Joined::Retargeted(action), _) => Identity::Action(action.clone()),
            (Joined::Nothing, Some(action)) => Identity::Action(action.to_owned()),
            (Joined::Nothing, None) => Identity::Payload(payload.to_owned()),
        }
    }
}

impl Identity {
    fn unit(&self, recipient: &str, operation: &str, pools: &Pools) -> Unit {
        let mut unit =
            Unit { recipient: recipient.to_owned(), operation: operation.to_owned(), ..Unit::default() };
        match self {
            Self::Rows(root) => unit.rows.clone_from(&pools.members[root]),
            Self::Action(action) => {
                unit.actions.add(action);
            }
            Self::Payload(_) => {}
        }
        unit
    }
}

impl<'a> Book<'a> {
    /// Reads a history. `volatile` are body fields to overlook; `baseline` is the fault-free wire, which
    /// shows in which words recipients are named.
    pub(crate) fn read(
        sorted: &Sorted<'a>,
        settings: &Settings,
        volatile: &BTreeSet<String>,
        baseline: Option<&Wire<'_>>,
    ) -> Self {
        let mut book = Self {
            wire: Wire::read(&sorted.provider),
            ledger: Ledger::read(&sorted.looks),
            ..Self::default()
        };
        let wires: Vec<&Wire<'_>> = baseline.into_iter().chain([&book.wire]).collect();
        book.directed = is_directed(&book.ledger, &wires);
        let joiner = Joiner::new(&book.ledger.rows, book.directed);
        let parcels = book.parcels(&joiner, settings);
        let pools = Pools::of(book.ledger.rows.len(), &parcels);
        book.fill(&parcels, &pools, settings, volatile);
        book
    }

    fn parcels(&self, joiner: &Joiner<'_, 'a>, settings: &Settings) -> Vec<Parcel<'a>> {
        let mut parcels = Vec::with_capacity(self.wire.attempts.len());
        for (index, fact) in self.wire.attempts.iter().enumerate() {
            let text = text_of(fact, &self.wire.effects, settings);
            let own = fact.attempt.recipient.as_str();
            let others =
                fact.effects.iter().map(|effect| self.wire.effects[*effect].effect.recipient.as_str());
            let mut others: Vec<&str> = others.filter(|recipient| *recipient != own).collect();
            others.sort_unstable();
            others.dedup();
            for recipient in [own].into_iter().chain(others) {
                let about = joiner.join(fact, &self.wire.effects, recipient, text);
                parcels.push(Parcel { attempt: index, recipient, about });
            }
        }
        parcels
    }

    fn fill(
        &mut self,
        parcels: &[Parcel<'a>],
        pools: &Pools,
        settings: &Settings,
        volatile: &BTreeSet<String>,
    ) {
        let mut index: Index<(Identity, &str, &str), usize> = Index::default();
        // Where an attempt's further recipients are.
        let mut places: Index<(usize, &str), usize> = Index::default();
        self.unit_of_attempt = vec![usize::MAX; self.wire.attempts.len()];
        index.reserve(parcels.len());
        self.units.reserve(parcels.len());
        let mut used = vec![false; pools.roots.len()];
        for parcel in parcels {
            let fact = &self.wire.attempts[parcel.attempt];
            let payload = normalised(&fact.attempt.body, volatile);
            let identity = parcel.identity(fact.attempt.action.as_deref(), &payload, pools);
            let operation = fact.attempt.operation.as_str();
            let at = *index.entry((identity.clone(), parcel.recipient, operation)).or_insert_with(|| {
                self.units.push(identity.unit(parcel.recipient, operation, pools));
                self.units.len() - 1
            });
            if let Identity::Rows(root) = identity {
                used[root] = true;
            }
            let unit = &mut self.units[at];
            unit.payloads.insert(payload);
            if let Some(text) = text_of(fact, &self.wire.effects, settings) {
                unit.texts.add(text);
            }
            unit.attempts.push(parcel.attempt);
            if parcel.recipient == fact.attempt.recipient {
                self.unit_of_attempt[parcel.attempt] = at;
            } else {
                places.insert((parcel.attempt, parcel.recipient), at);
            }
        }
        self.place_effects(&places, volatile);
        self.add_unsent_rows(pools, &used);
        self.name_by_rows();
    }

    fn place_effects(&mut self, places: &Index<(usize, &str), usize>, volatile: &BTreeSet<String>) {
        let mut strays: Index<(&str, Option<&str>, String), usize> = Index::default();
        for (index, fact) in self.wire.effects.iter().enumerate() {
            let effect = fact.effect;
            let place = fact.attempt.and_then(|attempt| {
                let own = self.wire.attempts[attempt].attempt.recipient == effect.recipient;
                let other = || places.get(&(attempt, effect.recipient.as_str())).copied();
                if own { Some(self.unit_of_attempt[attempt]) } else { other() }
            });
            let at = place.unwrap_or_else(|| {
                // Its request is not in this history; what the recipient got still counts.
                let payload = normalised(&effect.body, volatile);
                *strays.entry((&effect.recipient, effect.action.as_deref(), payload.clone())).or_insert_with(
                    || {
                        self.units.push(Unit {
                            actions: effect.action.as_deref().map(Names::from).unwrap_or_default(),
                            recipient: effect.recipient.clone(),
                            operation: effect.operation.clone(),
                            payloads: Names::from(payload.as_str()),
                            texts: Names::from(effect.text.as_str()),
                            ..Unit::default()
                        });
                        self.units.len() - 1
                    },
                )
            });
            self.units[at].effects.push(index);
            self.unit_of_effect.push(at);
        }
    }

    fn add_unsent_rows(&mut self, pools: &Pools, used: &[bool]) {
        for (root, members) in &pools.members {
            if !used[*root] {
                let destination = self.ledger.rows[members[0]].destination.unwrap_or_default();
                let recipient = if self.directed { destination.to_owned() } else { String::new() };
                self.units.push(Unit { recipient, rows: members.clone(), ..Unit::default() });
            }
        }
    }

    fn name_by_rows(&mut self) {
        for unit in &mut self.units {
            for row in &unit.rows {
                let row = &self.ledger.rows[*row];
                unit.actions.add(row.action);
                let text = row.sightings.first().and_then(|(_, row)| row.text.as_deref());
                if let Some(text) = text {
                    unit.texts.add(text);
                }
            }
        }
    }

    /// Whether some request was found to be about some row: then a request about none is a fact.
    pub(crate) fn joins(&self) -> bool {
        self.units.iter().any(|unit| !unit.rows.is_empty() && !unit.attempts.is_empty())
    }

    /// Moves everything of one unit into another, whose attempts are to be sorted afterwards.
    pub(crate) fn merge(&mut self, from: usize, into: usize) {
        let gone = std::mem::take(&mut self.units[from]);
        for attempt in &gone.attempts {
            self.unit_of_attempt[*attempt] = into;
        }
        for effect in &gone.effects {
            self.unit_of_effect[*effect] = into;
        }
        let unit = &mut self.units[into];
        unit.attempts.extend(gone.attempts);
        unit.effects.extend(gone.effects);
        unit.payloads.absorb(gone.payloads);
        unit.texts.absorb(gone.texts);
    }

    /// Removes units that were merged into others.
    pub(crate) fn drop_units(&mut self, gone: &BTreeSet<usize>) {
        if gone.is_empty() {
            return;
        }
        let kept: Vec<usize> = (0..self.units.len()).filter(|index| !gone.contains(index)).collect();
        let mut moved = vec![usize::MAX; self.units.len()];
        for (new, old) in kept.iter().enumerate() {
            moved[*old] = new;
        }
        self.units = kept.iter().map(|index| std::mem::take(&mut self.units[*index])).collect();
        for unit in &mut self.units {
            unit.attempts.sort_unstable();
            unit.effects.sort_unstable();
        }
        for at in self.unit_of_attempt.iter_mut().chain(&mut self.unit_of_effect) {
            *at = moved[*at];
        }
    }
}

/// Rows that some request could not tell apart, as sets.
struct Pools {
    roots: Vec<usize>,
    members: BTreeMap<usize, Vec<usize>>,
}

impl Pools {
    fn of(rows: usize, parcels: &[Parcel<'_>]) -> Self {
        let mut parents: Vec<usize> = (0..rows).collect();
        for parcel in parcels {
            if let Joined::Rows(joined) = &parcel.about {
                for pair in joined.windows(2) {
                    let (a, b) = (find(&mut parents, pair[0]), find(&mut parents, pair[1]));
                    parents[a.max(b)] = a.min(b);
                }
            }
        }
        let roots: Vec<usize> = (0..rows).map(|row| find(&mut parents, row)).collect();
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (row, root) in roots.iter().enumerate() {
            members.entry(*root).or_default().push(row);
        }
        Self { roots, members }
    }
}

fn find(parents: &mut [usize], mut row: usize) -> usize {
    while parents[row] != row {
        parents[row] = parents[parents[row]];
        row = parents[row];
    }
    row
}
