//! Idempotency as data: the knobs on which real providers differ. Never kinder than the real provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

text_enum! {
    /// How far a key reaches.
    pub enum KeyScope {
        /// The same key on any path is the same request.
        Account = "account",
        /// A key counts per path.
        Path = "path",
    }
}

text_enum! {
    /// What must be equal for a replay.
    pub enum Fingerprint {
        /// Nothing: the old answer comes back whatever the body.
        None = "none",
        /// The body.
        Body = "body",
    }
}

text_enum! {
    /// From when the window runs.
    pub enum WindowAnchor {
        /// From the first request with the key.
        FirstRequest = "first-request",
        /// From the latest request with the key.
        LastRequest = "last-request",
    }
}

text_enum! {
    /// Which answers are stored under the key.
    pub enum Cached {
        /// All, once execution began: errors included.
        All = "all",
        /// Only 2xx; another answer frees the key.
        Success = "success",
    }
}

text_enum! {
    /// The answer to a second request while the first is in flight.
    pub enum Concurrent {
        /// 409, nothing done.
        Conflict = "conflict",
        /// It waits for the first and gets its answer.
        Wait = "wait",
        /// It runs as well: no protection.
        Run = "run",
    }
}

text_enum! {
    /// The answer to a known key with another fingerprint.
    pub enum Mismatch {
        /// 400.
        BadRequest = "bad-request",
        /// 409.
        Conflict = "conflict",
        /// 422, as in the IETF draft.
        Unprocessable = "unprocessable",
    }
}

text_enum! {
    /// The answer to a write without a key.
    pub enum MissingKey {
        /// It is executed, unprotected.
        Execute = "execute",
        /// 400, nothing done.
        Refuse = "refuse",
    }
}

/// What the fake provider does with idempotency keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IdempotencyProfile {
    /// Whether keys are honoured at all. Most providers of messages do not.
    pub dedupe: bool,
    /// The header that carries the key (any case).
    pub header: String,
    /// Or the JSON pointer (RFC 6901) into the body that carries it; wins over the header where present.
    pub pointer: Option<String>,
    /// How far a key reaches.
    pub scope: KeyScope,
    /// What must be equal for a replay.
    pub fingerprint: Fingerprint,
    /// How long a key protects, in milliseconds.
    pub window_ms: u64,
    /// From when the window runs.
    pub anchor: WindowAnchor,
    /// Which answers are stored.
    pub cached: Cached,
    /// The answer to a concurrent request with the same key.
    pub concurrent: Concurrent,
    /// The answer to a reused key with another body.
    pub mismatch: Mismatch,
    /// Response header that marks a replay, with the value `true`; none where empty.
    pub replay_marker: String,
    /// The answer to a write without a key.
    pub missing: MissingKey,
}

impl Default for IdempotencyProfile {
    /// A provider that records the key and dedupes nothing, as most messaging APIs do. The other knobs
    /// are those of Stripe's documentation, in force once `dedupe` is set.
    fn default() -> Self {
        Self {
            dedupe: false,
            header: "Idempotency-Key".into(),
            pointer: None,
            scope: KeyScope::Account,
            fingerprint: Fingerprint::Body,
            window_ms: 24 * 3_600_000,
            anchor: WindowAnchor::FirstRequest,
            cached: Cached::All,
            concurrent: Concurrent::Conflict,
            mismatch: Mismatch::BadRequest,
            replay_marker: "Idempotent-Replayed".into(),
            missing: MissingKey::Execute,
        }
    }
}
