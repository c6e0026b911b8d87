//! What was acknowledged is there after every death.

use std::collections::BTreeSet;

use killpoint_model::event::{CommandRole, EventKind};
use killpoint_model::plan::ActionSpec;
use killpoint_model::{Entry, RowState};

use super::no_blind_resend::blind_pairs;
use super::{Invariant, Looked};
use crate::facts::{Facts, by_certain_action};

static ENTRY: Entry = Entry {
    name: "acknowledged-is-durable",
    summary: "an action whose commit was acknowledged still has a row after every death, and the store is sound",
    explanation: "\
The enqueue command ended with 0, which tells the caller that its action is committed, and after a death or a power cut \
the ledger has no row of it; or the store itself says that it is damaged. The caller has thrown its copy away, so \
nobody will ever send this and nobody will miss it.

Right is a commit that is on the disk before it is acknowledged: with SQLite, `synchronous=FULL` in WAL mode, and \
never `journal_mode=OFF`. A process kill keeps the page cache and can't show it; the fault `power-cut` can. Rows \
that the worker deletes by itself are `audit-survives`'s business, and a backup that was put back is older by right. \
(K31 acknowledged-commit-not-durable.)",
    example: "[[fault]]\nat = \"item-claimed#1\"\ndo = \"power-cut\"",
};

/// See [`ENTRY`].
pub(crate) struct AcknowledgedIsDurable;

impl Invariant for AcknowledgedIsDurable {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no acknowledged action can be found among the rows, and the store was not checked: give `state.enqueue`, and map the action's id as `action`",
        );
        for event in &facts.rare {
            if let EventKind::Integrity { sound, detail } = &event.event {
                looked.look();
                if !sound {
                    looked.violation(
                        "the ledger",
                        format!("the store is damaged: {detail}"),
                        vec![event.seq],
                    );
                }
            }
        }
        lost_and_sent_again(facts, &mut looked);
        if facts.may_delete() || facts.timeline.restored.is_some() {
            return looked;
        }
        let (Some(acknowledged), Some((seq, _))) = (acknowledged(facts), facts.final_rows()) else {
            return looked;
        };
        let known = known_actions(facts);
        for action in actions(facts).iter().filter(|action| known.contains(action.id.as_str())) {
            looked.look();
            if let Some(death) = lost_to(facts, &action.id, acknowledged) {
                let message = "its commit was acknowledged, and after a death the ledger has no row of it";
                looked.violation(action.id.clone(), message, vec![acknowledged, death, seq]);
            }
        }
        looked
    }
}

/// A commit that the worker acted on, by sending, is gone after a power cut, and the action was sent again.
/// One that is lost and asked for before anything is sent is right: a store may be synced late on purpose.
fn lost_and_sent_again(facts: &Facts<'_>, looked: &mut Looked) {
    let ledger = &facts.book.ledger;
    let cuts = facts.timeline.rollbacks.iter().filter(|cut| facts.timeline.restored != Some(**cut));
    for cut in cuts {
        let (Some(before), Some(after)) = (ledger.last_until(*cut), ledger.first_after(*cut)) else {
            continue;
        };
        for (index, row) in ledger.rows.iter().enumerate() {
            let at =
                |view: usize| row.sightings.iter().find(|(seen, _)| *seen == view).map(|(_, row)| row.state);
            let acted_on = at(before).is_some_and(|state| state != RowState::Created);
            if !acted_on {
                continue;
            }
            looked.look();
            let forgotten = at(after).is_none_or(|state| state == RowState::Created);
            for unit in facts.units_of_row(index).iter().filter(|_| forgotten) {
                let pairs = by_certain_action(facts, *unit)
                    .into_iter()
                    .flat_map(|group| blind_pairs(facts, *unit, &group));
                let seqs = pairs.map(|(one, other)| [one, other].map(|at| facts.book.wire.attempts[at].seq));
                let again = seqs.into_iter().find(|[sent, again]| sent < cut && cut < again);
                if let Some([sent, again]) = again {
                    let views = [before, after].map(|view| ledger.views[view].seq);
                    let message = "its commit was lost with the power, and it was sent again";
                    let events = views.into_iter().chain([*cut, sent, again]).collect();
                    looked.violation(facts.book.units[*unit].subject(), message, events);
                }
            }
        }
    }
}

/// Where the commit of the actions was acknowledged.
fn acknowledged(facts: &Facts<'_>) -> Option<u64> {
    let mut ran = facts.rare.iter().filter(|event| {
        matches!(event.event, EventKind::CommandRan { role: CommandRole::Enqueue, code: Some(0), .. })
    });
    ran.next().map(|event| event.seq)
}

fn actions<'b>(facts: &'b Facts<'_>) -> &'b [ActionSpec] {
    let planned = facts.rare.iter().find_map(|event| match &event.event {
        EventKind::TrialStarted { plan, .. } if !plan.actions.is_empty() => Some(plan.actions.as_slice()),
        _ => None,
    });
    planned.unwrap_or(&facts.settings.actions)
}

/// Ids that rows bear, here or in the baseline: others are in words of the worker's own.
fn known_actions<'b>(facts: &'b Facts<'_>) -> BTreeSet<&'b str> {
    let books = [Some(&facts.book), facts.baseline.as_ref()];
    books.into_iter().flatten().flat_map(|book| &book.ledger.rows).map(|row| row.action).collect()
}

/// The death across which the last row of an action went; `None` where one is there at the end, or where it
/// went while its worker lived.
fn lost_to(facts: &Facts<'_>, action: &str, acknowledged: u64) -> Option<u64> {
    let ledger = &facts.book.ledger;
    let rows = || ledger.rows.iter().filter(|row| row.action == action);
    if rows().any(|row| !row.last.is_empty()) {
        return None;
    }
    let seen = rows().flat_map(|row| &row.sightings).map(|(view, _)| ledger.views[*view].seq).max();
    let seen = seen.unwrap_or(acknowledged);
    let gone = ledger.first_after(seen).map_or(facts.final_seq, |view| ledger.views[view].seq);
    let rollback = facts.timeline.rollbacks.iter().copied().find(|seq| *seq > seen);
    let death = facts.timeline.first_death_after(seen).into_iter().chain(rollback).min();
    death.filter(|death| *death < gone)
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::{CommandRole, EventKind};
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};
    use killpoint_model::plan::ActionSpec;
    use killpoint_model::{LedgerRow, RowState, Settings};

    use crate::sample::{Trial, mapped, mapped_baseline, row, status};

    const NAME: &str = "acknowledged-is-durable";

    fn settings() -> Settings {
        let action = ActionSpec { id: "deploy-42".into(), to: vec!["bob@x".into()], body: "deployed".into() };
        Settings { actions: vec![action], ..mapped() }
    }

    fn enqueued(code: Option<i32>) -> Trial {
        let mut trial = Trial::new();
        trial.push(EventKind::CommandRan { role: CommandRole::Enqueue, argv: Vec::new(), code });
        trial
    }

    fn rows() -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", RowState::Created)]
    }

    #[test]
    fn an_acknowledged_row_survives_a_death() {
        let mut trial = enqueued(Some(0));
        trial.view(None, rows());
        trial.kill("mark:item-claimed#1");
        assert_eq!(status(&settings(), &trial.end_rows(rows()), NAME), Holds);
        assert_eq!(status(&settings(), &trial.end_rows(Vec::new()), NAME), Violated);
        let mut never_seen = enqueued(Some(0));
        never_seen.kill("mark:item-claimed#1");
        assert_eq!(status(&settings(), &never_seen.end_rows(Vec::new()), NAME), Violated);
    }

    #[test]
    fn what_nobody_acknowledged_or_the_worker_deleted_is_another_matter() {
        let mut killed = enqueued(None);
        killed.view(None, rows());
        killed.kill("mark:item-claimed#1");
        assert_eq!(status(&settings(), &killed.end_rows(Vec::new()), NAME), NotShown);
        let mut deleted = enqueued(Some(0));
        deleted.view(None, rows());
        deleted.deliver("bob@x", Some("k-deploy-42"), "deployed").view(None, Vec::new());
        assert_eq!(status(&settings(), &deleted.end_rows(Vec::new()), NAME), Holds);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_backup_that_was_put_back_is_older_by_right_and_a_power_cut_is_no_excuse() {
        for (name, expected) in [("store-restore", NotShown), ("store-rollback", Violated)] {
            let mut trial = enqueued(Some(0));
            trial.view(None, rows());
            let (path, detail) = ("outbox.db".into(), "cut".into());
            trial.push(EventKind::StoreFault { name: name.into(), path, begins: true, detail });
            assert_eq!(status(&settings(), &trial.end_rows(Vec::new()), NAME), expected, "{name}");
        }
    }

    #[test]
    fn a_commit_that_was_lost_with_the_power_and_acted_on_is_told() {
        let cut = |asked: bool| {
            let mut trial = Trial::new();
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
            trial.view(None, vec![row("deploy-42", "bob@x", RowState::Confirmed)]);
            let (path, detail) = ("outbox.db-wal".into(), "9 commits are lost".into());
            trial.push(EventKind::StoreFault { name: "power-cut".into(), path, begins: true, detail });
            trial.view(None, rows());
            if asked {
                trial.look_up("k-deploy-42", &[]);
            }
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
            trial.end_rows(vec![row("deploy-42", "bob@x", RowState::Confirmed)])
        };
        assert_eq!(status(&mapped(), &cut(false), NAME), Violated);
        assert_eq!(status(&mapped(), &cut(true), NAME), Holds);
    }

    #[test]
    fn a_damaged_store_is_told() {
        for (sound, expected) in [(true, Holds), (false, Violated)] {
            let mut trial = Trial::new();
            trial.push(EventKind::Integrity { sound, detail: "row 3 missing from index".into() });
            assert_eq!(status(&mapped(), &trial.end_rows(rows()), NAME), expected);
        }
    }
}
