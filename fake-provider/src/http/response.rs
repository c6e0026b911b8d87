//! Responses as bytes. No `Date` header: twins must be the same bytes.

use std::fmt::Write;

/// A response that was not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Headers beside `Content-Type`, `Content-Length` and `Connection`.
    pub headers: Vec<(String, String)>,
    /// JSON text; nothing for a response without a body.
    pub body: String,
}

impl Response {
    /// A JSON answer.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string() }
    }

    /// The bytes, and how many of them are the header block. `head_only` is the answer to a HEAD.
    pub fn to_bytes(&self, keep_alive: bool, head_only: bool) -> (Vec<u8>, usize) {
        let mut text = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            self.status,
            reason(self.status),
            self.body.len()
        );
        for (name, value) in &self.headers {
            // Writing to a string can't fail.
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if !keep_alive {
            text.push_str("Connection: close\r\n");
        }
        text.push_str("\r\n");
        let head_len = text.len();
        if !head_only {
            text.push_str(&self.body);
        }
        (text.into_bytes(), head_len)
    }
}

/// The reason phrase of a status.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        425 => "Too Early",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        other if other < 500 => "Client Error",
        _ => "Server Error",
    }
}
