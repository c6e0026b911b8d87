//! The facts of one trial, computed once: attempts with their end, effects, rows through time, and one
//! account per action and recipient.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::event::{Event, EventKind};
use killpoint_model::hit::Source;
use killpoint_model::settings::Promise;
use killpoint_model::{History, HitName, LedgerRow, Settings};

use crate::judge::Case;
use crate::volatile::{BaselinesDiffer, volatile_pointers};

pub(crate) mod account;
pub(crate) mod index;
pub(crate) mod join;
pub(crate) mod ledger;
pub(crate) mod lookups;
pub(crate) mod names;
pub(crate) mod pair;
pub(crate) mod sorted;
pub(crate) mod timeline;
pub(crate) mod units;
pub(crate) mod wire;

use account::{Account, draw_up};
use index::Index;
use lookups::Lookups;
use sorted::Sorted;
use timeline::{Sender, Timeline, senders};
use units::{Book, Unit};
use wire::AttemptFact;

/// Everything that invariants look at. Built by [`judge`](crate::judge()).
#[derive(Debug)]
pub struct Facts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) history: &'a History,
    pub(crate) book: Book<'a>,
    /// The first fault-free trial, where there is one that can be relied on.
    pub(crate) baseline: Option<Book<'a>>,
    /// Why the baselines can't be relied on.
    pub(crate) baselines_differ: Option<BaselinesDiffer>,
    pub(crate) lookups: Lookups,
    /// Parallel to the book's units.
    pub(crate) accounts: Vec<Account>,
    /// Where a worker's tree was killed while the trial was going on.
    pub(crate) kills: Vec<u64>,
    /// What was done to the workers and their store.
    pub(crate) timeline: Timeline,
    /// Connections that the harness held at their beginning, with since when.
    held_connections: Index<u32, u64>,
    /// Who sent each attempt, parallel to those of the book.
    pub(crate) senders: Vec<Option<Sender>>,
    /// Every event but those of which there are many: of the provider, hits, looks at the ledger, output.
    pub(crate) rare: Vec<&'a Event>,
    /// The units that each row stands for.
    units_of_rows: Vec<Vec<usize>>,
    /// Where each hit at which the ledger was read occurred, and what it was about.
    hits: Index<&'a HitName, Vec<(u64, Option<&'a str>)>>,
    /// Words of the final look that no baseline has.
    pub(crate) new_words: Vec<&'a str>,
    /// The final look, or the last event where there was none.
    pub(crate) final_seq: u64,
    /// Rows and requests exist, and in neither trial nor baseline could one be matched with another: then
    /// rows say nothing about effects.
    pub(crate) unjoined: bool,
    /// Body fields that differ from run to run.
    pub(crate) volatile: BTreeSet<String>,
    /// Whether two baselines showed which fields these are.
    pub(crate) volatile_known: bool,
    /// Recipient with payload or text of what the baseline has and the trial delivered.
    delivered_words: BTreeSet<(String, String)>,
}

impl<'a> Facts<'a> {
    pub(crate) fn gather(case: &Case<'a>, sorted: &Sorted<'a>) -> Self {
        let mut volatile = BTreeSet::new();
        let mut baselines_differ = None;
        if let [first, second, ..] = case.baselines {
            match volatile_pointers(first, second) {
                Ok(pointers) => volatile = pointers,
                Err(differ) => baselines_differ = Some(differ),
            }
        }
        // A key in the body is an identity, not a part of what is said.
        volatile.extend(case.settings.provider.idempotency.pointer.clone());

        let trusted = case.baselines.first().filter(|_| baselines_differ.is_none());
        let baseline =
            trusted.map(|history| Book::read(&Sorted::of(history), case.settings, &volatile, None));
        let wire = baseline.as_ref().map(|book| &book.wire);
        let mut book = Book::read(sorted, case.settings, &volatile, wire);
        if let Some(baseline) = &baseline {
            pair::pair(&mut book, baseline);
        }
        let lookups = Lookups::read(&book);
        let unjoined = !book.wire.attempts.is_empty()
            && !book.ledger.rows.is_empty()
            && !book.joins()
            && !baseline.as_ref().is_some_and(Book::joins);
        let rare = sorted.rare.clone();
        let mut facts = Self {
            settings: case.settings,
            history: case.history,
            delivered_words: delivered_words(&book),
            unjoined,
            volatile,
            volatile_known: case.baselines.len() >= 2 && baselines_differ.is_none(),
            senders: senders(case.history, &rare, book.wire.attempts.len()),
            hits: hits(case.history, &book),
            units_of_rows: units_of_rows(&book),
            book,
            baseline,
            baselines_differ,
            lookups,
            accounts: Vec::new(),
            kills: kills(case.history),
            timeline: Timeline::read(&rare),
            held_connections: held_connections(case.history, &rare),
            rare,
            new_words: new_words(case.history, case.baselines),
            final_seq: final_seq(case.history),
        };
        facts.accounts = facts.book.units.iter().map(|unit| draw_up(&facts, unit)).collect();
        facts
    }

    /// Units with their accounts.
    pub(crate) fn units(&self) -> impl Iterator<Item = (usize, &Unit, &Account)> {
        self.book
            .units
            .iter()
            .zip(&self.accounts)
            .enumerate()
            .map(|(at, (unit, account))| (at, unit, account))
    }

    /// Whether a ledger mapping is configured, or rows were read, and they can be matched with requests.
    pub(crate) fn is_mapped(&self) -> bool {
        if self.unjoined {
            return false;
        }
        let configured = self.settings.ledger.as_ref();
        configured.is_some_and(|ledger| ledger.query.is_some() || ledger.command.is_some())
            || self.book.ledger.views.iter().any(|view| view.view.rows.is_some())
    }

    /// The final rows, where they could be read.
    pub(crate) fn final_rows(&self) -> Option<(u64, &'a [LedgerRow])> {
        self.book.ledger.final_rows()
    }

    /// Whether finished rows may be deleted by the worker, by its own configuration.
    pub(crate) fn may_delete(&self) -> bool {
        self.settings.ledger.as_ref().is_some_and(|ledger| ledger.absent.is_some())
    }

    /// How many times one action is rightly sent: one per message that is owed.
    pub(crate) fn slots(&self, unit: usize) -> u32 {
        self.accounts[unit].expected.max(1)
    }

    /// Whether the baseline does not have this unit, and another one already delivered the same words to
    /// the same recipient.
    pub(crate) fn is_second_identity(&self, unit: &Unit) -> bool {
        let mut words = unit.payloads.iter().chain(&unit.texts);
        self.is_surplus(unit)
            && words.any(|word| self.delivered_words.contains(&(unit.recipient.clone(), word.clone())))
    }

    /// Whether there is a baseline and it does not have this unit, and no producer committed it meanwhile.
    pub(crate) fn is_surplus(&self, unit: &Unit) -> bool {
        self.baseline.is_some() && unit.baseline.units == 0 && !self.is_produced(unit)
    }

    /// Whether a unit came into being with a producer's transaction that was committed in this trial: the
    /// fault-free trial has no producer.
    fn is_produced(&self, unit: &Unit) -> bool {
        let committed = |event: &&&Event| matches!(event.event, EventKind::ProducerEnded { committed: true });
        let Some(committed) = self.rare.iter().find(committed) else { return false };
        let rows = unit.rows.iter().filter_map(|row| self.book.ledger.rows[*row].sightings.first());
        let seen = rows.map(|(view, _)| self.book.ledger.views[*view].seq);
        let first = seen.chain(self.attempt_events(unit)).min();
        first.is_some_and(|first| first > committed.seq)
    }

    /// Whether a second effect at a provider that does not dedupe breaks no promise.
    pub(crate) fn duplicates_allowed(&self) -> bool {
        self.settings.promise == Promise::AtLeastOnceKeyed && !self.settings.provider.idempotency.dedupe
    }

    /// The units that a row stands for.
    pub(crate) fn units_of_row(&self, row: usize) -> &[usize] {
        &self.units_of_rows[row]
    }

    /// The life of the worker in which an event was recorded.
    pub(crate) fn generation_of(&self, seq: u64) -> u32 {
        let at = self.history.events.partition_point(|event| event.seq < seq);
        self.history.events.get(at).map_or(0, |event| event.generation)
    }

    /// Whether the harness held a request back before it was read, since before another event: then its sender made
    /// it without knowing of that one.
    pub(crate) fn was_held_over(&self, attempt: usize, event: u64) -> bool {
        let attempts = &self.book.wire.attempts;
        let connection = attempts[attempt].attempt.connection;
        let is_first = || !attempts[..attempt].iter().any(|other| other.attempt.connection == connection);
        self.held_connections.get(&connection).is_some_and(|from| *from < event) && is_first()
    }

    /// Whether the sender of a request acts as one that gave up on the answer to an earlier one: the client closed with
    /// that answer unread, and what follows is what a lost answer permits, which is to ask first, or to send again
    /// under a key that is enough. A client that reads no more than the status closes in the same way, so that this
    /// alone says nothing.
    pub(crate) fn gave_up(&self, unit: usize, before: &AttemptFact<'_>, again: &AttemptFact<'_>) -> bool {
        let asked = || self.lookups.answered_between(unit, before.seq, again.seq);
        let dedupes = self.settings.provider.idempotency.dedupe;
        let key_is_enough = dedupes || self.settings.promise == Promise::AtLeastOnceKeyed;
        let same_key = before.attempt.key.is_some() && before.attempt.key == again.attempt.key;
        before.unread && ((key_is_enough && same_key) || asked())
    }

    /// When an event was recorded, in microseconds since the trial began.
    pub(crate) fn at_us(&self, seq: u64) -> u64 {
        let at = self.history.events.partition_point(|event| event.seq < seq);
        self.history.events.get(at).map_or(0, |event| event.at_us)
    }

    /// Where the trial was found to be at rest, or not to be; the final look where neither is on record.
    pub(crate) fn rest_seq(&self) -> u64 {
        self.timeline.rest.unwrap_or(self.final_seq)
    }

    /// The first kill after an event.
    pub(crate) fn first_kill_after(&self, seq: u64) -> Option<u64> {
        self.kills.get(self.kills.partition_point(|kill| *kill <= seq)).copied()
    }

    /// The last occurrence of a hit before an event, and what it was about.
    pub(crate) fn hit_before(&self, name: &HitName, seq: u64) -> Option<(u64, Option<&'a str>)> {
        let at = self.hits.get(name)?;
        at[..at.partition_point(|(hit, _)| *hit < seq)].last().copied()
    }

    /// Where a mark was first made.
    pub(crate) fn first_mark(&self, name: &str) -> Option<u64> {
        let mut events = self.history.events.iter();
        let first = events.find(|event| {
            matches!(&event.event, EventKind::Hit { hit, .. }
                if hit.source == Some(Source::Mark) && hit.point == name)
        });
        first.map(|event| event.seq)
    }

    /// Sequence numbers of a unit's attempts.
    pub(crate) fn attempt_events(&self, unit: &Unit) -> Vec<u64> {
        unit.attempts.iter().map(|index| self.book.wire.attempts[*index].seq).collect()
    }

    /// Sequence numbers of a unit's effects, redeliveries included.
    pub(crate) fn effect_events(&self, unit: &Unit) -> Vec<u64> {
        let facts = unit.effects.iter().map(|index| &self.book.wire.effects[*index]);
        facts.flat_map(|fact| [fact.seq].into_iter().chain(fact.redelivered.iter().copied())).collect()
    }
}

fn delivered_words(book: &Book<'_>) -> BTreeSet<(String, String)> {
    let delivered = book.units.iter().filter(|unit| unit.baseline.units > 0 && !unit.effects.is_empty());
    delivered
        .flat_map(|unit| {
            unit.payloads.iter().chain(&unit.texts).map(|word| (unit.recipient.clone(), word.clone()))
        })
        .collect()
}

/// Kills before the trial was at rest: after that the harness itself stops what still runs.
fn kills(history: &History) -> Vec<u64> {
    let going_on = history
        .events
        .iter()
        .take_while(|event| !matches!(event.event, EventKind::Settled { .. } | EventKind::NotSettled { .. }));
    going_on.filter(|event| matches!(event.event, EventKind::Killed { .. })).map(|event| event.seq).collect()
}

fn units_of_rows(book: &Book<'_>) -> Vec<Vec<usize>> {
    let mut of_rows = vec![Vec::new(); book.ledger.rows.len()];
    for (index, unit) in book.units.iter().enumerate() {
        for row in &unit.rows {
            of_rows[*row].push(index);
        }
    }
    of_rows
}

fn hits<'a>(history: &'a History, book: &Book<'a>) -> Index<&'a HitName, Vec<(u64, Option<&'a str>)>> {
    let mut map: Index<&HitName, Vec<(u64, Option<&str>)>> =
        book.ledger.views.iter().filter_map(|view| Some((view.at?, Vec::new()))).collect();
    if map.is_empty() {
        return map;
    }
    for event in &history.events {
        if let EventKind::Hit { hit, subject, .. } = &event.event
            && let Some(at) = map.get_mut(hit)
        {
            at.push((event.seq, subject.as_deref()));
        }
    }
    map
}

fn held_connections(history: &History, rare: &[&Event]) -> Index<u32, u64> {
    let mut held = Index::default();
    for event in rare.iter().filter(|event| matches!(event.event, EventKind::FaultAnnounced { .. })) {
        let before = &history.events[..history.events.partition_point(|it| it.seq < event.seq)];
        if let Some(connection) = connection_at(before) {
            held.entry(connection).or_insert(event.seq);
        }
    }
    held
}

/// The connection that waits at its beginning while a fault is announced: at such a hit, or at one of the ledger
/// that was read there.
fn connection_at(before: &[Event]) -> Option<u32> {
    // An earlier fault at the same hit, with all that happened while it was done.
    let mut inside: Option<&HitName> = None;
    for event in before.iter().rev() {
        if let Some(open) = inside {
            if matches!(&event.event, EventKind::FaultAnnounced { at, .. } if at == open) {
                inside = None;
            }
            continue;
        }
        match &event.event {
            EventKind::FaultDone { at, .. } => inside = Some(at),
            EventKind::Hit { hit, subject, .. } if hit.source == Some(Source::Provider) => {
                let is_begin = hit.point == "connected";
                return subject.as_ref().filter(|_| is_begin).and_then(|subject| subject.parse().ok());
            }
            EventKind::Hit { hit, .. } if hit.source == Some(Source::Ledger) => {}
            EventKind::Ledger { at: Some(_), .. } | EventKind::Provider(_) => {}
            _ => return None,
        }
    }
    None
}

fn words(history: &History) -> &[String] {
    let last = history.events.iter().rev().find_map(|event| match &event.event {
        EventKind::Final { words, .. } => Some(words.as_slice()),
        _ => None,
    });
    last.unwrap_or_default()
}

fn new_words<'a>(history: &'a History, baselines: &'a [History]) -> Vec<&'a str> {
    let known: BTreeSet<&str> = baselines.iter().flat_map(words).map(String::as_str).collect();
    words(history).iter().map(String::as_str).filter(|word| !known.contains(word)).collect()
}

fn final_seq(history: &History) -> u64 {
    let last = history.events.iter().rev().find(|event| matches!(event.event, EventKind::Final { .. }));
    last.or(history.events.last()).map_or(1, |event| event.seq)
}

/// Attempts of a unit in groups that surely are one action: all of them where one message is owed, those
/// with one key where several are.
pub(crate) fn by_certain_action<'b>(facts: &'b Facts<'_>, unit: usize) -> Vec<Vec<usize>> {
    let attempts = &facts.book.units[unit].attempts;
    if facts.slots(unit) == 1 {
        return vec![attempts.clone()];
    }
    let mut groups: BTreeMap<&'b str, Vec<usize>> = BTreeMap::new();
    for index in attempts {
        if let Some(key) = &facts.book.wire.attempts[*index].attempt.key {
            groups.entry(key).or_default().push(*index);
        }
    }
    groups.into_values().collect()
}
