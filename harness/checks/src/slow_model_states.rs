//! Random small histories, judged by the checkers of states, counts, refusals, feeds and leaks and by slow and
//! obvious models of them.

use killpoint_model::event::{EventKind, Leak};
use killpoint_model::finding::InvariantStatus::{self, Violated};
use killpoint_model::provider::ProviderEvent;
use killpoint_model::{History, LedgerRow, RowState, Settings};
use proptest::prelude::*;

use crate::sample::{Trial, judged, mapped, outcome, row};

const ACTIONS: [(&str, &str); 2] = [("action-0", "ann@x"), ("action-1", "bob@x")];

/// One thing that happens in a trial.
#[derive(Debug, Clone)]
enum Step {
    /// A request and its answer; 0 is none, 200 delivers.
    Send { action: usize, status: u16 },
    /// An answered lookup by key that found what was delivered.
    LookUp { action: usize },
    /// An exact look at the row in a state.
    Look { action: usize, state: RowState },
    /// A death and a restart.
    Kill,
    /// The store is put back.
    Restore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let action = 0..ACTIONS.len();
    let status = prop_oneof![Just(0_u16), Just(200), Just(400), Just(401), Just(422), Just(429), Just(503)];
    let send = (action.clone(), status).prop_map(|(action, status)| Step::Send { action, status });
    let look_up = action.clone().prop_map(|action| Step::LookUp { action });
    let state = proptest::sample::select(RowState::ALL);
    let look = (action, state).prop_map(|(action, state)| Step::Look { action, state });
    let step =
        prop_oneof![5 => send, 2 => look_up, 5 => look, 1 => Just(Step::Kill), 1 => Just(Step::Restore)];
    proptest::collection::vec(step, 0..14)
}

fn key(action: usize) -> String {
    format!("k-{}", ACTIONS[action].0)
}

fn rows(states: &[RowState], counts: &[u32]) -> Vec<LedgerRow> {
    let named = ACTIONS.iter().zip(states).zip(counts);
    named
        .map(|(((action, to), state), count)| LedgerRow { attempts: Some(*count), ..row(action, to, *state) })
        .collect()
}

fn play(steps: &[Step]) -> Trial {
    let mut trial = Trial::new();
    let mut effects: [Vec<String>; 2] = Default::default();
    let mut kills = 0;
    for step in steps {
        match step {
            Step::Send { action, status } => {
                let attempt = trial.send(ACTIONS[*action].1, Some(&key(*action)), "hello");
                if *status == 200 {
                    effects[*action].push(trial.commit(attempt));
                }
                if *status > 0 {
                    trial.reply(attempt, *status);
                }
            }
            Step::LookUp { action } => {
                let found: Vec<&str> = effects[*action].iter().map(String::as_str).collect();
                trial.look_up(&key(*action), &found);
            }
            Step::Look { action, state } => {
                trial.view(None, vec![row(ACTIONS[*action].0, ACTIONS[*action].1, *state)]);
            }
            Step::Kill => {
                kills += 1;
                trial.kill(&format!("mark:here#{kills}"));
            }
            Step::Restore => {
                let (path, detail) = ("outbox.db".into(), "put back".into());
                trial.push(EventKind::StoreFault {
                    name: "store-restore".into(),
                    path,
                    begins: true,
                    detail,
                });
            }
        }
    }
    trial
}

fn baseline() -> History {
    let mut trial = Trial::new();
    for (action, (_, recipient)) in ACTIONS.iter().enumerate() {
        trial.deliver(recipient, Some(&key(action)), "hello");
    }
    trial.end_rows(rows(&[RowState::Confirmed; 2], &[1, 1]))
}

fn of(settings: &Settings, history: &History, name: &str) -> InvariantStatus {
    outcome(&judged(settings, history, &baseline()), name).status
}

fn sends(steps: &[Step], wanted: usize) -> Vec<(usize, u16)> {
    let sends = steps.iter().enumerate().filter_map(|(at, step)| match step {
        Step::Send { action, status } if *action == wanted => Some((at, *status)),
        _ => None,
    });
    sends.collect()
}

/// Whether some change of a decided state of an action has no right reason. The last look is the final one.
fn is_redecided(steps: &[Step], action: usize, last: RowState) -> bool {
    use RowState::{Cancelled, Confirmed, Created, Dispatching, Failed, Review, Unknown};
    let looks = steps.iter().enumerate().filter_map(|(at, step)| match step {
        Step::Look { action: about, state } if *about == action => Some((at, *state)),
        _ => None,
    });
    let looks: Vec<(usize, RowState)> = looks.chain([(steps.len(), last)]).collect();
    looks.windows(2).any(|pair| {
        let [(before, was), (after, is)] = pair else { return false };
        if was == is || steps[*before..*after].iter().any(|step| matches!(step, Step::Restore)) {
            return false;
        }
        let sent = sends(&steps[..*after], action);
        let first_doubt =
            sent.iter().find(|(at, status)| at < before && ![400, 401, 422, 429].contains(status));
        let told = sent.iter().any(|(_, status)| [200, 400, 401, 422, 429].contains(status));
        let asked = first_doubt.is_some_and(|(from, _)| {
            steps[*from..*after]
                .iter()
                .any(|step| matches!(step, Step::LookUp { action: about } if *about == action))
        });
        let accepted = sent.iter().any(|(_, status)| *status == 200);
        let resent = sent.iter().any(|(at, _)| at > before);
        match (was, is) {
            (Unknown | Review, Confirmed | Failed | Cancelled) => first_doubt.is_some() && !told && !asked,
            (Confirmed, _) | (Failed | Cancelled, Created | Dispatching) => true,
            (Failed | Cancelled, Confirmed) => resent || !accepted,
            (Cancelled, Unknown | Review) => sent.is_empty(),
            _ => false,
        }
    })
}

/// Whether a request followed a refusal for good with no death in between; one follows a 401 rightly.
fn is_sent_after_refusal(steps: &[Step], action: usize) -> bool {
    let sends = sends(steps, action);
    let mut fresh = 1;
    (1..sends.len()).any(|index| {
        let refused = sends[..index].iter().rev().find(|(_, status)| [400, 401, 422].contains(status));
        let Some((said, code)) = refused else { return false };
        if *code == 401 && fresh > 0 {
            fresh -= 1;
            return false;
        }
        let between = &steps[*said..sends[index].0];
        !between.iter().any(|step| matches!(step, Step::Kill | Step::Restore))
    })
}

proptest! {
    #[test]
    fn decided_states_and_refusals_agree_with_the_slow_model(
        steps in steps(),
        states in proptest::collection::vec(proptest::sample::select(RowState::ALL), 2),
    ) {
        let history = play(&steps).end_rows(rows(&states, &[1, 1]));
        let redecided = (0..2).any(|action| is_redecided(&steps, action, states[action]));
        prop_assert_eq!(of(&mapped(), &history, "decided-is-final") == Violated, redecided);
        let refused = (0..2).any(|action| is_sent_after_refusal(&steps, action));
        prop_assert_eq!(of(&mapped(), &history, "refusal-is-final") == Violated, refused);
    }

    #[test]
    fn counts_of_attempts_agree_with_the_slow_model(
        steps in steps(),
        counts in proptest::collection::vec(0_u32..4, 2),
    ) {
        let quiet: Vec<Step> = steps.into_iter().filter(|step| matches!(step, Step::Send { .. })).collect();
        let history = play(&quiet).end_rows(rows(&[RowState::Confirmed; 2], &counts));
        let sent: Vec<usize> = (0..2).map(|action| sends(&quiet, action).len()).collect();
        let once: Vec<u32> = (0..2).filter(|action| sent[*action] == 1).map(|action| counts[action]).collect();
        let from_nought = u32::from(!once.is_empty() && once.iter().all(|count| *count == 0));
        let missed = (0..2).any(|action| sent[action] > 0 && ((counts[action] + from_nought) as usize) < sent[action]);
        prop_assert_eq!(of(&mapped(), &history, "attempt-count-true") == Violated, missed);
    }

    #[test]
    fn feeds_agree_with_the_slow_model(
        polls in proptest::collection::vec(proptest::collection::vec(1_u32..5, 1..4), 1..4),
        done in proptest::collection::vec(1_u32..5, 0..6),
    ) {
        let feed = |polls: &[Vec<u32>], done: &[u32]| {
            let mut trial = Trial::new();
            for (index, items) in polls.iter().enumerate() {
                let items = items.iter().map(|item| format!("in-{item}")).collect();
                let (poll, cursor) = (index as u32 + 1, String::new());
                trial.provider(ProviderEvent::Fed { poll, cursor, items, again: Vec::new() });
            }
            for item in done {
                trial.deliver("bob@x", Some(&format!("k-in-{item}")), "hello");
            }
            trial.end()
        };
        let history = feed(&polls, &done);
        let verdict = judged(&Settings::default(), &history, &feed(&[vec![1]], &[1]));
        let wrong = (1..5).any(|item| {
            let fed = item == 1 || polls.iter().flatten().any(|given| *given == item);
            fed && done.iter().filter(|made| **made == item).count() != 1
        });
        prop_assert_eq!(outcome(&verdict, "processed-equals-fed").status == Violated, wrong);
    }

    #[test]
    fn leaks_agree_with_the_slow_model(scans in proptest::collection::vec((0_u32..3, 0_usize..3), 0..4)) {
        let mut trial = Trial::new();
        for (places, leaks) in &scans {
            let leak = Leak { canary: "TOKEN".into(), place: "outbox.db:outbox.last_error".into() };
            trial.push(EventKind::Scanned { places: *places, leaks: vec![leak; *leaks] });
        }
        let verdict = judged(&Settings::default(), &trial.end(), &Trial::new().end());
        let found = outcome(&verdict, "no-secret-leak");
        prop_assert_eq!(found.findings.len(), scans.iter().map(|(_, leaks)| leaks).sum::<usize>());
        prop_assert_eq!(found.looked_at, scans.iter().map(|(places, _)| places).sum::<u32>());
    }
}
