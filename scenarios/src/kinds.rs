//! The kinds of fault: what goes wrong in real workers when they die, each with the scenarios that stage it and
//! the invariant by which a worker that is wrong in just that way turns red.

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// `K01` to `K36`.
    pub id: &'static str,
    /// Unique kebab-case name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The scenarios of [`LIBRARY`](crate::LIBRARY) that stage it.
    pub scenarios: &'static [&'static str],
    /// The invariant that is about this kind. A general one, such as `no-duplicate-effect`, may turn red before it.
    pub invariant: &'static str,
    /// What a right worker does under these scenarios.
    pub passes: &'static str,
}

/// Every kind, in the order of their ids.
pub static KINDS: &[Kind] = &[
    Kind {
        id: "K01",
        name: "crash-after-accept-before-ack",
        summary: "the process dies after the provider took the request and before the outcome is durable; recovery sends again",
        scenarios: &[
            "deploy-42-notify-drop-after-accept",
            "jobs-after-delivery-before-sent",
            "run-after-acceptance-before-ack",
            "lookup-lags",
            "three-crashes-in-a-row",
        ],
        invariant: "no-blind-resend",
        passes: "one effect, whatever the number of restarts: the same key in each request, a lookup before a resend, or the state unknown",
    },
    Kind {
        id: "K02",
        name: "lost-response-blind-retry",
        summary: "the provider took the request but the worker sees an error (timeout, reset, unclean close, reconnect) and repeats it in the same life",
        scenarios: &["late-accept", "cut-body-after-accept", "server-error-after-accept", "lost-reply"],
        invariant: "no-blind-resend",
        passes: "one effect, or the same key in each request to a provider that dedupes",
    },
    Kind {
        id: "K03",
        name: "retry-under-the-workers-feet",
        summary: "the HTTP client or vendor library repeats by itself, so the worker's attempt count is a lie; or layers of retries multiply",
        scenarios: &["reset-after-accept", "keep-alive-closed-under-a-send"],
        invariant: "attempt-count-true",
        passes: "as many requests at the provider as attempts in the worker's own record",
    },
    Kind {
        id: "K04",
        name: "key-absent-or-unstable",
        summary: "no idempotency key is sent, or it changes per attempt / restart, or two distinct actions share one",
        scenarios: &["equal-payloads-and-a-retry"],
        invariant: "stable-key",
        passes: "one key per action, the same in every attempt and life, never shared, always with the same body",
    },
    Kind {
        id: "K05",
        name: "dedupe-window-mismatch",
        summary: "retry, downtime or redelivery outlives the dedupe window; or the window swallows a needed retry / answers with a dead result",
        scenarios: &["retry-after-the-window"],
        invariant: "no-duplicate-effect",
        passes: "no request later than the window after the first acceptance without a lookup; a duplicate answer is taken for accepted or unknown",
    },
    Kind {
        id: "K06",
        name: "lease-shorter-than-work",
        summary: "lease, visibility or invisibility timeout shorter than the delay or the handler; no crash at all",
        scenarios: &["send-outlasts-the-lease"],
        invariant: "claim-is-exclusive",
        passes: "one effect: the lease outlasts the work, or is prolonged while it lasts",
    },
    Kind {
        id: "K07",
        name: "zombie-without-fencing",
        summary: "an owner that lost its lease (pause, suspend, GC) or a process with an inherited id still sends, completes, fails or cancels",
        scenarios: &["zombie-resumes", "zombie-finds-its-row-done"],
        invariant: "claim-is-exclusive",
        passes: "one effect: who lost its claim is refused before the send and in each write",
    },
    Kind {
        id: "K08",
        name: "recovery-steals-live-work",
        summary: "rescue / start-up recovery / heartbeat logic takes work from a holder that is alive",
        scenarios: &["recovery-beside-live-work", "recovery-under-the-same-identity"],
        invariant: "claim-is-exclusive",
        passes: "one effect: what a live holder has is left alone until its lease is over",
    },
    Kind {
        id: "K09",
        name: "non-atomic-claim",
        summary: "select-then-update claims, session locks lost with the connection, or no claim at all: two workers run one row",
        scenarios: &["run-two-workers-one-item", "claims-at-the-same-moment", "three-workers-at-once"],
        invariant: "claim-is-exclusive",
        passes: "one effect: one claim wins, durably, and the others see it",
    },
    Kind {
        id: "K10",
        name: "orphan-or-stale-lock-never-resumed",
        summary: "row or unique lock of a dead owner is never given back; later work of the same kind is blocked too",
        scenarios: &["jobs-before-delivery", "orphan-under-a-new-identity", "lock-left-behind"],
        invariant: "terminal-state-explicit",
        passes: "every action is decided within the bound, under any identity, and new work of its kind goes through",
    },
    Kind {
        id: "K11",
        name: "recovery-scan-incomplete",
        summary: "recovery runs once, reads the wrong store / index / version, stops at a full batch, swallows a DB error, or deletes its evidence",
        scenarios: &["orphan-behind-a-batch", "recovery-meets-a-busy-store"],
        invariant: "terminal-state-explicit",
        passes: "every row is decided within the bound, wherever it lies and whatever recovery met",
    },
    Kind {
        id: "K12",
        name: "decided-state-not-final",
        summary: "a decided row is re-decided: by a stale recovery read, a second recoverer, a late receipt, a retry button, or a cancel that is not durable",
        scenarios: &["two-recoverers"],
        invariant: "decided-is-final",
        passes: "decided states change no more, except an unknown one by evidence; one effect at most",
    },
    Kind {
        id: "K13",
        name: "downtime-backlog-wrong",
        summary: "after downtime the backlog is either silently skipped or flushed though stale",
        scenarios: &["eleven-hours-down"],
        invariant: "due-is-served",
        passes: "the declared policy is followed: overdue work is sent or openly expired, each item of it",
    },
    Kind {
        id: "K14",
        name: "replay-not-faithful-or-retargeted",
        summary: "replay differs from the committed action: lost header, other target, other recipient",
        scenarios: &["recipients-recomputed", "roster-changed-before-the-replay"],
        invariant: "replay-faithful",
        passes: "the bytes and destinations of a replay are those that were committed; a new configuration gets nothing of it",
    },
    Kind {
        id: "K15",
        name: "ack-before-work",
        summary: "the row is removed or acknowledged at dequeue, before the work",
        scenarios: &["killed-with-a-prefetched-batch", "children-killed-alone"],
        invariant: "no-lost-action",
        passes: "every item that was taken off the queue is accounted for",
    },
    Kind {
        id: "K16",
        name: "progress-recorded-before-effect",
        summary: "the cursor, the \"sent\" mark or the dedupe marker is written before the effect or the hand-over",
        scenarios: &["jobs-after-result-committed", "killed-inside-a-batch"],
        invariant: "confirmed-after-acceptance",
        passes: "delivered, failed, unknown and pending add up to all, at every moment",
    },
    Kind {
        id: "K17",
        name: "completed-work-forgotten",
        summary: "finished steps or recipients are not remembered across resume, so they are done again",
        scenarios: &["run-before-result-committed", "killed-between-recipients"],
        invariant: "execution-not-repeated",
        passes: "what was finished is not done again: one effect per step and recipient",
    },
    Kind {
        id: "K18",
        name: "inbound-cursor-wrong",
        summary: "inbound poll offset ahead of, behind, or foreign to what was processed",
        scenarios: &["inbound-killed-after-the-cursor", "inbound-killed-before-the-cursor"],
        invariant: "processed-equals-fed",
        passes: "processed items are the fed ones, each once, and effects are as many",
    },
    Kind {
        id: "K19",
        name: "effect-before-commit",
        summary: "effect or enqueue happens before the business commit, or bypasses the outbox",
        scenarios: &["producer-rolls-back", "producer-commits-late"],
        invariant: "nothing-from-rollback",
        passes: "no effect of what was rolled back, and none before the commit",
    },
    Kind {
        id: "K20",
        name: "dual-write-lost-or-doubled",
        summary: "two stores written one after the other: the second write lost, or the move doubled",
        scenarios: &["run-after-result-before-item", "run-after-item-before-claim"],
        invariant: "no-lost-action",
        passes: "exactly one row for each action, decided",
    },
    Kind {
        id: "K21",
        name: "graceful-shutdown-cuts-send",
        summary: "stop signal cuts an in-flight send, or the drain forgets the ack; deploy = duplicate or loss",
        scenarios: &["stopped-with-time-to-finish", "stopped-with-too-little-time", "host-does-not-wait"],
        invariant: "stop-is-graceful",
        passes: "one effect, and the row says accepted, or unknown",
    },
    Kind {
        id: "K22",
        name: "volatile-work-lost",
        summary: "work lives only in memory (task, timer, goroutine, queue) and dies with exit or GC",
        scenarios: &["killed-before-the-first-byte"],
        invariant: "acknowledged-is-durable",
        passes: "every acknowledged action has its effect after the restart, or a visible row",
    },
    Kind {
        id: "K23",
        name: "partial-fanout-treated-as-whole",
        summary: "one bad destination makes the whole batch retry or fail",
        scenarios: &["one-bad-destination-of-ten"],
        invariant: "no-duplicate-effect",
        passes: "each destination has its own outcome: one effect for each good one",
    },
    Kind {
        id: "K24",
        name: "poison-crash-loop",
        summary: "an action kills its worker; the crash is not counted, so it comes back for ever and blocks others",
        scenarios: &["poison-action"],
        invariant: "poison-is-contained",
        passes: "the action is set aside after a counted number of crashes, and the others are delivered",
    },
    Kind {
        id: "K25",
        name: "failure-misclassified",
        summary: "permanent error retried for ever; transient error dropped; exhausted row disappears",
        scenarios: &["rejected", "rate-limited", "unavailable", "unauthorised"],
        invariant: "refusal-is-final",
        passes: "a definite refusal ends the action after one request; a passing one is tried again, not before the time that was given",
    },
    Kind {
        id: "K26",
        name: "attempt-accounting-wrong",
        summary: "interruptions or not-ready refusals eat the retry budget and end in \"failed\"",
        scenarios: &["killed-before-sending-thrice"],
        invariant: "budget-not-eaten",
        passes: "what was proven unsent is still sent, or openly parked: never failed without a refusal",
    },
    Kind {
        id: "K27",
        name: "duplicate-schedule-firing",
        summary: "one occurrence fires more than once: several schedulers, restart, stale registration",
        scenarios: &["several-schedulers"],
        invariant: "no-manufactured-item",
        passes: "one effect per occurrence, whoever fires it and however often",
    },
    Kind {
        id: "K28",
        name: "clock-skew-or-jump",
        summary: "wall clock skew or jump decides leases, due times or ids",
        scenarios: &["second-worker-five-minutes-ahead", "clock-steps-back"],
        invariant: "claim-is-exclusive",
        passes: "one effect and no stall, whatever the clocks say",
    },
    Kind {
        id: "K29",
        name: "restored-or-copied-database",
        summary: "a restored or copied database sends again, or reuses ids for other messages",
        scenarios: &["restored-from-a-backup", "second-instance-on-a-copy"],
        invariant: "no-duplicate-effect",
        passes: "the same key for the same action in every copy, and no key with another body",
    },
    Kind {
        id: "K30",
        name: "bookkeeping-write-fails",
        summary: "the provider took it; the write of the outcome / failure fails (locked, full, read-only, lost connection) and the error is swallowed",
        scenarios: &[
            "store-busy-at-the-outcome",
            "store-busy-snapshot-at-the-outcome",
            "store-read-only-at-the-outcome",
            "store-full-at-the-outcome",
        ],
        invariant: "no-blind-resend",
        passes: "one effect, or the worker stops loudly with the row still in flight",
    },
    Kind {
        id: "K31",
        name: "acknowledged-commit-not-durable",
        summary: "a commit that was told to the caller is gone, or the file is damaged, after a crash",
        scenarios: &[
            "power-cut-after-a-confirmation",
            "last-commit-taken-away",
            "killed-in-bursts-of-writes",
        ],
        invariant: "acknowledged-is-durable",
        passes: "no acknowledged action is missing, and the store is sound",
    },
    Kind {
        id: "K32",
        name: "unknown-erased-or-relabelled",
        summary: "\"we do not know\" is deleted, or shown as failed or as success",
        scenarios: &["deploy-42-notify-drop-before-accept", "jobs-during-delivery-timeout"],
        invariant: "unknown-is-explicit",
        passes: "the row says unknown, with its key, until a lookup or a human decides it",
    },
    Kind {
        id: "K33",
        name: "status-conflation",
        summary: "accepted, delivered, failed and unknown are folded together in state or metrics",
        scenarios: &["bounced-and-reconciled", "receipts-lost-late-and-twice"],
        invariant: "counters-agree",
        passes: "accepted, failed and unknown are counted apart and agree with the provider's counts and the final rows",
    },
    Kind {
        id: "K34",
        name: "cleanup-destroys-dedupe-or-audit",
        summary: "cleanup removes the dedupe marker or the evidence",
        scenarios: &["run-after-ack-before-cleanup", "cleanup-then-a-crash"],
        invariant: "audit-survives",
        passes: "one effect after redelivery, and the trail is still there",
    },
    Kind {
        id: "K35",
        name: "credential-leak",
        summary: "secrets in logs, stored errors, job rows, snapshots or child environments",
        scenarios: &["credentials-in-errors"],
        invariant: "no-secret-leak",
        passes: "no planted credential outside the declared places",
    },
    Kind {
        id: "K36",
        name: "alive-but-not-working",
        summary: "supervisor and health checks are green while nothing is sent",
        scenarios: &["provider-call-hangs", "replacement-hangs-in-its-start"],
        invariant: "due-is-served",
        passes: "no due row stays untouched for longer than the bound while a worker lives",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_complete_and_ordered_and_names_unique() {
        let ids: Vec<&str> = KINDS.iter().map(|kind| kind.id).collect();
        let expected: Vec<String> = (1..=36).map(|number| format!("K{number:02}")).collect();
        assert_eq!(ids, expected);
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
    }

    #[test]
    fn every_text_is_there_and_is_one_line() {
        for kind in KINDS {
            let kebab = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            assert!(kebab(kind.name) && kebab(kind.invariant) && !kind.scenarios.is_empty(), "{}", kind.id);
            for text in [kind.summary, kind.passes] {
                assert!(text.len() > 20 && !text.contains('\n') && !text.ends_with('.'), "{}", kind.id);
            }
        }
    }
}
