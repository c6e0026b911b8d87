//! Time: the wall clock, which leases need because they are compared across processes, and bounded pauses.

use std::time::Duration;

/// Milliseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "a worker under test must not know the harness's clock")]
pub(crate) fn now_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_millis() as i64
}

/// Gives way for a short time, before the ledger or the provider is asked again.
#[expect(clippy::disallowed_methods, reason = "a polling worker; it stands for no boundary")]
pub(crate) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
