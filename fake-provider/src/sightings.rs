//! Where planted credentials came by. A credential's value is only ever compared: neither an event, nor a
//! sighting, nor a log has it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::http::{Request, percent_decoded};

/// Looks for credentials in requests.
#[derive(Default)]
pub(crate) struct Lookout {
    wanted: Vec<(String, String)>,
    seen: Mutex<BTreeSet<(String, String)>>,
}

impl Lookout {
    /// Watches for `(name, value)`; empty values are never found.
    pub(crate) fn new(mut wanted: Vec<(String, String)>) -> Self {
        wanted.retain(|(_, value)| !value.is_empty());
        Self { wanted, seen: Mutex::default() }
    }

    /// Looks through a request that was read whole.
    pub(crate) fn look_at(&self, request: &Request) {
        if self.wanted.is_empty() {
            return;
        }
        let mut found = Vec::new();
        for (name, value) in &self.wanted {
            found.extend(places_of(request, value).into_iter().map(|place| (name.clone(), place)));
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }

    /// Names with the places where they were seen, sorted, each once.
    pub(crate) fn sightings(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

fn places_of(request: &Request, value: &str) -> Vec<String> {
    let mut places = Vec::new();
    let path = [request.path.as_str(), &percent_decoded(&request.path)].iter().any(|it| it.contains(value));
    if path || request.query.iter().any(|(name, text)| name.contains(value) || text.contains(value)) {
        places.push("requests:url".to_owned());
    }
    for (name, text) in &request.headers {
        // What a client was given in an address, `http://user:password@…`, it sends as Basic.
        let basic = || basic_of(text).is_some_and(|plain| contains(&plain, value));
        if text.contains(value) || basic() {
            places.push(format!("requests:header:{}", name.to_ascii_lowercase()));
        }
    }
    if contains(&request.body, value) {
        places.push("requests:body".to_owned());
    }
    places
}

fn contains(bytes: &[u8], value: &str) -> bool {
    bytes.windows(value.len()).any(|part| part == value.as_bytes())
}

/// The user and password of a Basic header.
fn basic_of(header: &str) -> Option<Vec<u8>> {
    let (scheme, text) = header.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut plain = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.trim().trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(six)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            plain.push((bits >> count) as u8);
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};

    fn seen(text: &str) -> Vec<String> {
        let lookout =
            Lookout::new(vec![("TOKEN".into(), "canary-7".into()), ("EMPTY".into(), String::new())]);
        match parse(text.as_bytes()) {
            Ok(Parsed::Complete { request, .. }) => lookout.look_at(&request),
            other => panic!("{other:?}"),
        }
        lookout.sightings().into_iter().map(|(name, place)| format!("{name} {place}")).collect()
    }

    #[test]
    fn every_part_of_a_request_is_looked_through() {
        let body = "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n\"canary-7\"";
        for (text, place) in [
            ("GET /canary%2D7 HTTP/1.1\r\n\r\n", "TOKEN requests:url"),
            ("GET /?token=canary%2D7 HTTP/1.1\r\n\r\n", "TOKEN requests:url"),
            (
                "GET / HTTP/1.1\r\nAuthorization: Bearer canary-7\r\n\r\n",
                "TOKEN requests:header:authorization",
            ),
            // user:canary-7
            (
                "GET / HTTP/1.1\r\nAuthorization: basic dXNlcjpjYW5hcnktNw==\r\n\r\n",
                "TOKEN requests:header:authorization",
            ),
            ("GET / HTTP/1.1\r\nX-Debug: canary-7;\r\n\r\n", "TOKEN requests:header:x-debug"),
            (body, "TOKEN requests:body"),
        ] {
            assert_eq!(seen(text), [place], "{text}");
        }
        for text in [
            "GET /canary-8 HTTP/1.1\r\nA: basic %%%\r\nB: basic\r\nC: basic Zm9v\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(seen(text), Vec::<String>::new(), "{text}");
        }
    }
}
