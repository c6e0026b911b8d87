//! `killpoint init`: a configuration proposed from what lies in a project.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::model::{ExitCode, Severity};
use killpoint::{init, scenarios};

use super::run::CONFIG;
use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::show;

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The project's folder
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Write killpoint.toml without asking
    #[arg(long)]
    yes: bool,
    /// Print the file to standard output and write nothing
    #[arg(long, conflicts_with = "yes")]
    print: bool,
    /// Overwrite a killpoint.toml that is there
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(crate) fn run(self) -> ExitCode {
        match self.carry_out() {
            Ok(()) => ExitCode::Holds,
            Err(code) => code,
        }
    }

    fn carry_out(&self) -> Result<(), ExitCode> {
        let target = self.dir.join(CONFIG);
        // Asked before anything is read: an answer that comes late costs time.
        if !self.print && !self.force && target.symlink_metadata().is_ok() {
            let what = format!(
                "{} is there already; give --print to see a proposal, or --force to overwrite it",
                target.display()
            );
            return Err(refuse(Code::FileExists, &what));
        }
        if !self.print && !self.yes && !io::stdin().is_terminal() {
            let what =
                "there is no terminal to ask on; give --yes to write the proposal, or --print to see it";
            return Err(refuse(Code::NobodyToAsk, what));
        }
        let project =
            init::read_project(&self.dir).map_err(|error| refuse(Code::NoProject, &error.to_string()))?;
        let proposal = init::propose(&project, &init::find(&project));
        let said = init::show(&project, &proposal, show::width());
        if self.print {
            show::lines_to_stderr(&said);
        } else {
            show::lines_to_stdout(&said)?;
        }
        if !proposal.has_worker() {
            let what = format!(
                "nothing in {} looks like a worker, so there is nothing to write",
                self.dir.display()
            );
            return Err(refuse(Code::NoWorker, &what));
        }
        let text = proposal.to_toml();
        self.load(&text)?;
        if self.print {
            return show::lines_to_stdout(text.trim_end());
        }
        if !self.yes && !confirmed(&target) {
            show::note("nothing was written");
            return Ok(());
        }
        write(&target, &text, self.force).map_err(|error| {
            refuse(Code::FileUnwritten, &format!("{} can't be written: {error}", target.display()));
            ExitCode::SetupFailed
        })?;
        show::lines_to_stdout(&format!("\nWrote {}. Next: {}", target.display(), next(&target)))
    }

    /// A proposal that the loader refuses is our mistake, and is never written.
    fn load(&self, text: &str) -> Result<(), ExitCode> {
        let folder = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let loaded = scenarios::load_config(text, CONFIG, &folder, &killpoint::catalog());
        let errors: Vec<_> =
            loaded.diagnostics.into_iter().filter(|problem| problem.severity == Severity::Error).collect();
        if errors.is_empty() && loaded.value.is_some() {
            return Ok(());
        }
        Diagnosed::plain(errors).complain();
        let what =
            "the proposal is not a valid configuration, so it was not written; this is a bug in killpoint";
        refuse(Code::Internal, what);
        Err(ExitCode::Internal)
    }
}

fn refuse(code: Code, what: &str) -> ExitCode {
    Diagnosed::one(code, what).complain()
}

/// Whether a person says yes. The end of the input is no.
fn confirmed(target: &Path) -> bool {
    show::lines_to_stderr(&format!("\nWrite {}? [y/N]", target.display()));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Writes the file; without `force` only where there is none, whoever else may be writing.
fn write(target: &Path, text: &str, force: bool) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    if force {
        options.write(true).create(true).truncate(true);
    } else {
        options.write(true).create_new(true);
    }
    io::Write::write_all(&mut options.open(target)?, text.as_bytes())
}

/// The command that runs it.
fn next(target: &Path) -> String {
    if target == Path::new(".").join(CONFIG) {
        return "killpoint run".into();
    }
    format!("killpoint run --config {}", target.display())
}
