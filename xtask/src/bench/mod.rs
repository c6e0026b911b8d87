//! Benchmarks: they print figures. The model check fails where truth and checks differ, and exploring where the right
//! worker has a finding.

pub(crate) mod explore;
mod explored;
pub(crate) mod shrink;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Judges a history of a million events, in release mode.
pub(crate) fn checks(root: &Path) -> Result<()> {
    example(root, "killpoint-checks", "bench", &[])
}

/// Judges a million schedules on modelled workers against the truth, in release mode. `words` are the
/// benchmark's own, such as `--schedules 100000`.
pub(crate) fn model(root: &Path, words: &[&str]) -> Result<()> {
    example(root, "killpoint", "bench_model", words)
}

/// Reports a history of 200 megabytes, or as many as the word says, in release mode.
pub(crate) fn report(root: &Path, words: &[&str]) -> Result<()> {
    example(root, "killpoint", "bench_report", words)
}

fn example(root: &Path, package: &str, name: &str, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--package", package, "--example", name, "--"])
        .args(words)
        .current_dir(root)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "the benchmark failed ({status}); its words are above");
    Ok(())
}
