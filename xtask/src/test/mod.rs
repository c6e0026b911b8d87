//! Everything that must be green before a change is merged, one step after the other, cheapest first.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

mod c_programs;
mod chromium;
mod environment;
mod node;
mod python;
mod tools;

pub(crate) use environment::Environment;
use tools::{cargo, find, run};

/// All steps. Stops at the first that fails.
pub(crate) fn everything(root: &Path) -> Result<()> {
    step("formatting", "run `cargo fmt`", || run(cargo(root).args(["fmt", "--all", "--check"])))?;
    step("lints", "correct what clippy names", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        run(cargo(root).args(arguments))
    })?;
    let environment = prepare(root)?;
    tests(root, &environment, &[])?;
    step("examples in documentation", "correct the example or the code", || {
        run(environment.give_to(cargo(root).args(["test", "--doc", "--workspace"])))
    })?;
    step("generated pages", "run `cargo xtask generate`", || crate::generate::check(root))?;
    step("style", "correct the lines named above", || crate::style::run(root))?;
    println!("everything is green");
    Ok(())
}

/// Only the tests that match a filter.
pub(crate) fn matching(root: &Path, filter: &[&str]) -> Result<()> {
    let environment = prepare(root)?;
    tests(root, &environment, filter)
}

fn prepare(root: &Path) -> Result<Environment> {
    let mut environment = Environment::default();
    step("interpreters and programs for the examples", "see the message; what is ready is kept", || {
        environment = Environment::prepare(root)?;
        Ok(())
    })?;
    Ok(environment)
}

fn tests(root: &Path, environment: &Environment, filter: &[&str]) -> Result<()> {
    let remedy = "run one alone with `cargo xtask test -- NAME`";
    if find("cargo-nextest").is_some() {
        step("tests", remedy, || {
            run(environment.give_to(cargo(root).args(["nextest", "run", "--workspace"]).args(filter)))
        })
    } else {
        step("tests (without nextest)", remedy, || {
            let arguments = ["test", "--workspace", "--all-targets"];
            run(environment.give_to(cargo(root).args(arguments).args(filter)))
        })
    }
}

fn step(name: &str, remedy: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let start = Instant::now();
    let result = work();
    let verdict = if result.is_ok() { "done" } else { "failed" };
    println!("== {name}: {verdict} in {:.1} s", start.elapsed().as_secs_f64());
    result.with_context(|| format!("step `{name}` failed: {remedy}"))
}
