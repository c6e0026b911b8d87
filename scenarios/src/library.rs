//! The scenarios that come with killpoint.

use killpoint_model::diagnostic::nearest;

/// One scenario file of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryScenario {
    /// Its name: the file's without `.toml`.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

/// What is said of a name that is neither in the library nor a file.
pub fn unknown_scenario(name: &str) -> String {
    let near = nearest(name, LIBRARY.iter().map(|entry| entry.name));
    let help = near.map_or_else(
        || "`killpoint list scenarios` shows the library".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    format!("`{name}` is neither a scenario of the library nor a file; {help}")
}

macro_rules! library {
    ($($name:literal),+ $(,)?) => {
        /// Every scenario of the library, in the order in which `list` shows them.
        pub static LIBRARY: &[LibraryScenario] = &[$(LibraryScenario {
            name: $name,
            text: include_str!(concat!("../library/", $name, ".toml")),
        }),+];
    };
}

library![
    "deploy-42-notify-drop-after-accept",
    "deploy-42-notify-drop-before-accept",
    "jobs-after-result-committed",
    "jobs-before-delivery",
    "jobs-after-delivery-before-sent",
    "jobs-during-delivery-timeout",
    "run-before-result-committed",
    "run-after-result-before-item",
    "run-after-item-before-claim",
    "run-after-acceptance-before-ack",
    "run-after-ack-before-cleanup",
    "run-two-workers-one-item",
    "recipients-recomputed",
    "late-accept",
    "lookup-lags",
    "three-crashes-in-a-row",
    "reset-after-accept",
    "cut-body-after-accept",
    "server-error-after-accept",
    "rejected",
    "lost-reply",
    "keep-alive-closed-under-a-send",
    "equal-payloads-and-a-retry",
    "retry-after-the-window",
    "send-outlasts-the-lease",
    "zombie-resumes",
    "zombie-finds-its-row-done",
    "recovery-beside-live-work",
    "recovery-under-the-same-identity",
    "claims-at-the-same-moment",
    "three-workers-at-once",
    "orphan-under-a-new-identity",
    "lock-left-behind",
    "orphan-behind-a-batch",
    "recovery-meets-a-busy-store",
    "two-recoverers",
    "eleven-hours-down",
    "roster-changed-before-the-replay",
    "killed-with-a-prefetched-batch",
    "children-killed-alone",
    "killed-inside-a-batch",
    "killed-between-recipients",
    "inbound-killed-after-the-cursor",
    "inbound-killed-before-the-cursor",
    "producer-rolls-back",
    "producer-commits-late",
    "stopped-with-time-to-finish",
    "stopped-with-too-little-time",
    "host-does-not-wait",
    "killed-before-the-first-byte",
    "one-bad-destination-of-ten",
    "poison-action",
    "rate-limited",
    "unavailable",
    "unauthorised",
    "killed-before-sending-thrice",
    "several-schedulers",
    "second-worker-five-minutes-ahead",
    "clock-steps-back",
    "restored-from-a-backup",
    "second-instance-on-a-copy",
    "store-busy-at-the-outcome",
    "store-busy-snapshot-at-the-outcome",
    "store-read-only-at-the-outcome",
    "store-full-at-the-outcome",
    "power-cut-after-a-confirmation",
    "last-commit-taken-away",
    "killed-in-bursts-of-writes",
    "bounced-and-reconciled",
    "receipts-lost-late-and-twice",
    "cleanup-then-a-crash",
    "credentials-in-errors",
    "provider-call-hangs",
    "replacement-hangs-in-its-start",
];
