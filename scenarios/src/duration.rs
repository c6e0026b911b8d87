//! Durations as users write them, and as they meant them.

/// What `text` probably means, written as it should be; `None` where it is no duration at all.
pub(crate) fn guess(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    let compact = compact.to_ascii_lowercase();
    let split = compact.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(compact.len());
    let unit_ms = match &compact[split..] {
        "" | "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1000.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
        "d" | "day" | "days" => 86_400_000.0,
        _ => return None,
    };
    let ms = compact[..split].parse::<f64>().ok()? * unit_ms;
    // Beyond this a number of milliseconds is a typing slip, not a duration.
    (ms.is_finite() && (0.0..1e12).contains(&ms)).then(|| show(ms.round() as u64))
}

/// Milliseconds in the largest unit that needs no fraction.
pub(crate) fn show(ms: u64) -> String {
    for (unit, unit_ms) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
        if ms >= unit_ms && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::plan::duration_ms;

    #[test]
    fn what_was_meant_is_found() {
        for (text, meant) in [
            ("2 s", Some("2s")),
            ("1500", Some("1500ms")),
            ("1.5s", Some("1500ms")),
            ("30sec", Some("30s")),
            ("1 day", Some("24h")),
            ("soon", None),
            ("5 parsecs", None),
            (".", None),
        ] {
            assert_eq!(guess(text).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read() {
        for ms in [0, 1, 999, 1000, 1500, 60_000, 61_000, 86_400_000] {
            assert_eq!(duration_ms(&show(ms)), Some(ms));
        }
    }
}
