//! `killpoint provider`: the fake provider by itself.

use std::path::PathBuf;

use clap::Args;
use killpoint::model::ExitCode;
use killpoint::provider::{Ready, StandaloneOptions, standalone};

use super::block_on;
use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::show;

/// Arguments of `provider`.
#[derive(Debug, Args)]
pub(crate) struct Provider {
    /// Port of the data plane on 127.0.0.1 [default: any free one]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Port of the control plane on 127.0.0.1 [default: any free one]
    #[arg(long, value_name = "PORT")]
    control_port: Option<u16>,
    /// A JSON array of rules to begin with
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Honour idempotency keys
    #[arg(long)]
    dedupe: bool,
}

impl Provider {
    pub(crate) fn run(self) -> ExitCode {
        let Self { port, control_port, script, dedupe } = self;
        let options = StandaloneOptions { port, control_port, script, dedupe };
        match block_on(standalone(options, announce)) {
            Ok(Ok(())) => ExitCode::Holds,
            Ok(Err(error)) => {
                Diagnosed::one(Code::ProviderFailed, &error.to_string()).complain();
                ExitCode::SetupFailed
            }
            Err(code) => code,
        }
    }
}

/// One line of JSON, for whoever started this program.
fn announce(ready: &Ready) {
    // A closed pipe: nobody wants to know.
    let _ = show::lines_to_stdout(&serde_json::to_string(ready).unwrap_or_default());
}
