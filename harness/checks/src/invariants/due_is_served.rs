//! What is due is served while a worker is alive.

use std::collections::BTreeSet;

use killpoint_model::event::EventKind;
use killpoint_model::hit::Source;
use killpoint_model::provider::ProviderEvent;
use killpoint_model::{Entry, LedgerRow, RowState};

use super::{Invariant, Looked};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "due-is-served",
    summary: "no row stays due and untouched while a worker is alive and does nothing",
    explanation: "\
A worker was alive, nothing held it up, and a row that was due was not touched for longer than `checks.overdue`: no \
request, no lookup, no change. No fault is needed for that. A background task that was garbage-collected, a timer \
that stopped, a hung replacement, an orphaned lock, a recovery scan that reads the wrong place: health checks are \
green, the error rate is zero, and nothing is sent.

Right is a scan that finds whatever is due, whoever left it, and an alarm on the age of the oldest item that is due. \
Time in which the worker was stopped, dead, held by a fault, or waiting for an answer does not count. (K10, K11, K22, \
K36 alive-but-not-working; the comment on liveness under Your Agent Recovered the Run: \"pending much longer than its \
next_attempt_at\".)",
    example: "[checks]\noverdue = \"5s\"",
};

/// See [`ENTRY`].
pub(crate) struct DueIsServed;

impl Invariant for DueIsServed {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked =
            Looked::new(&ENTRY, "there are no rows: map the ledger, with `due_at_ms` where it has one");
        if !facts.is_mapped() || facts.book.ledger.rows.is_empty() {
            return looked;
        }
        let clock = Clock::read(facts);
        let bound_us = facts.settings.checks.overdue_ms.saturating_mul(1000);
        let mut told: BTreeSet<usize> = BTreeSet::new();
        for _ in &facts.book.ledger.rows {
            looked.look();
        }
        for silence in silences(facts, bound_us) {
            for (row, seq, sighting) in standing(facts, &silence) {
                let Some(due_us) = due_since(facts, &silence, row, sighting, &clock) else { continue };
                let waited_us = silence.to_us.saturating_sub(due_us.max(silence.from_us));
                if waited_us > bound_us && told.insert(row) {
                    let row = &facts.book.ledger.rows[row];
                    let to = row.destination.map(|to| format!(" to {to}")).unwrap_or_default();
                    let message = format!(
                        "due and `{}` for {} ms, while a worker was alive and did nothing",
                        sighting.state,
                        waited_us / 1000
                    );
                    looked.violation(
                        format!("{}{to}", row.action),
                        message,
                        vec![silence.from, seq, silence.to],
                    );
                }
            }
        }
        looked
    }
}

/// A time in which a worker was alive and free, and nothing at all happened.
struct Silence {
    from: u64,
    to: u64,
    from_us: u64,
    to_us: u64,
    /// Whether the trial ended in it.
    last: bool,
}

/// Who lives, who waits.
#[derive(Default)]
struct Watch {
    alive: BTreeSet<u32>,
    stopped: BTreeSet<u32>,
    /// Exchanges without an end: attempts and lookups.
    open: BTreeSet<(bool, u32)>,
    faults: u32,
    store_faults: u32,
    over: bool,
}

impl Watch {
    fn is_free(&self) -> bool {
        !self.over
            && self.faults == 0
            && self.store_faults == 0
            && self.open.is_empty()
            && self.alive.difference(&self.stopped).next().is_some()
    }

    fn see(&mut self, event: &EventKind) {
        match event {
            EventKind::Spawned { worker, .. } => {
                self.alive.insert(*worker);
                self.stopped.remove(worker);
            }
            EventKind::Killed { worker, .. } | EventKind::Exited { worker, .. } => {
                self.alive.remove(worker);
                if self.alive.is_empty() {
                    self.open.clear();
                }
            }
            EventKind::Stopped { worker } => _ = self.stopped.insert(*worker),
            EventKind::Resumed { worker } => _ = self.stopped.remove(worker),
            EventKind::FaultAnnounced { .. } => self.faults += 1,
            EventKind::FaultDone { .. } => self.faults = self.faults.saturating_sub(1),
            EventKind::StoreFault { begins: true, .. } => self.store_faults += 1,
            EventKind::StoreFault { .. } => self.store_faults = self.store_faults.saturating_sub(1),
            EventKind::FaultsOver => (self.faults, self.store_faults) = (0, 0),
            EventKind::Settled { .. } | EventKind::NotSettled { .. } => self.over = true,
            EventKind::Provider(provider) => self.exchange(provider),
            _ => {}
        }
    }

    fn exchange(&mut self, event: &ProviderEvent) {
        match event {
            ProviderEvent::Received(attempt) => _ = self.open.insert((false, attempt.id)),
            ProviderEvent::Replied { attempt, .. } | ProviderEvent::Unanswered { attempt, .. } => {
                self.open.remove(&(false, *attempt));
            }
            ProviderEvent::LookedUp(lookup) => _ = self.open.insert((true, lookup.id)),
            ProviderEvent::LookupReplied { lookup, .. } | ProviderEvent::LookupUnanswered { lookup, .. } => {
                self.open.remove(&(true, *lookup));
            }
            _ => {}
        }
    }
}

/// Whether an event says nothing about what the worker does.
fn is_background(event: &EventKind) -> bool {
    match event {
        EventKind::Output { .. }
        | EventKind::Alarm { .. }
        | EventKind::Metrics { .. }
        | EventKind::Integrity { .. }
        | EventKind::Scanned { .. }
        | EventKind::FaultsOver
        | EventKind::Ledger { .. }
        | EventKind::Changed { .. }
        | EventKind::Limitation { .. } => true,
        EventKind::Hit { hit, .. } => hit.source == Some(Source::Provider),
        _ => false,
    }
}

fn silences(facts: &Facts<'_>, bound_us: u64) -> Vec<Silence> {
    let mut watch = Watch::default();
    let mut since: Option<(u64, u64)> = None;
    let mut found = Vec::new();
    for event in facts.history.events.iter().filter(|event| !is_background(&event.event)) {
        let free_before = watch.is_free();
        watch.see(&event.event);
        if let Some((from, from_us)) = since.filter(|_| free_before) {
            let last = watch.over;
            if event.at_us.saturating_sub(from_us) > bound_us {
                found.push(Silence { from, to: event.seq, from_us, to_us: event.at_us, last });
            }
        }
        since = Some((event.seq, event.at_us));
    }
    found
}

/// Rows at the last exact look before the end of a silence, with that look. A row that the silence left as
/// it was is not touched in it.
fn standing<'b>(facts: &'b Facts<'_>, silence: &Silence) -> Vec<(usize, u64, &'b LedgerRow)> {
    let ledger = &facts.book.ledger;
    // Where the trial ended in it, the last look shows what it left.
    let to = if silence.last { facts.final_seq } else { silence.to };
    let Some(view) = ledger.last_until(to) else { return Vec::new() };
    let seq = ledger.views[view].seq;
    let rows = ledger.views[view].view.rows.iter().flatten();
    ledger.shown[view].iter().copied().zip(rows).map(|(index, row)| (index, seq, row)).collect()
}

/// From when a row was due and nobody's, in microseconds of the trial; `None` where it was not, or where it
/// can't be told.
fn due_since(
    facts: &Facts<'_>,
    silence: &Silence,
    row: usize,
    sighting: &LedgerRow,
    clock: &Clock,
) -> Option<u64> {
    match sighting.state {
        RowState::Created => {}
        // In the middle of a trial somebody may be at work on it, without a sound.
        RowState::Dispatching if silence.last => {}
        _ => return None,
    }
    let first = facts.book.ledger.rows[row].sightings.first()?.0;
    let seen_us = facts.at_us(facts.book.ledger.views[first].seq);
    let seen_us = if silence.last { seen_us.min(silence.from_us) } else { seen_us };
    match (sighting.due_at_ms, clock.started_ms) {
        (Some(due_ms), Some(started_ms)) => {
            Some(seen_us.max(due_ms.saturating_sub(started_ms).saturating_mul(1000)))
        }
        // Nothing says when it was due: only what is left at the end was surely due.
        _ => silence.last.then_some(seen_us),
    }
}

/// When the trial began by the clock of the rows, as far as some request tells.
struct Clock {
    started_ms: Option<u64>,
}

impl Clock {
    fn read(facts: &Facts<'_>) -> Self {
        let mut apart = facts.book.wire.apart.iter();
        let stepped = apart.find(|(_, event)| matches!(event, ProviderEvent::ClockStepped { .. }));
        let stepped = stepped.map_or(u64::MAX, |(seq, _)| *seq);
        let attempt = facts.book.wire.attempts.first().map(|fact| (fact.seq, fact.attempt.at_ms));
        let lookup = facts.book.wire.lookups.first().map(|fact| (fact.seq, fact.lookup.at_ms));
        // Rows of a worker whose clock is off are dated by that clock.
        let differs = facts.rare.iter().any(|event| matches!(event.event, EventKind::WorkerClock { .. }));
        let anchor = attempt.or(lookup).filter(|(seq, _)| *seq < stepped && !differs);
        Self { started_ms: anchor.map(|(seq, at_ms)| at_ms.saturating_sub(facts.at_us(seq) / 1000)) }
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{LedgerRow, RowState, Settings};

    use crate::sample::{Trial, mapped, mapped_baseline, plain_baseline, row, status};

    const NAME: &str = "due-is-served";

    fn rows(state: RowState) -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", state)]
    }

    fn alive_at_the_end(trial: &mut Trial, rows: Vec<LedgerRow>) -> InvariantStatus {
        status(&mapped(), &trial.not_settled().end_rows(rows), NAME)
    }

    fn waiting(wait: impl Fn(&mut Trial)) -> Trial {
        let mut trial = Trial::new();
        trial.view(None, rows(RowState::Created));
        wait(&mut trial);
        trial
    }

    #[test]
    fn a_worker_that_never_starts_is_red_without_any_fault() {
        for state in [RowState::Created, RowState::Dispatching] {
            let mut trial = waiting(|trial| trial.pass_ms(6000));
            assert_eq!(alive_at_the_end(&mut trial, rows(state)), Violated, "{state}");
        }
        let mut soon = waiting(|trial| trial.pass_ms(4000));
        assert_eq!(alive_at_the_end(&mut soon, rows(RowState::Created)), Holds);
        let mut parked = waiting(|trial| trial.pass_ms(6000));
        assert_eq!(alive_at_the_end(&mut parked, rows(RowState::Unknown)), Holds);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), Holds);
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), NotShown);
    }

    #[test]
    fn time_in_which_it_could_do_nothing_does_not_count() {
        let stopped = |trial: &mut Trial| {
            trial.push(EventKind::Stopped { worker: 1 });
            trial.pass_ms(9000);
            trial.push(EventKind::Resumed { worker: 1 });
        };
        assert_eq!(alive_at_the_end(&mut waiting(stopped), rows(RowState::Created)), Holds);
        let hung = |trial: &mut Trial| {
            let attempt = trial.send("eve@x", None, "other");
            trial.pass_ms(9000);
            trial.drop_reply(attempt);
        };
        assert_eq!(alive_at_the_end(&mut waiting(hung), rows(RowState::Created)), Holds);
        let mut gone = waiting(|_| ());
        gone.die("mark:item-claimed#1").pass_ms(9000);
        assert_eq!(alive_at_the_end(gone.spawn(), rows(RowState::Created)), Holds);
    }

    #[test]
    fn what_is_due_later_waits_rightly() {
        let due = |ms: u64| vec![LedgerRow { due_at_ms: Some(ms), ..rows(RowState::Created).remove(0) }];
        // The provider's clock of these samples starts with the trial.
        for (due_ms, expected) in [(1000, Violated), (60_000, Holds)] {
            let mut trial = Trial::new();
            trial.clock_ms = 0;
            trial.deliver("eve@x", None, "other");
            trial.view(None, due(due_ms));
            trial.pass_ms(9000);
            assert_eq!(alive_at_the_end(&mut trial, due(due_ms)), expected, "{due_ms}");
        }
    }

    #[test]
    fn a_row_that_is_served_late_is_judged_by_its_due_time_only() {
        let late = |due_at_ms: Option<u64>| {
            let mut trial = Trial::new();
            trial.deliver("eve@x", None, "other");
            trial.view(None, vec![LedgerRow { due_at_ms, ..rows(RowState::Created).remove(0) }]);
            trial.pass_ms(9000);
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
            status(&mapped(), &trial.end_rows(rows(RowState::Confirmed)), NAME)
        };
        assert_eq!(late(Some(100)), Violated);
        assert_eq!(late(None), Holds, "it may have been at work on something else");
    }

    #[test]
    fn a_due_time_by_a_clock_that_is_off_says_nothing() {
        let mut trial = Trial::new();
        let method = killpoint_model::event::ClockMethod::Environment;
        trial.push(EventKind::WorkerClock { worker: 1, offset_ms: -300_000, method });
        trial.deliver("eve@x", None, "other");
        let early = LedgerRow { due_at_ms: Some(100), ..rows(RowState::Created).remove(0) };
        trial.view(None, vec![early]);
        trial.pass_ms(9000);
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(status(&mapped(), &trial.end_rows(rows(RowState::Confirmed)), NAME), Holds);
    }
}
