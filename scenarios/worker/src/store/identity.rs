//! Identities that are the same in every life: item ids, keys, hashes.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Characters of an id that a key keeps readable.
const READABLE_CHARS_MAX: usize = 60;

/// Lower-case hex SHA-256.
pub(super) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// `RUN/DESTINATION`, without white space and without a way for two pairs to share one id.
pub(super) fn delivery_id(run_id: &str, destination: &str) -> String {
    format!("{}/{}", escaped(run_id), escaped(destination))
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '%' | '/' => drop(write!(out, "%{:02x}", c as u32)),
            c if c.is_whitespace() || c.is_control() => drop(write!(out, "%{:02x}", c as u32)),
            c => out.push(c),
        }
        out
    })
}

/// The idempotency key of an item: readable, at most 77 characters of `A-Za-z0-9._-`. It is another one for another
/// payload, so that an id that is used again after a restore can't pass for the old message, and in another ledger,
/// so that two that number their actions alike don't meet at a provider.
pub(super) fn key(epoch: &str, delivery_id: &str, payload: &str) -> String {
    let readable: String = delivery_id
        .chars()
        .take(READABLE_CHARS_MAX)
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
        .collect();
    format!("{readable}-{}", &hash(&format!("{epoch}\n{delivery_id}\n{payload}"))[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pairs_never_share_an_id() {
        assert_eq!(delivery_id("a", "b@example.test"), "a/b@example.test");
        assert_eq!(delivery_id("a b", "c\n"), "a%20b/c%0a");
        assert_ne!(delivery_id("a/b", "c"), delivery_id("a", "b/c"));
        assert_ne!(delivery_id("a b", "c"), delivery_id("a%20b", "c"));
    }

    #[test]
    fn a_key_is_stable_safe_on_any_wire_and_bound_to_its_payload_and_ledger() {
        let id = delivery_id(&"é".repeat(300), "ops channel");
        assert_eq!(key("e", &id, "x"), key("e", &id, "x"));
        assert_ne!(key("e", &id, "x"), key("e", &id, "y"));
        assert_ne!(key("e", &id, "x"), key("f", &id, "x"));
        assert!(key("e", &id, "x").len() <= 77);
        assert!(key("e", &id, "x").chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)));
    }
}
