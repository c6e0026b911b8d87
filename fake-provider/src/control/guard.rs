//! Who may use the control port.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;

use super::failure;
use crate::core::lower_hex;
use crate::http::{Request, Response};

const TOKEN_BYTES: usize = 16;

/// A bearer token: 32 hex digits of the system's randomness.
#[derive(Clone)]
pub(super) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(lower_hex(&bytes)))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the texts differ.
    fn is(&self, given: &str) -> bool {
        let differences =
            self.0.bytes().zip(given.bytes()).fold(0, |seen, (ours, theirs)| seen | (ours ^ theirs));
        given.len() == self.0.len() && differences == 0
    }
}

/// Why a request is turned down; `None` where it is welcome.
pub(super) fn refusal(request: &Request, token: &Token) -> Option<Response> {
    if !request.header("host").is_some_and(is_loopback) {
        return Some(failure(403, "the Host header is not loopback; use the address that was printed"));
    }
    let given = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if !given.is_some_and(|given| token.is(given.trim())) {
        return Some(failure(401, "send `Authorization: Bearer TOKEN` with the token that was printed"));
    }
    None
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_hosts_are_welcome() {
        for host in ["127.0.0.1:80", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:9"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:80", "[::1", "10.0.0.1", "", "localhost.evil"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn tokens_differ_and_only_the_whole_one_fits() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.text().len(), 32);
        assert_ne!(one.text(), other.text());
        assert!(one.is(one.text()));
        for wrong in ["", &one.text()[..31], other.text(), &format!("{}0", one.text())] {
            assert!(!one.is(wrong));
        }
        assert!(!format!("{one:?}").contains(one.text()));
    }
}
