//! One file per subcommand.

mod check;
mod completions;
mod demo;
pub(crate) mod demo_worker;
mod doctor;
mod explain;
mod explore;
mod init;
mod list;
mod man;
mod mark;
mod merge;
mod provider;
mod replay;
mod report;
mod run;
mod selftest;

use clap::Subcommand;
use killpoint::model::ExitCode;

use crate::code::Code;
use crate::diagnostics::Diagnosed;

/// What killpoint can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gate on the built-in worker; nothing else is needed
    Demo(demo::Demo),
    /// Look at a project and propose its killpoint.toml
    Init(init::Init),
    /// Say what this machine and this configuration can show, and what is left out
    Doctor(doctor::Doctor),
    /// Run the gate: baseline, then a trial per boundary and provider plan
    Run(run::Run),
    /// Try plans that nobody wrote down, and make what is red small
    Explore(explore::Explore),
    /// Do one plan again, from a token or a scenario file
    Replay(replay::Replay),
    /// Judge a stored run again, offline
    Check(check::Check),
    /// Show a stored run
    Report(report::Report),
    /// Put the shards of a run together, and give the verdict on the whole
    Merge(merge::Merge),
    /// List what can be named
    List(list::List),
    /// Explain a name or the code of an error: what it means, why, and what to do
    Explain(explain::Explain),
    /// Run the fake provider by itself, with a control port
    Provider(provider::Provider),
    /// Name a boundary from a shell; does nothing outside a trial
    Mark(mark::Mark),
    /// Print a script that completes the command line in a shell
    Completions(completions::Completions),
    /// Print the manual page, or write those of all commands
    Man(man::Man),
    /// Prove the alarm: workers that are wrong on purpose must turn red, the right one must not
    Selftest(selftest::Selftest),
}

impl Command {
    /// Runs it.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            Self::Demo(command) => command.run(),
            Self::Init(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::Explore(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::List(command) => command.run(),
            Self::Explain(command) => command.run(),
            Self::Provider(command) => command.run(),
            Self::Mark(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
            Self::Selftest(command) => command.run(),
        }
    }
}

/// The table of exit codes under `--help`.
pub(crate) fn after_help() -> String {
    let rows: Vec<String> =
        ExitCode::ALL.iter().map(|code| format!("  {:>3}  {}", code.code(), code.meaning())).collect();
    format!("Exit codes:\n{}", rows.join("\n"))
}

/// The runtime in which trials run.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, ExitCode> {
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let value = runtime.block_on(future);
            // Threads that still wait for a dead worker's pipe must not hold the program.
            runtime.shutdown_background();
            Ok(value)
        }
        Err(error) => {
            Diagnosed::one(Code::NoThreads, &format!("can't start threads: {error}")).complain();
            Err(ExitCode::SetupFailed)
        }
    }
}
