//! The provider as a program of its own, for tests in any language.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use killpoint_model::plan::Rule;
use killpoint_model::settings::ProviderSettings;
use killpoint_model::{SystemClock, json_words};
use serde::Serialize;

use crate::control::serve_control;
use crate::observer::Unobserved;
use crate::server::{Server, ServerConfig, ServerError};

/// A script is no longer than this.
const SCRIPT_BYTES_MAX: u64 = 8 << 20;

/// How the program is to run.
#[derive(Debug, Clone, Default)]
pub struct StandaloneOptions {
    /// The data port; any free one where absent.
    pub port: Option<u16>,
    /// The control port; any free one where absent.
    pub control_port: Option<u16>,
    /// A JSON array of rules.
    pub script: Option<PathBuf>,
    /// Whether idempotency keys are honoured.
    pub dedupe: bool,
}

/// Where it can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Base address of the data port.
    pub rest: String,
    /// Base address of the control port.
    pub control: String,
    /// The control port's bearer token.
    pub token: String,
}

/// Runs until Ctrl-C. `ready` is called once both ports are open.
pub async fn standalone(options: StandaloneOptions, ready: impl FnOnce(&Ready)) -> Result<(), ServerError> {
    let mut provider = ProviderSettings::default();
    provider.idempotency.dedupe = options.dedupe;
    let rules = options.script.as_deref().map_or(Ok(Vec::new()), read_script)?;
    let config = ServerConfig { provider, rules, ..ServerConfig::default() };
    let clock = Arc::new(SystemClock::default());
    let server = Server::start_on(options.port.unwrap_or(0), config, Arc::new(Unobserved), clock).await?;
    let control = serve_control(&server, options.control_port.unwrap_or(0)).await?;
    ready(&Ready { rest: server.base_url(), control: control.base_url(), token: control.token().to_owned() });
    tokio::signal::ctrl_c().await.map_err(ServerError::Signal)?;
    drop(control);
    server.shutdown().await;
    Ok(())
}

/// Reads a JSON array of rules.
pub fn read_script(path: &Path) -> Result<Vec<Rule>, ServerError> {
    let failed = |why: String| ServerError::Script { path: path.display().to_string(), why };
    let length = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if length > SCRIPT_BYTES_MAX {
        return Err(failed(format!("it has {length} bytes; at most {SCRIPT_BYTES_MAX} are read")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text)
        .map_err(|error| failed(format!("{}; a script is a JSON array of rules", json_words(&error))))
}
