//! What was read of a project: texts, databases, and what was left out. Data only.

use std::fmt;

/// A language by which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript or TypeScript.
    Node,
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// Ruby.
    Ruby,
    /// A POSIX shell.
    Shell,
    /// C.
    C,
    /// SQL.
    Sql,
}

impl Language {
    /// By the end of a file's name, or by the first line of its text.
    pub fn of(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let by_name = match name.rsplit_once('.').map(|(_, end)| end) {
            Some("py") => Some(Self::Python),
            Some("js" | "mjs" | "cjs" | "ts" | "mts" | "cts") => Some(Self::Node),
            Some("rs") => Some(Self::Rust),
            Some("go") => Some(Self::Go),
            Some("rb") => Some(Self::Ruby),
            Some("sh" | "bash") => Some(Self::Shell),
            Some("c") => Some(Self::C),
            Some("sql") => Some(Self::Sql),
            _ => None,
        };
        by_name.or_else(|| by_shebang(text.lines().next().unwrap_or_default()))
    }

    /// As a person writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Node => "Node",
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::Ruby => "Ruby",
            Self::Shell => "shell",
            Self::C => "C",
            Self::Sql => "SQL",
        }
    }
}

fn by_shebang(line: &str) -> Option<Language> {
    let program = line.strip_prefix("#!")?;
    let of = |word: &str| match word.rsplit('/').next().unwrap_or(word) {
        word if word.starts_with("python") => Some(Language::Python),
        "node" | "tsx" => Some(Language::Node),
        "ruby" => Some(Language::Ruby),
        "sh" | "bash" | "dash" => Some(Language::Shell),
        _ => None,
    };
    program.split_whitespace().find_map(of)
}

/// One text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the project, with `/`.
    pub path: String,
    /// Its text; long lines and comments that fill a line are blank.
    pub text: String,
    /// Whether it may be executed.
    pub executable: bool,
    /// By name or first line; `None` for manifests and the like.
    pub language: Option<Language>,
}

impl SourceFile {
    /// A file as it was read.
    pub fn new(path: impl Into<String>, text: &str, executable: bool) -> Self {
        let path = path.into();
        let language = Language::of(&path, text);
        let text = if is_env_file(&path) { names_only(text) } else { plain(text, language) };
        Self { path, text, executable, language }
    }

    /// Its name without folders.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it is a test, or lies among them.
    pub fn is_test(&self) -> bool {
        let folders = ["test", "tests", "spec", "specs", "__tests__", "fixtures", "testdata", "e2e"];
        let (name, stem) = (self.name(), self.name().split('.').next().unwrap_or_default());
        self.folder().split('/').any(|part| folders.contains(&part))
            || stem.starts_with("test_")
            || stem.ends_with("_test")
            || stem == "conftest"
            || name.contains(".test.")
            || name.contains(".spec.")
    }

    /// The folder it lies in; empty for the project's own.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The place of a byte of its text.
    pub fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(&self.text);
        Place::line(&self.path, before.matches('\n').count() as u32 + 1)
    }
}

/// Whether a file holds variables with their values, as `.env` does.
pub(super) fn is_env_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with(".env") || name.rsplit_once('.').is_some_and(|(_, end)| end == "env")
}

/// What stands before each `=`: values may be secrets, and are not kept.
fn names_only(text: &str) -> String {
    let name = |line: &str| {
        let name =
            line.trim().trim_start_matches("export ").split_once('=').map_or("", |(name, _)| name.trim());
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name { name.to_owned() } else { String::new() }
    };
    text.lines().map(name).collect::<Vec<_>>().join("\n")
}

/// Longer lines were made by programs, not by people.
const LINE_BYTES_MAX: usize = 2000;

/// The text with the same lines, but for what nobody wrote and for comments.
fn plain(text: &str, language: Option<Language>) -> String {
    let comment = match language {
        Some(Language::Python | Language::Ruby | Language::Shell) => Some("#"),
        Some(Language::Node | Language::Rust | Language::Go | Language::C) => Some("//"),
        Some(Language::Sql) => Some("--"),
        None => None,
    };
    let is_comment = |line: &str| {
        let line = line.trim_start();
        comment.is_some_and(|mark| line.starts_with(mark)) && !line.starts_with("#!")
    };
    let keep = |line: &str| line.len() <= LINE_BYTES_MAX && !is_comment(line);
    let lines: Vec<&str> = text.lines().map(|line| if keep(line) { line } else { "" }).collect();
    lines.join("\n")
}

/// One SQLite database that lies in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Relative to the project.
    pub path: String,
    /// Its `create table` statements.
    pub schema: Vec<String>,
    /// Values of columns that have few of them: table, column, value.
    pub values: Vec<(String, String, String)>,
}

/// A project as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// Text files, by path.
    pub files: Vec<SourceFile>,
    /// Databases, by path.
    pub databases: Vec<Database>,
    /// What was not read, and why, a line each.
    pub left_out: Vec<String>,
    /// Programs that are built already, relative to the project.
    pub built: Vec<String>,
}

impl Project {
    /// A file by its path.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Files in a language that are no tests: what these read and say is not the worker's.
    pub fn sources(&self) -> impl Iterator<Item = (&SourceFile, Language)> {
        self.files.iter().filter(|file| !file.is_test()).filter_map(|file| Some((file, file.language?)))
    }
}

/// Where something was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, relative to the project.
    pub file: String,
    /// The line, from 1; `None` for the file as a whole.
    pub line: Option<u32>,
}

impl Place {
    /// A line of a file.
    pub fn line(file: &str, line: u32) -> Self {
        Self { file: file.to_owned(), line: Some(line) }
    }

    /// A whole file.
    pub fn whole(file: &str) -> Self {
        Self { file: file.to_owned(), line: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_told_by_name_or_first_line() {
        assert_eq!(Language::of("a/worker.mjs", ""), Some(Language::Node));
        assert_eq!(Language::of("bin/worker", "#!/usr/bin/env python3.11\n"), Some(Language::Python));
        assert_eq!(Language::of("bin/worker", "#!/bin/sh -e\n"), Some(Language::Shell));
        assert_eq!(Language::of("Procfile", "worker: ./a"), None);
    }

    #[test]
    fn tests_are_no_sources() {
        let paths =
            ["worker.py", "tests/worker.py", "test_worker.py", "a/worker_test.go", "w.test.mjs", "latest.py"];
        let files = paths.iter().map(|path| SourceFile::new(*path, "", false)).collect();
        let project = Project { files, ..Project::default() };
        let sources: Vec<&str> = project.sources().map(|(file, _)| file.path.as_str()).collect();
        assert_eq!(sources, ["worker.py", "latest.py"]);
    }

    #[test]
    fn lines_keep_their_numbers_without_comments_and_with_windows_ends() {
        let text = "#!/usr/bin/env python3\r\n# status = 'old'\r\nstatus = 'new'\r\n";
        let file = SourceFile::new("worker.py", text, false);
        assert_eq!(file.text, "#!/usr/bin/env python3\n\nstatus = 'new'");
        let at = file.text.find("status").unwrap();
        assert_eq!(file.place(at).to_string(), "worker.py:3");
        assert_eq!(SourceFile::new("a.js", &"x".repeat(3000), false).text, "");
    }
}
