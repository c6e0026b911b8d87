//! The provider on a port of the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use killpoint_model::Clock;
use killpoint_model::diagnostic::UnknownWord;
use killpoint_model::plan::{Reply, Rule};
use killpoint_model::provider::{Counters, ProviderEvent};
use killpoint_model::settings::{InboundSettings, ProviderSettings};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::core::{Core, RuleError};
use crate::dialects;
use crate::observer::Observer;
use crate::shared::{ReleaseError, Shared};
use crate::sightings::Lookout;
use crate::wire::accept_all;

/// What a provider starts with.
#[derive(Clone, Default)]
pub struct ServerConfig {
    /// The contract.
    pub provider: ProviderSettings,
    /// Rules that come before the settings' own.
    pub rules: Vec<Rule>,
    /// A log that was written before: the provider goes on where it ended.
    pub snapshot: Vec<ProviderEvent>,
    /// The inbound feed, served as `GET /v1/feed` and `POST /v1/feed/ack`; without it these paths are like any.
    pub inbound: Option<InboundSettings>,
    /// Names and values of planted credentials to look for in requests. No event and no log has a value.
    pub watch_for: Vec<(String, String)>,
}

impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.watch_for.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ServerConfig")
            .field("provider", &self.provider)
            .field("rules", &self.rules)
            .field("snapshot", &self.snapshot)
            .field("inbound", &self.inbound)
            .field("watch_for", &names)
            .finish()
    }
}

/// Why a provider does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A port can't be had.
    #[error("port {port} of 127.0.0.1 can't be used: {source}; take another, or 0 for any free one")]
    Port {
        /// The port.
        port: u16,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// No such contract.
    #[error("provider dialect: {0}")]
    Dialect(UnknownWord),
    /// A rule is wrong.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A script can't be read.
    #[error("script {path}: {why}")]
    Script {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// The control port has no token.
    #[error("no random bytes for the control port's token from /dev/urandom: {0}")]
    Token(std::io::Error),
    /// The operating system does not tell us when to stop.
    #[error("can't listen for Ctrl-C: {0}")]
    Signal(std::io::Error),
}

/// A running provider. Its tasks end when it is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Server {
    /// Starts on a free port of 127.0.0.1.
    pub async fn start(
        config: ServerConfig,
        observer: Arc<dyn Observer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServerError> {
        Self::start_on(0, config, observer, clock).await
    }

    /// Starts on a port of 127.0.0.1; 0 is any free one.
    pub async fn start_on(
        port: u16,
        config: ServerConfig,
        observer: Arc<dyn Observer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServerError> {
        let dialect = dialects::find(&config.provider.dialect).map_err(ServerError::Dialect)?;
        let mut core = Core::replay(config.provider, config.rules, &config.snapshot)?;
        core.serve_feed(config.inbound);
        let (listener, address) = listen(port).await?;
        let shared = Arc::new(Shared::new(core, observer, clock, dialect, Lookout::new(config.watch_for)));
        // The connections of a snapshot are gone.
        shared.step(|core, _| core.close_open_exchanges());
        let timer = Arc::clone(&shared);
        let tasks = [
            tokio::spawn(accept_all(listener, Arc::clone(&shared))),
            tokio::spawn(async move { timer.keep_time().await }),
        ];
        Ok(Self { shared, address, tasks })
    }

    /// Where it listens, such as `http://127.0.0.1:40123`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that happened, the snapshot included. Its length is a snapshot.
    pub fn log(&self) -> Vec<ProviderEvent> {
        self.shared.look(|core, _| core.log().to_vec())
    }

    /// The three numbers.
    pub fn counters(&self) -> Counters {
        self.shared.look(|core, _| core.counters())
    }

    /// Ids of the rules that never fired, in order.
    pub fn unfired_rules(&self) -> Vec<String> {
        let rules = self.shared.look(|core, _| core.rules());
        rules.into_iter().filter(|status| status.fired == 0).map(|status| status.rule.id).collect()
    }

    /// Where planted credentials came by, as `(name, place)`, sorted, each once. Places are `requests:url`,
    /// `requests:header:NAME` in small letters, and `requests:body`.
    pub fn sightings(&self) -> Vec<(String, String)> {
        self.shared.lookout().sightings()
    }

    /// Connections that are open.
    pub fn open_connections(&self) -> usize {
        self.shared.open_connections()
    }

    /// Effects that are still to come: late commits that have not landed, and the provider's own copies.
    pub fn pending_commits(&self) -> usize {
        self.shared.look(|core, _| core.pending_commits())
    }

    /// Attempts that are parked by a hold or a hang.
    pub fn parked(&self) -> Vec<u32> {
        self.shared.parked()
    }

    /// For after the worker's death: waits until every connection that it made was accepted and has
    /// ended, which its leaving brings about. Whether that was so within `limit`; if not, what is left
    /// is abandoned.
    pub async fn drain(&self, limit: Duration) -> bool {
        let quiet = async {
            self.accepted_all().await;
            self.shared.no_connection().await;
        };
        if timeout(limit, quiet).await.is_ok() {
            return true;
        }
        self.shared.abandon_all().await;
        false
    }

    /// Waits until every connection that the kernel has queued is accepted: the queue is first in, first
    /// out, so it is enough that one of our own comes through.
    async fn accepted_all(&self) {
        let Ok(socket) = TcpSocket::new_v4() else { return };
        if socket.bind((Ipv4Addr::LOCALHOST, 0).into()).is_err() {
            return;
        }
        let Ok(own) = socket.local_addr() else { return };
        let passed = self.shared.expect_barrier(own);
        let connection = socket.connect(self.address).await;
        if connection.is_ok() {
            let _ = passed.await;
        }
        self.shared.forget_barrier(own);
    }

    /// Adds a rule after the others; it counts requests from now on.
    pub fn add_rule(&self, rule: Rule) -> Result<(), RuleError> {
        self.shared.step(|core, _| core.add_rule(rule))
    }

    /// Removes a rule; whether there was one.
    pub fn remove_rule(&self, id: &str) -> bool {
        self.shared.step(|core, _| core.remove_rule(id))
    }

    /// Ends a hold or a hang with a reply.
    pub fn release(&self, attempt: u32, how: Reply) -> Result<(), ReleaseError> {
        self.shared.release(attempt, how)
    }

    /// Steps the provider's own clock; what becomes due by it happens at once.
    pub fn step_clock(&self, by: Duration) {
        self.shared.step_clock(by);
    }

    /// Ends all connections and forgets all that happened. Rules that were added are gone.
    pub async fn reset(&self) {
        self.shared.reset().await;
    }

    /// Ends all connections and tasks. Exchanges that are open end as abandoned.
    pub async fn shutdown(mut self) {
        self.shared.abandon_all().await;
        for task in &mut self.tasks {
            task.abort();
            // It ends as cancelled.
            let _ = task.await;
        }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

/// Listens on a port of 127.0.0.1.
pub(crate) async fn listen(port: u16) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |source| ServerError::Port { port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
