//! An action that kills its worker does not kill it for ever.

use std::collections::BTreeMap;

use killpoint_model::event::EventKind;
use killpoint_model::{Entry, RowState};

use super::{Invariant, Looked};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "poison-is-contained",
    summary: "a worker that crashes by itself comes to rest: the action that kills it is set aside, and the others go on",
    explanation: "\
The worker ended with an error again and again, and the trial never came to rest. One action kills whoever takes it up, \
the crash is not counted anywhere, and the next life takes up the same one first: the supervisor restarts it without end, \
and everything behind it waits.

Right is to count a try before it is made, durably, and to set an action aside for review once its tries are used up, so \
that a crash uses one up as well. A worker that ends loudly because its store fails, and goes on once it is well again, \
is right. (K24 poison-crash-loop.)",
    example: "[worker]\ncommand = [\"./worker\"]\nrestarts-max = 20",
};

/// Crashes that are no accident any more.
const CRASHES_MIN: usize = 3;

/// See [`ENTRY`].
pub(crate) struct PoisonIsContained;

impl Invariant for PoisonIsContained {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no worker crashed by itself: give it an action that kills whoever takes it up, to have this checked",
        );
        let crashes = crashes(facts);
        if crashes.is_empty() {
            return looked;
        }
        looked.look();
        let never_rests = facts
            .history
            .events
            .iter()
            .find_map(|event| matches!(event.event, EventKind::NotSettled { .. }).then_some(event.seq));
        let Some(unrest) = never_rests.filter(|_| crashes.len() >= CRASHES_MIN) else { return looked };
        let waiting: Vec<&str> = untouched(facts);
        let behind = if waiting.is_empty() {
            String::new()
        } else {
            format!("; behind it wait, never sent: {}", waiting[..waiting.len().min(5)].join(", "))
        };
        let subject = culprit(facts, &crashes).unwrap_or_else(|| "the worker".to_owned());
        let message = format!("{} crashes without an end{behind}", crashes.len());
        looked.violation(subject, message, crashes.iter().copied().chain([unrest]).collect());
        looked
    }
}

/// Lives that ended with an error of their own, while no fault of the harness was in force.
fn crashes(facts: &Facts<'_>) -> Vec<u64> {
    let again = &facts.settings.worker.again_codes;
    let mut asked = false;
    let mut crashes = Vec::new();
    for event in &facts.rare {
        match &event.event {
            EventKind::Settled { .. } | EventKind::NotSettled { .. } => break,
            EventKind::Signalled { .. } | EventKind::PartKilled { .. } => asked = true,
            EventKind::Spawned { .. } => asked = false,
            EventKind::Exited { code, .. } => {
                let wrong = code.is_none_or(|code| code != 0 && !again.contains(&code));
                if wrong && !asked && !facts.timeline.in_a_fault(event.seq) {
                    crashes.push(event.seq);
                }
            }
            _ => {}
        }
    }
    crashes
}

/// The action that was last taken up before most of the crashes.
fn culprit(facts: &Facts<'_>, crashes: &[u64]) -> Option<String> {
    let mut votes: BTreeMap<String, usize> = BTreeMap::new();
    let ledger = &facts.book.ledger;
    for crash in crashes {
        let view = ledger.last_until(*crash).map(|view| &ledger.views[view]);
        let rows = view.and_then(|view| view.view.rows.as_ref()).into_iter().flatten();
        let mut taken = rows.filter(|row| row.state == RowState::Dispatching).map(|row| row.action.clone());
        let attempts = &facts.book.wire.attempts;
        let sent = attempts[..attempts.partition_point(|fact| fact.seq < *crash)].len().checked_sub(1);
        let sent = || sent.map(|at| facts.book.units[facts.book.unit_of_attempt[at]].label());
        if let Some(action) = taken.next().or_else(sent) {
            *votes.entry(action).or_default() += 1;
        }
    }
    votes
        .into_iter()
        .max_by_key(|(_, votes)| *votes)
        .filter(|(_, votes)| *votes > 1)
        .map(|(action, _)| action)
}

fn untouched<'b>(facts: &'b Facts<'_>) -> Vec<&'b str> {
    let rows =
        facts.units().filter(|(_, unit, _)| unit.attempts.is_empty()).flat_map(|(_, unit, _)| &unit.rows);
    let rows = rows.map(|row| &facts.book.ledger.rows[*row]);
    rows.filter(|row| row.last.iter().any(|row| row.state == RowState::Created))
        .map(|row| row.action)
        .collect()
}

#[cfg(test)]
mod tests {
    use killpoint_model::RowState;
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};

    use crate::sample::{Trial, judged, mapped, mapped_baseline, outcome, row, status};

    const NAME: &str = "poison-is-contained";

    fn crash(trial: &mut Trial, times: u32) {
        for _ in 0..times {
            let poison = row("poison", "eve@x", RowState::Dispatching);
            trial.view(None, vec![poison, row("deploy-42", "bob@x", RowState::Created)]);
            trial.push(EventKind::Exited { worker: 1, code: Some(134), signal: None });
            trial.spawn();
        }
    }

    fn rows(state: RowState) -> Vec<killpoint_model::LedgerRow> {
        vec![row("poison", "eve@x", RowState::Review), row("deploy-42", "bob@x", state)]
    }

    #[test]
    fn crashes_without_an_end_are_wrong_and_name_what_waits() {
        let mut trial = Trial::new();
        crash(&mut trial, 5);
        let history = trial.not_settled().end_rows(rows(RowState::Created));
        let verdict = judged(&mapped(), &history, &mapped_baseline());
        let found = outcome(&verdict, NAME);
        assert_eq!(found.status, Violated);
        assert_eq!(found.findings[0].subject, "poison");
        assert!(found.findings[0].message.contains("deploy-42"), "{found:?}");
    }

    #[test]
    fn a_poison_that_is_set_aside_is_right() {
        let mut trial = Trial::new();
        crash(&mut trial, 3);
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(status(&mapped(), &trial.end_rows(rows(RowState::Confirmed)), NAME), Holds);
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown);
    }

    fn while_something_is_wrong(begins: EventKind) -> InvariantStatus {
        let mut trial = Trial::new();
        trial.push(begins);
        crash(&mut trial, 5);
        let (name, path, detail) = ("store-busy".into(), "outbox.db".into(), "over".into());
        trial.push(EventKind::StoreFault { name, path, begins: false, detail });
        status(&mapped(), &trial.not_settled().end_rows(rows(RowState::Created)), NAME)
    }

    #[test]
    fn a_worker_that_ends_loudly_while_its_store_fails_is_no_poison() {
        let (name, path, detail) = ("store-busy".into(), "outbox.db".into(), "a writer".into());
        let busy = EventKind::StoreFault { name, path, begins: true, detail };
        assert_eq!(while_something_is_wrong(busy), NotShown);
    }
}
