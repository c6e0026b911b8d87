//! The record of what was done outlives the doing.

use killpoint_model::Entry;

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "audit-survives",
    summary: "every row that was seen, and every action that was sent, still has a row at the end",
    explanation: "\
A row that an earlier reading of the ledger showed is gone, or an action that was sent has no row. Then nobody \
can say afterwards what happened to it, and a redelivery of the same item finds nothing that stops it.

Right is to move finished work to an archive or to keep it for longer than any retry. If the worker deletes \
delivered rows on purpose, `ledger.absent` says so, and this check is not shown. (Your Agent Recovered the Run: \
\"Queue cleanup cannot erase the only audit record.\")",
    example: "[ledger]\npath = \"{state}/outbox.db\"\nquery = \"select id as action, status as state from outbox\"\nabsent = \"confirmed\"",
};

/// See [`ENTRY`].
pub(crate) struct AuditSurvives;

impl Invariant for AuditSurvives {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        if facts.may_delete() {
            return Looked::new(
                &ENTRY,
                "`ledger.absent` says that the worker deletes finished rows: map an archive instead, to have it checked",
            );
        }
        let mut looked = Looked::new(&ENTRY, "there are no rows: map the ledger");
        if !facts.is_mapped() {
            return looked;
        }
        doubt_unusable_rows(facts, &mut looked);
        let Some((seq, _)) = facts.final_rows() else { return looked };
        let ledger = &facts.book.ledger;
        for row in &ledger.rows {
            looked.look();
            let (first, last) = (row.sightings.first(), row.sightings.last());
            let put_back = |view: usize| facts.timeline.rolled_back_between(ledger.views[view].seq, seq);
            if let (true, Some((view, _))) =
                (row.last.is_empty(), first.filter(|_| !last.is_some_and(|(view, _)| put_back(*view))))
            {
                looked.violation(
                    row.action,
                    "the row was in the ledger before and is gone at the end",
                    vec![ledger.views[*view].seq, seq],
                );
            }
        }
        for (_, unit, _) in facts.units() {
            // What the baseline does not have may be an alarm, which needs no row.
            let alarm = facts.is_surplus(unit) && !facts.is_second_identity(unit);
            if facts.unjoined || alarm || unit.attempts.is_empty() || !unit.rows.is_empty() {
                continue;
            }
            let mut events = facts.attempt_events(unit);
            // A store that was put back has no row of what was committed and sent after the copy.
            if events.first().is_some_and(|sent| facts.timeline.rolled_back_between(*sent, seq)) {
                continue;
            }
            looked.look();
            events.push(seq);
            looked.violation(unit.subject(), "it was sent, and the ledger has no row for it", events);
        }
        looked
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::RowState;
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "audit-survives";

    #[test]
    fn a_row_that_was_seen_stays() {
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), Holds);
        let mut trial = Trial::new();
        trial.view(None, vec![row("deploy-42", "bob@x", RowState::Created)]);
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(status(&mapped(), &trial.end_rows(Vec::new()), NAME), Violated);
        let mut settings = mapped();
        if let Some(ledger) = &mut settings.ledger {
            ledger.absent = Some(RowState::Confirmed);
        }
        assert_eq!(status(&settings, &trial.end_rows(Vec::new()), NAME), NotShown);
    }

    #[test]
    fn what_was_sent_has_a_row() {
        let unrecorded = Trial::new().deliver("bob@x", Some("k-deploy-42"), "deployed").end_rows(Vec::new());
        assert_eq!(status(&mapped(), &unrecorded, NAME), Violated);
    }
}
