//! Random sequences of requests, rules and times: the state is a fold over the log, and its numbers agree.

use fake_provider::core::{Arrival, Core, Query};
use killpoint_model::plan::{Aftermath, Commit, Match, ProviderPlan, Reply, Rule, Visible};
use killpoint_model::profile::{
    Cached, Concurrent, Fingerprint, IdempotencyProfile, KeyScope, MissingKey, WindowAnchor,
};
use killpoint_model::provider::{Counters, ProviderEvent, Unanswered};
use killpoint_model::settings::ProviderSettings;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Act {
    Receive { key: Option<u8>, body: u8, path: u8 },
    Execute { which: prop::sample::Index },
    Reply { which: prop::sample::Index },
    Lose { which: prop::sample::Index, how: Unanswered },
    LookUp { key: u8 },
    Pass { ms: u64 },
    Step { ms: u64 },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let which = any::<prop::sample::Index>;
    let act = prop_oneof![
        4 => (prop::option::of(0..3u8), 0..2u8, 0..2u8)
            .prop_map(|(key, body, path)| Act::Receive { key, body, path }),
        4 => which().prop_map(|which| Act::Execute { which }),
        2 => which().prop_map(|which| Act::Reply { which }),
        1 => (which(), prop::sample::select(Unanswered::ALL)).prop_map(|(which, how)| Act::Lose { which, how }),
        1 => (0..3u8).prop_map(|key| Act::LookUp { key }),
        2 => (0..200u64).prop_map(|ms| Act::Pass { ms }),
        1 => (0..2000u64).prop_map(|ms| Act::Step { ms }),
    ];
    prop::collection::vec(act, 0..40)
}

fn plans() -> impl Strategy<Value = ProviderPlan> {
    let commit = prop_oneof![
        Just(Commit::Never),
        Just(Commit::Now),
        Just(Commit::Twice),
        (0..300u64).prop_map(|ms| Commit::After { ms })
    ];
    let reply = prop::sample::select(vec![
        Reply::Ok,
        Reply::Fin,
        Reply::Hang,
        Reply::Status { code: 500 },
        Reply::Status { code: 400 },
    ]);
    let visible = prop::sample::select(vec![Visible::Now, Visible::Never, Visible::After { ms: 50 }]);
    let aftermath =
        prop::sample::select(vec![Aftermath::None, Aftermath::Redeliver, Aftermath::ReceiptDuplicate]);
    (commit, reply, visible, aftermath).prop_map(|(commit, reply, visible, aftermath)| ProviderPlan {
        commit,
        reply,
        visible,
        aftermath,
    })
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let one = (plans(), prop::option::of(1..4u32), prop::option::of(1..3u32), prop::option::of(0..3u8));
    prop::collection::vec(one, 0..4).prop_map(|all| {
        all.into_iter()
            .enumerate()
            .map(|(index, (plan, nth, times, key))| Rule {
                id: format!("rule-{index}"),
                matches: Match { nth, key: key.map(|key| format!("key-{key}")), ..Match::default() },
                plan,
                times,
            })
            .collect()
    })
}

fn profiles() -> impl Strategy<Value = IdempotencyProfile> {
    (
        any::<bool>(),
        prop::sample::select(KeyScope::ALL),
        prop::sample::select(Fingerprint::ALL),
        prop::sample::select(WindowAnchor::ALL),
        prop::sample::select(Cached::ALL),
        prop::sample::select(Concurrent::ALL),
        prop::sample::select(MissingKey::ALL),
    )
        .prop_map(|(dedupe, scope, fingerprint, anchor, cached, concurrent, missing)| {
            IdempotencyProfile {
                dedupe,
                scope,
                fingerprint,
                window_ms: 500,
                anchor,
                cached,
                concurrent,
                missing,
                ..IdempotencyProfile::default()
            }
        })
}

/// Does the acts as a server would: nothing after an exchange's end, and due things first.
fn run(core: &mut Core, acts: &[Act]) {
    let mut now_ms = 1000;
    for act in acts {
        core.land_due(now_ms);
        let open: Vec<u32> =
            core.state().attempts.values().filter(|it| it.is_open()).map(|it| it.attempt.id).collect();
        let chosen = |which: &prop::sample::Index| (!open.is_empty()).then(|| *which.get(&open));
        match act {
            Act::Receive { key, body, path } => {
                let key = key.map(|key| ("idempotency-key".to_owned(), format!("key-{key}")));
                core.receive(
                    &Arrival {
                        connection: 1,
                        operation: "create".into(),
                        target: format!("POST /{path}"),
                        headers: key.into_iter().collect(),
                        body: format!(r#"{{"to":"{body}"}}"#).into_bytes(),
                    },
                    now_ms,
                );
            }
            Act::Execute { which } => {
                if let Some(attempt) = chosen(which) {
                    let state = &core.state().attempts[&attempt];
                    if state.effect.is_none() && state.not_executed.is_none() {
                        core.execute(attempt, now_ms, true);
                    }
                }
            }
            Act::Reply { which } => {
                if let Some(attempt) = chosen(which) {
                    core.replying(attempt, 10);
                    core.replied(attempt, 201, None);
                }
            }
            Act::Lose { which, how } => {
                if let Some(attempt) = chosen(which) {
                    core.unanswered(attempt, *how);
                }
            }
            Act::LookUp { key } => {
                core.look_up(1, "GET /m", &[], &Query::Key(format!("key-{key}")), now_ms);
            }
            Act::Pass { ms } => now_ms += ms,
            Act::Step { ms } => {
                core.step_clock(*ms);
                now_ms += ms;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn the_state_is_a_fold_over_the_log(profile in profiles(), rules in rules(), acts in acts()) {
        let settings = ProviderSettings { idempotency: profile, ..ProviderSettings::default() };
        let mut core = Core::new(settings.clone(), rules.clone()).unwrap();
        run(&mut core, &acts);

        let again = Core::replay(settings.clone(), rules.clone(), core.log()).unwrap();
        prop_assert_eq!(again.state(), core.state());
        prop_assert_eq!(again.log(), core.log());
        prop_assert_eq!(core.counters(), Counters::count(core.log()));

        // The log loses nothing as text.
        let text = serde_json::to_string(core.log()).unwrap();
        let read: Vec<ProviderEvent> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.as_slice(), core.log());
    }

    #[test]
    fn no_attempt_has_two_effects_and_none_that_was_refused_has_one(
        profile in profiles(), rules in rules(), acts in acts(),
    ) {
        let settings = ProviderSettings { idempotency: profile, ..ProviderSettings::default() };
        let mut core = Core::new(settings, rules).unwrap();
        run(&mut core, &acts);
        core.land_due(u64::MAX);
        let mut made: Vec<u32> = core.state().effects.iter().map(|effect| effect.attempt).collect();
        let total = made.len();
        made.sort_unstable();
        made.dedup();
        prop_assert_eq!(made.len(), total);
        for attempt in made {
            let state = &core.state().attempts[&attempt];
            prop_assert_eq!(state.not_executed, None);
            prop_assert_ne!(state.plan.commit, Commit::Never);
        }
    }

    #[test]
    fn one_key_within_its_window_makes_one_effect(
        rules in rules(), acts in acts(), concurrent in prop::sample::select(vec![Concurrent::Conflict, Concurrent::Wait]),
    ) {
        let profile = IdempotencyProfile { dedupe: true, concurrent, window_ms: u64::MAX, ..IdempotencyProfile::default() };
        let settings = ProviderSettings { idempotency: profile, ..ProviderSettings::default() };
        let mut core = Core::new(settings, rules).unwrap();
        run(&mut core, &acts);
        core.land_due(u64::MAX);
        let mut keys: Vec<&String> = core.state().effects.iter().filter_map(|it| it.key.as_ref()).collect();
        let total = keys.len();
        keys.sort_unstable();
        keys.dedup();
        prop_assert_eq!(keys.len(), total, "a key has two effects");
    }
}
