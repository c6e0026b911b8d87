//! Finding the program that a command names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use super::error::OsError;

/// Where programs are looked for when the environment has no PATH, as the C library does it.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that `command` names for a process with this environment and directory: a path with a slash as it
/// is (from `cwd`), anything else through the environment's PATH.
pub fn find_program(command: &str, env: &BTreeMap<String, String>, cwd: &Path) -> Result<PathBuf, OsError> {
    if command.contains('/') {
        let path = cwd.join(command);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Err(OsError::CommandNotFound {
                command: command.to_owned(),
                searched: path.display().to_string(),
            }),
            Err(errno) => Err(not_executable(path, errno)),
        };
    }
    let searched = env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let mut refused = None;
    for directory in searched.split(':') {
        let path = cwd.join(directory).join(command);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(errno @ Errno::EACCES) if path.is_file() => {
                refused.get_or_insert((path, errno));
            }
            Err(_) => {}
        }
    }
    Err(match refused {
        Some((path, errno)) if !command.is_empty() => not_executable(path, errno),
        _ => OsError::CommandNotFound { command: command.to_owned(), searched: format!("PATH={searched}") },
    })
}

/// An error for a file that is there, with what to do about it.
pub(super) fn not_executable(path: PathBuf, errno: Errno) -> OsError {
    let hint = match errno {
        Errno::EACCES => "; `chmod +x` it, or name its interpreter first",
        Errno::ENOEXEC => "; a script needs a first line like `#!/bin/sh`",
        Errno::ENOENT => "; the interpreter of its first line, or its loader, is missing",
        Errno::E2BIG => "; arguments and environment are too long",
        _ => "",
    };
    OsError::NotExecutable { path, errno, hint }
}

fn executable(path: &Path) -> Result<(), Errno> {
    access(path, AccessFlags::X_OK)?;
    if path.is_dir() { Err(Errno::EACCES) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn path_env(path: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("PATH".to_owned(), path.to_owned())])
    }

    #[test]
    fn the_environments_own_path_is_searched() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("tool");
        std::fs::write(&tool, "#!/bin/sh\n").unwrap();
        let env = path_env(&format!("/nowhere:{}", dir.path().display()));
        assert!(matches!(
            find_program("tool", &env, Path::new("/")),
            Err(OsError::NotExecutable { path, errno: Errno::EACCES, .. }) if path == tool
        ));
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program("tool", &env, Path::new("/")).unwrap(), tool);
        assert_eq!(find_program("./tool", &path_env(""), dir.path()).unwrap(), dir.path().join("./tool"));
        assert!(find_program("sh", &BTreeMap::new(), Path::new("/")).is_ok());
    }

    #[test]
    fn what_is_missing_is_named_with_where_it_was_looked_for() {
        let error = find_program("no-such-tool", &path_env("/a:/b"), Path::new("/")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "command `no-such-tool` not found (looked in PATH=/a:/b); give its path, or set PATH"
        );
        assert!(matches!(
            find_program("./gone", &path_env("/bin"), Path::new("/tmp")),
            Err(OsError::CommandNotFound { searched, .. }) if searched == "/tmp/./gone"
        ));
        assert!(matches!(
            find_program("/usr", &path_env("/bin"), Path::new("/")),
            Err(OsError::NotExecutable { .. })
        ));
        assert!(matches!(
            find_program("", &path_env("/bin"), Path::new("/")),
            Err(OsError::CommandNotFound { .. })
        ));
    }
}
