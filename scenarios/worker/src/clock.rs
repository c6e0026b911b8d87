//! Time: the wall clock, which due times need because they outlive the process, and bounded pauses.

use std::sync::OnceLock;
use std::time::Duration;

/// The variable by which a harness makes this worker's wall clock differ, in milliseconds; may be negative.
const OFFSET_VARIABLE: &str = "KILLPOINT_CLOCK_OFFSET_MS";

/// Milliseconds since the Unix epoch, plus the offset that the environment asks for.
#[expect(clippy::disallowed_methods, reason = "a worker under test must not know the harness's clock")]
pub(crate) fn now_ms() -> i64 {
    static OFFSET_MS: OnceLock<i64> = OnceLock::new();
    let offset_ms = *OFFSET_MS.get_or_init(|| offset_of(std::env::var(OFFSET_VARIABLE).ok()));
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (since_epoch.as_millis() as i64).saturating_add(offset_ms)
}

/// What is no number is no offset: a worker must not stop for a variable that concerns tests alone.
fn offset_of(value: Option<String>) -> i64 {
    value.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Gives way for a short time, before the ledger or the provider is asked again.
#[expect(clippy::disallowed_methods, reason = "a polling worker; it stands for no boundary")]
pub(crate) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_a_signed_number_of_milliseconds_or_none() {
        for (text, offset_ms) in
            [(None, 0), (Some("300000"), 300_000), (Some("-10800000"), -10_800_000), (Some("5m"), 0)]
        {
            assert_eq!(offset_of(text.map(str::to_owned)), offset_ms);
        }
    }
}
