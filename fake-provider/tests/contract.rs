//! The pure core: each knob of the contract and each axis of a plan, without a wire.

use fake_provider::core::{Admission, Arrival, Core, Execution, Outcome, Query, Ruling, Stored};
use killpoint_model::plan::{Aftermath, Commit, Match, ProviderPlan, Reply, Rule, Visible};
use killpoint_model::profile::{
    Cached, Concurrent, Fingerprint, IdempotencyProfile, KeyScope, Mismatch, MissingKey, WindowAnchor,
};
use killpoint_model::provider::{Counters, ProviderEvent, Replay, Unanswered};
use killpoint_model::settings::ProviderSettings;

fn deduping() -> IdempotencyProfile {
    IdempotencyProfile { dedupe: true, ..IdempotencyProfile::default() }
}

fn core_with(profile: IdempotencyProfile, rules: Vec<Rule>) -> Core {
    let settings = ProviderSettings { idempotency: profile, ..ProviderSettings::default() };
    Core::new(settings, rules).unwrap()
}

fn rule(id: &str, matches: Match, plan: ProviderPlan) -> Rule {
    Rule { id: id.into(), matches, plan, times: None }
}

fn nth(nth: u32, plan: ProviderPlan) -> Vec<Rule> {
    vec![rule("only", Match { nth: Some(nth), ..Match::default() }, plan)]
}

fn plan(commit: Commit, reply: Reply) -> ProviderPlan {
    ProviderPlan { commit, reply, ..ProviderPlan::default() }
}

fn arrival(key: Option<&str>, path: &str, body: &str) -> Arrival {
    Arrival {
        connection: 1,
        operation: "create".into(),
        target: format!("POST {path}"),
        headers: key.map(|key| ("Idempotency-Key".to_owned(), key.to_owned())).into_iter().collect(),
        body: body.into(),
    }
}

fn receive(core: &mut Core, key: Option<&str>, body: &str, now_ms: u64) -> Admission {
    core.receive(&arrival(key, "/m", body), now_ms)
}

fn execute(core: &mut Core, attempt: u32, now_ms: u64) -> Outcome {
    match core.execute(attempt, now_ms, true) {
        Execution::Done(outcome) => outcome,
        Execution::Wait => panic!("attempt {attempt} waits"),
    }
}

/// Received and executed at once.
fn write(core: &mut Core, key: Option<&str>, body: &str, now_ms: u64) -> Outcome {
    let attempt = receive(core, key, body, now_ms).attempt;
    execute(core, attempt, now_ms)
}

fn replay_of(id: &str) -> Ruling {
    Ruling::Replay(Stored { error: None, effect: Some(id.into()) })
}

fn effects(core: &Core) -> usize {
    core.state().effects.len()
}

#[test]
fn without_dedupe_keys_are_recorded_and_nothing_else() {
    let profile = IdempotencyProfile { missing: MissingKey::Refuse, ..IdempotencyProfile::default() };
    let mut core = core_with(profile, Vec::new());
    for key in [Some("k"), Some("k"), None] {
        assert_eq!(write(&mut core, key, "{}", 0).ruling, Ruling::Execute);
    }
    assert_eq!(core.counters(), Counters { attempts: 3, effects: 3, acknowledged: 0 });
    assert_eq!(core.state().effects[1].key.as_deref(), Some("k"));
}

#[test]
fn a_known_key_replays_the_first_effect() {
    let mut core = core_with(deduping(), Vec::new());
    assert_eq!(write(&mut core, Some("k"), "{}", 0).committed.as_deref(), Some("msg_000001"));
    let second = write(&mut core, Some("k"), "{}", 1);
    assert_eq!(second, Outcome { ruling: replay_of("msg_000001"), committed: None });
    assert!(core.log().contains(&ProviderEvent::NotExecuted {
        attempt: 2,
        replay: Replay::Replayed,
        effect: Some("msg_000001".into())
    }));
    assert_eq!(write(&mut core, Some("\"k\""), "{}", 2).ruling, Ruling::Execute, "quoted is another key");
    assert_eq!(effects(&core), 2);
}

#[test]
fn scope_says_how_far_a_key_reaches() {
    for (scope, expected) in [(KeyScope::Account, 1), (KeyScope::Path, 2)] {
        let mut core = core_with(IdempotencyProfile { scope, ..deduping() }, Vec::new());
        for path in ["/a", "/b", "/a"] {
            let attempt = core.receive(&arrival(Some("k"), path, "{}"), 0).attempt;
            execute(&mut core, attempt, 0);
        }
        assert_eq!(effects(&core), expected, "{scope}");
    }
}

#[test]
fn fingerprint_says_what_must_be_equal() {
    for (fingerprint, expected) in
        [(Fingerprint::None, replay_of("msg_000001")), (Fingerprint::Body, Ruling::Mismatch)]
    {
        let profile = IdempotencyProfile { fingerprint, mismatch: Mismatch::Unprocessable, ..deduping() };
        let mut core = core_with(profile, Vec::new());
        write(&mut core, Some("k"), "{}", 0);
        assert_eq!(write(&mut core, Some("k"), "{ }", 1).ruling, expected, "{fingerprint}");
        assert_eq!(effects(&core), 1);
    }
}

#[test]
fn the_window_runs_from_its_anchor() {
    for (anchor, expected) in [(WindowAnchor::FirstRequest, 2), (WindowAnchor::LastRequest, 1)] {
        let profile = IdempotencyProfile { anchor, window_ms: 100, ..deduping() };
        let mut core = core_with(profile, Vec::new());
        for now_ms in [0, 60, 120] {
            write(&mut core, Some("k"), "{}", now_ms);
        }
        assert_eq!(effects(&core), expected, "{anchor}");
    }
    let mut core = core_with(IdempotencyProfile { window_ms: 100, ..deduping() }, Vec::new());
    for (now_ms, expected) in [(0, 1), (99, 1), (100, 2)] {
        write(&mut core, Some("k"), "{}", now_ms);
        assert_eq!(effects(&core), expected, "at {now_ms}");
    }
}

#[test]
fn cached_says_which_answers_are_stored() {
    let error = Reply::Status { code: 500 };
    for (cached, commit, second, expected) in [
        (Cached::All, Commit::Now, Some(500), 1),
        (Cached::All, Commit::Never, Some(500), 0),
        (Cached::Success, Commit::Now, None, 2),
        (Cached::Success, Commit::Never, None, 1),
    ] {
        let profile = IdempotencyProfile { cached, ..deduping() };
        let mut core = core_with(profile, nth(1, plan(commit, error)));
        write(&mut core, Some("k"), "{}", 0);
        let again = write(&mut core, Some("k"), "{}", 1).ruling;
        let stored = match &again {
            Ruling::Replay(stored) => stored.error,
            _ => None,
        };
        assert_eq!((stored, effects(&core)), (second, expected), "{cached} {commit}: {again:?}");
    }
}

#[test]
fn a_refusal_before_execution_is_not_stored() {
    for reply in [Reply::Status { code: 429 }, Reply::Status { code: 400 }, Reply::Fin] {
        let mut core = core_with(deduping(), nth(1, plan(Commit::Never, reply)));
        assert_eq!(write(&mut core, Some("k"), "{}", 0).committed, None);
        assert_eq!(write(&mut core, Some("k"), "{}", 1).committed.as_deref(), Some("msg_000002"), "{reply}");
    }
}

#[test]
fn a_request_in_flight_meets_the_concurrent_answer() {
    for (concurrent, expected, total) in [
        (Concurrent::Conflict, Some(Ruling::Concurrent), 1),
        (Concurrent::Run, Some(Ruling::Execute), 2),
        (Concurrent::Wait, None, 1),
    ] {
        let mut core = core_with(IdempotencyProfile { concurrent, ..deduping() }, Vec::new());
        let first = receive(&mut core, Some("k"), "{}", 0).attempt;
        let second = receive(&mut core, Some("k"), "{}", 1).attempt;
        match core.execute(second, 1, true) {
            Execution::Done(outcome) => assert_eq!(Some(outcome.ruling), expected, "{concurrent}"),
            Execution::Wait => {
                assert_eq!((expected, core.waits(second)), (None, true));
            }
        }
        execute(&mut core, first, 2);
        if concurrent == Concurrent::Wait {
            assert_eq!(execute(&mut core, second, 3).ruling, replay_of("msg_000001"));
        }
        assert_eq!(effects(&core), total, "{concurrent}");
    }
}

#[test]
fn a_waiting_request_runs_where_the_first_was_abandoned() {
    let mut core = core_with(IdempotencyProfile { concurrent: Concurrent::Wait, ..deduping() }, Vec::new());
    let first = receive(&mut core, Some("k"), "{}", 0).attempt;
    let second = receive(&mut core, Some("k"), "{}", 1).attempt;
    assert_eq!(core.execute(second, 1, true), Execution::Wait);
    core.unanswered(first, Unanswered::Abandoned);
    assert_eq!(execute(&mut core, second, 2).committed.as_deref(), Some("msg_000002"));
    assert_eq!(write(&mut core, Some("k"), "{}", 3).ruling, replay_of("msg_000002"));
    let mut core = core_with(IdempotencyProfile { concurrent: Concurrent::Wait, ..deduping() }, Vec::new());
    receive(&mut core, Some("k"), "{}", 0);
    let second = receive(&mut core, Some("k"), "{}", 1).attempt;
    let given_up = core.execute(second, 2, false);
    assert_eq!(given_up, Execution::Done(Outcome { ruling: Ruling::Concurrent, committed: None }));
}

#[test]
fn a_missing_key_is_executed_or_refused() {
    for (missing, expected) in
        [(MissingKey::Execute, Ruling::Execute), (MissingKey::Refuse, Ruling::MissingKey)]
    {
        let mut core = core_with(IdempotencyProfile { missing, ..deduping() }, Vec::new());
        assert_eq!(write(&mut core, None, "{}", 0).ruling, expected);
        assert_eq!(write(&mut core, Some("k"), "{}", 0).ruling, Ruling::Execute);
    }
}

#[test]
fn a_late_commit_lands_when_it_is_due_and_its_key_is_in_flight_until_then() {
    let mut core = core_with(deduping(), nth(1, plan(Commit::After { ms: 300 }, Reply::Hang)));
    assert_eq!(write(&mut core, Some("k"), "{}", 1000).committed, None);
    assert_eq!((core.next_due(), core.pending_commits()), (Some(1300), 1));
    assert_eq!(write(&mut core, Some("k"), "{}", 1100).ruling, Ruling::Concurrent);
    core.unanswered(1, Unanswered::ClientGone);
    core.land_due(1299);
    assert_eq!(effects(&core), 0);
    core.land_due(5000);
    assert_eq!(core.state().effects[0].committed_at_ms, 1300, "its own time, not that of the look");
    assert_eq!((core.next_due(), core.pending_commits()), (None, 0));
    assert_eq!(write(&mut core, Some("k"), "{}", 5000).ruling, replay_of("msg_000001"));
}

#[test]
fn a_late_commit_waits_until_it_is_let_through_and_dies_with_an_abandoned_attempt() {
    let late = plan(Commit::After { ms: 10 }, Reply::Ok);
    let mut core = core_with(deduping(), nth(1, late));
    let attempt = receive(&mut core, Some("k"), "{}", 0).attempt;
    core.land_due(100);
    assert_eq!((effects(&core), core.next_due()), (0, None), "not let through yet");
    assert_eq!(execute(&mut core, attempt, 100).committed.as_deref(), Some("msg_000001"));

    let mut core = core_with(deduping(), nth(1, late));
    receive(&mut core, Some("k"), "{}", 0);
    core.unanswered(1, Unanswered::Abandoned);
    core.land_due(100);
    assert_eq!((effects(&core), core.pending_commits()), (0, 0));
    assert_eq!(write(&mut core, Some("k"), "{}", 101).committed.as_deref(), Some("msg_000002"));
}

#[test]
fn twice_is_one_effect_with_two_copies() {
    let mut core = core_with(deduping(), nth(1, plan(Commit::Twice, Reply::Ok)));
    write(&mut core, Some("k"), "{}", 0);
    assert_eq!((effects(&core), core.state().effects[0].copies, core.counters().effects), (1, 2, 2));
}

#[test]
fn aftermaths_come_when_they_are_due() {
    let receipt = |copies, late| ProviderEvent::Receipt { effect: "msg_000001".into(), copies, late };
    for (aftermath, expected) in [
        (Aftermath::None, None),
        (Aftermath::Bounce { after_ms: 5 }, None),
        (Aftermath::Redeliver, Some(ProviderEvent::Redelivered { effect: "msg_000001".into() })),
        (Aftermath::ReceiptLate, Some(receipt(1, true))),
        (Aftermath::ReceiptDuplicate, Some(receipt(2, false))),
        (Aftermath::ReceiptLost, Some(receipt(0, false))),
    ] {
        let mut core = core_with(deduping(), nth(1, ProviderPlan { aftermath, ..ProviderPlan::default() }));
        write(&mut core, None, "{}", 0);
        let redeliver = aftermath == Aftermath::Redeliver;
        assert_eq!(core.pending_commits(), usize::from(redeliver));
        let before = core.log().len();
        core.land_due(10_000);
        assert_eq!(core.log()[before..].to_vec(), expected.into_iter().collect::<Vec<_>>(), "{aftermath}");
        assert_eq!((core.next_due(), core.pending_commits()), (None, 0));
        let copies = if redeliver { 2 } else { 1 };
        assert_eq!((core.state().effects[0].copies, core.counters().effects), (copies, copies));
        let bounced = matches!(aftermath, Aftermath::Bounce { .. }).then_some(5);
        assert_eq!(core.state().effects[0].bounced_at_ms, bounced);
    }
}

#[test]
fn a_lookup_sees_an_effect_only_while_it_is_visible() {
    for (visible, seen_at) in [
        (Visible::Now, [true, true]),
        (Visible::After { ms: 50 }, [false, true]),
        (Visible::Never, [false, false]),
    ] {
        let mut core = core_with(deduping(), nth(1, ProviderPlan { visible, ..ProviderPlan::default() }));
        write(&mut core, Some("k"), "{}", 0);
        for (now_ms, seen) in [0, 50].into_iter().zip(seen_at) {
            for query in [
                Query::Id("msg_000001".into()),
                Query::Key("k".into()),
                Query::List { limit: 10, after: None },
            ] {
                let looked = core.look_up(1, "GET /m", &[], &query, now_ms);
                assert_eq!(looked.found.len(), usize::from(seen), "{visible} at {now_ms}: {query:?}");
            }
        }
        assert_eq!(core.counters().attempts, 1, "a lookup is no attempt");
    }
}

#[test]
fn listings_are_in_order_and_paged() {
    let mut core = core_with(deduping(), Vec::new());
    for _ in 0..5 {
        write(&mut core, None, "{}", 0);
    }
    let mut list = |limit, after: Option<&str>| {
        let query = Query::List { limit, after: after.map(str::to_owned) };
        let looked = core.look_up(1, "GET /m", &[], &query, 0);
        (looked.found.into_iter().map(|effect| effect.attempt).collect::<Vec<_>>(), looked.has_more)
    };
    assert_eq!(list(2, None), (vec![1, 2], true));
    assert_eq!(list(2, Some("msg_000002")), (vec![3, 4], true));
    assert_eq!(list(2, Some("msg_000004")), (vec![5], false));
    assert_eq!(list(2, Some("unknown")), (Vec::new(), false));
}

#[test]
fn the_first_rule_that_matches_and_is_not_used_up_wins() {
    let tagged = |reply| plan(Commit::Now, reply);
    let mut once = rule("once", Match::default(), tagged(Reply::Fin));
    once.times = Some(1);
    let to_b = Match {
        header: [("x-to".to_owned(), "b".to_owned())].into(),
        pointer: [("/n".to_owned(), "7".to_owned())].into(),
        ..Match::default()
    };
    let rules = vec![
        once,
        rule("second-b", Match { nth: Some(2), ..to_b.clone() }, tagged(Reply::Rst)),
        rule("elsewhere", Match { dialect: Some("smtp".into()), ..Match::default() }, tagged(Reply::Hang)),
        rule("keyed", Match { key: Some("k".into()), ..Match::default() }, tagged(Reply::Hold)),
        rule("reads", Match { operation: Some("get".into()), ..Match::default() }, tagged(Reply::Fin)),
    ];
    let mut core = core_with(deduping(), rules);
    let mut send = |key: Option<&str>, to: &str, body: &str| {
        let mut arrival = arrival(key, "/m", body);
        arrival.headers.push(("X-To".into(), to.into()));
        core.receive(&arrival, 0).plan.reply
    };
    assert_eq!(send(None, "b", r#"{"n":7}"#), Reply::Fin);
    assert_eq!(send(None, "a", r#"{"n":7}"#), Reply::Ok, "once is used up");
    assert_eq!(send(None, "b", r#"{"n":8}"#), Reply::Ok, "another pointer value");
    assert_eq!(send(None, "b", r#"{"n":"7"}"#), Reply::Rst, "the second that matches all the rest");
    assert_eq!(send(Some("k"), "b", r#"{"n":7}"#), Reply::Hold);
    let looked = core.look_up(1, "GET /m/x", &[], &Query::Id("x".into()), 0);
    assert_eq!(looked.plan.reply, Reply::Fin);
    let fired: Vec<(String, u32)> =
        core.rules().into_iter().map(|status| (status.rule.id, status.fired)).collect();
    let expected = [("once", 1), ("second-b", 1), ("elsewhere", 0), ("keyed", 1), ("reads", 1)];
    assert_eq!(fired, expected.map(|(id, count)| (id.to_owned(), count)));
}

#[test]
fn wrong_rules_are_refused() {
    let bad = |matches: Match| {
        Core::new(ProviderSettings::default(), vec![rule("r", matches, plan(Commit::Now, Reply::Ok))])
    };
    assert!(bad(Match { nth: Some(0), ..Match::default() }).unwrap_err().to_string().contains("from 1"));
    let pointer = Match { pointer: [("to".to_owned(), "a".to_owned())].into(), ..Match::default() };
    assert!(bad(pointer).unwrap_err().to_string().contains("JSON pointer"));
    let twice = vec![rule("r", Match::default(), ProviderPlan::default()); 2];
    assert!(Core::new(ProviderSettings::default(), twice).unwrap_err().to_string().contains("another rule"));
}

#[test]
fn a_replayed_log_closes_what_was_open() {
    let late = plan(Commit::After { ms: 300 }, Reply::Hang);
    let mut core = core_with(deduping(), nth(1, late));
    write(&mut core, Some("late"), "{}", 0);
    receive(&mut core, Some("k"), "{}", 1);
    core.look_up(1, "GET /m", &[], &Query::Key("k".into()), 2);
    let mut again = Core::replay(core.settings().clone(), nth(1, late), core.log()).unwrap();
    assert_eq!(again.state(), core.state());
    again.close_open_exchanges();
    assert_eq!(write(&mut again, Some("k"), "{}", 3).ruling, Ruling::Execute, "the abandoned key is free");
    again.land_due(300);
    let made: Vec<u32> = again.state().effects.iter().map(|effect| effect.attempt).collect();
    assert_eq!(made, [3, 1], "the late commit still lands");
    assert!(again.log().contains(&ProviderEvent::LookupUnanswered { lookup: 1, how: Unanswered::Abandoned }));
}

#[test]
fn each_destination_of_a_fan_out_has_an_outcome_of_its_own() {
    let to = |n: u32| Match {
        pointer: [("/to".to_owned(), format!("user{n}@example.com"))].into(),
        ..Match::default()
    };
    let limited =
        Rule { times: Some(1), ..rule("limited", to(8), plan(Commit::Never, Reply::Status { code: 429 })) };
    let gone = rule("gone", to(7), plan(Commit::Never, Reply::Status { code: 400 }));
    let mut core = core_with(deduping(), vec![gone, limited]);
    // Ten destinations, and the eighth once more after its 429.
    for (index, n) in (1..=10).chain([8]).enumerate() {
        let body = format!(r#"{{"to":"user{n}@example.com","body":"hello"}}"#);
        let key = format!("job-1-{n}");
        let admission = receive(&mut core, Some(&key), &body, 0);
        let outcome = execute(&mut core, admission.attempt, 0);
        let refused = match (n, index) {
            (7, _) => Some(400),
            (8, 7) => Some(429),
            _ => None,
        };
        let reply = refused.map_or(Reply::Ok, |code| Reply::Status { code });
        assert_eq!((admission.plan.reply, outcome.committed.is_some()), (reply, refused.is_none()), "{n}");
    }
    let recipients: Vec<&str> = core.state().effects.iter().map(|effect| effect.recipient.as_str()).collect();
    let expected = [1, 2, 3, 4, 5, 6, 9, 10, 8].map(|n| format!("user{n}@example.com"));
    assert_eq!(recipients, expected);
    assert_eq!(core.rules().iter().map(|status| status.fired).collect::<Vec<_>>(), [1, 1]);
}
