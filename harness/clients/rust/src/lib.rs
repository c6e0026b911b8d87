//! One call by which a worker names a boundary for killpoint: [`mark`].
//!
//! Outside a trial the variable [`SOCKET_VARIABLE`] is unset and the call returns at once, so it can stay in
//! production code. Inside a trial it blocks until the harness answers, without a limit of its own: being
//! held at this very moment is what it is for.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The environment variable by which the harness names its socket.
pub const SOCKET_VARIABLE: &str = "KILLPOINT_SOCKET";

/// Longest name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 200;

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 4096;

/// Why a mark was not made. The worker should stop: its trial proves nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum MarkError {
    /// The name is no mark name. Told outside a trial too, so that a typo can't hide until then.
    InvalidName {
        /// What was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The harness named a socket that does not answer.
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The harness answered with an error.
    Refused(String),
    /// No answer line came, or none of the protocol.
    Closed {
        /// The mark that was being made.
        name: String,
    },
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName { name, why } => write!(f, "invalid mark name `{name}`: {why}"),
            Self::Unreachable { socket, cause } => {
                write!(f, "can't reach killpoint at {}: {cause}", socket.display())
            }
            Self::Refused(text) => write!(f, "killpoint refused the mark: {text}"),
            Self::Closed { name } => {
                write!(f, "killpoint closed the connection without a valid answer to the mark `{name}`")
            }
        }
    }
}

impl std::error::Error for MarkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// Names this moment, such as `result-committed` or `result-committed[job-7]`.
///
/// Returns at once outside a trial. In a trial it blocks until the harness lets the worker go on. Safe to
/// call from several threads: each call has a connection of its own.
pub fn mark(name: &str) -> Result<(), MarkError> {
    check_name(name)?;
    match std::env::var_os(SOCKET_VARIABLE) {
        Some(socket) if socket != OsStr::new("") => mark_at(Path::new(&socket), name),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), MarkError> {
    let why = if name.is_empty() || name.len() > NAME_BYTES_MAX {
        "it must have 1 to 200 bytes"
    } else if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "it must have no white space and no control characters"
    } else if !selector_is_sound(name) {
        "a selector is `[text]` at the end"
    } else {
        return Ok(());
    };
    Err(MarkError::InvalidName { name: name.to_owned(), why })
}

fn selector_is_sound(name: &str) -> bool {
    name.split_once('[')
        .is_none_or(|(point, rest)| !point.is_empty() && rest.len() > 1 && rest.ends_with(']'))
}

fn mark_at(socket: &Path, name: &str) -> Result<(), MarkError> {
    let mut stream = UnixStream::connect(socket)
        .map_err(|cause| MarkError::Unreachable { socket: socket.to_owned(), cause })?;
    let closed = || MarkError::Closed { name: name.to_owned() };
    stream.write_all(format!("killpoint-mark 1 {name}\n").as_bytes()).map_err(|_| closed())?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer).map_err(|_| closed())?;
    let line = answer.strip_suffix('\n').ok_or_else(closed)?;
    match line.strip_prefix("error ") {
        Some(text) => Err(MarkError::Refused(text.to_owned())),
        None if line == "go" => Ok(()),
        None => Err(closed()),
    }
}
