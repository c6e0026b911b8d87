//! The one way to read wall-clock time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Wall-clock time in milliseconds since the Unix epoch.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;

    /// Steps the clock forward, where it can be stepped. Returns whether it was.
    fn advance(&self, by: Duration) -> bool {
        let _ = by;
        false
    }
}

/// The machine's clock plus a step, so that "25 hours later" takes no time.
#[derive(Debug, Default)]
pub struct SystemClock {
    offset_ms: AtomicU64,
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now_ms(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since_epoch.as_millis() as u64 + self.offset_ms.load(Ordering::Relaxed)
    }

    fn advance(&self, by: Duration) -> bool {
        self.offset_ms.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
        true
    }
}

/// A clock that moves only when told to: tests and stepped provider windows.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ms: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub fn at(now_ms: u64) -> Self {
        Self { now_ms: AtomicU64::new(now_ms) }
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn advance(&self, by: Duration) -> bool {
        self.now_ms.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
        true
    }
}
