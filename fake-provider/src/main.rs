//! `fake-provider`: prints one JSON line with its addresses, then serves until Ctrl-C.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fake_provider::standalone::{Ready, StandaloneOptions, standalone};
use killpoint_model::ExitCode as Code;

/// A fake remote system that accepts, drops and times out as it is told, and counts real side effects.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Data port on 127.0.0.1 [default: any free one]
    #[arg(long)]
    port: Option<u16>,
    /// Control port on 127.0.0.1 [default: any free one]
    #[arg(long)]
    control_port: Option<u16>,
    /// File with a JSON array of rules
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Honour idempotency keys
    #[arg(long)]
    dedupe: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { port, control_port, script, dedupe } = Arguments::parse();
    let options = StandaloneOptions { port, control_port, script, dedupe };
    match standalone(options, announce).await {
        Ok(()) => ExitCode::from(Code::Holds.code()),
        Err(error) => {
            // Nothing is left to be told where stderr is closed.
            let _ = writeln!(io::stderr(), "fake-provider: {error}");
            ExitCode::from(Code::SetupFailed.code())
        }
    }
}

fn announce(ready: &Ready) {
    let line = serde_json::to_string(ready).unwrap_or_default();
    // A reader that left does not stop the provider.
    let _ = writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush());
}
