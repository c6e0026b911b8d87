//! What was refused for good is not sent again.

use killpoint_model::Entry;

use super::{Invariant, Looked};
use crate::facts::wire::AttemptFact;
use crate::facts::{Facts, by_certain_action};

static ENTRY: Entry = Entry {
    name: "refusal-is-final",
    summary: "a request that was refused for good is not sent again",
    explanation: "\
The provider refused an action with a definite 4xx, and the worker sent it again. Nothing will change until a human \
changes something; meanwhile the retries use up the rate limit, and the action that will never be delivered looks as \
if it were on its way.

Right is an explicit failure with the provider's words after the first refusal. 408, 409, 425 and 429 are no refusals \
for good; after 401 and 407 one more try with fresh credentials is right; a corrected request under another key is \
another request; a worker that died, or whose store failed, before it could write the refusal down may ask again; and so \
may one that gave up before it heard it, where it asks what became of the request first, or the key makes that safe. \
(K25 failure-misclassified.)",
    example: "[[provider.rule]]\nmatch = { operation = \"create\" }\nplan = \"rejected\"",
};

/// Answers that say "not now" or "already", not "never".
const NOT_FOR_GOOD: [u16; 4] = [408, 409, 425, 429];
/// Answers after which other credentials may be tried, once.
const CREDENTIALS: [u16; 2] = [401, 407];

/// See [`ENTRY`].
pub(crate) struct RefusalIsFinal;

impl Invariant for RefusalIsFinal {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no request was refused for good: let the plan refuse one, such as `plan = \"rejected\"`",
        );
        let refused = |at: &usize| refused_for_good(&facts.book.wire.attempts[*at]).is_some();
        for (index, unit, _) in facts.units().filter(|(_, unit, _)| unit.attempts.iter().any(refused)) {
            for group in by_certain_action(facts, index) {
                if group.iter().any(refused) {
                    looked.look();
                }
                let again = resends(facts, index, &group);
                if let Some((code, events)) = again {
                    let times = events.len() - 1;
                    let how_often = if times == 1 { "once".to_owned() } else { format!("{times} times") };
                    let message = format!("refused with {code}, and sent again {how_often}");
                    looked.violation(unit.subject(), message, events);
                }
            }
        }
        looked
    }
}

/// The status and where it was said, of a whole answer that says "never".
fn refused_for_good(fact: &AttemptFact<'_>) -> Option<(u16, u64)> {
    let status = fact.status().filter(|status| (400..500).contains(status))?;
    let of_the_key = fact.replay.is_some_and(|(_, _, effect)| effect.is_some());
    let definite = !NOT_FOR_GOOD.contains(&status) && !of_the_key && fact.attempt.dialect != "smtp";
    definite.then_some((status, fact.end_seq?))
}

/// The first refusal after which requests followed, with these.
fn resends(facts: &Facts<'_>, unit: usize, group: &[usize]) -> Option<(u16, Vec<u64>)> {
    let mut credentials = 1;
    let mut last: Option<(u16, u64, &AttemptFact<'_>)> = None;
    let mut found: Option<(u16, Vec<u64>)> = None;
    for index in group {
        let fact = &facts.book.wire.attempts[*index];
        // The latest refusal is the one that a death was nearest to.
        if let Some((code, said, before)) = last.filter(|(_, said, _)| *said < fact.seq) {
            let corrected = before.attempt.key != fact.attempt.key
                || before.attempt.body_sha256 != fact.attempt.body_sha256;
            if CREDENTIALS.contains(&code) && credentials > 0 {
                credentials -= 1;
            } else if !corrected
                // An answer may be written out to who gave up, died since the request, or lost its claim while it stood still.
                && !facts.gave_up(unit, before, fact)
                && !facts.timeline.disturbed_between(before.seq, fact.seq)
                && !facts.was_held_over(*index, said)
            {
                let (_, events) = found.get_or_insert_with(|| (code, vec![before.seq]));
                events.push(fact.seq);
            }
        }
        last = refused_for_good(fact).map(|(code, said)| (code, said, fact)).or(last);
    }
    found
}

#[cfg(test)]
mod tests {
    use killpoint_model::Settings;
    use killpoint_model::event::EventKind;
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::provider::ProviderEvent;

    use crate::sample::{Trial, plain_baseline, status};

    const NAME: &str = "refusal-is-final";

    fn answered(codes: &[u16]) -> Trial {
        let mut trial = Trial::new();
        for code in codes {
            let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
            trial.reply(attempt, *code);
        }
        trial
    }

    fn judged(trial: &mut Trial) -> InvariantStatus {
        status(&Settings::default(), &trial.end(), NAME)
    }

    #[test]
    fn one_refusal_is_enough() {
        assert_eq!(judged(&mut answered(&[400])), Holds);
        assert_eq!(judged(&mut answered(&[400, 400])), Violated);
        assert_eq!(judged(&mut answered(&[422, 200])), Violated);
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), NotShown);
    }

    #[test]
    fn not_now_is_not_never() {
        for code in [408, 409, 425, 429, 500, 503] {
            assert_eq!(judged(&mut answered(&[code, 200])), NotShown, "{code}");
        }
        assert_eq!(judged(&mut answered(&[401, 200])), Holds, "fresh credentials");
        assert_eq!(judged(&mut answered(&[401, 401, 200])), Violated);
    }

    #[test]
    fn a_refusal_that_died_with_the_worker_may_be_asked_for_again() {
        let mut trial = answered(&[400]);
        trial.kill("provider:replied#1").deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(judged(&mut trial), Holds);
        let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.reply(attempt, 400).deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(judged(&mut trial), Violated, "the next life got one as well, and lived on");
    }

    #[test]
    fn an_answer_to_the_dead_tells_the_next_life_nothing() {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.die("provider:replying#1").reply(attempt, 400).spawn();
        assert_eq!(judged(&mut trial.deliver("bob@x", Some("k-deploy-42"), "deployed").clone()), Holds);
    }

    #[test]
    fn who_gave_up_before_the_answer_may_ask_and_send_again() {
        let gave_up = || {
            let mut trial = answered(&[400]);
            trial.provider(ProviderEvent::Unread { attempt: 1 });
            trial
        };
        let again = |trial: &mut Trial| judged(trial.deliver("bob@x", Some("k-deploy-42"), "deployed"));
        assert_eq!(again(gave_up().look_up("k-deploy-42", &[])), Holds);
        assert_eq!(again(answered(&[400]).look_up("k-deploy-42", &[])), Violated, "the refusal was read");
        assert_eq!(
            again(&mut gave_up()),
            Violated,
            "without a question it is as if the status had been read"
        );
        let mut keyed = Settings::default();
        keyed.provider.idempotency.dedupe = true;
        let mut trial = gave_up();
        trial.deliver("bob@x", Some("k-deploy-42"), "deployed");
        assert_eq!(status(&keyed, &trial.end(), NAME), Holds);
    }

    #[test]
    fn who_stood_still_did_not_hear_the_refusal() {
        let stopped = |still: bool| {
            let mut trial = Trial::new();
            trial.push(EventKind::Stopped { worker: 1 });
            if !still {
                trial.push(EventKind::Resumed { worker: 1 });
            }
            let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
            trial.reply(attempt, 400).spawn_worker(2).deliver("bob@x", Some("k-deploy-42"), "deployed");
            judged(&mut trial)
        };
        assert_eq!(stopped(true), Holds, "another worker took over what was in flight");
        assert_eq!(stopped(false), Violated);
    }

    #[test]
    fn a_corrected_request_is_another_one() {
        let mut trial = answered(&[422]);
        trial.deliver("bob@x", Some("k-2"), "deployed");
        assert_eq!(judged(&mut trial), Holds);
    }
}
