//! Where the truth of a model and the judgement of the checks differ.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::RowState;
use killpoint_model::finding::InvariantStatus;
use killpoint_model::settings::Promise;
use killpoint_model::verdict::{ActionVerdict, TrialVerdict, Verdict};

use super::Simulated;
use super::life::RECONCILE_MS;
use super::truth::{Message, Truth};

/// Attempts per action that are still bounded, by default.
const ATTEMPTS_MAX: u32 = 10;

/// Everything in which the judgement of a model's history differs from what really happened; empty where they agree.
///
/// Of ten invariants the truth says exactly whether they are violated. Of the others it says that a right worker
/// violates none. The verdict on each action, the three numbers and the verdict on the trial follow from the truth
/// as well.
pub fn disagreements(simulated: &Simulated, judged: &TrialVerdict) -> Vec<String> {
    let truth = &simulated.truth;
    let mut found = Vec::new();
    let expected = expected_violations(truth);
    let violated: BTreeSet<&str> = (judged.outcomes.iter())
        .filter(|outcome| outcome.status == InvariantStatus::Violated)
        .map(|outcome| outcome.invariant.as_str())
        .collect();
    for (invariant, is_expected) in &expected {
        if violated.contains(invariant) != *is_expected {
            let (is, should) = (violated.contains(invariant), *is_expected);
            found.push(format!("{invariant}: violated is {is} and should be {should}"));
        }
    }
    let harmed = expected.values().any(|expected| *expected);
    let was_stale = truth.messages.iter().any(|message| message.was_stale);
    if truth.is_right && !harmed && !was_stale {
        // A time that was written by a clock that is off says nothing to the other workers.
        let wrong = violated.iter().filter(|it| !(truth.clocks_differ && **it == "retry-after-honoured"));
        found.extend(wrong.map(|invariant| format!("{invariant}: the right worker did nothing wrong")));
    }
    if truth.is_right && harmed && !is_excused(truth) {
        found.push(format!("the right worker went wrong: {expected:?}"));
    }
    found.extend(action_differences(truth, judged));
    if judged.counters != truth.counters {
        found.push(format!("counted {:?}, and it was {:?}", judged.counters, truth.counters));
    }
    found.extend(verdict_difference(truth, judged, !violated.is_empty()));
    found
}

/// Which invariants must be violated, and which must not.
fn expected_violations(truth: &Truth) -> BTreeMap<&'static str, bool> {
    let any = |test: fn(&Message, &Truth) -> bool| truth.messages.iter().any(|message| test(message, truth));
    let mut expected = BTreeMap::from([
        ("no-duplicate-effect", any(|message, truth| message.effects > 1 && !is_keyed(message, truth))),
        ("no-blind-resend", any(is_blind)),
        ("attempts-bounded", any(|message, _| message.requests > ATTEMPTS_MAX)),
    ]);
    if truth.is_mapped {
        expected.extend([
            ("no-false-success", any(|message, _| message.is_falsely_confirmed())),
            ("no-false-failure", any(|message, _| message.is_falsely_denied())),
            ("no-lost-action", any(|message, _| message.is_owed && message.is_lost())),
            ("no-manufactured-item", any(|message, _| !message.is_owed && message.row.is_some())),
            (
                "terminal-state-explicit",
                !truth.is_settled || any(|message, _| message.row.is_some_and(|row| !row.is_terminal())),
            ),
            ("audit-survives", any(|message, _| message.row.is_none())),
        ]);
    } else {
        expected.insert("terminal-state-explicit", !truth.is_settled);
        let lost = any(|message, truth| unmapped(message, truth) == Some(ActionVerdict::Lost));
        if lost || !any(|message, truth| unmapped(message, truth).is_none()) {
            expected.insert("no-lost-action", lost);
        }
    }
    expected
}

/// Under a keyed promise a second effect under the same key is no violation where nobody dedupes.
fn is_keyed(message: &Message, truth: &Truth) -> bool {
    truth.promise == Promise::AtLeastOnceKeyed && !truth.dedupes && message.effect_keys == 1
}

fn is_blind(message: &Message, truth: &Truth) -> bool {
    let allowed = truth.promise == Promise::AtLeastOnceKeyed && message.blind_with_one_key;
    message.blind_resends > 0 && !allowed
}

/// How long a right worker waits for an effect to be seen after it stopped waiting for an answer, in milliseconds;
/// a little less than its window.
const PATIENCE_MS: u64 = RECONCILE_MS as u64 - 50;

/// A provider that hides what it accepted, or accepts it later than anybody can be asked to wait, makes even a
/// right worker send twice, and so does one that forgets its keys before the worker's own clock says so. And nobody
/// can be right who is stopped between the last look at a claim and the request.
fn is_excused(truth: &Truth) -> bool {
    if truth.dedupes && truth.clock_was_stepped {
        return true;
    }
    let harmed = |message: &&Message| message.effects > 1 || message.blind_resends > 0;
    let mut harmed = truth.messages.iter().filter(harmed).peekable();
    harmed.peek().is_some() && harmed.all(|message| message.hidden_ms > PATIENCE_MS || message.was_stale)
}

impl Message {
    fn made(&self) -> u32 {
        self.effects + self.lies
    }

    fn is_falsely_confirmed(&self) -> bool {
        self.row == Some(RowState::Confirmed) && self.made() == 0
    }

    fn is_falsely_denied(&self) -> bool {
        matches!(self.row, Some(RowState::Failed | RowState::Cancelled)) && self.effects > 0
    }

    fn is_lost(&self) -> bool {
        self.row.is_none() && self.made() == 0
    }
}

/// The verdict on a message whose row can be seen.
fn mapped(message: &Message) -> ActionVerdict {
    if message.effects > 1 {
        return ActionVerdict::Duplicate;
    }
    if message.is_falsely_confirmed() {
        return ActionVerdict::FalseSuccess;
    }
    if message.is_falsely_denied() {
        return ActionVerdict::FalseFailure;
    }
    match message.row {
        None if message.made() == 0 => ActionVerdict::Lost,
        None | Some(RowState::Confirmed) => ActionVerdict::DeliveredOnce,
        Some(RowState::Created | RowState::Dispatching) => ActionVerdict::Stuck,
        Some(RowState::Unknown | RowState::Review) => ActionVerdict::ExplicitUnknown,
        Some(RowState::Failed | RowState::Cancelled) => ActionVerdict::ExplicitFailure,
    }
}

/// The verdict on a message of which only the effects and the words in the state directory are seen; `None` where
/// the words of another one may speak for it.
fn unmapped(message: &Message, truth: &Truth) -> Option<ActionVerdict> {
    match message.effects + message.lies {
        0 => {}
        _ if message.effects > 1 => return Some(ActionVerdict::Duplicate),
        _ => return Some(ActionVerdict::DeliveredOnce),
    }
    let says = |test: fn(RowState) -> bool| truth.messages.iter().filter_map(|it| it.row).any(test);
    let is_doubt = |row| matches!(row, RowState::Unknown | RowState::Review | RowState::Failed);
    match message.requests {
        _ if truth.promise == Promise::AtLeastOnceKeyed => Some(ActionVerdict::Lost),
        0 if says(is_doubt) => None,
        0 => Some(ActionVerdict::Lost),
        _ if says(|row| row != RowState::Confirmed) => Some(ActionVerdict::Undetermined),
        _ => Some(ActionVerdict::Lost),
    }
}

/// Compares the verdicts on actions, by recipient, where the ledger is mapped by action as well.
fn action_differences(truth: &Truth, judged: &TrialVerdict) -> Vec<String> {
    let place = |action: &str, to: &str| {
        let action = if truth.is_mapped { action.to_owned() } else { String::new() };
        (action, to.to_owned())
    };
    let mut wanted: BTreeMap<(String, String), Vec<Option<ActionVerdict>>> = BTreeMap::new();
    // Of what nobody asked for nothing can be said without a row.
    let is_told = |message: &&Message| message.is_owed || (truth.is_mapped && message.requests > 0);
    for message in truth.messages.iter().filter(is_told) {
        let verdict = if truth.is_mapped { Some(mapped(message)) } else { unmapped(message, truth) };
        wanted.entry(place(&message.action, &message.destination)).or_default().push(verdict);
    }
    let mut given: BTreeMap<(String, String), Vec<ActionVerdict>> = BTreeMap::new();
    for action in &judged.actions {
        given.entry(place(&action.action, &action.recipient)).or_default().push(action.verdict);
    }
    let mut found = Vec::new();
    for (place, verdicts) in wanted {
        let mut given = given.remove(&place).unwrap_or_default();
        given.sort_unstable();
        let mut sure: Vec<ActionVerdict> = verdicts.iter().flatten().copied().collect();
        sure.sort_unstable();
        let agree = if sure.len() == verdicts.len() { sure == given } else { given.len() == verdicts.len() };
        if !agree {
            found.push(format!("{} to {}: said {given:?}, and it is {verdicts:?}", place.0, place.1));
        }
    }
    // A destination that nobody asked for, which was made and never sent, is told as well.
    given.retain(|place, _| {
        !truth.messages.iter().any(|message| !message.is_owed && message.destination == place.1)
    });
    found.extend(
        given.into_iter().map(|(place, given)| format!("{place:?}: {given:?}, of which nobody knows")),
    );
    found
}

fn verdict_difference(truth: &Truth, judged: &TrialVerdict, violated: bool) -> Option<String> {
    let doubts = truth.messages.iter().any(|message| {
        !truth.is_mapped
            && !matches!(unmapped(message, truth), Some(verdict) if verdict != ActionVerdict::Undetermined)
    });
    let wanted: &[Verdict] = match (violated, doubts, truth.undone.is_empty()) {
        (true, _, _) => &[Verdict::Violated],
        (false, true, _) => &[Verdict::Inconclusive],
        (false, false, false) => &[Verdict::Vacuous],
        (false, false, true) if truth.overtaken > 0 => &[Verdict::Holds, Verdict::Vacuous],
        // A wrong worker may leave doubts of its own.
        (false, false, true) if !truth.is_right => &[Verdict::Holds, Verdict::Inconclusive],
        (false, false, true) => &[Verdict::Holds],
    };
    let said = judged.verdict;
    (!wanted.contains(&said)).then(|| {
        format!(
            "the verdict is {said} and should be {wanted:?}: undone {:?}, missing {:?}",
            truth.undone, judged.evidence.missing
        )
    })
}
