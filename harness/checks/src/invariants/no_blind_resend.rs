//! No second request while the first may have been accepted.

use std::collections::BTreeMap;

use killpoint_model::Entry;
use killpoint_model::profile::{KeyScope, WindowAnchor};
use killpoint_model::settings::Promise;

use super::{Invariant, Looked};
use crate::facts::wire::AttemptFact;
use crate::facts::{Facts, by_certain_action};

static ENTRY: Entry = Entry {
    name: "no-blind-resend",
    summary: "no resend of what may have been accepted, without asking first",
    explanation: "\
The worker sent an action again after an attempt that may have been accepted (a lost answer, a timeout, a \
server error, or its own death), with no lookup that answered in between, and without the same key inside the \
window of a provider that dedupes. Whether a duplicate came of it is luck: the same bytes on the wire can mean \
accepted or not, so a worker must be safe in both cases.

Right is to ask whether the action exists and to resend only when the provider says that it does not; to \
resend under the same key where the provider dedupes; or to park it as unknown. A refusal that was read whole \
(4xx other than 408, 409, 425) may be followed by a new request. (Your Agent Finished the Job. Did the Email \
Actually Leave?; RFC 9110 section 9.2.2.)",
    example: "[provider.idempotency]\ndedupe = true\nwindow = \"24h\"",
};

/// See [`ENTRY`].
pub(crate) struct NoBlindResend;

impl Invariant for NoBlindResend {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no request that may have been accepted: let the plan lose a reply, or kill after a request was sent",
        );
        for (index, unit, _) in facts.units() {
            let attempts = || unit.attempts.iter().map(|at| &facts.book.wire.attempts[*at]);
            if !attempts().any(AttemptFact::doubtful) {
                continue;
            }
            looked.look();
            if unit.attempts.len() == 1 {
                continue;
            }
            let mut blind = Blind::default();
            for group in by_certain_action(facts, index) {
                search(facts, index, &group, &mut blind);
            }
            if facts.slots(index) > 1 {
                count(facts, index, &mut blind);
            }
            if blind.resends == 0 {
                continue;
            }
            let is_note = facts.settings.promise == Promise::AtLeastOnceKeyed && blind.same_key;
            let ending = if is_note { ", under the same key" } else { "" };
            looked.violation_or_note(
                is_note,
                unit.subject(),
                format!(
                    "{} sent again, with no answered lookup in between, after an attempt that may have been accepted{ending}",
                    if blind.resends == 1 { "once".to_owned() } else { format!("{} times", blind.resends) }
                ),
                blind.events,
            );
        }
        looked
    }
}

struct Blind {
    resends: u32,
    /// Whether every blind resend bore the key of the attempt before it.
    same_key: bool,
    events: Vec<u64>,
}

impl Default for Blind {
    fn default() -> Self {
        Self { resends: 0, same_key: true, events: Vec::new() }
    }
}

/// Goes through attempts of one action.
fn search(facts: &Facts<'_>, unit: usize, group: &[usize], blind: &mut Blind) {
    for (before, fact) in blind_pairs(facts, unit, group) {
        let [before, fact] = [before, fact].map(|index| &facts.book.wire.attempts[index]);
        blind.resends += 1;
        blind.same_key &= before.attempt.key.is_some() && before.attempt.key == fact.attempt.key;
        blind.events.extend([before.seq, fact.seq]);
    }
}

/// Attempts of one action, each with the one before that makes it blind. The latest doubtful attempt is
/// enough: one before it that is still open with another key made that latest one blind already.
pub(super) fn blind_pairs(facts: &Facts<'_>, unit: usize, group: &[usize]) -> Vec<(usize, usize)> {
    let mut window = Window::new(facts);
    let mut last: Option<usize> = None;
    let mut pairs = Vec::new();
    for index in group {
        let fact = &facts.book.wire.attempts[*index];
        let open = last.filter(|before| {
            let before = &facts.book.wire.attempts[*before];
            let asked = facts.lookups.answered_between(unit, before.seq, fact.seq);
            !asked && !window.protects(before, fact) && !facts.was_held_over(*index, before.seq)
        });
        pairs.extend(open.map(|before| (before, *index)));
        window.pass(fact);
        if fact.doubtful() {
            last = Some(*index);
        }
    }
    pairs
}

/// Several equal messages are owed and nothing tells them apart: each request beyond their number needs a
/// refusal or an answered lookup before it.
fn count(facts: &Facts<'_>, unit: usize, blind: &mut Blind) {
    let attempts = &facts.book.units[unit].attempts;
    let mut window = Window::new(facts);
    let mut allowed = facts.slots(unit);
    let mut before: Option<&AttemptFact<'_>> = None;
    for fact in attempts.iter().map(|index| &facts.book.wire.attempts[*index]) {
        let known_key = window.knows(fact);
        if let Some(before) = before {
            allowed += u32::from(facts.lookups.answered_between(unit, before.seq, fact.seq));
        }
        window.pass(fact);
        // Requests with a key that was used before were searched with their own group.
        if !known_key {
            match (allowed.checked_sub(1), before) {
                (Some(rest), _) => allowed = rest,
                (None, Some(before)) => {
                    blind.resends += 1;
                    blind.same_key = false;
                    blind.events.extend([before.seq, fact.seq]);
                }
                (None, None) => {}
            }
        }
        allowed += u32::from(fact.refused());
        before = Some(fact);
    }
}

/// The provider's dedupe window over keys, as far as requests have shown it.
struct Window<'b> {
    facts: &'b Facts<'b>,
    /// Provider's clock, milliseconds: from when the window of a key runs.
    anchors: BTreeMap<(&'b str, &'b str), u64>,
}

impl<'b> Window<'b> {
    fn new(facts: &'b Facts<'_>) -> Self {
        Self { facts, anchors: BTreeMap::new() }
    }

    fn place(&self, fact: &AttemptFact<'b>) -> Option<(&'b str, &'b str)> {
        let key = fact.attempt.key.as_deref()?;
        match self.facts.settings.provider.idempotency.scope {
            KeyScope::Account => Some((key, "")),
            KeyScope::Path => Some((key, fact.attempt.target.as_str())),
        }
    }

    fn knows(&self, fact: &AttemptFact<'b>) -> bool {
        self.place(fact).is_some_and(|place| self.anchors.contains_key(&place))
    }

    fn is_inside(&self, fact: &AttemptFact<'b>) -> bool {
        let window_ms = self.facts.settings.provider.idempotency.window_ms;
        self.place(fact)
            .and_then(|place| self.anchors.get(&place))
            .is_some_and(|anchor| fact.attempt.at_ms < anchor.saturating_add(window_ms))
    }

    /// Whether the provider dedupes the second request against the first.
    fn protects(&self, before: &AttemptFact<'b>, fact: &AttemptFact<'b>) -> bool {
        let profile = &self.facts.settings.provider.idempotency;
        profile.dedupe && self.place(before) == self.place(fact) && self.is_inside(fact)
    }

    fn pass(&mut self, fact: &AttemptFact<'b>) {
        let Some(place) = self.place(fact) else { return };
        let renewed = self.facts.settings.provider.idempotency.anchor == WindowAnchor::LastRequest;
        if renewed || !self.is_inside(fact) {
            self.anchors.insert(place, fact.attempt.at_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::Settings;
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{Holds, Violated};
    use killpoint_model::provider::Replay;
    use killpoint_model::settings::Promise;

    use crate::sample::{Trial, judged, status, violated};

    fn deduping(window_ms: u64) -> Settings {
        let mut settings = Settings::default();
        settings.provider.idempotency.dedupe = true;
        settings.provider.idempotency.window_ms = window_ms;
        settings
    }

    #[test]
    fn a_resend_needs_an_answered_lookup_in_both_twins() {
        for commit in [true, false] {
            let mut trial = Trial::new();
            trial.lose("bob@x", None, "deployed", commit);
            let asked = trial.clone().look_up("", &[]).deliver("bob@x", None, "deployed").end();
            assert_eq!(status(&Settings::default(), &asked, "no-blind-resend"), Holds);
            let blind = trial.clone().deliver("bob@x", None, "deployed").end();
            assert_eq!(status(&Settings::default(), &blind, "no-blind-resend"), Violated);
            trial.ask("", &[]);
            let unanswered = trial.deliver("bob@x", None, "deployed").end();
            assert_eq!(status(&Settings::default(), &unanswered, "no-blind-resend"), Violated);
        }
    }

    #[test]
    fn a_lookup_counts_for_its_own_action_only() {
        let trial = |asked: &str| {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", false).look_up(asked, &[]);
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed").end()
        };
        assert_eq!(status(&Settings::default(), &trial("k-deploy-42"), "no-blind-resend"), Holds);
        assert_eq!(status(&Settings::default(), &trial("k-other"), "no-blind-resend"), Violated);
    }

    #[test]
    fn a_request_that_the_harness_held_back_is_no_resend() {
        let held = |connection: u32| {
            let mut trial = Trial::new();
            let at: killpoint_model::HitName = "provider:connected#1".parse().unwrap();
            let (hit, fault) = (at.clone(), killpoint_model::Fault::named("second-worker"));
            trial.plan.faults.push(killpoint_model::plan::FaultAt { at: at.clone(), fault: fault.clone() });
            let subject = Some("1".to_owned());
            trial.push(EventKind::Hit { hit, exact: true, live: true, subject, worker: 0 });
            trial.push(EventKind::FaultAnnounced { at: at.clone(), fault });
            trial.connection = 2;
            trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
            trial.push(EventKind::FaultDone { at, landed: true, note: "the first worker goes on".into() });
            trial.connection = connection;
            trial.lose("bob@x", Some("k-deploy-42"), "deployed", false);
            status(&Settings::default(), &trial.end(), "no-blind-resend")
        };
        assert_eq!(held(1), Holds, "it was made before the other one was sent");
        assert_eq!(held(3), Violated, "it was made after that");
    }

    #[test]
    fn the_same_key_protects_inside_the_window_of_a_provider_that_dedupes() {
        let trial = |second: &str, pause_ms: u64| {
            let mut trial = Trial::new();
            trial.lose("bob@x", Some("k-1"), "deployed", true);
            trial.clock_ms += pause_ms;
            let again = trial.send("bob@x", Some(second), "deployed");
            trial.replay(again, Replay::Replayed, "msg_1").reply(again, 200).end()
        };
        assert_eq!(status(&deduping(1000), &trial("k-1", 500), "no-blind-resend"), Holds);
        assert_eq!(status(&deduping(1000), &trial("k-1", 2000), "no-blind-resend"), Violated);
        assert_eq!(status(&deduping(1000), &trial("k-2", 500), "no-blind-resend"), Violated);
        assert_eq!(status(&Settings::default(), &trial("k-1", 500), "no-blind-resend"), Violated);
        let keyed = Settings { promise: Promise::AtLeastOnceKeyed, ..Settings::default() };
        assert_eq!(status(&keyed, &trial("k-1", 500), "no-blind-resend"), Holds);
        assert_eq!(status(&keyed, &trial("k-2", 500), "no-blind-resend"), Violated);
    }

    #[test]
    fn a_refusal_may_be_followed_and_a_server_error_or_a_death_may_not() {
        for (code, expected) in
            [(429, NotShownOrHolds), (400, NotShownOrHolds), (409, Blind), (500, Blind), (200, Blind)]
        {
            let mut trial = Trial::new();
            let attempt = trial.send("bob@x", None, "deployed");
            trial.reply(attempt, code);
            let trial = trial.deliver("bob@x", None, "deployed").end();
            let found = status(&Settings::default(), &trial, "no-blind-resend");
            assert_eq!(found == Violated, expected == Blind, "{code}: {found}");
        }
        let mut trial = Trial::new();
        trial.send("bob@x", None, "deployed");
        let killed = trial.kill("provider:received#1").deliver("bob@x", None, "deployed").end();
        assert_eq!(status(&Settings::default(), &killed, "no-blind-resend"), Violated);
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Expected {
        Blind,
        NotShownOrHolds,
    }
    use Expected::{Blind, NotShownOrHolds};

    #[test]
    fn of_two_equal_messages_the_third_request_is_one_too_many() {
        let two = || Trial::new().deliver("bob@x", None, "tick").deliver("bob@x", None, "tick").clone();
        let three = two().deliver("bob@x", None, "tick").end();
        assert!(violated(&judged(&Settings::default(), &three, &two().end())).contains(&"no-blind-resend"));
        let mut refused = Trial::new();
        let attempt = refused.send("bob@x", None, "tick");
        refused.reply(attempt, 429);
        let refused = refused.deliver("bob@x", None, "tick").deliver("bob@x", None, "tick").end();
        assert_eq!(violated(&judged(&Settings::default(), &refused, &two().end())), Vec::<&str>::new());
    }
}
