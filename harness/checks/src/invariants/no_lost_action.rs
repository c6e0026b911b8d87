//! What was owed arrives, or the worker says openly that it may not have.

use killpoint_model::Entry;
use killpoint_model::RowState;
use killpoint_model::settings::Promise;

use super::{Invariant, Looked, doubt_unusable_rows};
use crate::facts::Facts;
use crate::facts::account::{Account, Loss};
use crate::facts::units::Unit;

static ENTRY: Entry = Entry {
    name: "no-lost-action",
    summary: "nothing that was owed is missing in silence",
    explanation: "\
An action that the fault-free trial delivered, or that had a row in the ledger, has no effect, and nothing in \
the worker's final state says so. It is how a message disappears when the work is marked done before it is \
sent, when the row is removed at dequeue, or when it lived in memory only.

Right is an effect, or an explicit word: failed, unknown, or parked for review. A worker that parks a \
doubtful action is right even if nothing arrived. Without a ledger mapping, parked and lost can look the same: \
then the trial is inconclusive and asks for the mapping. (Your AI Agent Finished the Job, But the Message \
Never Sent.)",
    example: "[ledger]\nkind = \"sqlite\"\npath = \"{state}/outbox.db\"\nquery = \"SELECT id AS action, status AS state, recipient AS destination FROM outbox\"",
};

/// See [`ENTRY`].
pub(crate) struct NoLostAction;

impl Invariant for NoLostAction {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "nothing is known to be owed: run with a baseline in which the worker sends something, or map its ledger",
        );
        for (_, unit, account) in facts.units() {
            if account.expected == 0 {
                continue;
            }
            looked.look();
            let (expected, any) = (account.expected, unit.effects.len());
            let events = account.events.clone();
            match account.loss {
                Loss::None => {}
                Loss::Silent(why) => looked.violation(
                    unit.subject(),
                    format!("{expected} owed, {any} delivered, and {why}"),
                    events,
                ),
                Loss::Undetermined => looked.doubt(
                    unit.subject(),
                    format!(
                        "{expected} owed, {any} delivered; whether the worker parked it openly can't be told: map the ledger ([ledger] with a query or a command)"
                    ),
                    events,
                ),
            }
            note_what_was_given_up(facts, unit, account, &mut looked);
        }
        if !looked.is_empty() {
            doubt_unusable_rows(facts, &mut looked);
        }
        looked
    }
}

/// Openly given up is no loss; where the promise or the fault-free trial says more, it is worth a line.
fn note_what_was_given_up(facts: &Facts<'_>, unit: &Unit, account: &Account, looked: &mut Looked) {
    if !unit.effects.is_empty() {
        return;
    }
    let parked = account.count(RowState::Unknown) + account.count(RowState::Review);
    if facts.settings.promise == Promise::AtLeastOnceKeyed && parked > 0 {
        let message =
            "it is parked and was not delivered, though the promise is that each action is delivered";
        looked.note(unit.subject(), message, account.events.clone());
    }
    let delivered_before = unit.baseline.effects > 0;
    if account.count(RowState::Failed) > 0 && unit.attempts.is_empty() && delivered_before {
        let message = "it failed without one request that reached the provider: attempts may be counted that were never made";
        looked.note(unit.subject(), message, account.events.clone());
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{Holds, Inconclusive, Violated};
    use killpoint_model::provider::ProviderEvent;
    use killpoint_model::settings::Promise;
    use killpoint_model::verdict::ActionVerdict;
    use killpoint_model::{RowState, Settings};

    use crate::sample::{Trial, judged, mapped, plain_baseline, row, status, violated};

    #[test]
    fn a_delivered_action_holds_and_a_missing_one_does_not() {
        assert_eq!(status(&Settings::default(), &plain_baseline(), "no-lost-action"), Holds);
        assert_eq!(status(&Settings::default(), &Trial::new().end(), "no-lost-action"), Violated);
    }

    #[test]
    fn without_a_ledger_a_doubtful_loss_is_lost_only_in_silence() {
        let mut trial = Trial::new();
        trial.lose("bob@x", None, "deployed", false);
        assert_eq!(status(&Settings::default(), &trial.end(), "no-lost-action"), Violated);
        trial.words = vec!["unknown".into()];
        assert_eq!(status(&Settings::default(), &trial.end(), "no-lost-action"), Inconclusive);
        let keyed = Settings { promise: Promise::AtLeastOnceKeyed, ..Settings::default() };
        assert_eq!(status(&keyed, &trial.end(), "no-lost-action"), Violated);
    }

    #[test]
    fn without_a_ledger_what_was_never_sent_is_in_doubt_only_after_an_interruption() {
        let parked = |interrupt: fn(&mut Trial)| {
            let mut trial = Trial::new();
            trial.words = vec!["review".into()];
            interrupt(&mut trial);
            status(&Settings::default(), &trial.end(), "no-lost-action")
        };
        assert_eq!(parked(|_| ()), Violated);
        assert_eq!(parked(|trial| _ = trial.kill("mark:item-claimed#1")), Inconclusive);
        assert_eq!(
            parked(|trial| {
                trial.push(EventKind::Stopped { worker: 1 });
                trial.push(EventKind::Resumed { worker: 1 });
            }),
            Inconclusive
        );
        assert_eq!(
            parked(|trial| _ = trial.provider(ProviderEvent::Partial { connection: 1, bytes: 0 })),
            Inconclusive,
            "the connection broke before the request was whole"
        );
    }

    #[test]
    fn a_missing_row_is_lost_and_a_parked_one_is_not() {
        let lost = Trial::new().kill("mark:item-claimed#1").end_rows(Vec::new());
        assert_eq!(status(&mapped(), &lost, "no-lost-action"), Violated);
        for state in [RowState::Unknown, RowState::Review, RowState::Failed] {
            let parked =
                Trial::new().kill("mark:item-claimed#1").end_rows(vec![row("deploy-42", "bob@x", state)]);
            assert_eq!(status(&mapped(), &parked, "no-lost-action"), Holds, "{state}");
        }
    }

    #[test]
    fn a_store_that_deletes_finished_work_needs_the_effect() {
        let mut settings = mapped();
        if let Some(ledger) = &mut settings.ledger {
            ledger.absent = Some(RowState::Confirmed);
        }
        let created = || vec![row("deploy-42", "bob@x", RowState::Created)];
        let mut trial = Trial::new();
        trial.view(None, created());
        assert_eq!(status(&settings, &trial.end_rows(Vec::new()), "no-lost-action"), Violated);
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(status(&settings, &trial.end_rows(Vec::new()), "no-lost-action"), Holds);
    }

    #[test]
    fn ids_that_are_new_in_every_trial_are_paired_by_what_they_say() {
        let rows = |id: &str, state| vec![row(id, "bob@x", state)];
        let baseline = Trial::new()
            .deliver("bob@x", Some("k-9f3a"), "deployed")
            .end_rows(rows("9f3a", RowState::Confirmed));
        let parked = Trial::new().kill("mark:claimed#1").end_rows(rows("77aa", RowState::Unknown));
        let verdict = judged(&mapped(), &parked, &baseline);
        assert_eq!(violated(&verdict), Vec::<&str>::new());
        assert_eq!(verdict.actions[0].verdict, ActionVerdict::ExplicitUnknown);
        let lost = Trial::new().kill("mark:claimed#1").end_rows(Vec::new());
        assert!(violated(&judged(&mapped(), &lost, &baseline)).contains(&"no-lost-action"));
    }

    #[test]
    fn an_alarm_to_the_same_recipient_does_not_stand_for_the_message() {
        let trial = Trial::new().deliver("bob@x", None, "could not deliver something").end();
        assert_eq!(status(&Settings::default(), &trial, "no-lost-action"), Violated);
    }
}
