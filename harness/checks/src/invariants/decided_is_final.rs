//! What was decided stays decided.

use killpoint_model::plan::Aftermath;
use killpoint_model::{Entry, LedgerRow, RowState};

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::ledger::RowFact;
use crate::facts::units::Unit;
use crate::facts::wire::AttemptFact;

static ENTRY: Entry = Entry {
    name: "decided-is-final",
    summary: "a decided row is not decided again, and a doubt is resolved by evidence only",
    explanation: "\
A row that said delivered, failed, called off or unknown said something else later, and nothing on the wire is the \
reason: a stale read of a second recoverer overwrote it, a late receipt of another attempt was taken for its own, a \
call-off did not survive a restart, a doubt was relabelled as an outcome. Whoever acted on the first word (a human, \
a refund, the next agent) was told something that is no longer so, and a row that is taken up again is sent again.

Right is a transition that is guarded by the state that was read, in the same statement. Unknown and review may \
become delivered or failed after a lookup or an answer, and may be taken up again after one; delivered may become \
failed after a bounce; failed may become delivered where it turns out that it was accepted all along, which is noted. \
A state that means \"will be tried again\" is `created`, not `failed`. (K12 decided-state-not-final, K32 \
unknown-erased-or-relabelled.)",
    example: "[[fault]]\nat = \"recovery-scanned\"\ndo = \"second-worker\"",
};

/// See [`ENTRY`].
pub(crate) struct DecidedIsFinal;

/// What a change of a decided state is.
enum Change {
    Right,
    /// Worth a line.
    Odd(&'static str),
    Wrong(&'static str),
}

impl Invariant for DecidedIsFinal {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no decided row was looked at twice: map the ledger, and let something happen after a row is decided",
        );
        for (index, row) in facts.book.ledger.rows.iter().enumerate() {
            // Two rows of one identity in one look: which became which is a guess.
            let doubled = row.sightings.windows(2).any(|pair| pair[0].0 == pair[1].0);
            let decided = row.sightings.iter().position(|(_, row)| row.state.is_terminal());
            let Some(from) = decided.filter(|from| !doubled && from + 1 < row.sightings.len()) else {
                continue;
            };
            looked.look();
            if row.sightings[from..].windows(2).all(|pair| pair[0].1.state == pair[1].1.state) {
                continue;
            }
            let units = facts.units_of_row(index).iter();
            let units: Vec<(usize, &Unit)> = units.map(|unit| (*unit, &facts.book.units[*unit])).collect();
            through_time(facts, row, from, &units, &mut looked);
        }
        looked
    }
}

fn through_time(
    facts: &Facts<'_>,
    row: &RowFact<'_>,
    from: usize,
    units: &[(usize, &Unit)],
    looked: &mut Looked,
) {
    let seq = |view: usize| facts.book.ledger.views[view].seq;
    for pair in row.sightings[from..].windows(2) {
        let [(before, was), (after, is)] = pair else { continue };
        let (before, after) = (seq(*before), seq(*after));
        let changed = was.state.is_terminal() && was.state != is.state;
        if !changed || facts.timeline.rolled_back_between(before, after) {
            continue;
        }
        let known = Known { facts, units, before, after };
        let (why, is_note) = match known.judge(was, is.state) {
            Change::Right => continue,
            Change::Odd(why) => (why, true),
            Change::Wrong(why) => (why, false),
        };
        let subject = match row.destination {
            Some(destination) => format!("{} to {destination}", row.action),
            None => row.action.to_owned(),
        };
        let message = format!("the row said `{}` and became `{}`: {why}", was.state, is.state);
        let mut events = vec![before, after];
        events.extend(known.attempts().map(|(_, fact)| fact.seq).filter(|seq| *seq > before && *seq < after));
        looked.violation_or_note(is_note, subject, message, events);
    }
}

/// What can have been known between two looks at one row.
struct Known<'b> {
    facts: &'b Facts<'b>,
    units: &'b [(usize, &'b Unit)],
    before: u64,
    after: u64,
}

impl<'b> Known<'b> {
    fn judge(&self, was: &LedgerRow, is: RowState) -> Change {
        use RowState::{Cancelled, Confirmed, Created, Dispatching, Failed, Review, Unknown};
        match (was.state, is) {
            (Unknown | Review, Confirmed | Failed | Cancelled) if !self.resolved() => Change::Wrong(
                "no answer and no lookup told the worker so, it only stopped saying that it does not know",
            ),
            (Confirmed, Failed | Unknown | Review | Cancelled) if self.came_back() => Change::Right,
            (Confirmed, _) => Change::Wrong("what was delivered stays delivered"),
            // A scheduled retry in the words of the worker.
            (Failed, Created | Dispatching) if was.due_at_ms.is_some() => Change::Right,
            (Failed, Created | Dispatching) => {
                Change::Wrong("it was taken up again; map a state that is to be tried again as `created`")
            }
            (Failed, Confirmed) if self.resent() && was.due_at_ms.is_none() => {
                Change::Wrong("it was sent again after it had failed for good")
            }
            (Failed | Cancelled, Confirmed) if self.proven() && !self.resent() => {
                Change::Odd("it turned out that it had been accepted")
            }
            (Failed, Confirmed) if self.proven() => Change::Right,
            (Failed | Cancelled, Confirmed) => Change::Wrong("nothing that the worker was told says so"),
            (Cancelled, Created | Dispatching) => Change::Wrong("it had been called off"),
            (Failed, Unknown | Review) => Change::Odd("its failure became a doubt"),
            (Cancelled, Unknown | Review) if self.attempts().next().is_none() => {
                Change::Wrong("it had been called off, and nothing was ever sent")
            }
            (Cancelled, Unknown | Review) => Change::Odd("its call-off became a doubt"),
            (Failed, Cancelled) | (Cancelled, Failed) => Change::Odd("both say that it is not sent"),
            _ => Change::Right,
        }
    }

    /// Attempts before the later look.
    fn attempts(&self) -> impl Iterator<Item = (usize, &'b AttemptFact<'b>)> {
        let wire = &self.facts.book.wire;
        let after = self.after;
        let of_units = self.units.iter().flat_map(move |(index, unit)| {
            unit.attempts.iter().map(move |attempt| (*index, &wire.attempts[*attempt]))
        });
        of_units.filter(move |(_, fact)| fact.seq < after)
    }

    fn effects(&self) -> impl Iterator<Item = &'b crate::facts::wire::EffectFact<'b>> {
        let wire = &self.facts.book.wire;
        self.units.iter().flat_map(|(_, unit)| &unit.effects).map(|effect| &wire.effects[*effect])
    }

    /// Whether there is no doubt on the wire that needs an answer, or it got one.
    fn resolved(&self) -> bool {
        let Some((_, first)) = self.attempts().find(|(_, fact)| fact.doubtful() && fact.seq < self.before)
        else {
            return true;
        };
        let told = |fact: &AttemptFact<'_>| {
            let answered = fact.end_seq.is_some_and(|end| end < self.after);
            fact.acceptance_told().is_some_and(|told| told < self.after)
                || (answered && (fact.refused() || fact.status() == Some(409)))
        };
        self.facts.unjoined
            || self.attempts().any(|(_, fact)| told(fact))
            || self
                .units
                .iter()
                .any(|(unit, _)| self.facts.lookups.answered_between(*unit, first.seq, self.after))
            || self.reported()
    }

    /// Whether something on the wire said that it was accepted.
    fn proven(&self) -> bool {
        let wire = &self.facts.book.wire;
        self.facts.unjoined
            || self.reported()
            || self
                .units
                .iter()
                .any(|(unit, _)| self.facts.lookups.found(*unit).is_some_and(|found| found < self.after))
            || self.attempts().any(|(_, fact)| {
                let told = fact.acceptance_told().is_some_and(|told| told < self.after);
                let accepted = fact.accepted_seq(&wire.effects).is_some_and(|seq| seq < self.after);
                told || (accepted && !fact.reply_withheld()) || fact.says_already_done()
            })
    }

    /// Whether the provider itself told of a delivery or a bounce.
    fn reported(&self) -> bool {
        self.effects().any(|fact| {
            fact.receipt.is_some_and(|receipt| receipt < self.after) || fact.effect.bounced_at_ms.is_some()
        })
    }

    /// Whether what was delivered came back, or its receipt is missing.
    fn came_back(&self) -> bool {
        let missing = self.attempts().any(|(_, fact)| {
            let aftermath = fact.plan.map(|plan| plan.aftermath);
            matches!(aftermath, Some(Aftermath::ReceiptLost | Aftermath::ReceiptLate))
        });
        missing || self.effects().any(|fact| fact.effect.bounced_at_ms.is_some())
    }

    /// Whether a request was sent after the earlier look.
    fn resent(&self) -> bool {
        self.attempts().any(|(_, fact)| fact.seq > self.before)
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{LedgerRow, RowState};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "decided-is-final";

    fn rows(state: RowState) -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", state)]
    }

    fn then(trial: &mut Trial, state: RowState) -> InvariantStatus {
        status(&mapped(), &trial.end_rows(rows(state)), NAME)
    }

    fn delivered() -> Trial {
        let mut trial = Trial::new();
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed").view(None, rows(RowState::Confirmed));
        trial
    }

    #[test]
    fn a_delivered_row_stays_delivered() {
        assert_eq!(then(&mut delivered(), RowState::Confirmed), Holds);
        for state in [RowState::Failed, RowState::Created, RowState::Unknown, RowState::Dispatching] {
            assert_eq!(then(&mut delivered(), state), Violated, "{state}");
        }
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown, "one look is none");
    }

    #[test]
    fn a_doubt_is_resolved_by_an_answer_only() {
        let parked = || {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", true).view(None, rows(RowState::Unknown));
            trial
        };
        for state in [RowState::Confirmed, RowState::Failed, RowState::Cancelled] {
            assert_eq!(then(&mut parked(), state), Violated, "{state}");
            assert_eq!(then(parked().look_up("k-deploy-42", &["msg_1"]), state), Holds, "{state}");
        }
        for state in [RowState::Review, RowState::Dispatching, RowState::Unknown] {
            assert_eq!(then(&mut parked(), state), Holds, "{state}");
        }
        let mut unsent = Trial::new();
        unsent.view(None, rows(RowState::Unknown));
        assert_eq!(then(&mut unsent, RowState::Failed), Holds, "nothing was ever in doubt on the wire");
    }

    #[test]
    fn a_failure_that_was_a_success_is_noted_and_a_retry_of_it_is_wrong() {
        let failed = || {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", true).view(None, rows(RowState::Failed));
            trial
        };
        assert_eq!(then(failed().look_up("k-deploy-42", &["msg_1"]), RowState::Confirmed), Holds);
        assert_eq!(then(&mut failed(), RowState::Confirmed), Violated);
        let mut again = failed();
        again.deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(then(&mut again, RowState::Confirmed), Violated);
        assert_eq!(then(&mut failed(), RowState::Created), Violated);
        let mut scheduled = Trial::new();
        let later = rows(RowState::Failed).into_iter();
        scheduled.view(None, later.map(|row| LedgerRow { due_at_ms: Some(5), ..row }).collect());
        assert_eq!(then(&mut scheduled, RowState::Created), Holds, "a retry that is planned");
    }

    #[test]
    fn a_call_off_survives() {
        let mut trial = Trial::new();
        trial.view(None, rows(RowState::Cancelled));
        assert_eq!(then(&mut trial.clone(), RowState::Created), Violated);
        assert_eq!(then(&mut trial, RowState::Cancelled), Holds);
    }

    #[test]
    fn a_store_that_was_put_back_decides_nothing() {
        let mut trial = delivered();
        trial.push(EventKind::StoreFault {
            name: "store-restore".into(),
            path: "outbox.db".into(),
            begins: true,
            detail: "the copy of event 4".into(),
        });
        assert_eq!(then(&mut trial, RowState::Unknown), Holds);
    }
}
