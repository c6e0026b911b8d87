//! How long a life of the worker may be silent before its first sign. An interpreter that is still loading on a
//! busy machine must not pass for a worker that has nothing to do.

use std::time::{Duration, Instant};

/// The least quiet time of the first life, whose start-up is not known yet.
const FIRST_LIFE: Duration = Duration::from_secs(5);
/// A later life may take so many times longer than the slowest one before it.
const SLOWER: u32 = 3;

/// What is known about a trial's start-ups.
#[derive(Debug, Default)]
pub(super) struct StartUp {
    /// Start of the life that gave no sign yet.
    begun: Option<Instant>,
    slowest: Option<Duration>,
}

impl StartUp {
    /// A life begins.
    pub(super) fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// The life that runs gave a sign.
    pub(super) fn end(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.slowest = self.slowest.max(Some(begun.elapsed()));
        }
    }

    /// The least that counts as quiet now.
    pub(super) fn least_quiet(&self) -> Duration {
        match (self.begun, self.slowest) {
            (None, _) => Duration::ZERO,
            (Some(_), None) => FIRST_LIFE,
            (Some(_), Some(slowest)) => slowest * SLOWER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_only_after_a_sign_or_a_long_time() {
        let mut start_up = StartUp::default();
        assert_eq!(start_up.least_quiet(), Duration::ZERO, "nothing was started");
        start_up.begin();
        assert_eq!(start_up.least_quiet(), FIRST_LIFE);
        start_up.end();
        assert_eq!(start_up.least_quiet(), Duration::ZERO);
        start_up.slowest = Some(Duration::from_secs(2));
        start_up.begin();
        assert_eq!(start_up.least_quiet(), Duration::from_secs(6));
        start_up.end();
        assert_eq!(start_up.slowest, Some(Duration::from_secs(2)), "the slowest one counts");
    }
}
