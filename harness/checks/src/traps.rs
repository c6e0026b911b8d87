//! Right workers that a careless checker would call wrong, and the same bytes with the opposite truth.

use killpoint_model::event::EventKind;
use killpoint_model::finding::InvariantStatus;
use killpoint_model::plan::{Commit, CutAt, ProviderPlan, Reply};
use killpoint_model::provider::{ProviderEvent, Replay, Unanswered};
use killpoint_model::settings::Promise;
use killpoint_model::verdict::{ActionVerdict, Verdict};
use killpoint_model::{History, LedgerRow, RowState, Settings};
use serde_json::json;

use crate::sample::{Trial, judged, mapped, mapped_baseline, outcome, plain_baseline, row, view, violated};

const KEY: Option<&str> = Some("k-deploy-42");

fn rows(state: RowState) -> Vec<LedgerRow> {
    vec![row("deploy-42", "bob@x", state)]
}

/// Killed while the provider holds the reply of an accepted or a dropped request.
fn killed_in_flight(commit: bool) -> Trial {
    let mut trial = Trial::new();
    trial.view(Some("ledger:dispatching#1"), rows(RowState::Dispatching));
    let attempt = trial.send("bob@x", KEY, "deployed");
    if commit {
        trial.commit(attempt);
    }
    let at = if commit { "provider:committed#1" } else { "provider:received#1" };
    trial.die(at).view(None, rows(RowState::Dispatching));
    trial.provider(ProviderEvent::Unanswered { attempt, how: Unanswered::Abandoned });
    trial.spawn().clone()
}

fn assert_green(settings: &Settings, history: &History, expected: ActionVerdict) {
    let baseline = if settings.ledger.is_some() { mapped_baseline() } else { plain_baseline() };
    let verdict = judged(settings, history, &baseline);
    assert_eq!(violated(&verdict), Vec::<&str>::new(), "{:#?}", verdict.outcomes);
    assert_eq!(verdict.verdict, Verdict::Holds, "{:?}", verdict.evidence);
    assert_eq!(verdict.actions.iter().map(|action| action.verdict).collect::<Vec<_>>(), [expected]);
}

#[test]
fn a_worker_that_parks_is_right_in_both_twins() {
    for commit in [true, false] {
        for state in [RowState::Unknown, RowState::Review] {
            let history = killed_in_flight(commit).end_rows(rows(state));
            assert_green(&mapped(), &history, ActionVerdict::ExplicitUnknown);
        }
    }
}

#[test]
fn a_worker_that_asks_first_is_right_in_both_twins() {
    let history =
        killed_in_flight(true).look_up("k-deploy-42", &["msg_1"]).end_rows(rows(RowState::Confirmed));
    assert_green(&mapped(), &history, ActionVerdict::DeliveredOnce);
    let history = killed_in_flight(false)
        .look_up("k-deploy-42", &[])
        .deliver("bob@x", KEY, "deployed")
        .end_rows(rows(RowState::Confirmed));
    assert_green(&mapped(), &history, ActionVerdict::DeliveredOnce);
}

#[test]
fn a_worker_that_relies_on_a_deduping_provider_is_right() {
    for (replay, code) in [(Replay::Replayed, 200), (Replay::Concurrent, 409)] {
        let mut settings = mapped();
        settings.provider.idempotency.dedupe = true;
        let mut trial = killed_in_flight(true);
        let again = trial.send("bob@x", KEY, "deployed");
        trial.replay(again, replay, "msg_1").reply(again, code);
        assert_green(&settings, &trial.end_rows(rows(RowState::Confirmed)), ActionVerdict::DeliveredOnce);
    }
}

#[test]
fn a_blind_worker_is_wrong_in_both_twins_by_the_same_name() {
    for commit in [true, false] {
        let history =
            killed_in_flight(commit).deliver("bob@x", KEY, "deployed").end_rows(rows(RowState::Confirmed));
        let verdict = judged(&mapped(), &history, &mapped_baseline());
        assert_eq!(outcome(&verdict, "no-blind-resend").status, InvariantStatus::Violated);
        assert_eq!(violated(&verdict).contains(&"no-duplicate-effect"), commit);
        assert_eq!(verdict.verdict, Verdict::Violated);
    }
}

#[test]
fn at_most_once_may_lose_openly_and_never_in_silence() {
    let settings = Settings { promise: Promise::AtMostOnce, ..mapped() };
    let open = killed_in_flight(false).end_rows(rows(RowState::Unknown));
    assert_green(&settings, &open, ActionVerdict::ExplicitUnknown);
    let silent = killed_in_flight(false).end_rows(Vec::new());
    let verdict = judged(&settings, &silent, &mapped_baseline());
    assert!(violated(&verdict).contains(&"no-lost-action"));
    assert_eq!(verdict.actions[0].verdict, ActionVerdict::Lost);
}

#[test]
fn a_refused_action_that_says_failed_is_right() {
    let mut trial = Trial::new();
    let attempt = trial.send("bob@x", KEY, "deployed");
    let plan =
        ProviderPlan { commit: Commit::Never, reply: Reply::Status { code: 422 }, ..ProviderPlan::default() };
    trial.rule("refuse", attempt, plan).reply(attempt, 422);
    assert_green(&mapped(), &trial.end_rows(rows(RowState::Failed)), ActionVerdict::ExplicitFailure);
}

#[test]
fn an_error_inside_a_200_is_an_error() {
    let mut trial = Trial::new();
    let attempt = trial.send("bob@x", KEY, "deployed");
    let plan = ProviderPlan { reply: Reply::Status { code: 500 }, ..ProviderPlan::default() };
    trial.rule("fatal", attempt, plan);
    trial.commit(attempt);
    trial.reply(attempt, 200);
    let verdict = judged(&mapped(), &trial.end_rows(rows(RowState::Failed)), &mapped_baseline());
    assert_eq!(violated(&verdict), ["unknown-is-explicit", "no-false-failure"]);
    assert_green(&mapped(), &trial.end_rows(rows(RowState::Unknown)), ActionVerdict::ExplicitUnknown);
    let verdict = judged(&mapped(), &trial.end_rows(rows(RowState::Confirmed)), &mapped_baseline());
    assert_eq!(violated(&verdict), ["confirmed-after-acceptance", "unknown-is-explicit"]);
}

#[test]
fn in_smtp_a_transient_refusal_means_that_it_was_not_taken() {
    for (dialect, expected) in [("smtp", Vec::new()), ("rest", vec!["no-blind-resend"])] {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", None, "deployed");
        trial.reply(attempt, 503).deliver("bob@x", None, "deployed");
        let mut history = trial.end();
        for event in &mut history.events {
            if let EventKind::Provider(ProviderEvent::Received(attempt)) = &mut event.event {
                attempt.dialect = dialect.into();
            }
        }
        let verdict = judged(&Settings::default(), &history, &plain_baseline());
        assert_eq!(violated(&verdict), expected, "{dialect}");
    }
}

#[test]
fn what_the_provider_tells_later_is_told() {
    let receipt = |copies| {
        let mut trial = Trial::new();
        trial.lose("bob@x", KEY, "deployed", true);
        trial.provider(ProviderEvent::Receipt { effect: "msg_1".into(), copies, late: true });
        trial.end_rows(rows(RowState::Confirmed))
    };
    assert_green(&mapped(), &receipt(1), ActionVerdict::DeliveredOnce);
    let verdict = judged(&mapped(), &receipt(0), &mapped_baseline());
    assert_eq!(violated(&verdict), ["confirmed-after-acceptance", "unknown-is-explicit"]);
    let mut conflict = Trial::new();
    conflict.lose("bob@x", KEY, "deployed", true).look_up("k-deploy-42", &[]);
    let again = conflict.send("bob@x", KEY, "deployed");
    let history = conflict.reply(again, 409).end_rows(rows(RowState::Confirmed));
    assert_green(&mapped(), &history, ActionVerdict::DeliveredOnce);
}

#[test]
fn a_message_at_another_recipient_is_no_alarm() {
    let trial = Trial::new().deliver("bob@x", None, "deployed").deliver("eve@x", None, "deployed").end();
    let verdict = judged(&Settings::default(), &trial, &plain_baseline());
    assert_eq!(violated(&verdict), ["one-identity-per-destination"]);
    assert_eq!(outcome(&verdict, "no-manufactured-item").status, InvariantStatus::Holds);
}

#[test]
fn a_changed_row_is_a_trace_of_recovery() {
    for (state, expected) in [(RowState::Unknown, true), (RowState::Dispatching, false)] {
        let mut trial = killed_in_flight(true);
        trial.view(None, rows(state));
        let mut history = trial.end_rows(rows(state));
        for event in &mut history.events {
            if let EventKind::Exited { code, .. } = &mut event.event {
                *code = Some(1);
            }
        }
        let verdict = judged(&mapped(), &history, &mapped_baseline());
        assert_eq!(verdict.evidence.recovery_acted, Some(expected), "{state}");
    }
}

#[test]
fn a_cut_body_is_success_without_a_receipt_and_its_twin_is_a_false_success() {
    for commit in [true, false] {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", KEY, "deployed");
        let plan = ProviderPlan { reply: Reply::Cut { at: CutAt::Body }, ..ProviderPlan::default() };
        trial.rule("cut", attempt, plan);
        if commit {
            trial.commit(attempt);
        }
        trial.provider(ProviderEvent::Replying { attempt, bytes: 80 });
        trial.provider(ProviderEvent::Unanswered { attempt, how: Unanswered::Cut });
        let verdict = judged(&mapped(), &trial.end_rows(rows(RowState::Confirmed)), &mapped_baseline());
        assert_eq!(outcome(&verdict, "unknown-is-explicit").notes.len(), 1);
        let expected: &[&str] = if commit { &[] } else { &["no-false-success"] };
        assert_eq!(violated(&verdict), expected);
    }
}

#[test]
fn one_row_for_several_recipients_speaks_for_each() {
    let one_row =
        |state| vec![LedgerRow { key: Some("k-deploy-42".into()), ..LedgerRow::new("deploy-42", state) }];
    let send = |trial: &mut Trial, recipient: &str| {
        let body = json!({"to": recipient, "text": "deployed", "id": "deploy-42"});
        let attempt = trial.send_body(recipient, None, body);
        trial.commit(attempt);
        trial.reply(attempt, 200);
    };
    let mut whole = Trial::new();
    send(&mut whole, "bob@x");
    send(&mut whole, "eve@x");
    let baseline = whole.end_rows(one_row(RowState::Confirmed));

    let mut half = Trial::new();
    send(&mut half, "bob@x");
    half.kill("provider:replied#1");
    let parked = judged(&mapped(), &half.end_rows(one_row(RowState::Unknown)), &baseline);
    assert_eq!(violated(&parked), Vec::<&str>::new());
    let claimed = judged(&mapped(), &half.end_rows(one_row(RowState::Confirmed)), &baseline);
    assert!(violated(&claimed).contains(&"no-false-success"), "{:?}", claimed.actions);
}

#[test]
fn rows_in_other_words_than_the_wire_are_a_doubt_not_an_alarm() {
    let strange =
        || vec![LedgerRow { destination: Some("user 5".into()), ..LedgerRow::new("1", RowState::Confirmed) }];
    let trial = || Trial::new().deliver("bob@x", None, "deployed").end_rows(strange());
    let verdict = judged(&mapped(), &trial(), &trial());
    assert_eq!(violated(&verdict), Vec::<&str>::new());
    assert_eq!(verdict.verdict, Verdict::Inconclusive);
}

#[test]
fn rows_without_keys_are_matched_by_what_they_say() {
    let said = |action: &str, text: &str, state| LedgerRow {
        destination: Some("bob@x".into()),
        text: Some(text.into()),
        ..LedgerRow::new(action, state)
    };
    let both = |a, b| vec![said("1", "first", a), said("2", "second", b)];
    let done = RowState::Confirmed;
    let baseline = Trial::new()
        .deliver("bob@x", None, "first")
        .deliver("bob@x", None, "second")
        .end_rows(both(done, done));
    let verdict = judged(&mapped(), &baseline, &baseline);
    assert_eq!((violated(&verdict), verdict.verdict), (Vec::new(), Verdict::Holds));
    let half = Trial::new().deliver("bob@x", None, "second").end_rows(both(done, done));
    let verdict = judged(&mapped(), &half, &baseline);
    let lost = verdict.actions.iter().find(|action| action.verdict == ActionVerdict::FalseSuccess);
    assert_eq!(lost.map(|action| action.action.as_str()), Some("1"));
}

#[test]
fn rows_that_nothing_tells_apart_are_counted() {
    let said = |action: &str, state| LedgerRow {
        destination: Some("bob@x".into()),
        text: Some("tick".into()),
        ..LedgerRow::new(action, state)
    };
    let both = |a, b| vec![said("1", a), said("2", b)];
    let done = RowState::Confirmed;
    let baseline =
        Trial::new().deliver("bob@x", None, "tick").deliver("bob@x", None, "tick").end_rows(both(done, done));
    assert_eq!(violated(&judged(&mapped(), &baseline, &baseline)), Vec::<&str>::new());
    let one = Trial::new().deliver("bob@x", None, "tick").clone();
    let parked = one.clone().end_rows(both(done, RowState::Unknown));
    assert_eq!(violated(&judged(&mapped(), &parked, &baseline)), Vec::<&str>::new());
    let false_success = judged(&mapped(), &one.clone().end_rows(both(done, done)), &baseline);
    assert!(violated(&false_success).contains(&"no-false-success"));
}

#[test]
fn an_unreadable_last_look_is_inconclusive() {
    let mut unreadable = view(None);
    unreadable.error = Some("database disk image is malformed".into());
    let history = killed_in_flight(true).end_with(unreadable);
    let verdict = judged(&mapped(), &history, &mapped_baseline());
    assert_eq!((verdict.verdict, violated(&verdict)), (Verdict::Inconclusive, Vec::new()));
}

#[test]
fn a_stuck_row_is_stuck_though_it_was_delivered() {
    let history = killed_in_flight(true).end_rows(rows(RowState::Dispatching));
    let verdict = judged(&mapped(), &history, &mapped_baseline());
    assert_eq!(violated(&verdict), ["terminal-state-explicit"]);
    assert_eq!(verdict.actions[0].verdict, ActionVerdict::Stuck);
}

#[test]
fn a_crash_loop_among_many_actions_is_judged() {
    let rows = |count: usize| {
        (0..count).map(|n| row(&format!("act-{n}"), &format!("r{n}@x"), RowState::Confirmed)).collect()
    };
    let build = |crash_loop: bool| {
        let mut trial = Trial::new();
        for n in 0..2000 {
            trial.deliver(&format!("r{n}@x"), Some(&format!("k-act-{n}")), "hello");
            if crash_loop {
                let body = json!({"to": "r0@x", "text": "hello", "try": n});
                let attempt = trial.send_body("r0@x", None, body);
                trial.drop_reply(attempt).look_up("", &[]);
            }
        }
        trial.end_rows(rows(2000))
    };
    let verdict = judged(&mapped(), &build(true), &build(false));
    assert_eq!(violated(&verdict), ["stable-key", "attempts-bounded", "no-blind-resend"]);
    assert_eq!(verdict.actions.len(), 2000);
}
