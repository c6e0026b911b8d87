//! The worker's own counters say what happened.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use killpoint_model::event::EventKind;
use killpoint_model::{Entry, RowState};

use super::{Invariant, Looked};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "counters-agree",
    summary: "the worker's metrics agree with the provider's counts and with its own rows",
    explanation: "\
A counter of the worker says something else than what the provider saw or the rows say: more acceptances than answers \
that said so, fewer attempts than requests, no unknown while a row is unknown. Then accepted, delivered, failed and \
unknown are folded together somewhere, or something below the worker repeats by itself, and the alarms that hang on the \
counters will not ring.

Right is one counter for each of created, attempts, acceptances, unknown, reconciled successes, reconciled failures and \
awaiting review, counted where the state is written. Counters in memory begin anew with a life, and those in a file may \
miss what a death cut: both are allowed for. (K33 status-conflation, K03; Your Agent Finished the Job: \"Do metrics \
distinguish accepted, delivered, unknown, and failed?\")",
    example: "[metrics]\nurl = \"http://127.0.0.1:9464/metrics\"\n\n[metrics.names]\noutbox_attempts_total = \"attempts\"",
};

/// See [`ENTRY`].
pub(crate) struct CountersAgree;

impl Invariant for CountersAgree {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "the worker's metrics were not read: configure `[metrics]` with `url`, `file` or `query`, and the names",
        );
        let mut readings = facts.rare.iter().filter_map(|event| match &event.event {
            EventKind::Metrics { values, error } => Some((event.seq, values, error)),
            _ => None,
        });
        let Some((seq, values, error)) = readings.next_back() else { return looked };
        if let Some(error) = error {
            looked.note("the metrics", format!("they could not be read: {error}"), vec![seq]);
            return looked;
        }
        if facts.timeline.copied || !facts.timeline.rollbacks.is_empty() {
            looked.note(
                "the metrics",
                "the store was put back or copied: its counters went with it",
                vec![seq],
            );
            return looked;
        }
        let bounds = bounds(facts, seq);
        for (name, value) in values {
            let Some((range, what)) = bounds.get(name.as_str()) else { continue };
            looked.look();
            if !range.contains(value) {
                let message = format!("{value}, and {what}: {}", said(range));
                looked.violation(format!("the counter `{name}`"), message, vec![seq, facts.final_seq]);
            }
        }
        looked
    }
}

fn said(range: &RangeInclusive<u64>) -> String {
    match (range.start(), range.end()) {
        (start, end) if start == end => format!("it must be {start}"),
        (start, &u64::MAX) => format!("it must be {start} at least"),
        (start, end) => format!("it must be from {start} to {end}"),
    }
}

/// What each counter may say at a reading, and what that rests on.
fn bounds(facts: &Facts<'_>, reading: u64) -> BTreeMap<&'static str, (RangeInclusive<u64>, String)> {
    let counts = Counts::take(facts, reading);
    let slack = counts.slack;
    let attempts = format!("the provider got {} requests", counts.attempts);
    let accepted = format!("{} were told to be accepted", counts.told);
    let mut bounds = BTreeMap::from([
        (
            "attempts",
            (counts.attempts_sure.saturating_sub(slack)..=counts.attempts + counts.unsent, attempts),
        ),
        ("acceptances", (counts.told_sure.saturating_sub(slack)..=counts.told + counts.found, accepted)),
    ]);
    let Some((_, rows)) = facts.final_rows().filter(|_| reading >= facts.rest_seq()) else { return bounds };
    for (name, state) in [("unknown", RowState::Unknown), ("awaiting-review", RowState::Review)] {
        let at_end = rows.iter().filter(|row| row.state == state).count();
        let what = format!("{at_end} rows end as `{state}`");
        let sure = counts.turned(facts, state).saturating_sub(slack);
        bounds.insert(name, (sure..=u64::MAX, what));
    }
    if !facts.may_delete() {
        let seen = facts.book.ledger.rows.len() as u64;
        bounds.insert("created", (0..=seen.max(rows.len() as u64), format!("{seen} rows were ever seen")));
    }
    bounds
}

/// Counts up to a reading; `sure` ones are of the latest life, whose counters can't have begun anew.
struct Counts {
    life: u64,
    attempts: u64,
    attempts_sure: u64,
    /// Attempts whose acceptance was told, and lookups or answers that told of an earlier one.
    told: u64,
    told_sure: u64,
    found: u64,
    /// Attempts that may have been counted and not sent.
    unsent: u64,
    /// What a death, or a reading in the middle of things, may have cut.
    slack: u64,
}

impl Counts {
    fn take(facts: &Facts<'_>, reading: u64) -> Self {
        let exact = facts.settings.metrics.as_ref().is_some_and(|metrics| metrics.query.is_some());
        let starts = facts
            .history
            .events
            .iter()
            .filter(|event| event.seq < reading && matches!(event.event, EventKind::Spawned { .. }));
        let starts: Vec<u64> = starts.map(|event| event.seq).collect();
        // A query reads the ledger, which outlives every life.
        let life = if exact { 0 } else { starts.last().copied().unwrap_or(0) };
        // Each worker may have counters of its own, of which one's were read.
        let apart = !exact && facts.senders.iter().flatten().any(|sender| sender.beside);
        let life = if apart { u64::MAX } else { life };
        let before = || facts.book.wire.attempts.iter().filter(|fact| fact.seq < reading);
        let told = || before().filter(|fact| fact.acceptance_told().is_some_and(|told| told < reading));
        let whole = |end: Option<u64>| end.is_some_and(|end| end < reading);
        let lookups =
            facts.book.wire.lookups.iter().filter(|fact| fact.seq < reading && !fact.lookup.found.is_empty());
        let already = before().filter(|fact| fact.says_already_done()).count();
        let receipts = facts.book.wire.effects.iter().filter(|fact| fact.receipt.is_some()).count();
        let deaths = facts.timeline.deaths.len() as u64;
        let interruptions = facts.timeline.interruptions() as u64;
        Self {
            life,
            attempts: before().count() as u64,
            attempts_sure: before().filter(|fact| fact.seq > life && whole(fact.end_seq)).count() as u64,
            told: told().count() as u64,
            told_sure: told_by_answer(facts, life, reading),
            found: (lookups.count() + already + receipts) as u64,
            unsent: u64::from(facts.book.wire.connections) + interruptions + starts.len() as u64,
            slack: deaths + interruptions + if reading < facts.rest_seq() { starts.len() as u64 } else { 0 },
        }
    }

    /// Rows that end in a state which they were not seen in before the life began.
    fn turned(&self, facts: &Facts<'_>, state: RowState) -> u64 {
        let ledger = &facts.book.ledger;
        let turned = ledger.rows.iter().filter(|row| {
            let ends = row.last.iter().any(|row| row.state == state);
            let before = row.sightings.iter().take_while(|(view, _)| ledger.views[*view].seq < self.life);
            // Without a look before, nobody knows in which life it turned.
            let other = before.last().is_some_and(|(_, row)| row.state != state);
            ends && (other || self.life == 0 || ledger.views.iter().all(|view| view.generation <= 1))
        });
        turned.count() as u64
    }
}

/// Rows that end as delivered with nothing but the answer to say so: a worker that stopped waiting for it
/// could not know.
fn told_by_answer(facts: &Facts<'_>, life: u64, reading: u64) -> u64 {
    let wire = &facts.book.wire;
    let sure = facts.units().filter(|(index, unit, account)| {
        let [only] = unit.attempts[..] else { return false };
        let fact = &wire.attempts[only];
        let in_time = fact.seq > life && fact.end_seq.is_some_and(|end| end < reading);
        let elsewhere = facts.lookups.found(*index).is_some()
            || unit.effects.iter().any(|effect| wire.effects[*effect].receipt.is_some());
        unit.rows.len() == 1
            && account.count(RowState::Confirmed) == 1
            && fact.acceptance_told().is_some()
            && in_time
            && !elsewhere
    });
    sure.count() as u64
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{History, LedgerRow, RowState};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "counters-agree";

    /// The history with a reading after the trial came to rest.
    fn read(mut history: History, name: &str, value: u64) -> InvariantStatus {
        let values = [(name.to_owned(), value)].into();
        let rest = history.events.iter().position(|event| matches!(event.event, EventKind::Settled { .. }));
        let at = rest.unwrap() + 1;
        let mut event = history.events[at].clone();
        event.event = EventKind::Metrics { values, error: None };
        history.events.insert(at, event);
        for (index, event) in history.events.iter_mut().enumerate() {
            event.seq = index as u64 + 1;
        }
        status(&mapped(), &history, NAME)
    }

    fn rows(state: RowState) -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", state)]
    }

    fn lost() -> History {
        Trial::new().lose("bob@x", Some("k-deploy-42"), "deployed", true).end_rows(rows(RowState::Unknown))
    }

    #[test]
    fn what_nobody_was_told_is_no_acceptance() {
        assert_eq!(read(mapped_baseline(), "acceptances", 1), Holds);
        assert_eq!(read(mapped_baseline(), "acceptances", 0), Violated);
        assert_eq!(read(lost(), "acceptances", 0), Holds);
        assert_eq!(read(lost(), "acceptances", 1), Violated);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
    }

    #[test]
    fn requests_below_the_worker_are_missed() {
        let twice = || {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", false);
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed").end_rows(rows(RowState::Confirmed))
        };
        assert_eq!(read(twice(), "attempts", 2), Holds);
        assert_eq!(read(twice(), "attempts", 1), Violated);
        assert_eq!(read(mapped_baseline(), "attempts", 40), Violated);
    }

    #[test]
    fn an_unknown_row_is_counted_as_one() {
        assert_eq!(read(lost(), "unknown", 1), Holds);
        assert_eq!(read(lost(), "unknown", 0), Violated);
        assert_eq!(read(lost(), "created", 1), Holds);
        assert_eq!(read(lost(), "created", 2), Violated);
        assert_eq!(read(lost(), "something-else", 9), NotShown);
    }

    #[test]
    fn a_counter_in_memory_begins_anew_with_a_life() {
        let killed = || {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", false);
            trial.kill("provider:dropped#1").deliver("bob@x", Some("k-deploy-42"), "deployed");
            trial.end_rows(rows(RowState::Confirmed))
        };
        for (value, expected) in [(1, Holds), (2, Holds), (40, Violated)] {
            assert_eq!(read(killed(), "attempts", value), expected, "{value}");
        }
    }

    #[test]
    fn what_could_not_be_read_shows_nothing() {
        let mut trial = Trial::new();
        let error = Some("connection refused".into());
        trial.push(EventKind::Metrics { values: [].into(), error });
        assert_eq!(status(&mapped(), &trial.end_rows(rows(RowState::Unknown)), NAME), NotShown);
    }
}
