//! One request, and the ways in which the bugs send it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

use crate::error::WorkerError;
use crate::provider::Answer;
use crate::store::Item;
use crate::worker::Worker;

/// Between two looks at the stop flag while a request is in flight.
const STOP_LOOK: Duration = Duration::from_millis(5);
/// Requests that the bug makes for one outcome that can't be written.
const UNWRITTEN_SENDS_MAX: u32 = 3;

impl Worker {
    /// The request's body: as it was committed.
    pub(crate) fn payload_of(&self, item: &Item) -> String {
        if !self.policy.render_at_send || item.attempts == 0 {
            return item.payload.clone();
        }
        let mut payload: Value = serde_json::from_str(&item.payload).unwrap_or_default();
        let body = payload["body"].as_str().unwrap_or_default();
        payload["body"] = format!("{body} (sent again, {} before)", item.attempts).into();
        payload.to_string()
    }

    /// Sends a request whose intent is committed, and settles what comes back.
    pub(crate) fn send_and_settle(&self, item: &Item, payload: &str, key: &str) -> Result<(), WorkerError> {
        if self.policy.stop_requeues {
            return self.send_until_stopped(item, payload, key);
        }
        let mut outcome = self.settle_answer(item, self.provider.send(payload, key));
        if self.policy.resend_unwritten {
            for _ in 1..UNWRITTEN_SENDS_MAX {
                if !outcome.as_ref().is_err_and(WorkerError::is_ledger_unwritable) {
                    break;
                }
                outcome = self.settle_answer(item, self.provider.send(payload, key));
            }
        }
        outcome
    }

    /// A drain that leaves nothing in flight: it lets go of the request and forgets that it was made.
    fn send_until_stopped(&self, item: &Item, payload: &str, key: &str) -> Result<(), WorkerError> {
        let (provider, payload, key) = (self.provider.clone(), payload.to_owned(), key.to_owned());
        let (sender, answered) = channel();
        std::thread::spawn(move || sender.send(provider.send(&payload, &key)));
        loop {
            match answered.recv_timeout(STOP_LOOK) {
                Ok(answer) => return self.settle_answer(item, answer),
                Err(RecvTimeoutError::Timeout) if self.stop.is_asked_for() => {
                    return self.store.requeue(item);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let why = "the request was cut off".to_owned();
                    return self.settle_answer(item, Answer::Doubtful { why, retry_after_ms: None });
                }
            }
        }
    }
}
