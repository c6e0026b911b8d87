//! Random small histories, judged by the checker and by a slow and obvious model of three invariants.

use killpoint_model::finding::InvariantStatus;
use killpoint_model::{LedgerRow, RowState};
use proptest::prelude::*;

use crate::sample::{Trial, judged, mapped, outcome, row};

const RECIPIENTS: [&str; 3] = ["ann@x", "bob@x", "eve@x"];

/// One thing that happens in a trial.
#[derive(Debug, Clone)]
enum Step {
    /// A request for an action: whether it is committed, and its answer; 0 is none.
    Send {
        action: usize,
        commit: bool,
        status: u16,
    },
    /// A lookup by the action's key, or a listing, and whether it was answered.
    LookUp {
        action: Option<usize>,
        answered: bool,
    },
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let action = 0..RECIPIENTS.len();
    let status = prop_oneof![Just(0_u16), Just(200), Just(422), Just(429), Just(409), Just(503)];
    let send = (action.clone(), any::<bool>(), status).prop_map(|(action, commit, status)| Step::Send {
        action,
        // A provider that accepts with 200 and delivers nothing, or refuses and delivers, is tested apart.
        commit: status == 200 || (commit && status != 422 && status != 429),
        status,
    });
    let look_up = (proptest::option::of(action), any::<bool>())
        .prop_map(|(action, answered)| Step::LookUp { action, answered });
    proptest::collection::vec(prop_oneof![5 => send, 3 => look_up, 1 => Just(Step::Kill)], 0..12)
}

fn key(action: usize) -> String {
    format!("k-action-{action}")
}

fn play(steps: &[Step]) -> Trial {
    let mut trial = Trial::new();
    let mut kills = 0;
    for step in steps {
        match step {
            Step::Send { action, commit, status } => {
                let attempt = trial.send(RECIPIENTS[*action], Some(&key(*action)), "hello");
                if *commit {
                    trial.commit(attempt);
                }
                if *status > 0 {
                    trial.reply(attempt, *status);
                }
            }
            Step::LookUp { action, answered } => {
                let subject = action.map(key).unwrap_or_default();
                if *answered {
                    trial.look_up(&subject, &[]);
                } else {
                    trial.ask(&subject, &[]);
                }
            }
            Step::Kill => {
                kills += 1;
                trial.kill(&format!("mark:here#{kills}"));
            }
        }
    }
    trial
}

fn sends(steps: &[Step], wanted: usize) -> Vec<(usize, bool, u16)> {
    let sends = steps.iter().enumerate().filter_map(|(at, step)| match step {
        Step::Send { action, commit, status } if *action == wanted => Some((at, *commit, *status)),
        _ => None,
    });
    sends.collect()
}

fn is_blind(steps: &[Step], action: usize) -> bool {
    let sends = sends(steps, action);
    sends.iter().enumerate().any(|(index, (at, _, _))| {
        sends[..index].iter().any(|(before, _, status)| {
            let refused = [422, 429].contains(status);
            let asked = steps[*before..*at].iter().any(|step| {
                matches!(step, Step::LookUp { action: about, answered: true } if about.is_none_or(|about| about == action))
            });
            !refused && !asked
        })
    })
}

fn effects(steps: &[Step], action: usize) -> usize {
    sends(steps, action).iter().filter(|(_, commit, _)| *commit).count()
}

fn baseline() -> Trial {
    let mut trial = Trial::new();
    for (action, recipient) in RECIPIENTS.iter().enumerate() {
        trial.deliver(recipient, Some(&key(action)), "hello");
    }
    trial
}

fn rows(states: &[Option<RowState>]) -> Vec<LedgerRow> {
    let named = states.iter().enumerate().filter_map(|(action, state)| Some((action, (*state)?)));
    named.map(|(action, state)| row(&format!("action-{action}"), RECIPIENTS[action], state)).collect()
}

proptest! {
    #[test]
    fn the_checker_agrees_with_the_slow_model(
        steps in steps(),
        states in proptest::collection::vec(proptest::option::of(proptest::sample::select(RowState::ALL)), 3),
    ) {
        let done = vec![Some(RowState::Confirmed); 3];
        let history = play(&steps).end_rows(rows(&states));
        // Whatever the rows are, there must be one at least, or requests can't be matched with any.
        let verdict = judged(&mapped(), &history, &baseline().end_rows(rows(&done)));
        let all = 0..RECIPIENTS.len();

        let duplicate = all.clone().any(|action| effects(&steps, action) > 1);
        let blind = all.clone().any(|action| is_blind(&steps, action));
        let lost = all.clone().any(|action| states[action].is_none() && effects(&steps, action) == 0);
        for (name, wrong) in
            [("no-duplicate-effect", duplicate), ("no-blind-resend", blind), ("no-lost-action", lost)]
        {
            let violated = outcome(&verdict, name).status == InvariantStatus::Violated;
            prop_assert_eq!(violated, wrong, "{}: {:?}", name, &verdict.actions);
        }
    }

    #[test]
    fn without_a_ledger_the_counts_are_the_same(steps in steps()) {
        let history = play(&steps).end();
        let verdict = judged(&killpoint_model::Settings::default(), &history, &baseline().end());
        let all = 0..RECIPIENTS.len();
        let duplicate = all.clone().any(|action| effects(&steps, action) > 1);
        let blind = all.clone().any(|action| is_blind(&steps, action));
        let lost = all.clone().any(|action| effects(&steps, action) == 0);
        for (name, wrong) in
            [("no-duplicate-effect", duplicate), ("no-blind-resend", blind), ("no-lost-action", lost)]
        {
            let violated = outcome(&verdict, name).status == InvariantStatus::Violated;
            prop_assert_eq!(violated, wrong, "{}: {:?}", name, &verdict.actions);
        }
    }
}
