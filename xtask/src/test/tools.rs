//! Programs of the machine: finding and running them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// Looks a program up on the PATH.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The cargo that runs us.
pub(super) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs a program with our terminal. Its failure is an error that names the whole command.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", text(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", text(command));
    }
    Ok(())
}

/// What a program prints about its version.
pub(super) fn version(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("starting {}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// One short name for these texts together.
pub(super) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    format!("{:x}", hash.finalize())
}

/// Does the work unless it was done before for the same fingerprint. The stamp is written last, so work that
/// was cut short is done again.
pub(super) fn once(stamp: &Path, fingerprint: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    if std::fs::read_to_string(stamp).is_ok_and(|found| found == fingerprint) {
        return Ok(());
    }
    work()?;
    std::fs::write(stamp, fingerprint).with_context(|| format!("writing {}", stamp.display()))
}

/// Lets a name in an example's folder stand for what was made elsewhere, as if its user had made it there.
/// What a user did make there is left alone.
pub(super) fn link(name: &Path, made: &Path) -> Result<()> {
    let is_theirs = name.symlink_metadata().is_ok_and(|found| !found.is_symlink());
    if is_theirs || std::fs::read_link(name).is_ok_and(|target| target == made) {
        return Ok(());
    }
    let _ = std::fs::remove_file(name);
    std::os::unix::fs::symlink(made, name).with_context(|| format!("linking {}", name.display()))
}

fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_per_fingerprint_and_again_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = folder.path().join("stamp");
        let mut count = 0;
        let mut attempt = |fingerprint: &str, succeeds: bool| {
            let _ = once(&stamp, fingerprint, || {
                count += 1;
                if succeeds { Ok(()) } else { bail!("cut short") }
            });
            count
        };
        assert_eq!(attempt("a", false), 1);
        assert_eq!(attempt("a", true), 2);
        assert_eq!(attempt("a", true), 2);
        assert_eq!(attempt("b", true), 3);
    }

    #[test]
    fn the_fingerprint_tells_where_one_text_ends() {
        assert_eq!(fingerprint(["ab", "c"]), fingerprint(["ab", "c"]));
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
    }

    #[test]
    fn a_link_is_renewed_and_a_users_own_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("node_modules");
        for made in ["old", "new", "new"] {
            link(&name, &folder.path().join(made)).unwrap();
            assert_eq!(std::fs::read_link(&name).unwrap(), folder.path().join(made));
        }
        std::fs::remove_file(&name).unwrap();
        std::fs::create_dir(&name).unwrap();
        link(&name, &folder.path().join("new")).unwrap();
        assert!(!name.is_symlink());
    }

    #[test]
    fn a_failed_program_is_named() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "`sh -c exit 3` ended with exit status: 3");
        assert!(find("sh").is_some());
        assert!(find("no-such-program").is_none());
    }
}
