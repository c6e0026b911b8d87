//! The provider's events in words.

use killpoint_model::provider::{Attempt, Effect, Lookup, ProviderEvent, Replay, Unanswered};

use super::narrate::{Told, told};
use super::timeline::{StepKind, Weight};
use crate::sanitise::shorten;

/// Longest worker's text within a step, in characters.
const TEXT_CHARS_MAX: usize = 60;
/// Most effects or items that a step names.
const NAMED_MAX: usize = 5;

pub(super) fn tell(event: &ProviderEvent) -> Told {
    use StepKind::{Attempt, Effect, Lookup, Provider, Reply};
    use Weight::{Background, Major, Minor};
    match event {
        ProviderEvent::Received(request) => told(Attempt, Major, attempt_text(request)),
        ProviderEvent::Committed(effect) => told(Effect, Major, effect_text(effect)),
        ProviderEvent::NotExecuted { attempt, replay, effect } => {
            told(Effect, Major, not_executed_text(*attempt, *replay, effect.as_deref()))
        }
        ProviderEvent::Redelivered { effect } => {
            told(Effect, Major, format!("{} delivered once more by the provider itself", short(effect)))
        }
        ProviderEvent::Replied { attempt, status, retry_after_ms } => {
            let later = retry_after_ms.map(|ms| format!(", not to be tried again for {ms}ms"));
            let later = later.unwrap_or_default();
            told(Reply, Minor, format!("attempt {attempt} answered in full, status {status}{later}"))
        }
        ProviderEvent::Unread { attempt } => told(
            Reply,
            Major,
            format!("the client closed without having read all of the answer to attempt {attempt}"),
        ),
        ProviderEvent::Unanswered { attempt, how } => {
            told(Reply, Major, format!("attempt {attempt} not answered in full: {}", how_text(*how)))
        }
        ProviderEvent::Replying { attempt, bytes } => {
            told(Reply, Background, format!("{bytes} bytes of the answer to attempt {attempt} written"))
        }
        ProviderEvent::LookedUp(lookup) => told(Lookup, Major, lookup_text(lookup)),
        ProviderEvent::LookupReplied { lookup, status } => {
            told(Lookup, Background, format!("lookup {lookup} answered in full, status {status}"))
        }
        ProviderEvent::LookupUnanswered { lookup, how } => {
            told(Lookup, Major, format!("lookup {lookup} not answered in full: {}", how_text(*how)))
        }
        ProviderEvent::RuleFired { rule, attempt, lookup, plan } => {
            let what = if *lookup { "lookup" } else { "attempt" };
            told(Provider, Minor, format!("rule {} takes {what} {attempt}: {plan}", short(rule)))
        }
        ProviderEvent::Held { attempt } => {
            told(Provider, Background, format!("attempt {attempt} is held at the committed point"))
        }
        ProviderEvent::Receipt { effect, copies, late } => {
            let late = if *late { ", late" } else { "" };
            told(Provider, Minor, format!("receipts for {}: {copies}{late}", short(effect)))
        }
        ProviderEvent::Fed { poll, cursor, items, again } => {
            told(Provider, Minor, fed_text(*poll, cursor, items, again))
        }
        ProviderEvent::FeedAcknowledged { items, answer_lost } => {
            told(Provider, Minor, acknowledged_text(items, *answer_lost))
        }
        ProviderEvent::ClockStepped { by_ms } => {
            told(Provider, Major, format!("the provider's clock was stepped by {by_ms}ms"))
        }
        ProviderEvent::Connected { connection } => {
            told(Provider, Background, format!("connection {connection} accepted"))
        }
        ProviderEvent::Partial { connection, bytes } => told(
            Provider,
            Minor,
            format!("connection {connection} ended after {bytes} bytes, before a whole request: no attempt"),
        ),
    }
}

fn short(text: &str) -> String {
    shorten(text, TEXT_CHARS_MAX)
}

fn key_text(key: Option<&str>) -> String {
    key.map_or_else(|| "no key".to_owned(), |key| format!("key {}", short(key)))
}

fn attempt_text(attempt: &Attempt) -> String {
    let action = attempt.action.as_deref().map(|action| format!(", action {}", short(action)));
    format!(
        "#{} {} to {}, {}{}",
        attempt.id,
        short(&attempt.operation),
        short(&attempt.recipient),
        key_text(attempt.key.as_deref()),
        action.unwrap_or_default()
    )
}

fn effect_text(effect: &Effect) -> String {
    let copies = if effect.copies == 1 { String::new() } else { format!(", {} copies", effect.copies) };
    format!(
        "{} committed: {} receives “{}”{copies} (attempt {})",
        short(&effect.id),
        short(&effect.recipient),
        short(&effect.text),
        effect.attempt
    )
}

fn not_executed_text(attempt: u32, replay: Replay, effect: Option<&str>) -> String {
    let why = match replay {
        Replay::Replayed => "the stored answer came back",
        Replay::Concurrent => "the first request with its key is still in flight",
        Replay::Mismatch => "its key is known with another body",
        Replay::MissingKey => "it has no key",
    };
    let effect = effect.map(|effect| format!(", {}", short(effect))).unwrap_or_default();
    format!("no new effect of attempt {attempt}: {why}{effect}")
}

const fn how_text(how: Unanswered) -> &'static str {
    match how {
        Unanswered::Fin => "closed by the provider",
        Unanswered::Rst => "reset by the provider",
        Unanswered::Cut => "cut short by the provider",
        Unanswered::Hang => "held silent until the hang was ended",
        Unanswered::ClientGone => "the client went away first",
        Unanswered::Abandoned => "let go of after the worker's death",
    }
}

fn lookup_text(lookup: &Lookup) -> String {
    let subject = if lookup.subject.is_empty() { "everything".to_owned() } else { short(&lookup.subject) };
    format!("#{} {} of {subject} found {}", lookup.id, short(&lookup.operation), list_text(&lookup.found))
}

fn fed_text(poll: u32, cursor: &str, items: &[String], again: &[String]) -> String {
    let from = if cursor.is_empty() { "the beginning".to_owned() } else { short(cursor) };
    let again =
        if again.is_empty() { String::new() } else { format!(", given before: {}", list_text(again)) };
    format!("poll {poll} of the feed from {from}: {}{again}", list_text(items))
}

fn acknowledged_text(items: &[String], answer_lost: bool) -> String {
    let end = if answer_lost { ", and the answer was lost" } else { "" };
    format!("feed: {} acknowledged{end}", list_text(items))
}

/// The first few of some ids, and how many more there are.
fn list_text(ids: &[String]) -> String {
    let named: Vec<String> = ids.iter().take(NAMED_MAX).map(|id| short(id)).collect();
    match (ids.len(), ids.len().saturating_sub(NAMED_MAX)) {
        (0, _) => "nothing".to_owned(),
        (_, 0) => named.join(", "),
        (_, more) => format!("{} and {more} more", named.join(", ")),
    }
}
