//! Taking in what the provider's feed has: committed first, acknowledged after, known by its id for ever.

use killpoint_mark::mark;

use crate::clock::pause;
use crate::error::WorkerError;
use crate::worker::Worker;

/// Failed polls in a row after which the worker stops.
const FAILURES_MAX: u32 = 6;
/// Pause after a poll that failed, in milliseconds.
const FAILURE_PAUSE_MS: u64 = 100;

/// How far a worker is with its feed.
#[derive(Debug, Default)]
pub(crate) struct FeedProgress {
    /// Whether the last poll brought nothing, and nothing waits to be acknowledged.
    pub(crate) is_drained: bool,
    failures: u32,
}

impl Worker {
    /// Polls the feed once. Says whether it brought anything.
    pub(crate) fn take_feed(&mut self) -> Result<bool, WorkerError> {
        if !self.settings.feed || self.settings.drain && self.feed.is_drained {
            return Ok(false);
        }
        match self.poll_feed()? {
            Ok(items) => {
                self.feed = FeedProgress { is_drained: items == 0, failures: 0 };
                Ok(items > 0)
            }
            Err(why) => {
                self.feed.failures += 1;
                if self.feed.failures == FAILURES_MAX {
                    return Err(WorkerError::Feed { times: FAILURES_MAX, why });
                }
                pause(FAILURE_PAUSE_MS);
                Ok(false)
            }
        }
    }

    /// How many items came, or why none could come.
    fn poll_feed(&mut self) -> Result<Result<usize, String>, WorkerError> {
        // What an earlier life committed and could not acknowledge, or whose answer was lost.
        if let Err(why) = self.acknowledge_feed()? {
            return Ok(Err(why));
        }
        let page = match self.provider.poll_feed(&self.store.cursor()?) {
            Ok(page) => page,
            Err(why) => return Ok(Err(why)),
        };
        if page.items.is_empty() {
            return Ok(Ok(0));
        }
        if self.policy.cursor_first {
            self.store.move_cursor(&page.cursor)?;
            mark("cursor-committed")?;
            let ids: Vec<String> = page.items.iter().map(|item| item.id.clone()).collect();
            if let Err(why) = self.provider.acknowledge_feed(&ids) {
                return Ok(Err(why));
            }
            self.store.take_in(&page.items, &page.cursor)?;
        } else {
            self.store.take_in(&page.items, &page.cursor)?;
            mark("cursor-committed")?;
        }
        Ok(self.acknowledge_feed()?.map(|()| page.items.len()))
    }

    fn acknowledge_feed(&mut self) -> Result<Result<(), String>, WorkerError> {
        let ids = self.store.unacknowledged()?;
        if ids.is_empty() {
            return Ok(Ok(()));
        }
        if let Err(why) = self.provider.acknowledge_feed(&ids) {
            return Ok(Err(why));
        }
        mark("feed-acknowledged")?;
        self.store.note_acknowledged(&ids)?;
        Ok(Ok(()))
    }
}
