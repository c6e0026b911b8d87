//! What a worker and the world say to each other: the worker puts down an act and stands still until the world
//! has answered. Between the two it can be stopped, or dropped, which is its death.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Letter {
    /// Which item of the ledger it is about.
    pub(super) item: usize,
    pub(super) key: String,
    pub(super) body: String,
    /// When its sender last made sure of its claim, by its own clock in milliseconds.
    pub(super) sure_at_ms: i64,
}

/// One durable or visible act.
#[derive(Debug)]
pub(super) enum Act {
    /// A mark is made.
    Mark(&'static str),
    /// Something was committed.
    Commit,
    /// A pause, in milliseconds.
    Sleep(i64),
    /// A request.
    Send(Letter),
    /// A lookup by key, for an item.
    Ask { item: usize, key: String },
}

/// What is known after a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Accepted { id: String },
    Refused,
    RateLimited { retry_after_ms: Option<u64> },
    Doubtful { retry_after_ms: Option<u64> },
}

/// What is known after a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    One { id: String },
    None,
    Failed,
}

/// What came of an act.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    Sent(Answer),
    Asked(Found),
}

/// Where the two meet.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) act: RefCell<Option<Act>>,
    pub(super) outcome: RefCell<Option<Outcome>>,
    /// The worker's wall clock, in milliseconds.
    pub(super) now_ms: Cell<i64>,
    /// Whether it was asked to end.
    pub(super) stop: Cell<bool>,
}

impl Desk {
    async fn put(&self, act: Act) -> Outcome {
        *self.act.borrow_mut() = Some(act);
        poll_fn(|_| self.outcome.borrow_mut().take().map_or(Poll::Pending, Poll::Ready)).await
    }

    pub(super) async fn mark(&self, name: &'static str) {
        self.put(Act::Mark(name)).await;
    }

    pub(super) async fn commit(&self) {
        self.put(Act::Commit).await;
    }

    pub(super) async fn sleep(&self, ms: i64) {
        self.put(Act::Sleep(ms)).await;
    }

    pub(super) async fn send(&self, letter: Letter) -> Answer {
        match self.put(Act::Send(letter)).await {
            Outcome::Sent(answer) => answer,
            Outcome::Done | Outcome::Asked(_) => Answer::Doubtful { retry_after_ms: None },
        }
    }

    pub(super) async fn ask(&self, item: usize, key: String) -> Found {
        match self.put(Act::Ask { item, key }).await {
            Outcome::Asked(found) => found,
            Outcome::Done | Outcome::Sent(_) => Found::Failed,
        }
    }
}
