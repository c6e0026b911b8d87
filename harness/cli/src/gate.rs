//! What `run` and `demo` can be held against: known failures, and the boundaries of an earlier run.

use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::{BaselineUpdate, KnownFailures, RunRequest, StoredBoundaries, scenarios};

use crate::code::Code;
use crate::diagnostics::{self, Diagnosed};

/// What a run is held against.
#[derive(Debug, Args)]
pub(crate) struct Gate {
    /// Let violations pass that this file lists, as known failures; new ones and entries that are none any more fail
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Take what is no failure any more out of the file; write it if there is none yet
    #[arg(long, requires = "baseline")]
    update_baseline: bool,
    /// Put new violations into the file as well
    #[arg(long, requires = "update_baseline")]
    accept_new: bool,
    /// Do of a sweep only what is at boundaries that changed since the stored ones, and name these [default:
    /// killpoint/boundaries.toml beside the configuration]
    #[expect(
        clippy::option_option,
        reason = "this is what clap makes a flag with a value that may be left out of"
    )]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    changed: Option<Option<PathBuf>>,
    /// Store the boundaries of this run, if it is green, for later ones to be compared with
    #[arg(long)]
    update_boundaries: bool,
}

impl Gate {
    /// The request with what it is held against. `boundaries` is where these are stored unless told otherwise.
    pub(crate) fn of(&self, request: RunRequest, boundaries: &Path) -> Result<RunRequest, Diagnosed> {
        let known = self.baseline.as_deref().map(|file| self.known(file)).transpose()?;
        Ok(RunRequest { known, changed: self.stored(boundaries)?, ..request })
    }

    fn known(&self, file: &Path) -> Result<KnownFailures, Diagnosed> {
        let is_there = exists(file);
        let update = match (self.update_baseline, is_there, self.accept_new) {
            (false, true, _) => None,
            (false, false, _) => {
                let what = format!("{}: there is no such file of known failures yet", file.display());
                let help = format!(
                    "write it with the violations of today: the same command with --update-baseline, then look at {} and \
                     commit it",
                    file.display()
                );
                return Err(Diagnosed::helped(Code::NoBaseline, &what, &help));
            }
            (true, true, false) => Some(BaselineUpdate::Shrink),
            (true, false, _) | (true, true, true) => Some(BaselineUpdate::AcceptNew),
        };
        let entries = if is_there { diagnostics::load(file, scenarios::load_known)? } else { Vec::new() };
        Ok(KnownFailures { file: file.to_owned(), entries, update })
    }

    fn stored(&self, default: &Path) -> Result<Option<StoredBoundaries>, Diagnosed> {
        if self.changed.is_none() && !self.update_boundaries {
            return Ok(None);
        }
        let file = self.changed.iter().flatten().next().map_or(default, PathBuf::as_path);
        let hits =
            if exists(file) { Some(diagnostics::load(file, scenarios::load_boundaries)?) } else { None };
        Ok(Some(StoredBoundaries {
            file: file.to_owned(),
            hits,
            narrow: self.changed.is_some(),
            update: self.update_boundaries,
        }))
    }
}

/// Whether a file is there. Where that can't be told, reading it says why.
fn exists(file: &Path) -> bool {
    file.try_exists().unwrap_or(true)
}
