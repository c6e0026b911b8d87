//! What the fake provider saw and did. Three counters stay apart: attempts (wire), effects (commits),
//! acknowledged (reply fully written).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::ProviderPlan;
use crate::text_enum::text_enum;

/// One request that reached the provider's wire, read whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// From 1, in order of arrival.
    pub id: u32,
    /// The TCP connection that brought it, from 1.
    pub connection: u32,
    /// The dialect, such as `rest`.
    pub dialect: String,
    /// The dialect's operation; `create` and other writes make effects.
    pub operation: String,
    /// Method and path as sent, without the query's secrets.
    pub target: String,
    /// Idempotency key as sent.
    pub key: Option<String>,
    /// Where it goes: the recipient's address.
    pub recipient: String,
    /// The logical action id found at the configured pointer.
    pub action: Option<String>,
    /// SHA-256 of the body, lower-case hex.
    pub body_sha256: String,
    /// The body as JSON, or as text where it is no JSON; capped.
    pub body: Value,
    /// Milliseconds on the provider's clock.
    pub at_ms: u64,
}

text_enum! {
    /// Who sees a recognizer.
    pub enum RecognizerVisibility {
        /// A human reads it in the rendered message.
        Visible = "visible",
        /// It is in the message but a human would not see it.
        Hidden = "hidden",
        /// Only the sender can read it back.
        SenderSide = "sender-side",
    }
}

/// Something in an effect by which a sender can find its own message again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recognizer {
    /// JSON pointer into the body, or `header:NAME`.
    pub place: String,
    /// Its value.
    pub value: String,
    /// Who sees it.
    pub visibility: RecognizerVisibility,
}

/// A committed side effect: what a recipient would have received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The provider's id for it, as a lookup returns it.
    pub id: String,
    /// The attempt that made it.
    pub attempt: u32,
    /// The dialect.
    pub dialect: String,
    /// The operation.
    pub operation: String,
    /// Who received it.
    pub recipient: String,
    /// What a human would read.
    pub text: String,
    /// The request's body as JSON, or as text; capped.
    pub body: Value,
    /// Idempotency key that came with it.
    pub key: Option<String>,
    /// The logical action id found at the configured pointer.
    pub action: Option<String>,
    /// By what it could be recognized.
    pub recognizers: Vec<Recognizer>,
    /// Copies that the recipient got of this one commit; above 1 only where the plan says so.
    pub copies: u32,
    /// Provider's clock, milliseconds.
    pub committed_at_ms: u64,
    /// From when a lookup sees it; `None` is never.
    pub visible_at_ms: Option<u64>,
    /// When it is reported as bounced.
    pub bounced_at_ms: Option<u64>,
}

/// A read by which a worker reconciles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lookup {
    /// From 1.
    pub id: u32,
    /// The TCP connection that brought it.
    pub connection: u32,
    /// The operation: `get`, `lookup` or `list`.
    pub operation: String,
    /// Method and path as sent.
    pub target: String,
    /// What was asked for: an id or a key; empty for a listing.
    pub subject: String,
    /// Ids of the effects that it was allowed to see.
    pub found: Vec<String>,
    /// Provider's clock, milliseconds.
    pub at_ms: u64,
}

text_enum! {
    /// Why a write made no new effect though it was executed by the contract.
    pub enum Replay {
        /// The stored answer came back.
        Replayed = "replayed",
        /// The first request with the key is still in flight.
        Concurrent = "concurrent",
        /// The key is known with another body.
        Mismatch = "mismatch",
        /// No key, and the provider wants one.
        MissingKey = "missing-key",
    }
}

text_enum! {
    /// How an exchange ended without its whole reply.
    pub enum Unanswered {
        /// Closed by the provider.
        Fin = "fin",
        /// Reset by the provider.
        Rst = "rst",
        /// Cut short by the provider.
        Cut = "cut",
        /// Held silent until the harness ended it.
        Hang = "hang",
        /// The client went away first.
        ClientGone = "client-gone",
        /// The harness let go of it after the worker's death.
        Abandoned = "abandoned",
    }
}

/// One entry of the provider's append-only log. Its state is a fold over these, so a snapshot is a
/// length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderEvent {
    /// A TCP connection was accepted.
    Connected {
        /// From 1.
        connection: u32,
    },
    /// A connection ended before a whole request was read: no attempt.
    Partial {
        /// The connection.
        connection: u32,
        /// Bytes read.
        bytes: u64,
    },
    /// A whole write request was read; nothing is committed yet.
    Received(Attempt),
    /// A rule of the plan took this attempt.
    RuleFired {
        /// The rule's id.
        rule: String,
        /// The attempt, or the lookup where `lookup` is set.
        attempt: u32,
        /// Whether the number is a lookup's.
        lookup: bool,
        /// What it does.
        plan: ProviderPlan,
    },
    /// The effect exists; no byte of a reply was sent.
    Committed(Effect),
    /// The contract made no new effect of this attempt.
    NotExecuted {
        /// The attempt.
        attempt: u32,
        /// Why.
        replay: Replay,
        /// The earlier effect, where there is one.
        effect: Option<String>,
    },
    /// The request is parked at the committed point.
    Held {
        /// The attempt.
        attempt: u32,
    },
    /// Part of the reply was sent.
    Replying {
        /// The attempt.
        attempt: u32,
        /// Bytes written so far.
        bytes: u64,
    },
    /// The whole reply was written: acknowledged.
    Replied {
        /// The attempt.
        attempt: u32,
        /// HTTP status.
        status: u16,
        /// After how long the sender may try again, where the answer says so, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// After the whole reply was written, the client reset the connection: what it closed had bytes that nobody had
    /// read. It may have given up before it heard the reply. A client that reads no more than the status does it too.
    Unread {
        /// The attempt.
        attempt: u32,
    },
    /// The exchange ended without a whole reply.
    Unanswered {
        /// The attempt.
        attempt: u32,
        /// How.
        how: Unanswered,
    },
    /// A lookup was read and evaluated; its answer follows.
    LookedUp(Lookup),
    /// The whole answer to a lookup was written.
    LookupReplied {
        /// The lookup.
        lookup: u32,
        /// HTTP status.
        status: u16,
    },
    /// A lookup ended without a whole answer.
    LookupUnanswered {
        /// The lookup.
        lookup: u32,
        /// How.
        how: Unanswered,
    },
    /// The provider delivered another copy of an effect by itself.
    Redelivered {
        /// The effect.
        effect: String,
    },
    /// A delivery receipt is due for an effect; `copies` 0 is a lost one.
    Receipt {
        /// The effect.
        effect: String,
        /// How many receipts are sent.
        copies: u32,
        /// Whether it is late.
        late: bool,
    },
    /// A poll of the inbound feed was answered with items. No attempt, no lookup and no effect.
    Fed {
        /// Which poll, from 1.
        poll: u32,
        /// The cursor that it came with; empty where it came without.
        cursor: String,
        /// Ids of the items, in the order of the feed.
        items: Vec<String>,
        /// Those of them that had been given before.
        again: Vec<String>,
    },
    /// Items of the inbound feed were acknowledged.
    FeedAcknowledged {
        /// Ids, as they were sent; only those that the feed has.
        items: Vec<String>,
        /// Whether the connection is closed without the answer.
        answer_lost: bool,
    },
    /// The provider's clock was stepped.
    ClockStepped {
        /// By how much, in milliseconds.
        by_ms: u64,
    },
}

/// The three numbers that are never folded together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Requests that reached the wire.
    pub attempts: u32,
    /// Copies that recipients got.
    pub effects: u32,
    /// Replies to writes that were fully written.
    pub acknowledged: u32,
}

impl Counters {
    /// Counts over a log.
    pub fn count<'a>(log: impl IntoIterator<Item = &'a ProviderEvent>) -> Self {
        let mut counters = Self::default();
        for event in log {
            counters.add(event);
        }
        counters
    }

    /// Counts one more event.
    pub fn add(&mut self, event: &ProviderEvent) {
        match event {
            ProviderEvent::Received(_) => self.attempts += 1,
            ProviderEvent::Committed(effect) => self.effects += effect.copies,
            ProviderEvent::Redelivered { .. } => self.effects += 1,
            ProviderEvent::Replied { .. } => self.acknowledged += 1,
            _ => {}
        }
    }
}
