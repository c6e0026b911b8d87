//! One request, read from a buffer that may still be growing. Pure.

use super::chunked::{Chunked, read_chunked};
use super::form::read_form;

/// Bytes that a request line and its headers may take.
pub const HEADER_BYTES_MAX: usize = 64 << 10;
/// Bytes that a body may have.
pub const BODY_BYTES_MAX: usize = 8 << 20;
/// Bytes that a chunked body may take with its framing.
const CHUNKED_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
const HEADERS_MAX: usize = 256;

/// A request that was read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Such as `POST`.
    pub method: String,
    /// The path as sent, without query.
    pub path: String,
    /// The query's pairs, decoded, in order.
    pub query: Vec<(String, String)>,
    /// Headers in order; values as sent.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// Whether the client wants the connection kept.
    pub keep_alive: bool,
}

impl Request {
    /// The first header of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The first query value of that name.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Why bytes are no request that is served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct BadRequest {
    /// 400, 413, 431 or 501.
    pub status: u16,
    /// What is wrong.
    pub why: String,
}

impl BadRequest {
    fn new(status: u16, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }
}

/// What a buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed.
    Incomplete {
        /// Whether the client waits for `100 Continue` before it sends the body.
        wants_continue: bool,
    },
    /// A whole request.
    Complete {
        /// The request.
        request: Request,
        /// Bytes of the buffer that belong to it.
        consumed: usize,
    },
}

/// Reads one request from the front of `bytes`.
pub fn parse(bytes: &[u8]) -> Result<Parsed, BadRequest> {
    let mut slots = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut slots);
    let head_len = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() <= HEADER_BYTES_MAX => {
            return Ok(Parsed::Incomplete { wants_continue: false });
        }
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Err(too_large_head()),
        Err(error) => return Err(BadRequest::new(400, format!("no HTTP request: {error}"))),
    };
    if head_len > HEADER_BYTES_MAX {
        return Err(too_large_head());
    }
    let http_1_0 = head.version == Some(0);
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|line| (line.name.to_owned(), String::from_utf8_lossy(line.value).into_owned()))
        .collect();
    let rest = &bytes[head_len..];
    let Some((body, body_len)) = read_body(&headers, rest)? else {
        let asks = header(&headers, "expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        return Ok(Parsed::Incomplete { wants_continue: asks && rest.is_empty() && !http_1_0 });
    };
    let (path, query) = split_target(head.path.unwrap_or("/"));
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path,
        query,
        keep_alive: keep_alive(&headers, http_1_0),
        headers,
        body,
    };
    Ok(Parsed::Complete { request, consumed: head_len + body_len })
}

fn too_large_head() -> BadRequest {
    BadRequest::new(431, format!("the headers are longer than {HEADER_BYTES_MAX} bytes or too many"))
}

fn too_large_body() -> BadRequest {
    BadRequest::new(413, format!("the body is longer than {BODY_BYTES_MAX} bytes"))
}

/// The body and its length in the buffer; `None` while it is incomplete.
fn read_body(headers: &[(String, String)], rest: &[u8]) -> Result<Option<(Vec<u8>, usize)>, BadRequest> {
    let values = |wanted: &str| -> Vec<&str> {
        let wanted = wanted.to_owned();
        headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(&wanted))
            .map(|(_, value)| value.trim())
            .collect()
    };
    let (codings, lengths) = (values("transfer-encoding"), values("content-length"));
    if !codings.is_empty() {
        if !lengths.is_empty() {
            return Err(BadRequest::new(400, "both Content-Length and Transfer-Encoding"));
        }
        return match codings.as_slice() {
            [coding] if coding.eq_ignore_ascii_case("chunked") => read_chunked_body(rest),
            _ => Err(BadRequest::new(501, "the only transfer coding is chunked")),
        };
    }
    let Some(first) = lengths.first() else { return Ok(Some((Vec::new(), 0))) };
    if lengths.iter().any(|length| length != first) || !first.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadRequest::new(400, "Content-Length is no single number"));
    }
    let length: usize = match first.parse() {
        Ok(length) => length,
        Err(_) if first.is_empty() => return Err(BadRequest::new(400, "Content-Length is empty")),
        Err(_) => return Err(too_large_body()),
    };
    if length > BODY_BYTES_MAX {
        return Err(too_large_body());
    }
    Ok(rest.get(..length).map(|body| (body.to_vec(), length)))
}

fn read_chunked_body(rest: &[u8]) -> Result<Option<(Vec<u8>, usize)>, BadRequest> {
    match read_chunked(rest) {
        Chunked::Complete { body, .. } if body.len() > BODY_BYTES_MAX => Err(too_large_body()),
        Chunked::Complete { body, consumed } => Ok(Some((body, consumed))),
        Chunked::Incomplete if rest.len() > CHUNKED_BYTES_MAX => Err(too_large_body()),
        Chunked::Incomplete => Ok(None),
        Chunked::Malformed => Err(BadRequest::new(400, "the chunked body is malformed")),
    }
}

/// Path and query; the absolute form of a proxy request counts as its path.
fn split_target(target: &str) -> (String, Vec<(String, String)>) {
    let local = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && !scheme.contains('/') => {
            rest.find('/').map_or("/", |slash| &rest[slash..])
        }
        _ => target,
    };
    match local.split_once('?') {
        Some((path, query)) => (path.to_owned(), read_form(query)),
        None => (local.to_owned(), Vec::new()),
    }
}

fn keep_alive(headers: &[(String, String)], http_1_0: bool) -> bool {
    let says = |word: &str| {
        headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
            .flat_map(|(_, value)| value.split(','))
            .any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    if http_1_0 { says("keep-alive") } else { !says("close") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn complete(bytes: &[u8]) -> Request {
        match parse(bytes) {
            Ok(Parsed::Complete { request, consumed }) if consumed == bytes.len() => request,
            other => panic!("{other:?}"),
        }
    }

    const POST: &[u8] =
        b"POST http://x.test/v1/m?key=a%20b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";

    #[test]
    fn requests_are_read_and_their_prefixes_are_incomplete() {
        let request = complete(POST);
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/m"));
        assert_eq!(request.query_value("key"), Some("a b"));
        assert_eq!(request.body, b"body");
        assert!(request.keep_alive);
        for end in 0..POST.len() {
            assert!(matches!(parse(&POST[..end]), Ok(Parsed::Incomplete { .. })), "{end}");
        }
    }

    #[test]
    fn connections_are_kept_as_the_version_and_header_say() {
        for (text, kept) in [
            ("GET / HTTP/1.1\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true),
        ] {
            assert_eq!(complete(text.as_bytes()).keep_alive, kept, "{text}");
        }
    }

    #[test]
    fn a_client_that_expects_100_is_told_once_its_head_is_whole() {
        let head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(parse(head.as_bytes()), Ok(Parsed::Incomplete { wants_continue: true }));
        assert_eq!(complete(format!("{head}x").as_bytes()).body, b"x");
    }

    #[test]
    fn what_is_not_served_has_its_status() {
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(HEADER_BYTES_MAX));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        for (text, status) in [
            ("nonsense\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nContent-Length: 8388609\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
            (long.as_str(), 431),
            (many.as_str(), 431),
        ] {
            assert_eq!(parse(text.as_bytes()).map_err(|e| e.status), Err(status), "{text:.60}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let chunked = [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice(), &bytes].concat();
            let _ = parse(&chunked);
        }
    }
}
