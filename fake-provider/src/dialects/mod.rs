//! Wire contracts that the provider speaks. A dialect says what a request asks for and what answers look
//! like; it holds no state. One file and one line in [`DIALECTS`] each.

mod rest;

use std::fmt::Debug;

use killpoint_model::Entry;
use killpoint_model::diagnostic::UnknownWord;
use killpoint_model::provider::Attempt;

use crate::core::{Looked, Query};
use crate::http::{Request, Response};

/// Every dialect.
pub static DIALECTS: &[&dyn Dialect] = &[&rest::Rest];

/// Finds a dialect by name.
pub fn find(name: &str) -> Result<&'static dyn Dialect, UnknownWord> {
    DIALECTS
        .iter()
        .copied()
        .find(|dialect| dialect.entry().name == name)
        .ok_or_else(|| UnknownWord::new(name, DIALECTS.iter().map(|dialect| dialect.entry().name)))
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// A write of this operation: it makes an effect.
    Write {
        /// The operation's name in rules, boundaries and events.
        operation: String,
    },
    /// A read.
    Lookup(Query),
    /// Nothing that this contract has: answered with this status, and no event.
    Unsupported {
        /// 404 or 405.
        status: u16,
    },
}

/// A write that was accepted, as its sender is told.
#[derive(Debug, Clone, Copy)]
pub struct Accepted<'a> {
    /// The provider's id for it.
    pub id: &'a str,
    /// The attempt that made it, or would have.
    pub attempt: &'a Attempt,
}

/// Why the idempotency contract turns a write down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The first request with the key is in flight.
    Concurrent,
    /// The key is known with another body; the profile says with which status.
    Mismatch {
        /// 400, 409 or 422.
        status: u16,
    },
    /// A key is needed.
    MissingKey,
}

/// One wire contract over HTTP. The same input always gives the same bytes.
pub trait Dialect: Debug + Send + Sync {
    /// Its name and texts.
    fn entry(&self) -> &'static Entry;

    /// What a request asks for.
    fn read(&self, request: &Request) -> Call;

    /// The ordinary answer to a write.
    fn accepted(&self, accepted: Accepted<'_>) -> Response;

    /// The answer to a write that the idempotency contract turns down.
    fn refused(&self, refusal: Refusal) -> Response;

    /// An error in the dialect's own shape.
    fn error(&self, status: u16) -> Response;

    /// The answer to a lookup.
    fn found(&self, query: &Query, looked: &Looked) -> Response;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_is_well_formed() {
        let entries: Vec<Entry> = DIALECTS.iter().map(|dialect| *dialect.entry()).collect();
        assert_eq!(killpoint_model::catalog::slice_problems(&entries), Vec::<String>::new());
    }

    #[test]
    fn dialects_are_found_by_name() {
        assert_eq!(find("rest").map(|dialect| dialect.entry().name), Ok("rest"));
        assert!(find("rst").unwrap_err().to_string().contains("rest"));
    }
}
