//! The seeded bugs, and the decisions of the worker that they change.

/// What the worker does where the outcome of an attempt is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Right: the row says `unknown`, and the provider is asked.
    #[default]
    Explicit,
    /// It is taken for a success.
    TakenAsDelivered,
    /// It is taken for a failure.
    TakenAsFailed,
    /// The row goes back to `pending` with no next attempt.
    PostponedForever,
}

/// The worker's decisions. The default is right; each bug changes one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Policy {
    /// What an unknown outcome becomes.
    pub(crate) doubt: Doubt,
    /// An item that may have been accepted is sent again without asking the provider.
    pub(crate) resend_without_lookup: bool,
    /// The first lookup that finds nothing is believed.
    pub(crate) trust_first_lookup: bool,
    /// Each time that an item is taken up it gets a new key.
    pub(crate) key_per_attempt: bool,
    /// `delivered` is written before the request is sent.
    pub(crate) confirm_before_send: bool,
    /// Intent and key are written only after the request was sent.
    pub(crate) intent_after_send: bool,
    /// An item counts as delivered as soon as its execution is done.
    pub(crate) done_with_execution: bool,
    /// Two workers that saw the same free item both get it.
    pub(crate) claim_unconditionally: bool,
    /// Error answers are retried at once and almost without end.
    pub(crate) retry_hot: bool,
    /// Items are never sent at all.
    pub(crate) skip_delivery: bool,
    /// Cleanup deletes delivery rows, not only their queue entries.
    pub(crate) cleanup_deletes_ledger: bool,
    /// A restart resolves the destinations of unfinished runs again.
    pub(crate) recompute_recipients: bool,
    /// A restart executes runs again of which only the delivery is owed.
    pub(crate) re_execute: bool,
    /// A restart builds a second item for each unfinished delivery.
    pub(crate) rebuild_items: bool,
}

/// One way in which the worker is wrong on purpose.
#[derive(Debug)]
pub struct Bug {
    /// Kebab-case, for `--bug NAME`.
    pub name: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
    /// The invariant of killpoint that must turn red first.
    pub invariant: &'static str,
    /// How it comes about in real workers, and at which moment it shows.
    pub explanation: &'static str,
    seed: fn(&mut Policy),
}

impl Bug {
    /// The decisions of a worker that has this bug alone.
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        (self.seed)(&mut policy);
        policy
    }
}

/// The bug of that name.
pub fn bug_named(name: &str) -> Option<&'static Bug> {
    BUGS.iter().find(|bug| bug.name == name)
}

/// Every seeded bug.
pub static BUGS: &[Bug] = &[
    Bug {
        name: "blind-resend",
        summary: "an item that may have been accepted is sent again without a lookup",
        invariant: "no-blind-resend",
        explanation: "After a lost reply, or a restart that finds an item in flight, the worker assumes that nothing arrived. It \
            shows wherever the provider had the request: kill at provider-accepted, drop-after-accept, timeout-after-accept.",
        seed: |policy| policy.resend_without_lookup = true,
    },
    Bug {
        name: "trust-first-lookup",
        summary: "the first lookup that finds nothing is taken as proof that nothing will arrive",
        invariant: "no-duplicate-effect",
        explanation: "The provider commits a little after the connection is lost, so the first lookup says that there is nothing. \
            The right worker keeps asking for a while before it sends again. It shows under late-accept.",
        seed: |policy| policy.trust_first_lookup = true,
    },
    Bug {
        name: "key-per-attempt",
        summary: "every time an item is taken up it gets a new idempotency key",
        invariant: "stable-key",
        explanation: "The key is made where the request is made, so a retry has another one: the provider can't see that it is the \
            same action, and a lookup by the new key finds nothing. It shows at any second attempt.",
        seed: |policy| policy.key_per_attempt = true,
    },
    Bug {
        name: "mark-before-send",
        summary: "the row says delivered before the request is sent",
        invariant: "confirmed-after-acceptance",
        explanation: "The status is updated first so that nothing is sent twice. Whatever happens to the request afterwards, the \
            ledger claims a success. It shows at the first request.",
        seed: |policy| policy.confirm_before_send = true,
    },
    Bug {
        name: "send-before-intent",
        summary: "the request is sent before intent and key are in the ledger",
        invariant: "intent-before-dispatch",
        explanation: "The ledger learns of an attempt only after it ended, so a crash in between leaves a row that looks untouched \
            and is sent again. It shows at the first request, and as a duplicate under a kill at provider-accepted.",
        seed: |policy| policy.intent_after_send = true,
    },
    Bug {
        name: "single-done-flag",
        summary: "one done flag stands for execution and delivery",
        invariant: "no-false-success",
        explanation: "The item counts as done as soon as the work is done, and is sent from memory afterwards. A crash in between \
            loses the message, and the next life sees nothing left to do. It shows under a kill at result-committed.",
        seed: |policy| policy.done_with_execution = true,
    },
    Bug {
        name: "swallow-timeout",
        summary: "a timeout or a lost reply is taken for a success",
        invariant: "unknown-is-explicit",
        explanation: "The request was written, so it must have arrived: the error handler logs and goes on. It shows under \
            timeout-before-accept and drop-before-accept, where nothing arrived, and leaves no provider id in any case.",
        seed: |policy| policy.doubt = Doubt::TakenAsDelivered,
    },
    Bug {
        name: "unknown-as-failed",
        summary: "a timeout or a lost reply is taken for a failure",
        invariant: "unknown-is-explicit",
        explanation: "The exception says error, so the row says failed, although the provider may have accepted the message. It \
            shows under timeout-after-accept and drop-after-accept.",
        seed: |policy| policy.doubt = Doubt::TakenAsFailed,
    },
    Bug {
        name: "forever-pending",
        summary: "after an error the row is pending again and nothing ever takes it up",
        invariant: "terminal-state-explicit",
        explanation: "The retry is scheduled for a time that never comes, and the worker reports that it has nothing left to do. It \
            shows after any lost reply.",
        seed: |policy| policy.doubt = Doubt::PostponedForever,
    },
    Bug {
        name: "cleanup-erases-audit",
        summary: "queue cleanup deletes the delivery rows as well",
        invariant: "audit-survives",
        explanation: "The table is queue and record in one, so making the queue small erases the only evidence of what was sent. It \
            shows at cleanup-done.",
        seed: |policy| policy.cleanup_deletes_ledger = true,
    },
    Bug {
        name: "recompute-recipients",
        summary: "a restart resolves the destinations of unfinished runs again",
        invariant: "one-identity-per-destination",
        explanation: "Destinations come from a roster that has changed meanwhile, so a run that was committed for one recipient \
            reaches another as well. It shows under a kill before the delivery is confirmed.",
        seed: |policy| policy.recompute_recipients = true,
    },
    Bug {
        name: "never-starts-sending",
        summary: "the work is done, the delivery loop never starts, and the worker exits 0",
        invariant: "terminal-state-explicit",
        explanation: "The background task that sends was never started, or was garbage-collected. No error is raised and nothing \
            crashes: the rows stay pending while the exit says success. It shows in the fault-free trial.",
        seed: |policy| policy.skip_delivery = true,
    },
    Bug {
        name: "re-executes",
        summary: "a restart executes a succeeded run again though only its delivery is owed",
        invariant: "execution-not-repeated",
        explanation: "Recovery asks whether the run was delivered, not whether it was executed, and starts at the beginning. It \
            shows under a kill between result-committed and ack-committed.",
        seed: |policy| policy.re_execute = true,
    },
    Bug {
        name: "claim-without-cas",
        summary: "an item is read as free and then claimed whatever happened in between",
        invariant: "no-duplicate-effect",
        explanation: "Select and update are two steps without a condition, so two workers that saw the same free item both send it. \
            It shows with two workers at before-claim.",
        seed: |policy| policy.claim_unconditionally = true,
    },
    Bug {
        name: "attempts-unbounded",
        summary: "error answers are retried at once, again and again",
        invariant: "attempts-bounded",
        explanation: "A provider that keeps answering 429 or 5xx gets a hot loop of requests. (This specimen stops after 40, so that \
            a trial ends.) It shows under a rule that answers every request with an error.",
        seed: |policy| policy.retry_hot = true,
    },
    Bug {
        name: "manufacture-on-restart",
        summary: "a restart builds a second item for each unfinished delivery",
        invariant: "no-manufactured-item",
        explanation: "The outbound item is reconstructed from the run's result while the old one is still there, and both are sent \
            under different keys. It shows under a kill between item-enqueued and ack-committed.",
        seed: |policy| policy.rebuild_items = true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_kebab_case_and_texts_are_there() {
        for (index, bug) in BUGS.iter().enumerate() {
            assert!(bug.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", bug.name);
            assert!(!BUGS[..index].iter().any(|other| other.name == bug.name), "{} twice", bug.name);
            assert!(!bug.summary.ends_with('.') && bug.explanation.len() > 80, "{}", bug.name);
        }
    }

    #[test]
    fn each_bug_changes_exactly_one_decision() {
        let lines = |policy: &Policy| format!("{policy:#?}").lines().map(str::to_owned).collect::<Vec<_>>();
        let right = lines(&Policy::default());
        let mut all: Vec<String> = Vec::new();
        for bug in BUGS {
            let wrong = lines(&bug.policy());
            let changed: Vec<String> =
                wrong.into_iter().zip(&right).filter(|(w, r)| w != *r).map(|(w, _)| w).collect();
            assert_eq!(changed.len(), 1, "{}", bug.name);
            all.extend(changed);
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), BUGS.len(), "two bugs change the same decision in the same way");
    }
}
