//! From the contract's ruling to the answer. Pure: what was committed does not enter, so twins have the
//! same bytes.

use killpoint_model::plan::Reply;
use killpoint_model::profile::Mismatch;

use crate::core::{Core, Ruling};
use crate::dialects::{Accepted, Dialect, Refusal};
use crate::http::Response;

/// What `Retry-After` says, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

/// The answer to an attempt: that of a `status` plan, else the ordinary one.
pub(crate) fn answer_write(
    core: &Core,
    dialect: &dyn Dialect,
    attempt: u32,
    ruling: &Ruling,
    reply: Reply,
) -> Response {
    if let Reply::Status { code: status } = reply {
        return error(dialect, status);
    }
    let profile = &core.settings().idempotency;
    match ruling {
        Ruling::Execute => accepted(core, dialect, attempt),
        Ruling::Replay(stored) => {
            let first = stored.effect.as_deref().and_then(|id| core.effect(id)).map(|effect| effect.attempt);
            let mut response = match stored.error {
                Some(status) => error(dialect, status),
                None => accepted(core, dialect, first.unwrap_or(attempt)),
            };
            if !profile.replay_marker.is_empty() {
                response.headers.push((profile.replay_marker.clone(), "true".into()));
            }
            response
        }
        Ruling::Concurrent => dialect.refused(Refusal::Concurrent),
        Ruling::Mismatch => {
            let status = match profile.mismatch {
                Mismatch::BadRequest => 400,
                Mismatch::Conflict => 409,
                Mismatch::Unprocessable => 422,
            };
            dialect.refused(Refusal::Mismatch { status })
        }
        Ruling::MissingKey => dialect.refused(Refusal::MissingKey),
    }
}

/// An error in the dialect's own shape, which says after how long to try again where its status asks for that.
pub(crate) fn error(dialect: &dyn Dialect, status: u16) -> Response {
    let mut response = dialect.error(status);
    if let Some(ms) = retry_after_ms(status) {
        response.headers.push(("Retry-After".into(), ms.div_ceil(1000).to_string()));
    }
    response
}

/// After how long an answer of this status lets its sender try again, in milliseconds.
pub(crate) const fn retry_after_ms(status: u16) -> Option<u64> {
    match status {
        429 | 503 => Some(RETRY_AFTER_MS),
        _ => None,
    }
}

fn accepted(core: &Core, dialect: &dyn Dialect, attempt: u32) -> Response {
    match core.attempt(attempt) {
        Some(known) => dialect.accepted(Accepted { id: &Core::effect_id(attempt), attempt: known }),
        // Forgotten by a reset while its exchange was ending.
        None => dialect.error(500),
    }
}
