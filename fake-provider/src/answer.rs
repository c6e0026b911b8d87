//! From the contract's ruling to the answer. Pure: what was committed does not enter, so twins have the
//! same bytes.

use killpoint_model::plan::Reply;
use killpoint_model::profile::Mismatch;

use crate::core::{Core, Ruling};
use crate::dialects::{Accepted, Dialect, Refusal};
use crate::http::Response;

/// The answer to an attempt: that of a `status` plan, else the ordinary one.
pub(crate) fn answer_write(
    core: &Core,
    dialect: &dyn Dialect,
    attempt: u32,
    ruling: &Ruling,
    reply: Reply,
) -> Response {
    if let Reply::Status { code: status } = reply {
        return dialect.error(status);
    }
    let profile = &core.settings().idempotency;
    match ruling {
        Ruling::Execute => accepted(core, dialect, attempt),
        Ruling::Replay(stored) => {
            let first = stored.effect.as_deref().and_then(|id| core.effect(id)).map(|effect| effect.attempt);
            let mut response = match stored.error {
                Some(status) => dialect.error(status),
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

fn accepted(core: &Core, dialect: &dyn Dialect, attempt: u32) -> Response {
    match core.attempt(attempt) {
        Some(known) => dialect.accepted(Accepted { id: &Core::effect_id(attempt), attempt: known }),
        // Forgotten by a reset while its exchange was ending.
        None => dialect.error(500),
    }
}
