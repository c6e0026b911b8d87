//! Marks: one call in the worker, which blocks until the harness answers.
//!
//! The protocol is one line each way over a Unix stream socket, one connection per mark:
//! `killpoint-mark 1 NAME` and then `go` or `error TEXT`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use killpoint_model::{Entry, HitName};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{BoundarySource, Signal};

/// The environment variable that names the socket.
pub const SOCKET_VARIABLE: &str = "KILLPOINT_SOCKET";

/// Bytes of a request line.
const LINE_MAX: u64 = 512;
/// How long a client may take to send its line.
const LINE_LIMIT: Duration = Duration::from_secs(10);

/// The `mark` source.
#[derive(Debug)]
pub struct Mark;

static ENTRY: Entry = Entry {
    name: "mark",
    summary: "one call in the worker, mark(\"name\"), which does nothing when not under test",
    explanation: "The worker names a moment of its own, such as result-committed or before-cleanup, and blocks until the harness \
        answers, so the moment is exact. There are clients for Rust, Python, Node and shell, each one small file. Outside a \
        trial the call returns at once.",
    example: "[[fault]]\nat = \"mark:result-committed#1\"\ndo = \"kill\"",
};

impl BoundarySource for Mark {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// Listens for the marks of one life of a worker. Each life has a socket of its own: what a dead life still
/// had in its socket must not count as a hit of the next one.
#[derive(Debug)]
pub struct MarkServer {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl MarkServer {
    /// Listens at `path`, which must be short: the system's limit is 107 bytes.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn listen(
        path: &Path,
        (worker, life): (u32, u32),
        inbox: mpsc::UnboundedSender<Signal>,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Marks of several threads wait at the same time. A client that goes away is no event of ours.
                let inbox = inbox.clone();
                tokio::spawn(async move { answer(stream, (worker, life), &inbox).await.ok() });
            }
        });
        Ok(Self { path: path.to_owned(), task })
    }

    /// The value for [`SOCKET_VARIABLE`].
    pub fn path(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for MarkServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    stream: UnixStream,
    (worker, life): (u32, u32),
    inbox: &mpsc::UnboundedSender<Signal>,
) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut request = String::new();
    let mut reader = BufReader::new(reader.take(LINE_MAX));
    tokio::time::timeout(LINE_LIMIT, reader.read_line(&mut request)).await??;
    let name = match name_of(&request) {
        Ok(name) => name,
        Err(why) => return writer.write_all(format!("error {why}\n").as_bytes()).await,
    };
    let (sender, go) = oneshot::channel();
    if inbox.send(Signal::Mark { worker, life, name, answer: sender }).is_ok() && go.await.is_ok() {
        writer.write_all(b"go\n").await?;
    }
    Ok(())
}

/// The mark's name in a request line.
fn name_of(line: &str) -> Result<String, String> {
    let rest =
        line.strip_prefix("killpoint-mark ").ok_or("the line does not begin with `killpoint-mark 1 `")?;
    let name = rest
        .strip_prefix("1 ")
        .ok_or("this killpoint speaks version 1 of the mark protocol; use the client that belongs to it")?
        .trim_end_matches('\n');
    format!("mark:{name}#1").parse::<HitName>().map_err(|error| error.why)?;
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_mark_waits_for_its_answer() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (sender, mut inbox) = mpsc::unbounded_channel();
        let server = MarkServer::listen(&folder.path().join("m"), (1, 3), sender)?;
        let mut client = UnixStream::connect(server.path()).await?;
        client.write_all(b"killpoint-mark 1 item-claimed\n").await?;
        let Some(Signal::Mark { worker: 1, life: 3, name, answer }) = inbox.recv().await else {
            return Err(io::Error::other("no mark"));
        };
        assert_eq!(name, "item-claimed");
        let mut reply = String::new();
        assert!(client.try_read(&mut [0; 8]).is_err(), "the worker is blocked");
        assert!(answer.send(()).is_ok());
        client.read_to_string(&mut reply).await?;
        assert_eq!(reply, "go\n");
        Ok(())
    }

    #[test]
    fn other_versions_and_bad_names_are_refused() {
        assert!(name_of("killpoint-mark 2 x\n").is_err_and(|why| why.contains("version 1")));
        assert!(name_of("killpoint-mark 1 a b\n").is_err());
        assert!(name_of("GET / HTTP/1.1\n").is_err());
        assert_eq!(name_of("killpoint-mark 1 a[b]\n"), Ok("a[b]".into()));
    }
}
