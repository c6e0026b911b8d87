//! The HTTP/1.1 data port: accepts connections and takes each through its exchanges. The faults of a
//! reply are done here, to the byte.

mod feed;
mod link;
mod lookup;
mod write;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::dialects::Call;
use crate::http::{ReadFailure, Request, Response, read_request};
use crate::observer::{Moment, Point};
use crate::shared::Shared;

use link::Link;

/// Connections that are open at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 256;
/// Pause after a failed accept, such as one for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Whether a connection serves another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Next,
    Close,
}

/// Accepts connections until it is aborted; its connections end with it.
pub(crate) async fn accept_all(listener: TcpListener, shared: Arc<Shared>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, address)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if shared.is_barrier(address) {
            continue;
        }
        let open = shared.open_connection();
        let connection = shared.step(|core, _| core.connect());
        let link = new_link(&shared, stream, connection);
        connections.spawn(async move {
            serve(link).await;
            drop((open, permit));
        });
    }
}

fn new_link(shared: &Arc<Shared>, stream: TcpStream, connection: u32) -> Link {
    // Without it the two parts of a reply may wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    Link::new(Arc::clone(shared), stream, connection)
}

async fn serve(mut link: Link) {
    let connected = Moment {
        point: Point::Connected,
        operation: String::new(),
        connection: link.connection,
        attempt: None,
        lookup: None,
    };
    let mut may_be_idle = false;
    if link.reach(connected).await.is_err() {
        link.partial();
        return;
    }
    loop {
        let read = tokio::select! {
            biased;
            () = link.abandonment.wait() => Err(ReadFailure::Gone),
            read = read_request(&mut link.stream, &mut link.buffer) => read,
        };
        let answered = link.answered.take();
        match read {
            Ok(request) => match exchange(&mut link, request).await {
                After::Next => may_be_idle = true,
                After::Close => return,
            },
            Err(failure @ (ReadFailure::Gone | ReadFailure::Reset)) => {
                if let (ReadFailure::Reset, Some(attempt)) = (failure, answered) {
                    link.shared.step(|core, _| core.unread(attempt));
                }
                // A kept connection that ends between two requests is no loss of a request.
                if !may_be_idle || !link.buffer.is_empty() {
                    link.partial();
                }
                return;
            }
            Err(ReadFailure::Bad(bad)) => {
                let response = link.shared.dialect().error(bad.status);
                return reject(&mut link, &response).await;
            }
        }
    }
}

/// One request to its end. Whatever ends it is recorded before the connection is closed.
async fn exchange(link: &mut Link, request: Request) -> After {
    link.shared.lookout().look_at(&request);
    if let Some(call) = feed::call_of(&request).filter(|_| link.shared.look(|core, _| core.has_feed())) {
        return feed::serve(link, &request, call).await;
    }
    match link.shared.dialect().read(&request) {
        Call::Write { operation } => write::serve(link, request, operation).await,
        Call::Lookup(query) => lookup::serve(link, request, query).await,
        Call::Unsupported { status } => {
            let response = link.shared.dialect().error(status);
            reject(link, &response).await;
            After::Close
        }
    }
}

/// Answers what is not served, without an event, and closes.
async fn reject(link: &mut Link, response: &Response) {
    let (bytes, _) = response.to_bytes(false, false);
    if link.write(&bytes).await.is_ok() {
        link.closes_unread().await;
    }
}
