//! One connection: waits that end with the client or the harness, and the two ways to close.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use killpoint_model::plan::CutAt;
use killpoint_model::provider::Unanswered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::Response;
use crate::observer::{Moment, Passage};
use crate::shared::{Abandonment, Shared};

/// A client that takes no bytes for this long counts as gone.
const WRITE_LIMIT: Duration = Duration::from_secs(60);
/// How long a rejected client may go on sending, so that it can read why.
const LINGER_LIMIT: Duration = Duration::from_secs(1);
/// Bytes that a client may send ahead while it waits for an answer.
const AHEAD_BYTES_MAX: usize = 16 << 20;

pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    pub(super) stream: TcpStream,
    pub(super) buffer: Vec<u8>,
    pub(super) connection: u32,
    pub(super) abandonment: Abandonment,
    /// The write that was answered last, until something else is read.
    pub(super) answered: Option<u32>,
}

impl Link {
    pub(super) fn new(shared: Arc<Shared>, stream: TcpStream, connection: u32) -> Self {
        let abandonment = shared.abandonment();
        Self { shared, stream, buffer: Vec::new(), connection, abandonment, answered: None }
    }

    /// Waits at a point for the observer's answer.
    pub(super) async fn reach(&mut self, moment: Moment) -> Result<(), Unanswered> {
        let crossing = self.shared.observer().reach(moment);
        tokio::select! {
            biased;
            passage = crossing => match passage {
                Passage::Go => Ok(()),
                Passage::Abandon => Err(Unanswered::Abandoned),
            },
            () = self.abandonment.wait() => Err(Unanswered::Abandoned),
        }
    }

    /// Writes all of it. A client that does not take it counts as gone.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Unanswered> {
        tokio::select! {
            biased;
            written = timeout(WRITE_LIMIT, self.stream.write_all(bytes)) => match written {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => Err(Unanswered::ClientGone),
            },
            () = self.abandonment.wait() => Err(Unanswered::ClientGone),
        }
    }

    /// Waits until the client has left. What it sends meanwhile is kept for the next request.
    pub(super) async fn client_gone(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
        loop {
            match stream.read_buf(buffer).await {
                Ok(read) if read > 0 && buffer.len() <= AHEAD_BYTES_MAX => {}
                _ => return,
            }
        }
    }

    /// Records that the connection ends before a whole request was read.
    pub(super) fn partial(&self) {
        self.shared.step(|core, _| core.partial(self.connection, self.buffer.len() as u64));
    }

    /// Closes as the end of an exchange wants it: a reset for `rst`, else FIN.
    pub(super) async fn close(&mut self, how: Unanswered) {
        if how == Unanswered::Rst {
            // The reset is sent when the stream is dropped.
            let _ = self.stream.set_zero_linger();
            return;
        }
        let _ = self.stream.shutdown().await;
        // Unread bytes would turn the close into a reset.
        let mut scrap = [0; 4096];
        while matches!(self.stream.try_read(&mut scrap), Ok(read) if read > 0) {}
    }

    /// Says that no more comes, and lets the client read what was written: closing with unread bytes would reset the
    /// connection and take the answer away. Gives whether the client in its turn closed without having read everything,
    /// for which its kernel resets the connection (RFC 2525, section 2.17).
    pub(super) async fn closes_unread(&mut self) -> bool {
        let Self { stream, abandonment, .. } = self;
        let ended = async {
            stream.shutdown().await?;
            let mut scrap = vec![0; 16 << 10];
            while stream.read(&mut scrap).await? > 0 {}
            io::Result::Ok(())
        };
        tokio::select! {
            ended = timeout(LINGER_LIMIT, ended) => {
                matches!(ended, Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset)
            }
            () = abandonment.wait() => false,
        }
    }
}

/// The part of an answer that is sent before it is cut: nothing, half of its header block, or the
/// headers and half of the body.
pub(super) fn cut(response: &Response, keep_alive: bool, at: CutAt) -> Vec<u8> {
    let (mut bytes, head_len) = response.to_bytes(keep_alive, false);
    let end = match at {
        CutAt::Zero => 0,
        CutAt::Headers => head_len / 2,
        CutAt::Body => head_len + response.body.len() / 2,
    };
    bytes.truncate(end);
    bytes
}
