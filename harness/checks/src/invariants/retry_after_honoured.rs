//! "Not before" is a promise that the provider holds its clients to.

use killpoint_model::Entry;

use super::{Invariant, Looked};
use crate::facts::wire::AttemptFact;
use crate::facts::{Facts, by_certain_action};

static ENTRY: Entry = Entry {
    name: "retry-after-honoured",
    summary: "after a 429 an action is not sent again before the time that the answer gives",
    explanation: "\
The provider answered 429 and said after how long to come back, and the action was sent again sooner. A provider \
that is overloaded gets more load, and one that counts such requests locks the account out, for everybody that uses it.

Right is to keep the time with the row (`next_attempt_at`), so that a restart honours it too. A small part of the time \
is allowed for clocks. A worker that died after the answer, or whose clock was changed, is not measured. (K25 \
failure-misclassified: \"429 not before the given time\"; RFC 6585 section 4.)",
    example: "[[provider.rule]]\nmatch = { operation = \"create\", nth = 1 }\nplan = { commit = \"never\", reply = \"status(429)\" }",
};

/// What a timer and the record of events may be off, in milliseconds, beside a tenth of the time.
const SLACK_MS: u64 = 50;

/// See [`ENTRY`].
pub(crate) struct RetryAfterHonoured;

impl Invariant for RetryAfterHonoured {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no 429 gave a time after which the action was sent again: let the plan answer `status(429)` once",
        );
        for (index, unit, _) in facts.units().filter(|(_, unit, _)| unit.attempts.len() > 1) {
            for group in by_certain_action(facts, index) {
                for pair in group.windows(2) {
                    let [before, after] = [pair[0], pair[1]].map(|at| &facts.book.wire.attempts[at]);
                    // Who gave up before the answer came does not know what it asked for.
                    if facts.was_held_over(pair[1], before.seq) || facts.gave_up(index, before, after) {
                        continue;
                    }
                    let Some((asked_ms, waited_ms)) = waited(facts, before, after) else { continue };
                    looked.look();
                    if waited_ms + asked_ms / 10 + SLACK_MS < asked_ms {
                        let message = format!(
                            "the answer said to wait {asked_ms} ms, and it was sent again after {waited_ms} ms"
                        );
                        looked.violation(unit.subject(), message, vec![before.seq, after.seq]);
                    }
                }
            }
        }
        looked
    }
}

/// What was asked for and what was waited, in milliseconds, where that says something about the worker.
fn waited(facts: &Facts<'_>, before: &AttemptFact<'_>, after: &AttemptFact<'_>) -> Option<(u64, u64)> {
    let asked_ms = before.retry_after_ms.filter(|_| before.status() == Some(429))?;
    // The first byte: an answer may be parsed before its end is on record.
    let said = before.replying.into_iter().chain(before.end_seq).min()?;
    if said > after.seq || facts.timeline.disturbed_between(before.seq, after.seq) {
        return None;
    }
    let waited_us = facts.at_us(after.seq).saturating_sub(facts.at_us(said));
    Some((asked_ms, waited_us / 1000))
}

#[cfg(test)]
mod tests {
    use killpoint_model::Settings;
    use killpoint_model::event::{ClockMethod, EventKind};
    use killpoint_model::finding::InvariantStatus::{self, Holds, NotShown, Violated};
    use killpoint_model::provider::ProviderEvent;

    use crate::sample::{Trial, plain_baseline, status};

    const NAME: &str = "retry-after-honoured";

    fn limited(code: u16, wait: impl Fn(&mut Trial)) -> InvariantStatus {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", None, "deployed");
        let retry_after_ms = Some(1000);
        trial.provider(ProviderEvent::Replied { attempt, status: code, retry_after_ms });
        wait(&mut trial);
        status(&Settings::default(), &trial.deliver("bob@x", None, "deployed").end(), NAME)
    }

    #[test]
    fn the_time_is_waited_for() {
        assert_eq!(limited(429, |trial| trial.pass_ms(1000)), Holds);
        assert_eq!(limited(429, |trial| trial.pass_ms(900)), Holds, "clocks differ a little");
        assert_eq!(limited(429, |trial| trial.pass_ms(100)), Violated);
        assert_eq!(limited(503, |_| ()), NotShown, "of a server error nobody promised anything");
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_clock_that_is_off_from_the_next_start_on_is_not_measured() {
        let stepped = |restarts: bool| {
            let mut trial = Trial::new();
            let method = ClockMethod::Environment;
            trial.push(EventKind::WorkerClock { worker: 1, offset_ms: 300_000, method });
            let attempt = trial.send("bob@x", None, "deployed");
            let retry_after_ms = Some(1000);
            trial.provider(ProviderEvent::Replied { attempt, status: 429, retry_after_ms });
            if restarts {
                trial.push(EventKind::Exited { worker: 1, code: Some(0), signal: None });
                trial.spawn();
            }
            status(&Settings::default(), &trial.deliver("bob@x", None, "deployed").end(), NAME)
        };
        assert_eq!(stepped(true), NotShown);
        assert_eq!(stepped(false), Violated, "the life that runs has its old clock");
    }

    #[test]
    fn what_a_death_cut_is_not_measured() {
        assert_eq!(limited(429, |trial| _ = trial.kill("provider:replied#1")), NotShown);
    }
}
