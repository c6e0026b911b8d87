//! The seeded bugs: each changes one of the worker's decisions.

use crate::policy::{Doubt, Policy, Recovery};

/// One way in which the worker is wrong on purpose.
#[derive(Debug)]
pub struct Bug {
    /// Kebab-case, for `--bug NAME`.
    pub name: &'static str,
    /// The fault kind that it is a specimen of, `K01` to `K36`.
    pub kind: &'static str,
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
        kind: "K01",
        summary: "an item that may have been accepted is sent again without a lookup",
        invariant: "no-blind-resend",
        explanation: "After a lost reply, or a restart that finds an item in flight, the worker assumes that nothing arrived. It \
            shows wherever the provider had the request: kill at provider-accepted, drop-after-accept, timeout-after-accept.",
        seed: |policy| policy.resend_without_lookup = true,
    },
    Bug {
        name: "trust-first-lookup",
        kind: "K02",
        summary: "the first lookup that finds nothing is taken as proof that nothing will arrive",
        invariant: "no-duplicate-effect",
        explanation: "The provider commits a little after the connection is lost, so the first lookup says that there is nothing. \
            The right worker keeps asking for a while before it sends again. It shows under late-accept.",
        seed: |policy| policy.trust_first_lookup = true,
    },
    Bug {
        name: "key-per-attempt",
        kind: "K04",
        summary: "every time an item is taken up it gets a new idempotency key",
        invariant: "stable-key",
        explanation: "The key is made where the request is made, so a retry has another one: the provider can't see that it is the \
            same action, and a lookup by the new key finds nothing. It shows at any second attempt.",
        seed: |policy| policy.key_per_attempt = true,
    },
    Bug {
        name: "mark-before-send",
        kind: "K16",
        summary: "the row says delivered before the request is sent",
        invariant: "confirmed-after-acceptance",
        explanation: "The status is updated first so that nothing is sent twice. Whatever happens to the request afterwards, the \
            ledger claims a success. It shows at the first request.",
        seed: |policy| policy.confirm_before_send = true,
    },
    Bug {
        name: "send-before-intent",
        kind: "K01",
        summary: "the request is sent before intent and key are in the ledger",
        invariant: "intent-before-dispatch",
        explanation: "The ledger learns of an attempt only after it ended, so a crash in between leaves a row that looks untouched \
            and is sent again. It shows at the first request, and as a duplicate under a kill at provider-accepted.",
        seed: |policy| policy.intent_after_send = true,
    },
    Bug {
        name: "single-done-flag",
        kind: "K15",
        summary: "one done flag stands for execution and delivery",
        invariant: "confirmed-after-acceptance",
        explanation: "The item counts as done as soon as the work is done, and is sent from memory afterwards. A crash in between \
            loses the message, and the next life sees nothing left to do. It shows under a kill at result-committed.",
        seed: |policy| policy.done_with_execution = true,
    },
    Bug {
        name: "swallow-timeout",
        kind: "K32",
        summary: "a timeout or a lost reply is taken for a success",
        invariant: "confirmed-after-acceptance",
        explanation: "The request was written, so it must have arrived: the error handler logs and goes on. It shows under \
            timeout-before-accept and drop-before-accept, where nothing arrived, and leaves no provider id in any case.",
        seed: |policy| policy.doubt = Doubt::TakenAsDelivered,
    },
    Bug {
        name: "unknown-as-failed",
        kind: "K32",
        summary: "a timeout or a lost reply is taken for a failure",
        invariant: "unknown-is-explicit",
        explanation: "The exception says error, so the row says failed, although the provider may have accepted the message. It \
            shows under timeout-after-accept and drop-after-accept.",
        seed: |policy| policy.doubt = Doubt::TakenAsFailed,
    },
    Bug {
        name: "forever-pending",
        kind: "K25",
        summary: "after an error the row is pending again and nothing ever takes it up",
        invariant: "terminal-state-explicit",
        explanation: "The retry is scheduled for a time that never comes, and the worker reports that it has nothing left to do. It \
            shows after any lost reply.",
        seed: |policy| policy.doubt = Doubt::PostponedForever,
    },
    Bug {
        name: "cleanup-erases-audit",
        kind: "K34",
        summary: "queue cleanup deletes the delivery rows as well",
        invariant: "audit-survives",
        explanation: "The table is queue and record in one, so making the queue small erases the only evidence of what was sent. It \
            shows at cleanup-done.",
        seed: |policy| policy.cleanup_deletes_ledger = true,
    },
    Bug {
        name: "recompute-recipients",
        kind: "K14",
        summary: "a restart resolves the destinations of unfinished runs again",
        invariant: "no-manufactured-item",
        explanation: "Destinations come from a roster that has changed meanwhile, so a run that was committed for one recipient \
            reaches another as well. It shows under a kill before the delivery is confirmed.",
        seed: |policy| policy.recompute_recipients = true,
    },
    Bug {
        name: "never-starts-sending",
        kind: "K22",
        summary: "the work is done, the delivery loop never starts, and the worker exits 0",
        invariant: "terminal-state-explicit",
        explanation: "The background task that sends was never started, or was garbage-collected. No error is raised and nothing \
            crashes: the rows stay pending while the exit says success. It shows in the fault-free trial.",
        seed: |policy| policy.skip_delivery = true,
    },
    Bug {
        name: "re-executes",
        kind: "K17",
        summary: "a restart executes a succeeded run again though only its delivery is owed",
        invariant: "execution-not-repeated",
        explanation: "Recovery asks whether the run was delivered, not whether it was executed, and starts at the beginning. It \
            shows under a kill between result-committed and ack-committed.",
        seed: |policy| policy.re_execute = true,
    },
    Bug {
        name: "claim-without-cas",
        kind: "K09",
        summary: "an item is read as free and then claimed whatever happened in between",
        invariant: "claim-is-exclusive",
        explanation: "Select and update are two steps without a condition, so two workers that saw the same free item both send it. \
            It shows with two workers at before-claim.",
        seed: |policy| policy.claim_unconditionally = true,
    },
    Bug {
        name: "attempts-unbounded",
        kind: "K25",
        summary: "error answers are retried at once, again and again",
        invariant: "attempts-bounded",
        explanation: "A provider that keeps answering 429 or 5xx gets a hot loop of requests. (This specimen stops after 40, so that \
            a trial ends.) It shows under a rule that answers every request with an error.",
        seed: |policy| policy.retry_hot = true,
    },
    Bug {
        name: "manufacture-on-restart",
        kind: "K20",
        summary: "a restart builds a second item for each unfinished delivery",
        invariant: "no-manufactured-item",
        explanation: "The outbound item is reconstructed from the run's result while the old one is still there, and both are sent \
            under different keys. It shows under a kill between item-enqueued and ack-committed.",
        seed: |policy| policy.rebuild_items = true,
    },
    Bug {
        name: "client-retries",
        kind: "K03",
        summary: "the HTTP client sends a request again by itself when no answer comes",
        invariant: "attempt-count-true",
        explanation: "The retry happens below the worker, which counts one attempt where the provider gets \
            two. It shows after a lost reply, even where the provider dedupes by key: requests and attempts \
            differ.",
        seed: |policy| policy.retry_in_client = true,
    },
    Bug {
        name: "trust-key-for-ever",
        kind: "K05",
        summary: "a provider that dedupes is never asked, however old the key is",
        invariant: "no-blind-resend",
        explanation: "The key makes a retry harmless, but only inside the provider's window. It shows with \
            --provider-dedupes when the answer is lost and the provider's clock has passed the window before \
            the next attempt.",
        seed: |policy| policy.trust_key_for_ever = true,
    },
    Bug {
        name: "lease-too-short",
        kind: "K06",
        summary: "a claim lasts less long than the request under it, and whoever gets the item then sends it",
        invariant: "claim-is-exclusive",
        explanation: "Nothing crashes: the queue's visibility timeout passes while the owner still waits for its answer, and the \
            item goes to the next worker as if it were new. It shows with two workers and an answer that takes long.",
        seed: |policy| policy.lease_too_short = true,
    },
    Bug {
        name: "zombie-without-fencing",
        kind: "K07",
        summary: "an owner that lost its claim sends and writes all the same",
        invariant: "claim-is-exclusive",
        explanation: "A pause outlasts the lease, another worker finishes the item, and the first one goes on \
            where it was: nothing compares the token. It shows under a stop at item-claimed with a second \
            worker.",
        seed: |policy| policy.unfenced = true,
    },
    Bug {
        name: "steal-at-start",
        kind: "K08",
        summary: "a start takes everything that is in flight for its own",
        invariant: "claim-is-exclusive",
        explanation: "Boot recovery resets every row in flight, because the process that had it must be dead. \
            It was alive, and another host's. It shows when a second worker starts while the first is at \
            dispatch-started.",
        seed: |policy| policy.steal_at_start = true,
    },
    Bug {
        name: "orphans-stay-locked",
        kind: "K10",
        summary: "an item whose owner died stays claimed for ever",
        invariant: "terminal-state-explicit",
        explanation: "Claims are given back by their owners alone, so a crash between claim and outcome locks \
            the row; every later life passes over it. It shows under a kill at item-claimed.",
        seed: |policy| policy.recovery = Recovery::Never,
    },
    Bug {
        name: "recovery-runs-once",
        kind: "K11",
        summary: "recovery runs once, at the start, while the dead owner's lease has not ended",
        invariant: "terminal-state-explicit",
        explanation: "A restart that is quick finds the lease alive, and nothing ever looks again. After a \
            slow one the same code works, so that tests with a pause pass. It shows under a kill at \
            provider:committed.",
        seed: |policy| policy.recovery = Recovery::AtStartOnly,
    },
    Bug {
        name: "reopen-failed",
        kind: "K12",
        summary: "a restart makes failed items pending again",
        invariant: "decided-is-final",
        explanation: "Recovery takes failed for not done yet, and the provider gets again what it refused. It \
            shows under a refusal and a kill at before-cleanup.",
        seed: |policy| policy.reopen_failed = true,
    },
    Bug {
        name: "takeover-ignores-outcome",
        kind: "K12",
        summary: "recovery overwrites what somebody else decided after it had read the row",
        invariant: "decided-is-final",
        explanation: "Recovery reads a row in flight, another one recovers and decides it, and the first goes on with what it \
            had read: a delivered row is unknown again. It shows when one of two recoverers is held at recovery-scanned.",
        seed: |policy| policy.take_over_unconditionally = true,
    },
    Bug {
        name: "forget-missed",
        kind: "K13",
        summary: "what has been due for more than an hour is passed over",
        invariant: "terminal-state-explicit",
        explanation: "The query for due items has a lower bound, so that it stays fast. After a long downtime the backlog lies \
            below it: nothing fails and nothing is sent. It shows when the next life's clock is eleven hours later.",
        seed: |policy| policy.forget_missed = true,
    },
    Bug {
        name: "render-at-send",
        kind: "K14",
        summary: "the request's body is made when it is sent",
        invariant: "replay-faithful",
        explanation: "A retry is rendered with what is known then, so it differs from what was committed and \
            from what the provider may already have. It shows at any second attempt.",
        seed: |policy| policy.render_at_send = true,
    },
    Bug {
        name: "cursor-first",
        kind: "K18",
        summary: "the feed's cursor is moved and acknowledged before its items are in the ledger",
        invariant: "processed-equals-fed",
        explanation: "A crash in between skips the items for ever: the feed does not give them again. It \
            shows with --feed under a kill at cursor-committed.",
        seed: |policy| policy.cursor_first = true,
    },
    Bug {
        name: "enqueue-outside",
        kind: "K19",
        summary: "the producer enqueues outside its transaction",
        invariant: "nothing-from-rollback",
        explanation: "The outbox rows are visible at once, and the worker sends what the business transaction \
            then takes back. It shows when the producer is held at producer-open and rolled back.",
        seed: |policy| policy.enqueue_outside = true,
    },
    Bug {
        name: "commit-apart",
        kind: "K20",
        summary: "a result and its delivery items are committed one after the other",
        invariant: "no-lost-action",
        explanation: "A crash between the two commits leaves a run that is done and owes nothing. It shows \
            under a kill at result-committed.",
        seed: |policy| policy.commit_apart = true,
    },
    Bug {
        name: "stop-requeues",
        kind: "K21",
        summary: "SIGTERM cuts the request in flight and puts its item back as never sent",
        invariant: "stop-is-graceful",
        explanation: "The drain means well: nothing is left in flight. But the provider may have accepted, \
            and the next life sends without a look. It shows under terminate at provider:committed.",
        seed: |policy| policy.stop_requeues = true,
    },
    Bug {
        name: "retry-whole-run",
        kind: "K23",
        summary: "one destination that is refused or postponed makes the whole run due again",
        invariant: "decided-is-final",
        explanation: "The run is the unit of retry, so the destinations that had their message get it again. \
            It shows with several destinations of which a later one is refused.",
        seed: |policy| policy.retry_whole_run = true,
    },
    Bug {
        name: "poison-uncounted",
        kind: "K24",
        summary: "starts of an execution are not counted, so that one that kills its worker comes back for ever",
        invariant: "poison-is-contained",
        explanation: "The counter is written after the work, and there is no after. It shows with an action \
            whose body is `poison`.",
        seed: |policy| policy.starts_uncounted = true,
    },
    Bug {
        name: "retry-refused",
        kind: "K25",
        summary: "a definite refusal is retried like anything else",
        invariant: "refusal-is-final",
        explanation: "Any status but 2xx is an error and every error is retried, so a request that can never \
            succeed is repeated until the budget is gone. It shows under a rule that rejects.",
        seed: |policy| policy.retry_refused = true,
    },
    Bug {
        name: "ignore-retry-after",
        kind: "K25",
        summary: "the time that the provider asks for is not waited",
        invariant: "retry-after-honoured",
        explanation: "The retry comes after the worker's own pause, which is shorter than the provider's. It \
            shows under an answer of 429 with Retry-After.",
        seed: |policy| policy.ignore_retry_after = true,
    },
    Bug {
        name: "claims-count",
        kind: "K26",
        summary: "each claim counts as an attempt, so that crashes before the send eat the budget",
        invariant: "budget-not-eaten",
        explanation: "The counter is raised where the row is claimed. Two crashes later the row says failed, \
            and the provider never had a request. (This specimen has a budget of 2.) It shows under two kills \
            at item-claimed.",
        seed: |policy| policy.claims_count = true,
    },
    Bug {
        name: "reregister-schedules",
        kind: "K27",
        summary: "each start registers the schedule anew, from its first occurrence",
        invariant: "no-manufactured-item",
        explanation: "Occurrences have no identity of their own, so those that were sent before the restart \
            fire again under new ids. It shows with a schedule under any kill after its first delivery.",
        seed: |policy| policy.reregister_schedules = true,
    },
    Bug {
        name: "wall-clock-lease",
        kind: "K28",
        summary: "claims of other hosts are compared with this host's wall clock",
        invariant: "due-is-served",
        explanation: "A clock that was stepped back makes a dead owner's claim last for hours, and one that \
            is ahead ends a live one at once. It shows under a kill at dispatch-started after which the \
            worker's clock is 3 hours back.",
        seed: |policy| policy.recovery = Recovery::ByWallClock,
    },
    Bug {
        name: "trust-copies",
        kind: "K29",
        summary: "a ledger that was copied or restored is trusted to be up to date",
        invariant: "no-blind-resend",
        explanation: "What the backup calls pending may have been sent since. The right worker notices that \
            the file is not the one it wrote, and looks each item up before it sends it. It shows under \
            store-copy at before-claim and store-restore after ack-committed.",
        seed: |policy| policy.trust_copies = true,
    },
    Bug {
        name: "resend-unwritten",
        kind: "K30",
        summary: "when the outcome can't be written the request is sent again",
        invariant: "no-blind-resend",
        explanation: "Send and bookkeeping are inside one retry, so a database that is read-only or full \
            turns one acceptance into several. It shows under a store fault at answer-read.",
        seed: |policy| policy.resend_unwritten = true,
    },
    Bug {
        name: "no-flush",
        kind: "K31",
        summary: "commits are not flushed to the disk",
        invariant: "acknowledged-is-durable",
        explanation: "With synchronous off a process crash loses nothing, so every kill is green; a power cut \
            takes commits back that the caller was told of. It shows under store-rollback.",
        seed: |policy| policy.no_flush = true,
    },
    Bug {
        name: "fold-counters",
        kind: "K33",
        summary: "every outcome that is no refusal counts as an acceptance",
        invariant: "counters-agree",
        explanation: "One counter stands for sent, accepted and unknown, so a dashboard shows more \
            acceptances than the provider made. It shows after a lost reply.",
        seed: |policy| policy.fold_counters = true,
    },
    Bug {
        name: "keep-headers",
        kind: "K35",
        summary: "errors are kept in the ledger with the request's headers",
        invariant: "no-secret-leak",
        explanation: "The whole request is stored for debugging, and its Authorization header with it. It \
            shows with OUTBOX_API_TOKEN set at any error answer.",
        seed: |policy| policy.keep_headers = true,
    },
    Bug {
        name: "idle-for-ever",
        kind: "K36",
        summary: "a worker that is to run for ever only looks alive",
        invariant: "due-is-served",
        explanation: "The process is up and its loop turns, but the timer that takes items up was never \
            armed. Health is green and nothing is sent. It shows without --drain and without any fault.",
        seed: |policy| policy.idle_for_ever = true,
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
            let number: u32 = bug.kind.strip_prefix('K').unwrap().parse().unwrap();
            assert!(bug.kind.len() == 3 && (1..=36).contains(&number), "{}", bug.kind);
            assert!(!bug.summary.ends_with('.') && bug.explanation.len() > 80, "{}", bug.name);
        }
    }

    #[test]
    fn every_kind_has_a_specimen() {
        for number in 1..=36 {
            let kind = format!("K{number:02}");
            assert!(BUGS.iter().any(|bug| bug.kind == kind), "{kind}");
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
