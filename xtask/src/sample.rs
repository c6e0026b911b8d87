//! Reports to look at: the stored run in every format, a page of ten thousand trials, and pictures of both.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::test::Environment;

/// Longest image for the documentation, in bytes.
const IMAGE_BYTES_MAX: u64 = 200_000;
/// How often the page is opened.
const LOADS: &str = "5";

/// Writes the reports into a folder, and says how large the large page is and how soon it can be used.
pub(crate) fn write(root: &Path, out: &Path) -> Result<()> {
    let out = root.join(out);
    reports(root, &out)?;
    browse(root, "load.mjs", &[&out.join("ten-thousand-trials.html"), Path::new(LOADS)])
}

/// Makes the images of the documentation again.
pub(crate) fn shoot(root: &Path) -> Result<()> {
    let pages = root.join("target/report-sample");
    let images = root.join("docs/images");
    std::fs::create_dir_all(&images).with_context(|| format!("creating {}", images.display()))?;
    reports(root, &pages)?;
    browse(root, "shoot.mjs", &[&pages, &images])?;
    for name in ["report.png", "terminal.png"] {
        let image = images.join(name);
        let bytes = image.metadata().with_context(|| format!("looking at {}", image.display()))?.len();
        println!("{bytes:>9} bytes  {}", image.display());
        ensure!(bytes < IMAGE_BYTES_MAX, "{name} has {bytes} bytes, limit {IMAGE_BYTES_MAX}: show less");
    }
    Ok(())
}

fn reports(root: &Path, out: &Path) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "killpoint-reports", "--example", "sample", "--"]).arg(out);
    succeed(command.current_dir(root))
}

/// Runs one of the scripts that work a browser.
fn browse(root: &Path, script: &str, words: &[&Path]) -> Result<()> {
    let environment = Environment::of_browser(root)?;
    let variable = |name: &str| environment.get(name).with_context(|| format!("`{name}` was not prepared"));
    let mut command = Command::new(variable("KILLPOINT_TEST_NODE")?);
    command.arg(root.join("reports/tests/browser").join(script)).args(words);
    command.env("MODULES", Path::new(variable("KILLPOINT_TEST_NODE_MODULES")?).join("browser"));
    command.env("CHROMIUM", variable("KILLPOINT_TEST_CHROMIUM")?);
    succeed(&mut command)
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
