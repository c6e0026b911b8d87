//! The control port: JSON over HTTP on the loopback interface, for programs in any language.
//!
//! Every request needs the run's bearer token and a Host header that is loopback, so that neither
//! another local program nor a web page by DNS rebinding can steer the provider.

mod guard;
mod routes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::http::{ReadFailure, Response, read_request};
use crate::server::{Server, ServerError, listen};
use crate::shared::Shared;

use guard::Token;

/// Connections that are open at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
/// A request must be there and an answer taken within this long.
const IO_LIMIT: Duration = Duration::from_secs(30);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running control port. Its tasks end when it is dropped.
#[derive(Debug)]
pub struct Control {
    address: SocketAddr,
    token: Token,
    task: JoinHandle<()>,
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Control {
    /// Where it listens, such as `http://127.0.0.1:40124`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bearer token that every request needs; another one in each run.
    pub fn token(&self) -> &str {
        self.token.text()
    }
}

/// Opens the control port of a provider on a port of 127.0.0.1; 0 is any free one.
pub async fn serve_control(server: &Server, port: u16) -> Result<Control, ServerError> {
    let token = Token::random().map_err(ServerError::Token)?;
    let (listener, address) = listen(port).await?;
    let (shared, expected) = (server.shared(), token.clone());
    let task = tokio::spawn(async move {
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (shared, token) = (Arc::clone(&shared), expected.clone());
            connections.spawn(async move {
                serve(stream, &shared, &token).await;
                drop(permit);
            });
        }
    });
    Ok(Control { address, token, task })
}

/// Serves the requests of one connection, one after the other.
async fn serve(mut stream: TcpStream, shared: &Shared, token: &Token) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    loop {
        let (response, keep_alive, head_only) =
            match timeout(IO_LIMIT, read_request(&mut stream, &mut buffer)).await {
                Ok(Ok(request)) => {
                    let response = match guard::refusal(&request, token) {
                        Some(refusal) => refusal,
                        None => routes::answer(shared, &request).await,
                    };
                    (response, request.keep_alive, request.method == "HEAD")
                }
                Ok(Err(ReadFailure::Bad(bad))) => (failure(bad.status, &bad.why), false, false),
                Ok(Err(ReadFailure::Gone | ReadFailure::Reset)) | Err(_) => return,
            };
        let (bytes, _) = response.to_bytes(keep_alive, head_only);
        let written = timeout(IO_LIMIT, stream.write_all(&bytes)).await;
        if !matches!(written, Ok(Ok(()))) || !keep_alive {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// An error answer that says what is wrong.
fn failure(status: u16, message: &str) -> Response {
    Response::json(status, &json!({ "error": { "message": message } }))
}
