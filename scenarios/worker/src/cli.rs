//! The command line.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Parser};

use crate::bugs::{BUGS, Bug, Policy, bug_named};
use crate::cleanup::clean_up;
use crate::enqueue::enqueue;
use crate::error::WorkerError;
use crate::provider::Provider;
use crate::status::print_status;
use crate::store::{HORIZON_MS, Store};
use crate::worker::{Settings, Worker};

/// The command failed; stderr says why, the ledger is intact.
const EXIT_FAILED: i32 = 1;

/// An outbox worker that is right in every schedule, or wrong on purpose.
#[derive(Debug, Parser)]
#[command(name = "outbox-worker", bin_name = "outbox-worker", no_binary_name = true)]
enum Command {
    /// Commit actions to the ledger
    Enqueue {
        /// The ledger; made where there is none
        #[arg(long, value_name = "PATH")]
        db: PathBuf,
        /// JSON Lines of {"id", "to": […], "body"}; `{run}` in a body becomes the id
        #[arg(long, value_name = "FILE")]
        actions: PathBuf,
    },
    /// Execute and deliver what the ledger owes
    Run(Run),
    /// Take decided items off the queue
    Cleanup {
        /// The ledger
        #[arg(long, value_name = "PATH")]
        db: PathBuf,
        /// Be wrong in one way
        #[arg(long, value_name = "NAME", value_parser = bug)]
        bug: Option<&'static Bug>,
    },
    /// Print the ledger as JSON lines of canonical rows
    Status {
        /// The ledger
        #[arg(long, value_name = "PATH")]
        db: PathBuf,
    },
    /// Print the seeded bugs
    Bugs,
}

#[derive(Debug, Args)]
struct Run {
    /// The ledger; made where there is none
    #[arg(long, value_name = "PATH")]
    db: PathBuf,
    /// Base address, such as http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    provider: String,
    /// The name under which this worker takes leases
    #[arg(long, value_name = "ID", default_value = "host-1")]
    worker_id: String,
    /// How long a claim lasts
    #[arg(long, default_value_t = 400, value_parser = short_time())]
    lease_ms: i64,
    /// Limit of one request
    #[arg(long, default_value_t = 400, value_parser = short_time())]
    timeout_ms: i64,
    /// How long lookups must find nothing before an item is sent again
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(i64).range(0..=HORIZON_MS))]
    reconcile_ms: i64,
    /// Attempts per item
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    attempts_max: u32,
    /// The provider dedupes by key: one lookup is enough before an item is sent again
    #[arg(long)]
    provider_dedupes: bool,
    /// How long it does, counted from the first attempt
    #[arg(long, default_value_t = 86_400_000, value_parser = clap::value_parser!(i64).range(1..))]
    dedupe_window_ms: i64,
    /// Exit when nothing is left to do
    #[arg(long)]
    drain: bool,
    /// Be wrong in one way; see `bugs`
    #[arg(long, value_name = "NAME", value_parser = bug)]
    bug: Option<&'static Bug>,
}

fn short_time() -> clap::builder::RangedI64ValueParser<i64> {
    clap::value_parser!(i64).range(1..=HORIZON_MS / 2)
}

fn bug(name: &str) -> Result<&'static Bug, String> {
    bug_named(name).ok_or_else(|| {
        let names: Vec<&str> = BUGS.iter().map(|bug| bug.name).collect();
        format!("no such bug; one of: {}", names.join(", "))
    })
}

fn policy_of(bug: Option<&Bug>) -> Policy {
    bug.map(Bug::policy).unwrap_or_default()
}

/// Runs one command of the worker. `args` has no program name. Returns the exit code: 0 done, 1 failed, 2 a wrong
/// command line.
pub fn main(args: &[String]) -> i32 {
    let command = match Command::try_parse_from(args) {
        Ok(command) => command,
        Err(error) => {
            // Nothing can be done about a closed stderr.
            let _ = error.print();
            return error.exit_code();
        }
    };
    let mut output = BufWriter::new(std::io::stdout());
    match execute(command, &mut output).and_then(|()| Ok(output.flush()?)) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "outbox-worker: {error}");
            EXIT_FAILED
        }
    }
}

fn execute(command: Command, output: &mut dyn Write) -> Result<(), WorkerError> {
    match command {
        Command::Enqueue { db, actions } => enqueue(&mut Store::open(&db)?, &actions, output),
        Command::Run(run) => worker(run)?.run(),
        Command::Cleanup { db, bug } => clean_up(&mut Store::open_existing(&db)?, policy_of(bug)),
        Command::Status { db } => print_status(&Store::open_existing(&db)?, output),
        Command::Bugs => print_bugs(output),
    }
}

fn worker(run: Run) -> Result<Worker, WorkerError> {
    let settings = Settings {
        worker_id: run.worker_id,
        lease_ms: run.lease_ms,
        timeout_ms: run.timeout_ms,
        reconcile_ms: run.reconcile_ms,
        attempts_max: run.attempts_max,
        dedupe_ms: run.provider_dedupes.then_some(run.dedupe_window_ms),
        drain: run.drain,
    };
    let provider = Provider::new(&run.provider, run.timeout_ms.unsigned_abs());
    Worker::new(Store::open(&run.db)?, provider, settings, policy_of(run.bug))
}

fn print_bugs(output: &mut dyn Write) -> Result<(), WorkerError> {
    let width = |text: fn(&Bug) -> &str| BUGS.iter().map(|bug| text(bug).len()).max().unwrap_or(0);
    let (names, invariants) = (width(|bug| bug.name), width(|bug| bug.invariant));
    for bug in BUGS {
        writeln!(output, "{:names$}  {:invariants$}  {}", bug.name, bug.invariant, bug.summary)?;
    }
    Ok(())
}
