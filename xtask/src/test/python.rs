//! A virtual environment with what the Python examples require, and with our plugin for pytest.

use std::process::Command;

use anyhow::{Context, Result};

use super::environment::{Folders, Prepared, files_of_examples};
use super::tools::{find, fingerprint, once, run, version};

pub(super) fn prepare(folders: &Folders) -> Result<Prepared> {
    let Some(interpreter) = find("python3") else {
        return Ok(Prepared::Missing { tests: "Python", why: "no `python3` on the PATH".to_owned() });
    };
    let plugin = folders.clients.join("pytest");
    let mut requirements = files_of_examples(folders, |file| file.ends_with("requirements.txt"))?;
    requirements.push(plugin.join("requirements.txt"));
    let venv = folders.prepared.join("venv");
    // A virtual environment holds its own path, so a moved checkout needs a new one.
    let mut inputs = vec![version(&interpreter)?, venv.display().to_string()];
    // The plugin's code is used where it lies; only what is written about it is copied.
    for file in requirements.iter().chain([&plugin.join("pyproject.toml")]) {
        inputs.push(std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?);
    }
    let python = venv.join("bin/python");
    once(&venv.join("stamp"), &fingerprint(inputs.iter().map(String::as_str)), || {
        run(Command::new(&interpreter).args(["-m", "venv", "--clear"]).arg(&venv))
            .context("on Debian, the package python3-venv is needed")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        for file in &requirements {
            pip.arg("--requirement").arg(file);
        }
        pip.arg("--editable").arg(&plugin);
        run(&mut pip)
    })?;
    Ok(Prepared::Ready(vec![("KILLPOINT_TEST_PYTHON", python.into())]))
}
