//! HTTP/1.1 by hand, because faults must be exact to the byte: requests in, responses out. Shared by the
//! wire and the control port.

mod chunked;
mod form;
mod parse;
mod reader;
mod response;

pub use form::{percent_decoded, read_form};
pub use parse::{BODY_BYTES_MAX, BadRequest, HEADER_BYTES_MAX, Parsed, Request, parse};
pub use reader::{IDLE_LIMIT, ReadFailure, read_request};
pub use response::{Response, reason};
