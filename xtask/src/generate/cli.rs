//! The command line, in the words of the program's own help.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::heading;

/// Columns of the help texts.
const COLUMNS: &str = "100";

/// The program `killpoint`, built.
pub(super) struct Program {
    executable: PathBuf,
    /// Words before those that it is asked with: none but in tests.
    first: &'static [&'static str],
}

impl Program {
    /// Builds it.
    pub(super) fn build(root: &Path) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let status = Command::new(cargo)
            .current_dir(root)
            .args(["build", "--quiet", "--package", "killpoint-cli"])
            .status()
            .context("starting cargo")?;
        if !status.success() {
            bail!("the program can't be built: {status}");
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        Ok(Self { executable: target.join("debug/killpoint"), first: &[] })
    }

    #[cfg(test)]
    pub(super) fn fake() -> Self {
        const FIRST: &[&str] =
            &["-c", "if [ \"$1\" = list ]; then echo '[]'; else echo \"$@\"; fi", "killpoint"];
        Self { executable: "/bin/sh".into(), first: FIRST }
    }

    /// What its help prints.
    fn help(&self, words: &[&str]) -> Result<String> {
        let text = self.data(&[words, &["--help"]].concat())?;
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok(lines.join("\n").trim().to_owned())
    }

    /// What it prints, as wide as everywhere.
    pub(super) fn data(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(&self.executable)
            .args(self.first)
            .args(words)
            .env("COLUMNS", COLUMNS)
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("starting {}", self.executable.display()))?;
        if !output.status.success() {
            bail!("`killpoint {}` ended with {}", words.join(" "), output.status);
        }
        String::from_utf8(output.stdout).context("what it prints is no UTF-8")
    }
}

pub(super) fn render(program: &Program) -> Result<String> {
    let help = program.help(&[])?;
    let mut text = heading("The command line");
    let _ = write!(text, "What `--help` prints.\n\n```text\n{help}\n```\n");
    for command in commands(&help) {
        let help = program.help(&[command])?;
        // Writing to a String cannot fail.
        let _ = write!(text, "\n## killpoint {command}\n\n```text\n{help}\n```\n");
    }
    Ok(text)
}

/// The names under `Commands:`.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .take_while(|line| !line.is_empty())
        // Lines that go on with a summary are indented further.
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?.split(' ').next())
        .filter(|name| *name != "help")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_help() {
        let help = "Usage: x\n\nCommands:\n  demo  Runs\n        on and on\n  run   Runs\n  help  Print\n\nOptions:\n  -h";
        assert_eq!(commands(help), ["demo", "run"]);
        assert_eq!(commands("nothing"), [""; 0]);
    }
}
