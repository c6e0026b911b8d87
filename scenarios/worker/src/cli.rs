//! The command line.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Parser};

use crate::alarm;
use crate::bugs::{BUGS, Bug, bug_named};
use crate::cleanup::clean_up;
use crate::enqueue::{enqueue, produce};
use crate::error::WorkerError;
use crate::patience::patiently;
use crate::policy::Policy;
use crate::provider::{Provider, TOKEN_VARIABLE};
use crate::schedule::{Registration, register};
use crate::status::{print_metrics, print_status};
use crate::stop::Stop;
use crate::store::{Durability, HORIZON_MS, Store};
use crate::worker::{Settings, Worker};

/// The command failed; stderr says why, the ledger is intact.
const EXIT_FAILED: i32 = 1;
/// The ledger can't be written. Whatever was sent last is not recorded, so nothing more is sent.
const EXIT_UNWRITABLE: i32 = 74;

/// An outbox worker that is right in every schedule, or wrong on purpose.
#[derive(Debug, Parser)]
#[command(name = "outbox-worker", bin_name = "outbox-worker", no_binary_name = true)]
enum Command {
    /// Commit actions to the ledger, one by one
    Enqueue(Actions),
    /// Commit actions to the ledger, all in one transaction
    Produce {
        #[command(flatten)]
        actions: Actions,
        /// Append this to ids and texts, so that one file serves `enqueue` and `produce`
        #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
        suffix: String,
    },
    /// Commit a schedule to the ledger
    Schedule {
        #[command(flatten)]
        ledger: Ledger,
        #[command(flatten)]
        registration: Registration,
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
    /// Print the counters as JSON lines of name and value
    Metrics {
        /// The ledger
        #[arg(long, value_name = "PATH")]
        db: PathBuf,
    },
    /// Print the seeded bugs
    Bugs,
}

/// A ledger that is made where there is none, and how it is written.
#[derive(Debug, Args)]
struct Ledger {
    /// The ledger; made where there is none
    #[arg(long, value_name = "PATH")]
    db: PathBuf,
    /// What a commit survives
    #[arg(long, value_enum, default_value_t)]
    synchronous: Durability,
    /// Be wrong in one way; see `bugs`
    #[arg(long, value_name = "NAME", value_parser = bug)]
    bug: Option<&'static Bug>,
}

impl Ledger {
    fn policy(&self) -> Policy {
        policy_of(self.bug)
    }

    fn open(&self) -> Result<Store, WorkerError> {
        let durability = if self.policy().no_flush { Durability::Off } else { self.synchronous };
        Store::open(&self.db, durability)
    }
}

#[derive(Debug, Args)]
struct Actions {
    #[command(flatten)]
    ledger: Ledger,
    /// JSON Lines of {"id", "to": […], "body"}; `{run}` in a body becomes the id
    #[arg(long, value_name = "FILE")]
    actions: PathBuf,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    ledger: Ledger,
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
    /// First sends per second at most; no limit where absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    sends_per_second_max: Option<u64>,
    /// How long an item may be due before that is an alarm
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(i64).range(1..))]
    overdue_ms: i64,
    /// This ledger was copied or restored and is the only one left: send what the provider does not have
    #[arg(long)]
    adopt: bool,
    /// Poll the provider's feed and do what it asks for
    #[arg(long)]
    feed: bool,
    /// Exit when nothing is left to do
    #[arg(long)]
    drain: bool,
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

/// Runs one command of the worker. `args` has no program name. Returns the exit code: 0 done or stopped by SIGTERM,
/// 1 failed, 2 a wrong command line, 74 the ledger can't be written.
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
        Err(error) if error.is_ledger_unwritable() => {
            alarm::raise(&format!("bookkeeping: {error}; stopped, because nothing is sent without a record"));
            EXIT_UNWRITABLE
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "outbox-worker: {error}");
            EXIT_FAILED
        }
    }
}

fn execute(command: Command, output: &mut dyn Write) -> Result<(), WorkerError> {
    match command {
        Command::Enqueue(Actions { ledger, actions }) => enqueue(&mut ledger.open()?, &actions, output),
        Command::Produce { actions: Actions { ledger, actions }, suffix } => {
            produce(&mut ledger.open()?, &actions, &suffix, ledger.policy(), output)
        }
        Command::Schedule { ledger, registration } => register(&ledger.open()?, registration),
        Command::Run(run) => worker(run)?.run(),
        Command::Cleanup { db, bug } => clean_up(&mut Store::open_existing(&db)?, policy_of(bug)),
        Command::Status { db } => print_status(&Store::open_existing(&db)?, output),
        Command::Metrics { db } => print_metrics(&Store::open_existing(&db)?, output),
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
        send_gap_ms: run.sends_per_second_max.map_or(0, |sends| 1000 / sends),
        overdue_ms: run.overdue_ms,
        adopt: run.adopt,
        feed: run.feed,
        drain: run.drain,
    };
    let policy = run.ledger.policy();
    let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
    let provider = Provider::new(&run.provider, token, run.timeout_ms.unsigned_abs(), policy);
    let store = patiently(|| run.ledger.open())?;
    Worker::new(store, provider, settings, policy, Stop::on_sigterm()?)
}

fn print_bugs(output: &mut dyn Write) -> Result<(), WorkerError> {
    let width = |text: fn(&Bug) -> &str| BUGS.iter().map(|bug| text(bug).len()).max().unwrap_or(0);
    let (names, invariants) = (width(|bug| bug.name), width(|bug| bug.invariant));
    for bug in BUGS {
        let Bug { name, kind, invariant, summary, .. } = bug;
        writeln!(output, "{kind}  {name:names$}  {invariant:invariants$}  {summary}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_commit_survives_is_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let synchronous = |synchronous, bug: Option<&str>| {
            let ledger = Ledger { db: folder.path().join("a.db"), synchronous, bug: bug.and_then(bug_named) };
            let store = ledger.open().unwrap();
            store.connection().pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)).unwrap()
        };
        let asked = [Durability::Off, Durability::Normal, Durability::Full];
        assert_eq!(asked.map(|asked| synchronous(asked, None)), [0, 1, 2]);
        assert_eq!(synchronous(Durability::Full, Some("no-flush")), 0);
    }
}
