//! The worker's count of attempts is the provider's.

use std::collections::BTreeMap;

use killpoint_model::Entry;

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "attempt-count-true",
    summary: "the worker's count of attempts is the number of requests that the provider got",
    explanation: "\
The provider got more requests for an action than the worker counts. Something below the worker repeats by itself: \
an HTTP or SMTP client, a vendor's library, a proxy. Such a retry has no lookup before it and no row behind it, and \
where retry layers multiply, a bound of 3 means 9. Every decision that the worker takes from its count is wrong.

Right is to switch the client's own retries off and to count before each request. A count that is too high is right \
where a worker died, or gave up its claim, between the count and the request. A count that misses only requests that \
a death cut is noted. (K03 retry-under-the-workers-feet, K26 attempt-accounting-wrong.)",
    example: "[ledger]\npath = \"{state}/outbox.db\"\nquery = \"select id as action, status as state, attempts from outbox\"",
};

/// See [`ENTRY`].
pub(crate) struct AttemptCountTrue;

impl Invariant for AttemptCountTrue {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no final row counts attempts of an action that was sent: map `attempts` in the ledger's query",
        );
        doubt_unusable_rows(facts, &mut looked);
        // A store that was put back has forgotten what it counted.
        let forgetful = facts.timeline.copied || !facts.timeline.rollbacks.is_empty();
        let Some((seq, _)) = facts.final_rows().filter(|_| !forgetful && !facts.unjoined) else {
            return looked;
        };
        let tallies = tallies(facts);
        let counts_retries = counts_retries(&tallies);
        for tally in &tallies {
            looked.look();
            let counted = tally.counted + if counts_retries { tally.rows } else { 0 };
            let wire = tally.attempts.len() as u64;
            let ahead = counted > wire + facts.timeline.interruptions() as u64;
            if counted >= wire && !ahead {
                continue;
            }
            let subject = facts.book.units[tally.unit].subject();
            let what = format!("the row counts {} attempts, the provider got {wire} requests", tally.counted);
            let attempts = tally.attempts.iter().map(|at| facts.book.wire.attempts[*at].seq);
            let events = attempts.chain([seq]).collect();
            if ahead {
                looked.note(subject, format!("{what}: some were counted and never sent"), events);
            } else if counted < wire - tally.cut(facts) {
                looked.violation(subject, what, events);
            } else {
                looked.note(subject, format!("{what}: what a death cut is not counted"), events);
            }
        }
        looked
    }
}

/// The rows that nothing tells apart, with what they count and what was sent.
struct Tally {
    unit: usize,
    rows: u64,
    counted: u64,
    /// By index, in order.
    attempts: Vec<usize>,
}

impl Tally {
    /// How many of the attempts a death cut.
    fn cut(&self, facts: &Facts<'_>) -> u64 {
        let facts_of = self.attempts.iter().map(|at| &facts.book.wire.attempts[*at]);
        facts_of.filter(|fact| was_cut(facts, fact.seq, fact.end_seq)).count() as u64
    }
}

fn tallies(facts: &Facts<'_>) -> Vec<Tally> {
    let mut tallies = Vec::new();
    let mut shared: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
    for (index, unit, account) in facts.units() {
        if unit.rows.is_empty() || account.preexisting {
            continue;
        }
        if unit.rows.iter().all(|row| facts.units_of_row(*row).len() == 1) {
            tallies.extend(tally(facts, &unit.rows, &[index]));
        } else {
            shared.entry(&unit.rows).or_default().push(index);
        }
    }
    tallies.extend(shared.into_iter().filter_map(|(rows, units)| tally(facts, rows, &units)));
    tallies
}

fn tally(facts: &Facts<'_>, rows: &[usize], units: &[usize]) -> Option<Tally> {
    let mut counted = 0;
    let mut seen = 0;
    for row in rows.iter().flat_map(|row| &facts.book.ledger.rows[*row].last) {
        counted += u64::from(row.attempts?);
        seen += 1;
    }
    // One attempt of the worker may be several requests of different kinds: the most frequent kind counts.
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for unit in units.iter().map(|unit| &facts.book.units[*unit]) {
        kinds.entry(&unit.operation).or_default().extend(&unit.attempts);
    }
    for attempts in kinds.values_mut() {
        attempts.sort_unstable();
        attempts.dedup();
    }
    let attempts = kinds.into_values().max_by_key(Vec::len).filter(|attempts| !attempts.is_empty())?;
    let unit = *units.iter().find(|unit| !facts.book.units[**unit].attempts.is_empty())?;
    (seen == rows.len()).then_some(Tally { unit, rows: seen as u64, counted, attempts })
}

/// Whether a worker died before the attempt ended, or so soon after that it may not have written it down: no
/// later attempt or look shows that it went on.
fn was_cut(facts: &Facts<'_>, seq: u64, end: Option<u64>) -> bool {
    let Some(death) = facts.timeline.first_death_after(seq) else { return false };
    let went_on = end.map_or(u64::MAX, |end| {
        let attempts = &facts.book.wire.attempts;
        let next = attempts.partition_point(|fact| fact.seq <= end);
        attempts.get(next).map_or(u64::MAX, |fact| fact.seq)
    });
    death < went_on
}

/// Some workers count retries: the first attempt is 0. They do so in every row.
fn counts_retries(tallies: &[Tally]) -> bool {
    let once = |tally: &&Tally| tally.attempts.len() as u64 == tally.rows;
    let mut clean = tallies.iter().filter(once).peekable();
    clean.peek().is_some() && clean.all(|tally| tally.counted == 0)
}

#[cfg(test)]
mod tests {
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{LedgerRow, RowState};

    use crate::sample::{Trial, judged, mapped, mapped_baseline, outcome, row, status};

    const NAME: &str = "attempt-count-true";

    fn counted(attempts: u32) -> Vec<LedgerRow> {
        vec![LedgerRow { attempts: Some(attempts), ..row("deploy-42", "bob@x", RowState::Confirmed) }]
    }

    fn ends(trial: &mut Trial, attempts: u32) -> InvariantStatus {
        status(&mapped(), &trial.end_rows(counted(attempts)), NAME)
    }

    fn twice() -> Trial {
        let mut trial = Trial::new();
        trial.lose("bob@x", Some("k-deploy-42"), "deployed", false);
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        trial
    }

    #[test]
    fn every_request_is_counted() {
        assert_eq!(ends(&mut twice(), 2), Holds);
        assert_eq!(ends(&mut twice(), 1), Violated);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_count_before_the_request_may_be_ahead_and_one_after_it_may_miss_what_a_death_cut() {
        let mut killed = Trial::new();
        killed.send("bob@x", Some("k-deploy-42"), "deployed");
        killed.kill("provider:received#1").deliver("bob@x", Some("k-deploy-42"), "deployed");
        for (count, expected) in [(3, Holds), (2, Holds), (1, Holds), (0, Violated)] {
            assert_eq!(ends(&mut killed, count), expected, "{count}");
        }
        let history = killed.end_rows(counted(1));
        let verdict = judged(&mapped(), &history, &mapped_baseline());
        assert_eq!(outcome(&verdict, NAME).notes.len(), 1, "the crash is not counted");
    }

    #[test]
    fn a_worker_that_counts_retries_counts_from_nought() {
        let mut once = Trial::new();
        once.deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(ends(&mut once, 0), Holds);
        assert_eq!(ends(&mut twice(), 0), Violated);
    }
}
