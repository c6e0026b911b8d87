//! At most one effect per action and destination.

use killpoint_model::Entry;
use killpoint_model::settings::Promise;

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::account::Account;
use crate::facts::units::Unit;

static ENTRY: Entry = Entry {
    name: "no-duplicate-effect",
    summary: "no recipient gets one action twice",
    explanation: "\
A recipient received the same action more often than it was owed: a second mail, a second charge, a \
second comment. It is the classical end of a crash between the provider's acceptance and the local \
acknowledgement. Effects are counted where they are committed, at the provider, never in the worker's log: \
a client library may repeat a request below the worker's own code.

Right is one effect per action and destination, whatever the number of requests: two attempts with one key \
and one effect are right. Copies that the provider makes by itself are noted, not counted. Under \
`at-least-once-keyed` a second effect under the same key at a provider that does not dedupe is a note. (Your \
Agent Recovered the Run; RFC 5321 section 4.5.3.2.6.)",
    example: "promise = \"exactly-once\"",
};

/// See [`ENTRY`].
pub(crate) struct NoDuplicateEffect;

impl Invariant for NoDuplicateEffect {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked =
            Looked::new(&ENTRY, "no request reached the provider: check that the worker uses its address");
        for (_, unit, account) in facts.units() {
            if account.expected == 0 && account.total == 0 {
                continue;
            }
            looked.look();
            if account.duplicate {
                let second = facts.is_second_identity(unit);
                let made = if second { account.made + 1 } else { account.made };
                let owed = account.expected.max(1);
                looked.violation_or_note(
                    is_allowed(facts, unit),
                    unit.subject(),
                    format!(
                        "the recipient got {made} effects where {owed} was owed{}",
                        how(facts, unit, second)
                    ),
                    facts.effect_events(unit),
                );
            }
            note_the_providers_doing(facts, unit, account, &mut looked);
        }
        looked
    }
}

fn how(facts: &Facts<'_>, unit: &Unit, second: bool) -> String {
    if second {
        return ": the same message under a second identity".to_owned();
    }
    let made = unit.effects.iter().filter_map(|index| facts.book.wire.effects[*index].attempt);
    let attempts: Vec<String> =
        made.map(|index| facts.book.wire.attempts[index].attempt.id.to_string()).collect();
    format!(": attempts {}", attempts.join(", "))
}

/// Under a keyed promise: one key on all effects, and nobody who should have deduped them.
fn is_allowed(facts: &Facts<'_>, unit: &Unit) -> bool {
    let mut keys = unit.effects.iter().map(|index| facts.book.wire.effects[*index].effect.key.as_deref());
    let first = keys.next().flatten();
    facts.settings.promise == Promise::AtLeastOnceKeyed
        && !facts.settings.provider.idempotency.dedupe
        && !facts.is_second_identity(unit)
        && first.is_some()
        && keys.all(|key| key == first)
}

fn note_the_providers_doing(facts: &Facts<'_>, unit: &Unit, account: &Account, looked: &mut Looked) {
    let once = unit.effects.iter().filter(|index| facts.book.wire.effects[**index].first_of_attempt).count();
    let copies = account.total.saturating_sub(once as u32);
    if copies > 0 {
        looked.note(
            unit.subject(),
            format!("the provider itself delivered {copies} more: not counted against the worker"),
            facts.effect_events(unit),
        );
    }
    if !account.lies.is_empty() {
        looked.note(
            unit.subject(),
            "the provider refused the request in a whole answer and delivered it all the same: not counted against the worker",
            account.lies.iter().map(|index| facts.book.wire.effects[*index].seq).collect(),
        );
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::Settings;
    use killpoint_model::finding::InvariantStatus::{Holds, Violated};
    use killpoint_model::provider::ProviderEvent;
    use killpoint_model::settings::Promise;
    use killpoint_model::verdict::ActionVerdict;
    use serde_json::json;

    use crate::sample::{Trial, judged, outcome, plain_baseline, status, violated};

    #[test]
    fn one_effect_holds_and_two_do_not() {
        let once = Trial::new().deliver("bob@x", None, "deployed").end();
        assert_eq!(status(&Settings::default(), &once, "no-duplicate-effect"), Holds);
        let twice = Trial::new().deliver("bob@x", None, "deployed").deliver("bob@x", None, "deployed").end();
        assert_eq!(status(&Settings::default(), &twice, "no-duplicate-effect"), Violated);
    }

    #[test]
    fn two_equal_payloads_in_the_baseline_are_two_owed() {
        let two = || Trial::new().deliver("bob@x", None, "tick").deliver("bob@x", None, "tick").clone();
        let verdict = judged(&Settings::default(), &two().end(), &two().end());
        assert_eq!(violated(&verdict), Vec::<&str>::new());
        let three = two().deliver("bob@x", None, "tick").end();
        let verdict = judged(&Settings::default(), &three, &two().end());
        assert!(violated(&verdict).contains(&"no-duplicate-effect"));
    }

    #[test]
    fn copies_of_the_providers_own_doing_are_noted_only() {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", None, "deployed");
        let effect = trial.commit_copies(attempt, 2);
        trial.reply(attempt, 200).provider(ProviderEvent::Redelivered { effect });
        let verdict = judged(&Settings::default(), &trial.end(), &plain_baseline());
        let outcome = outcome(&verdict, "no-duplicate-effect");
        assert_eq!((outcome.status, outcome.notes.len()), (Holds, 1));
        assert_eq!(
            (verdict.actions[0].effects, verdict.actions[0].verdict),
            (3, ActionVerdict::DeliveredOnce)
        );
    }

    #[test]
    fn a_resend_with_a_counter_in_its_body_is_still_the_same_message() {
        let mut trial = Trial::new();
        for attempt in 1..=2 {
            let body = json!({"to": "bob@x", "text": "deployed", "try": attempt});
            let attempt = trial.send_body("bob@x", None, body);
            trial.commit(attempt);
            trial.drop_reply(attempt);
        }
        assert_eq!(status(&Settings::default(), &trial.end(), "no-duplicate-effect"), Violated);
        assert_eq!(status(&Settings::default(), &trial.end(), "no-blind-resend"), Violated);
    }

    #[test]
    fn under_a_keyed_promise_a_second_effect_with_the_key_is_a_note() {
        let keyed = Settings { promise: Promise::AtLeastOnceKeyed, ..Settings::default() };
        let twice = |second: &str| {
            Trial::new()
                .lose("bob@x", Some("k-1"), "deployed", true)
                .deliver("bob@x", Some(second), "deployed")
                .end()
        };
        assert_eq!(status(&keyed, &twice("k-1"), "no-duplicate-effect"), Holds);
        assert_eq!(status(&keyed, &twice("k-2"), "no-duplicate-effect"), Violated);
        let mut dedupes = keyed.clone();
        dedupes.provider.idempotency.dedupe = true;
        assert_eq!(status(&dedupes, &twice("k-1"), "no-duplicate-effect"), Violated);
    }
}
