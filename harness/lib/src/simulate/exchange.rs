//! One exchange between a worker and the provider: where it is, and what its answer says.

use fake_provider::core::{Core, Ruling};
use killpoint_model::plan::{ProviderPlan, Reply};
use killpoint_model::profile::Mismatch;
use killpoint_model::provider::Unanswered;

use super::act::{Answer, Found, Letter};

/// What `Retry-After` says, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

/// Where an exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Connect,
    Read,
    Execute { until_us: u64 },
    Parked,
    Part,
    Last,
    Drop(Unanswered),
    AnswerLookup,
}

/// Whether somebody still waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Waits,
    /// It had enough, after it had sent its request whole.
    GaveUp,
    Dead,
}

/// One exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) worker: u32,
    pub(super) life: u32,
    /// A write, or the item and key of a lookup.
    pub(super) request: Result<Letter, (usize, String)>,
    pub(super) connection: u32,
    /// When the worker began.
    pub(super) called_seq: u64,
    /// The same in microseconds.
    pub(super) called_us: u64,
    /// When the worker stopped waiting, in microseconds.
    pub(super) left_us: Option<u64>,
    /// Whether the worker was stopped between its last look at its claim and this request.
    pub(super) is_stale: bool,
    pub(super) stage: Stage,
    pub(super) wake: Option<u64>,
    /// Whether the harness does something while it is at a hit.
    pub(super) held: bool,
    pub(super) client: Client,
    /// The attempt or the lookup; 0 before the request was read.
    pub(super) id: u32,
    pub(super) plan: ProviderPlan,
    pub(super) status: u16,
    pub(super) answer: Option<Answer>,
    pub(super) found: Option<Found>,
    /// Whether the worker has read the whole answer.
    pub(super) told: bool,
    /// Whether its end is on record.
    pub(super) over: bool,
}

impl Exchange {
    /// Whether it is between its request and its end.
    pub(super) fn is_under_way(&self) -> bool {
        self.id > 0 && !self.over
    }

    /// The client leaves. What is parked ends by that.
    pub(super) fn lose(&mut self, client: Client, now_us: u64) {
        self.client = client;
        if self.stage == Stage::Parked && !self.held {
            self.wake = Some(now_us);
        }
    }
}

/// What the whole answer to a write says, by the contract.
pub(super) fn answer_of(core: &Core, attempt: u32, ruling: &Ruling, reply: Reply) -> (u16, Answer) {
    let mut id = Core::effect_id(attempt);
    let status = match (reply, ruling) {
        (Reply::Status { code }, _) => code,
        (_, Ruling::Execute) => 201,
        (_, Ruling::Replay(stored)) => {
            id = stored.effect.clone().unwrap_or(id);
            stored.error.unwrap_or(201)
        }
        (_, Ruling::Concurrent) => 409,
        (_, Ruling::Mismatch) => match core.settings().idempotency.mismatch {
            Mismatch::BadRequest => 400,
            Mismatch::Conflict => 409,
            Mismatch::Unprocessable => 422,
        },
        (_, Ruling::MissingKey) => 400,
    };
    let retry_after_ms = retry_after_ms(status);
    let answer = match status {
        200..300 => Answer::Accepted { id },
        429 => Answer::RateLimited { retry_after_ms },
        408 | 409 | 425 | 500.. => Answer::Doubtful { retry_after_ms },
        _ => Answer::Refused,
    };
    (status, answer)
}

pub(super) fn retry_after_ms(status: u16) -> Option<u64> {
    matches!(status, 429 | 503).then_some(RETRY_AFTER_MS)
}
