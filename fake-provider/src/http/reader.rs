//! Reads requests from a connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::parse::{BadRequest, Parsed, Request, parse};

/// A connection on which nothing comes for this long is closed.
pub const IDLE_LIMIT: Duration = Duration::from_secs(600);

const READ_BYTES: usize = 16 << 10;

/// Why no request came.
#[derive(Debug)]
pub enum ReadFailure {
    /// The client closed or fell silent; the buffer holds what it had sent of a request.
    Gone,
    /// The client reset the connection: it ended, or closed without having read all that was written to it.
    Reset,
    /// What it sent is not served.
    Bad(BadRequest),
}

/// Reads until `buffer` holds a whole request, and takes that out of it. May be cancelled at any await:
/// what was read stays in `buffer`.
pub async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Request, ReadFailure> {
    let mut continued = false;
    loop {
        match parse(buffer).map_err(ReadFailure::Bad)? {
            Parsed::Complete { request, consumed } => {
                buffer.drain(..consumed);
                return Ok(request);
            }
            Parsed::Incomplete { wants_continue } if wants_continue && !continued => {
                continued = true;
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.map_err(gone)?;
            }
            Parsed::Incomplete { .. } => {
                buffer.reserve(READ_BYTES);
                match timeout(IDLE_LIMIT, stream.read_buf(buffer)).await {
                    Ok(Ok(read)) if read > 0 => {}
                    Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                        return Err(ReadFailure::Reset);
                    }
                    Ok(Ok(_) | Err(_)) | Err(_) => return Err(ReadFailure::Gone),
                }
            }
        }
    }
}

fn gone(_: io::Error) -> ReadFailure {
    ReadFailure::Gone
}
