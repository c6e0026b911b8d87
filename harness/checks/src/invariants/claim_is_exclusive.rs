//! One worker at a time works on a row.

use killpoint_model::settings::Promise;
use killpoint_model::{Entry, RowState};

use super::no_blind_resend::blind_pairs;
use super::{Invariant, Looked};
use crate::facts::timeline::Sender;
use crate::facts::units::Unit;
use crate::facts::wire::End;
use crate::facts::{Facts, by_certain_action};

static ENTRY: Entry = Entry {
    name: "claim-is-exclusive",
    summary: "two workers never send one action while both hold it",
    explanation: "\
Two workers sent the same action, and the first of them was alive and had not given it back. Select and update were \
two steps without a condition, the lease was shorter than the work, a worker that was stopped went on as if it still \
held what it had lost, or recovery took work from a holder that was alive. The evidence shows both claims.

Right is a claim by compare-and-swap or under a lease that outlasts the request, with a token that is checked again \
before the send. To take over after the holder died, stopped or gave the row back is right, and so is a resend after a \
lookup, or under one key inside the window of a provider that dedupes. (K06 to K09; Your Agent Recovered the Run: \
\"While two workers claim the same item\"; Your Agent Finished the Job: \"no second worker can claim the same row\".)",
    example: "workers = 2\n\n[[fault]]\nat = \"mark:before-claim#1\"\ndo = \"barrier\"\nwith = { workers = 2 }",
};

/// See [`ENTRY`].
pub(crate) struct ClaimIsExclusive;

impl Invariant for ClaimIsExclusive {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no action was sent while two workers were alive on one ledger: use `workers = 2` or the fault `second-worker`",
        );
        if facts.timeline.copied {
            return looked;
        }
        for (index, unit, _) in facts.units() {
            let beside = |at: &usize| facts.senders[*at].is_some_and(|sender| sender.beside);
            if !unit.attempts.iter().any(beside) {
                continue;
            }
            looked.look();
            for group in by_certain_action(facts, index) {
                let pairs = blind_pairs(facts, index, &group);
                let claims = pairs.iter().find_map(|(before, after)| both_held(facts, unit, *before, *after));
                if let Some((who, events)) = claims {
                    let one_key = group.windows(2).all(|pair| {
                        let [one, other] = [pair[0], pair[1]].map(|at| &facts.book.wire.attempts[at].attempt);
                        one.key.is_some() && one.key == other.key
                    });
                    let is_note = facts.settings.promise == Promise::AtLeastOnceKeyed && one_key;
                    let message = format!("{who} both held it and both sent it");
                    looked.violation_or_note(is_note, unit.subject(), message, events);
                }
            }
        }
        looked
    }
}

/// Names of the two holders and the events of their claims and requests, where two attempts come from two
/// holders at once.
fn both_held(facts: &Facts<'_>, unit: &Unit, before: usize, after: usize) -> Option<(String, Vec<u64>)> {
    let attempts = &facts.book.wire.attempts;
    let (first, second) = (attempts[before].seq, attempts[after].seq);
    // An answer that came later found the first holder waiting: whoever wrote the row meanwhile was not that one.
    let waited = matches!(attempts[before].end, End::Replied(_))
        && attempts[before].end_seq.is_some_and(|end| end > second);
    if !waited && given_back(facts, unit, first, second) {
        return None;
    }
    let held = [owner_at(facts, unit, first, second), owner_at(facts, unit, second, u64::MAX)];
    let senders = facts.senders[before].zip(facts.senders[after]);
    let who = match (senders, &held) {
        (Some((one, other)), _) if one.worker != other.worker => {
            // Whoever died or stood still had lost it. One that ended after it was done had not: the other one
            // was alive all the time, and claimed what it had read before.
            let gone = facts.timeline.ended_between(one.worker, first, second);
            let done = decided_between(facts, unit, first, second)
                && !facts.timeline.ended_between(other.worker, first, second);
            ((done || !gone) && !facts.timeline.stopped_at(one.worker, second))
                .then(|| format!("worker {} and worker {}", one.worker, other.worker))
        }
        (Some((one, other)), [Some((_, a)), Some((_, b))]) if a != b && one.beside && other.beside => {
            let dead = facts.timeline.first_death_after(first).is_some_and(|death| death < second);
            (!dead).then(|| format!("`{a}` and `{b}`"))
        }
        _ => None,
    }?;
    let marks =
        senders.iter().flat_map(|(one, other)| [one, other]).filter_map(|sender: &Sender| sender.mark);
    let views = held.iter().flatten().map(|(view, _)| *view);
    Some((who, marks.chain(views).chain([first, second]).collect()))
}

/// The first look at the row after an attempt, and the owner that it names.
fn owner_at<'b>(facts: &'b Facts<'_>, unit: &Unit, from: u64, to: u64) -> Option<(u64, &'b str)> {
    let ledger = &facts.book.ledger;
    let [row] = unit.rows[..] else { return None };
    let sightings = &ledger.rows[row].sightings;
    let at = sightings.partition_point(|(view, _)| ledger.views[*view].seq <= from);
    let (view, row) = sightings.get(at)?;
    let seq = ledger.views[*view].seq;
    row.owner.as_deref().filter(|_| seq < to).map(|owner| (seq, owner))
}

/// Whether the row was seen delivered between two attempts: nobody could take it over any more.
fn decided_between(facts: &Facts<'_>, unit: &Unit, after: u64, before: u64) -> bool {
    let ledger = &facts.book.ledger;
    unit.rows.iter().flat_map(|row| &ledger.rows[*row].sightings).any(|(view, row)| {
        (after..before).contains(&ledger.views[*view].seq) && row.state == RowState::Confirmed
    })
}

/// Whether the row was seen free, or in doubt, between two attempts: the first holder had let go of it.
fn given_back(facts: &Facts<'_>, unit: &Unit, after: u64, before: u64) -> bool {
    let ledger = &facts.book.ledger;
    unit.rows.iter().any(|row| {
        let sightings = &ledger.rows[*row].sightings;
        let owned = sightings.iter().any(|(_, row)| row.owner.is_some());
        let from = sightings.partition_point(|(view, _)| ledger.views[*view].seq <= after);
        sightings[from..].iter().take_while(|(view, _)| ledger.views[*view].seq < before).any(|(_, row)| {
            let parked = matches!(
                row.state,
                RowState::Unknown | RowState::Review | RowState::Failed | RowState::Cancelled
            );
            parked || (owned && row.owner.is_none() && row.state != RowState::Confirmed)
        })
    })
}

#[cfg(test)]
mod tests {
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::{LedgerRow, RowState};

    use crate::sample::{Trial, judged, mapped, mapped_baseline, outcome, row, status};

    const NAME: &str = "claim-is-exclusive";

    fn held_by(owner: &str, state: RowState) -> Vec<LedgerRow> {
        vec![LedgerRow { owner: Some(owner.into()), ..row("deploy-42", "bob@x", state) }]
    }

    fn done() -> Vec<LedgerRow> {
        vec![row("deploy-42", "bob@x", RowState::Confirmed)]
    }

    fn end(trial: &mut Trial) -> InvariantStatus {
        status(&mapped(), &trial.end_rows(done()), NAME)
    }

    /// Both workers have read the same free row; each marks its claim and sends.
    fn both() -> Trial {
        let mut trial = Trial::new();
        trial.spawn_worker(2);
        for worker in [1, 2] {
            trial.mark_by("item-claimed", worker);
            trial.view(None, held_by(&format!("host-{worker}"), RowState::Dispatching));
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        }
        trial
    }

    #[test]
    fn two_workers_that_both_send_one_row_show_both_claims() {
        let mut trial = both();
        assert_eq!(end(&mut trial), Violated);
        let verdict = judged(&mapped(), &trial.end_rows(done()), &mapped_baseline());
        let finding = &outcome(&verdict, NAME).findings[0];
        assert!(finding.message.contains("worker 1 and worker 2"), "{finding:?}");
        assert_eq!(
            finding.events.len(),
            5,
            "two marks, one look with the second owner, two requests: {finding:?}"
        );
        assert_eq!(status(&mapped(), &mapped_baseline(), NAME), NotShown, "one worker");
    }

    #[test]
    fn to_take_over_from_the_dead_the_stopped_or_the_willing_is_right() {
        let takeover = |gone: &dyn Fn(&mut Trial)| {
            let mut trial = Trial::new();
            trial.spawn_worker(2).mark_by("item-claimed", 1);
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", false);
            gone(&mut trial);
            trial.mark_by("item-claimed", 2);
            end(trial.deliver("bob@x", Some("k-deploy-42"), "deployed"))
        };
        assert_eq!(takeover(&|_| ()), Violated);
        assert_eq!(takeover(&|trial| _ = trial.die("mark:item-claimed#1")), Holds);
        assert_eq!(takeover(&|trial| _ = trial.push(EventKind::Stopped { worker: 1 })), Holds);
        assert_eq!(takeover(&|trial| _ = trial.look_up("k-deploy-42", &[])), Holds);
        let parked = || vec![row("deploy-42", "bob@x", RowState::Unknown)];
        assert_eq!(takeover(&|trial| _ = trial.view(None, parked())), Holds);
    }

    #[test]
    fn a_stopped_worker_that_goes_on_and_sends_is_a_zombie() {
        let mut trial = Trial::new();
        trial.spawn_worker(2).mark_by("item-claimed", 1);
        trial.push(EventKind::Stopped { worker: 1 });
        trial.mark_by("item-claimed", 2).deliver("bob@x", Some("k-deploy-42"), "deployed");
        trial.push(EventKind::Resumed { worker: 1 });
        trial.mark_by("dispatch-started", 1).deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(end(&mut trial), Violated);
    }

    #[test]
    fn a_stale_read_is_claimed_though_the_first_worker_has_gone_home() {
        let mut trial = Trial::new();
        trial.mark_by("before-claim", 1).spawn_worker(2).mark_by("item-claimed", 2);
        trial.view(None, held_by("host-2", RowState::Dispatching));
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed").view(None, done());
        trial.push(EventKind::Exited { worker: 2, code: Some(0), signal: None });
        trial.mark_by("item-claimed", 1).deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(end(&mut trial), Violated);
    }

    #[test]
    fn a_thief_that_frees_the_row_first_is_still_a_thief() {
        let mut trial = Trial::new();
        trial.mark_by("item-claimed", 1).view(None, held_by("host-1", RowState::Dispatching));
        let slow = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.commit(slow);
        trial.spawn_worker(2).view(None, vec![row("deploy-42", "bob@x", RowState::Created)]);
        trial.mark_by("item-claimed", 2).deliver("bob@x", Some("k-deploy-42"), "deployed");
        trial.reply(slow, 200);
        assert_eq!(end(&mut trial), Violated);
    }

    #[test]
    fn one_worker_that_sends_twice_is_blind_and_holds_it_alone() {
        let mut trial = Trial::new();
        trial.spawn_worker(2).mark_by("item-claimed", 2);
        trial.lose("bob@x", Some("k-deploy-42"), "deployed", false);
        assert_eq!(end(trial.deliver("bob@x", Some("k-deploy-42"), "deployed")), Holds);
    }

    #[test]
    fn one_key_and_one_effect_at_a_provider_that_dedupes_are_right() {
        let mut settings = mapped();
        settings.provider.idempotency.dedupe = true;
        assert_eq!(status(&settings, &both().end_rows(done()), NAME), Holds);
    }
}
