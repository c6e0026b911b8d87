//! Project tasks, one module each: `cargo xtask test`, `style`, `generate [--check]`, `bench checks`, `bench model`,
//! `bench report`, `bench explore`, `bench shrink`, `report-sample`, `screenshots`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a developer's terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

mod bench;
mod generate;
mod sample;
mod style;
mod test;

const USAGE: &str = "\
usage: cargo xtask TASK

  test [-- FILTER…]    everything that must be green; with a filter, only the tests that match it
  style                who imports whom, lengths, registration, links, forbidden text, the code map
  bench checks         judges a long history in release mode: events per second and memory
  bench model [OPTION…]
                       judges a million schedules on modelled workers against the truth, in release mode;
                       --schedules N, --seed S, --threads N
  bench report [MEGABYTES]
                       reports a history of 200 megabytes, in release mode: seconds and memory
  bench explore [OPTION…]
                       explores the reference worker with each of its bugs, and the right one: cases to find,
                       trials to shrink; --time 60s, --right 300s (0s leaves it out), --bug NAME…,
                       --runs DIR (keeps the runs, and goes on from those that are there)
  bench shrink [OPTION…]
                       trials and seconds of shrinking for each bug that is found, and the trials that
                       proptest's own shrinking takes; --time 60s, --bug NAME…, --runs DIR
  report-sample [--out DIR]
                       writes the stored run in every report format, and a page of 10,000 trials, whose size and
                       load time in Chromium it prints
  screenshots          makes docs/images again: the HTML report and the terminal's
  generate [--check]   write the generated pages below docs/, or fail where one is out of date";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::everything(&root()?),
        ["test", "--", filter @ ..] => test::matching(&root()?, filter),
        ["style"] => style::run(&root()?),
        ["bench", "checks"] => bench::checks(&root()?),
        ["bench", "model", words @ ..] => bench::model(&root()?, words),
        ["bench", "report", words @ ..] => bench::report(&root()?, words),
        ["bench", "explore", words @ ..] => bench::explore::run(&root()?, words),
        ["bench", "shrink", words @ ..] => bench::shrink::run(&root()?, words),
        ["report-sample"] => sample::write(&root()?, Path::new("target/report-sample")),
        ["report-sample", "--out", out] => sample::write(&root()?, Path::new(out)),
        ["screenshots"] => sample::shoot(&root()?),
        ["generate"] => generate::write(&root()?),
        ["generate", "--check"] => generate::check(&root()?),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("no such task: `{}`\n{USAGE}", words.join(" ")),
    }
}

/// The repository's root. Cargo names this package's folder to whatever it runs.
fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&package).parent().context("xtask lies in the repository's root")?;
    Ok(root.to_path_buf())
}
