//! Benchmarks: they print figures and assert nothing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Judges a history of a million events, in release mode.
pub(crate) fn checks(root: &Path) -> Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--package", "killpoint-checks", "--example", "bench"])
        .current_dir(root)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "the benchmark failed ({status}); its words are above");
    Ok(())
}
