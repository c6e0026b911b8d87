//! The workers that are modelled: the right one, and those that are wrong in one decision each. Names and
//! decisions are those of the reference worker's seeded bugs.

/// What the worker does where the outcome of an attempt is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Right: the row says `unknown`, and the provider is asked.
    #[default]
    Explicit,
    TakenAsDelivered,
    TakenAsFailed,
    PostponedForever,
}

/// A worker's decisions; the default is right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) doubt: Doubt,
    /// Sends again without asking.
    pub(super) resend_without_lookup: bool,
    /// Believes the first lookup that finds nothing.
    pub(super) trust_first_lookup: bool,
    /// A new key whenever an item is taken up.
    pub(super) key_per_attempt: bool,
    /// `delivered` is written before the request is sent.
    pub(super) confirm_before_send: bool,
    /// Intent and key are written after the request was sent.
    pub(super) intent_after_send: bool,
    /// An item counts as delivered once its execution is done.
    pub(super) done_with_execution: bool,
    /// Nothing is ever sent.
    pub(super) skip_delivery: bool,
    /// Claims without comparing.
    pub(super) claim_unconditionally: bool,
    /// Writes and sends although the claim was lost.
    pub(super) unfenced: bool,
    /// An item whose owner died stays claimed for ever.
    pub(super) never_takes_over: bool,
    /// A refusal is retried like a rate limit.
    pub(super) retry_refused: bool,
    /// Errors are retried at once, again and again.
    pub(super) retry_hot: bool,
    /// The time that the provider asks for is not waited.
    pub(super) ignore_retry_after: bool,
    /// A restart makes failed items pending again.
    pub(super) reopen_failed: bool,
    /// Where the provider dedupes it is never asked, however old the key is.
    pub(super) trust_key_for_ever: bool,
    /// Cleanup deletes delivery rows.
    pub(super) cleanup_erases: bool,
    /// A restart resolves destinations again.
    pub(super) recompute_recipients: bool,
    /// A restart executes runs again of which only the delivery is owed.
    pub(super) re_execute: bool,
}

/// A modelled worker.
#[derive(Debug, Clone, Copy)]
pub struct ModelWorker {
    /// The name of the seeded bug; `right` where there is none.
    pub name: &'static str,
    /// The invariant that must turn red under some schedule; empty for the right one.
    pub invariant: &'static str,
    /// Whether it makes marks.
    pub marks: bool,
    pub(super) policy: Policy,
}

impl ModelWorker {
    const fn wrong(name: &'static str, invariant: &'static str, policy: Policy) -> Self {
        Self { name, invariant, marks: true, policy }
    }

    /// The worker of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MODEL_WORKERS.iter().find(|worker| worker.name == name)
    }

    /// Whether it has no bug.
    pub fn is_right(&self) -> bool {
        self.policy == RIGHT
    }

    /// The same without marks: a worker of which nothing was changed for a test.
    #[must_use]
    pub const fn without_marks(self) -> Self {
        Self { marks: false, ..self }
    }
}

const RIGHT: Policy = Policy {
    doubt: Doubt::Explicit,
    resend_without_lookup: false,
    trust_first_lookup: false,
    key_per_attempt: false,
    confirm_before_send: false,
    intent_after_send: false,
    done_with_execution: false,
    skip_delivery: false,
    claim_unconditionally: false,
    unfenced: false,
    never_takes_over: false,
    retry_refused: false,
    retry_hot: false,
    ignore_retry_after: false,
    reopen_failed: false,
    trust_key_for_ever: false,
    cleanup_erases: false,
    recompute_recipients: false,
    re_execute: false,
};

/// Every modelled worker; the first one is right.
pub static MODEL_WORKERS: &[ModelWorker] = &[
    ModelWorker { name: "right", invariant: "", marks: true, policy: RIGHT },
    ModelWorker::wrong(
        "blind-resend",
        "no-duplicate-effect",
        Policy { resend_without_lookup: true, ..RIGHT },
    ),
    ModelWorker::wrong(
        "trust-first-lookup",
        "no-duplicate-effect",
        Policy { trust_first_lookup: true, ..RIGHT },
    ),
    ModelWorker::wrong("key-per-attempt", "stable-key", Policy { key_per_attempt: true, ..RIGHT }),
    ModelWorker::wrong(
        "mark-before-send",
        "confirmed-after-acceptance",
        Policy { confirm_before_send: true, ..RIGHT },
    ),
    ModelWorker::wrong(
        "send-before-intent",
        "intent-before-dispatch",
        Policy { intent_after_send: true, ..RIGHT },
    ),
    ModelWorker::wrong("single-done-flag", "no-false-success", Policy { done_with_execution: true, ..RIGHT }),
    ModelWorker::wrong(
        "swallow-timeout",
        "no-false-success",
        Policy { doubt: Doubt::TakenAsDelivered, ..RIGHT },
    ),
    ModelWorker::wrong(
        "unknown-as-failed",
        "unknown-is-explicit",
        Policy { doubt: Doubt::TakenAsFailed, ..RIGHT },
    ),
    ModelWorker::wrong(
        "forever-pending",
        "terminal-state-explicit",
        Policy { doubt: Doubt::PostponedForever, ..RIGHT },
    ),
    ModelWorker::wrong("cleanup-erases-audit", "audit-survives", Policy { cleanup_erases: true, ..RIGHT }),
    ModelWorker::wrong(
        "recompute-recipients",
        "no-manufactured-item",
        Policy { recompute_recipients: true, ..RIGHT },
    ),
    ModelWorker::wrong(
        "never-starts-sending",
        "terminal-state-explicit",
        Policy { skip_delivery: true, ..RIGHT },
    ),
    ModelWorker::wrong("re-executes", "execution-not-repeated", Policy { re_execute: true, ..RIGHT }),
    ModelWorker::wrong(
        "claim-without-cas",
        "no-duplicate-effect",
        Policy { claim_unconditionally: true, ..RIGHT },
    ),
    ModelWorker::wrong("zombie-without-fencing", "no-duplicate-effect", Policy { unfenced: true, ..RIGHT }),
    ModelWorker::wrong(
        "orphans-stay-locked",
        "terminal-state-explicit",
        Policy { never_takes_over: true, ..RIGHT },
    ),
    ModelWorker::wrong("retry-refused", "refusal-is-final", Policy { retry_refused: true, ..RIGHT }),
    ModelWorker::wrong("attempts-unbounded", "attempts-bounded", Policy { retry_hot: true, ..RIGHT }),
    ModelWorker::wrong(
        "ignore-retry-after",
        "retry-after-honoured",
        Policy { ignore_retry_after: true, ..RIGHT },
    ),
    ModelWorker::wrong("reopen-failed", "decided-is-final", Policy { reopen_failed: true, ..RIGHT }),
    ModelWorker::wrong(
        "trust-key-for-ever",
        "no-duplicate-effect",
        Policy { trust_key_for_ever: true, ..RIGHT },
    ),
];
