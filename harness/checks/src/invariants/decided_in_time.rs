//! Decided within the time that the user allows.

use killpoint_model::Entry;
use killpoint_model::event::{CommandRole, EventKind};

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::ledger::RowFact;

static ENTRY: Entry = Entry {
    name: "decided-in-time",
    summary: "each action is decided within the configured time, recoveries included",
    explanation: "\
An action was still waiting or in flight after `checks.decided-within`. It may well be delivered in the end; whoever \
waits for it has given up by then, and an operator who is told of the age of the oldest item has nothing to go by.

Right is a recovery whose steps add up to less than the bound: lease, lookups and backoff. Parked as unknown or for \
review is decided. Time in which the harness stopped the worker does not count. (K10, K11, K13, K36; S10, S11: \
\"decided within the bound\".)",
    example: "[checks]\ndecided-within = \"20s\"",
};

/// See [`ENTRY`].
pub(crate) struct DecidedInTime;

impl Invariant for DecidedInTime {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let Some(bound_ms) = facts.settings.checks.decided_within_ms else {
            return Looked::new(&ENTRY, "no bound is configured: set `checks.decided-within`");
        };
        let mut looked = Looked::new(&ENTRY, "no row was seen undecided: map the ledger with its states");
        let held = held_up(facts);
        let committed_us = enqueued_us(facts);
        for (index, row) in facts.book.ledger.rows.iter().enumerate() {
            let Some((from, to)) = undecided(facts, row) else { continue };
            looked.look();
            let from_us = facts.at_us(from).max(committed_us);
            let to_us = facts.at_us(to);
            let held_us: u64 = held.iter().map(|(begin, end)| overlap(from_us, to_us, *begin, *end)).sum();
            let took_ms = to_us.saturating_sub(from_us).saturating_sub(held_us) / 1000;
            if took_ms > bound_ms {
                let destination = facts.book.ledger.rows[index].destination;
                let to_whom = destination.map(|to| format!(" to {to}")).unwrap_or_default();
                let message =
                    format!("undecided for {took_ms} ms, more than the {bound_ms} ms that are allowed");
                looked.violation(format!("{}{to_whom}", row.action), message, vec![from, to]);
            }
        }
        looked
    }
}

/// The first look at a row and the last one that surely comes before its decision.
fn undecided(facts: &Facts<'_>, row: &RowFact<'_>) -> Option<(u64, u64)> {
    let seq = |view: usize| facts.book.ledger.views[view].seq;
    let decided = row.sightings.iter().position(|(_, row)| row.state.is_terminal());
    let open = &row.sightings[..decided.unwrap_or(row.sightings.len())];
    let (first, last) = (open.first()?.0, open.last()?.0);
    // The last look comes after the rest; the time in between was nobody's.
    let last = if facts.book.ledger.views[last].is_final { facts.rest_seq() } else { seq(last) };
    Some((seq(first), last.max(seq(first))))
}

fn enqueued_us(facts: &Facts<'_>) -> u64 {
    let ran = facts
        .history
        .events
        .iter()
        .filter(|event| matches!(event.event, EventKind::CommandRan { role: CommandRole::Enqueue, .. }));
    ran.map(|event| event.at_us).max().unwrap_or(0)
}

/// When the harness held a worker up, in microseconds of the trial.
fn held_up(facts: &Facts<'_>) -> Vec<(u64, u64)> {
    let mut spans = Vec::new();
    let mut depth = 0_u32;
    let mut since = 0;
    let last_us = facts.history.events.last().map_or(0, |event| event.at_us);
    for event in &facts.rare {
        match event.event {
            EventKind::FaultAnnounced { .. } | EventKind::Stopped { .. } => {
                if depth == 0 {
                    since = event.at_us;
                }
                depth += 1;
            }
            EventKind::FaultDone { .. } | EventKind::Resumed { .. } if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    spans.push((since, event.at_us));
                }
            }
            _ => {}
        }
    }
    if depth > 0 {
        spans.push((since, last_us));
    }
    spans
}

fn overlap(from: u64, to: u64, begin: u64, end: u64) -> u64 {
    to.min(end).saturating_sub(from.max(begin))
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{LedgerRow, RowState, Settings};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "decided-in-time";

    fn bounded() -> Settings {
        let mut settings = mapped();
        settings.checks.decided_within_ms = Some(1000);
        settings
    }

    fn rows(state: RowState) -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", state)]
    }

    fn took(wait: impl Fn(&mut Trial)) -> InvariantStatus {
        let mut trial = Trial::new();
        trial.view(None, rows(RowState::Created));
        wait(&mut trial);
        trial.view(None, rows(RowState::Dispatching));
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        status(&bounded(), &trial.end_rows(rows(RowState::Confirmed)), NAME)
    }

    #[test]
    fn the_bound_is_held() {
        assert_eq!(took(|trial| trial.pass_ms(900)), Holds);
        assert_eq!(took(|trial| trial.pass_ms(1100)), Violated);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown, "no bound");
        assert_eq!(status(&bounded(), &mapped_baseline(), NAME), NotShown, "no undecided row");
    }

    #[test]
    fn what_never_is_decided_is_late_and_what_is_parked_is_decided() {
        for (state, expected) in [(RowState::Created, Violated), (RowState::Unknown, Holds)] {
            let mut trial = Trial::new();
            trial.view(None, rows(RowState::Created));
            trial.view(None, rows(state));
            trial.pass_ms(5000);
            assert_eq!(status(&bounded(), &trial.end_rows(rows(state)), NAME), expected, "{state}");
        }
    }

    #[test]
    fn a_stop_does_not_count() {
        let stopped = |trial: &mut Trial| {
            trial.push(EventKind::Stopped { worker: 1 });
            trial.pass_ms(5000);
            trial.push(EventKind::Resumed { worker: 1 });
        };
        assert_eq!(took(stopped), Holds);
    }
}
