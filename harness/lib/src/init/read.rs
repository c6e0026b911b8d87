//! Reads a project from the file system, within limits. The only part of this folder that touches files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::project::{Database, Language, Project, SourceFile, is_env_file};

/// Files that are looked at.
const FILES_MAX: usize = 2_000;
/// Folders below each other.
const DEPTH_MAX: usize = 8;
/// Bytes of one text.
const TEXT_BYTES_MAX: u64 = 256 << 10;
/// Bytes of all texts together.
const TEXTS_BYTES_MAX: u64 = 8 << 20;
/// Bytes of one database.
const DATABASE_BYTES_MAX: u64 = 64 << 20;
/// Databases that are opened.
const DATABASES_MAX: usize = 8;
/// Lines on what was left out.
const LEFT_OUT_MAX: usize = 20;

/// Folders that hold no sources of the project itself.
const IGNORED: &[&str] = &[
    "node_modules",
    "venv",
    "env",
    "target",
    "dist",
    "build",
    "vendor",
    "site-packages",
    "__pycache__",
    "killpoint-runs",
    "killpoint",
    "coverage",
];
const MANIFESTS: &[&str] = &["Procfile", "package.json", "pyproject.toml", "Cargo.toml", "go.mod"];
const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";
const PROGRAM_MAGIC: &[u8] = b"\x7fELF";

/// Why a project can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// There is nothing of that name.
    #[error("there is no folder `{}`{}", .path.display(), .nearest.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    Missing {
        /// What was named.
        path: PathBuf,
        /// A folder beside it whose name is near.
        nearest: Option<String>,
    },
    /// It is a file.
    #[error("`{}` is no folder; name the one that the project lies in", .0.display())]
    NoFolder(PathBuf),
    /// The operating system refuses.
    #[error("the folder `{}` can't be read: {error}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The operating system's words.
        error: io::Error,
    },
}

/// Reads a project. Databases are copied before they are opened; symbolic links are not followed; values of
/// `.env` files are not kept.
///
/// # Errors
/// Only where the folder itself can't be read; anything below it is noted as left out.
pub fn read_project(folder: &Path) -> Result<Project, ProjectError> {
    let unreadable = |error| ProjectError::Unreadable { path: folder.to_owned(), error };
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ProjectError::Missing { path: folder.to_owned(), nearest: nearest(folder) });
        }
        Err(error) => return Err(unreadable(error)),
        Ok(meta) if !meta.is_dir() => return Err(ProjectError::NoFolder(folder.to_owned())),
        Ok(_) => {}
    }
    fs::read_dir(folder).map_err(unreadable)?;
    let mut reading = Reading { root: folder, project: Project::default(), files: 0, bytes: 0 };
    reading.folder(folder, 0);
    reading.built();
    let mut project = reading.project;
    project.files.sort_by(|a, b| a.path.cmp(&b.path));
    project.databases.sort_by(|a, b| a.path.cmp(&b.path));
    if project.left_out.len() > LEFT_OUT_MAX {
        let more = project.left_out.len() - LEFT_OUT_MAX;
        project.left_out.truncate(LEFT_OUT_MAX);
        project.left_out.push(format!("… and {more} more"));
    }
    Ok(project)
}

/// The folder beside a missing one whose name is near.
fn nearest(missing: &Path) -> Option<String> {
    let name = missing.file_name()?.to_str()?;
    let parent = missing.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: Vec<String> = fs::read_dir(parent)
        .ok()?
        .flatten()
        .take(FILES_MAX)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    killpoint_model::diagnostic::nearest(name, names.iter().map(String::as_str))
}

struct Reading<'a> {
    root: &'a Path,
    project: Project,
    files: usize,
    bytes: u64,
}

impl Reading<'_> {
    fn leave_out(&mut self, path: &Path, why: &str) {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        // Whatever a name holds, it is one line.
        let name: String =
            name.to_string_lossy().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        self.project.left_out.push(format!("{name}: {why}"));
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.leave_out(folder, &error.to_string()),
        };
        let mut entries: Vec<_> = entries.flatten().take(FILES_MAX).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // The kind of a link is a link: nothing leads out of the project or in circles.
            let Ok(kind) = entry.file_type() else { continue };
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                self.leave_out(&path, "its name is not UTF-8");
                continue;
            };
            if name.contains(['{', '}']) {
                self.leave_out(&path, "its name has braces, which mean something else in a configuration");
                continue;
            }
            if kind.is_dir() {
                let hidden = name.starts_with('.');
                if hidden || IGNORED.contains(&name.as_str()) || name.ends_with(".egg-info") {
                    continue;
                }
                if depth == DEPTH_MAX {
                    self.leave_out(&path, "it lies too deep");
                } else {
                    self.folder(&path, depth + 1);
                }
            } else if kind.is_file() {
                self.files += 1;
                if self.files > FILES_MAX {
                    if self.files == FILES_MAX + 1 {
                        self.leave_out(&path, &format!("only {FILES_MAX} files are looked at"));
                    }
                    return;
                }
                self.file(&path, &name);
            }
        }
    }

    fn file(&mut self, path: &Path, name: &str) {
        let (head, length) = match head(path) {
            Ok(found) => found,
            Err(error) => return self.leave_out(path, &error.to_string()),
        };
        if head.starts_with(DATABASE_MAGIC) {
            return self.database(path, length);
        }
        let relative = self.relative(path);
        if head.starts_with(PROGRAM_MAGIC) {
            self.project.built.push(relative);
            return;
        }
        let wanted = MANIFESTS.contains(&name)
            || is_env_file(name)
            || head.starts_with(b"#!")
            || Language::of(name, "").is_some();
        if !wanted {
            return;
        }
        if length > TEXT_BYTES_MAX {
            return self.leave_out(
                path,
                &format!("it has {} KiB, more than {}", length >> 10, TEXT_BYTES_MAX >> 10),
            );
        }
        if self.bytes + length > TEXTS_BYTES_MAX {
            return self.leave_out(path, "the sources are too large to be read whole");
        }
        match read_at_most(path, TEXT_BYTES_MAX) {
            Ok(bytes) if bytes.contains(&0) => self.leave_out(path, "it is no text"),
            Ok(bytes) => {
                self.bytes += bytes.len() as u64;
                let executable = fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
                let text = String::from_utf8_lossy(&bytes);
                self.project.files.push(SourceFile::new(
                    relative,
                    text.trim_start_matches('\u{feff}'),
                    executable,
                ));
            }
            Err(error) => self.leave_out(path, &error.to_string()),
        }
    }

    fn database(&mut self, path: &Path, length: u64) {
        if length > DATABASE_BYTES_MAX {
            return self.leave_out(path, &format!("the database has {} MiB", length >> 20));
        }
        if self.project.databases.len() == DATABASES_MAX {
            return self.leave_out(path, &format!("only {DATABASES_MAX} databases are opened"));
        }
        match killpoint_engine::glimpse::glimpse(path) {
            Ok(seen) => {
                // Whatever else is in the rows is nobody's business here.
                let is_state = |column: &str| {
                    let column = column.to_ascii_lowercase();
                    column.ends_with("state") || column.ends_with("status")
                };
                let values = seen.values.into_iter().filter(|(_, column, _)| is_state(column)).collect();
                let path = self.relative(path);
                self.project.databases.push(Database { path, schema: seen.schema, values });
            }
            Err(why) => self.leave_out(path, &why),
        }
    }

    /// Programs that a build left where manifests put them.
    fn built(&mut self) {
        for profile in ["release", "debug"] {
            let folder = self.root.join("target").join(profile);
            for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX) {
                let path = entry.path();
                if head(&path).is_ok_and(|(head, _)| head.starts_with(PROGRAM_MAGIC))
                    && path.extension().is_none()
                {
                    let relative = self.relative(&path);
                    self.project.built.push(relative);
                }
            }
        }
        self.project.built.sort();
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// The first bytes and the length of a regular file.
fn head(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok((read_at_most(path, 16)?, meta.len()))
}

fn read_at_most(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn paths(project: &Project) -> Vec<&str> {
        project.files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn only_the_projects_own_texts_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write("worker.py", b"\xef\xbb\xbfimport os\r\nx = 1\r\n");
        write("bin/run", b"#!/bin/sh\n");
        write("node_modules/a/index.js", b"x");
        write(".git/hook.py", b"x");
        write("picture.png", b"\x89PNG");
        write("binary.py", b"a\0b");
        write("latin.py", b"# caf\xe9\nx = 1\n");
        write("huge.sql", &vec![b'x'; 300 << 10]);
        write("tool", b"\x7fELF and more");
        write("target/release/relay", b"\x7fELF and more");
        write("fake.db", b"SQLite format 3\0 and then nothing");
        symlink(folder.path(), folder.path().join("loop")).unwrap();
        symlink("/etc/passwd", folder.path().join("passwd.py")).unwrap();
        fs::write(folder.path().join(OsStr::from_bytes(b"bad\xff.py")), "x").unwrap();
        write("{state}.py", b"x");
        let project = read_project(folder.path()).unwrap();
        assert_eq!(paths(&project), ["bin/run", "latin.py", "worker.py"]);
        assert_eq!(project.file("worker.py").unwrap().text, "import os\nx = 1");
        assert_eq!(project.built, ["target/release/relay", "tool"]);
        let left = project.left_out.join("\n");
        for part in [
            "bad\u{fffd}.py: its name is not UTF-8",
            "binary.py: it is no text",
            "huge.sql: it has 300 KiB",
            "fake.db: ",
        ] {
            assert!(left.contains(part), "{part}: {left}");
        }
        assert_eq!(project.left_out.len(), 5, "{left}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_said() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mailer")).unwrap();
        let error = read_project(&folder.path().join("mialer")).unwrap_err().to_string();
        assert!(error.contains("no folder") && error.ends_with("did you mean `mailer`?"), "{error}");
        fs::write(folder.path().join("file"), "").unwrap();
        let error = read_project(&folder.path().join("file")).unwrap_err().to_string();
        assert!(error.contains("is no folder"), "{error}");
    }

    #[test]
    fn limits_are_said() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..FILES_MAX + 2 {
            fs::write(folder.path().join(format!("{number:05}.txt")), "").unwrap();
        }
        let mut deep = folder.path().to_owned();
        for _ in 0..=DEPTH_MAX {
            deep.push("0");
        }
        fs::create_dir_all(&deep).unwrap();
        let left = read_project(folder.path()).unwrap().left_out.join("\n");
        assert!(left.contains("it lies too deep"), "{left}");
    }
}
