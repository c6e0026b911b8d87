//! What the rules look at: the text of the files, and what cargo knows of our packages.
//!
//! Rules are pure functions of this, so that their tests need no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Folders that hold what tools made, not what people wrote.
const SKIPPED: &[&str] = &["target", "book", "node_modules", "killpoint-runs", "__pycache__"];
/// Folders that start with a dot and yet are ours.
const KEPT: &[&str] = &[".cargo", ".ci", ".config", ".github"];

#[derive(Debug, Default)]
pub(super) struct Repository {
    /// Text files by their path from the root, with forward slashes.
    pub(super) texts: BTreeMap<String, String>,
    /// All files and folders, with those that are no text.
    pub(super) paths: BTreeSet<String>,
    pub(super) packages: Vec<Package>,
}

/// One package of the workspace.
#[derive(Debug, Clone)]
pub(super) struct Package {
    pub(super) name: String,
    /// Its folder from the root.
    pub(super) folder: String,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// Whether only tests use it.
    pub(super) tests_only: bool,
}

impl Repository {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut repository = Self { packages: packages(root)?, ..Self::default() };
        repository.read_folder(root, "")?;
        Ok(repository)
    }

    /// All Rust files.
    pub(super) fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts_with("rs")
    }

    /// All Markdown files.
    pub(super) fn markdown_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts_with("md")
    }

    fn texts_with(&self, extension: &'static str) -> impl Iterator<Item = (&str, &str)> {
        let matches = move |path: &str| Path::new(path).extension().is_some_and(|found| found == extension);
        self.texts.iter().filter(move |(path, _)| matches(path)).map(|(path, text)| (&**path, &**text))
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<()> {
        let absolute = root.join(folder);
        let listing =
            std::fs::read_dir(&absolute).with_context(|| format!("listing {}", absolute.display()))?;
        for entry in listing {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() {
                let ours = !name.starts_with('.') || KEPT.contains(&&*name);
                if ours && !SKIPPED.contains(&&*name) {
                    self.paths.insert(path.clone());
                    self.read_folder(root, &path)?;
                }
            } else {
                if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    self.texts.insert(path.clone(), text);
                }
                self.paths.insert(path);
            }
        }
        Ok(())
    }
}

fn packages(root: &Path) -> Result<Vec<Package>> {
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?;
    metadata
        .packages
        .iter()
        .map(|package| {
            let folder = package.manifest_path.parent().context("a manifest lies in a folder")?;
            let folder = folder.strip_prefix(&metadata.workspace_root)?.as_str().to_owned();
            let dependencies = package
                .dependencies
                .iter()
                .map(|dependency| Dependency {
                    name: dependency.name.clone(),
                    tests_only: dependency.kind == DependencyKind::Development,
                })
                .collect();
            Ok(Package { name: package.name.to_string(), folder, dependencies })
        })
        .collect()
}

#[cfg(test)]
impl Repository {
    /// A repository of these files, for the tests of rules.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut repository = Self::default();
        for (path, text) in files {
            repository.texts.insert((*path).to_owned(), (*text).to_owned());
            for (end, _) in path.match_indices('/') {
                repository.paths.insert(path[..end].to_owned());
            }
            repository.paths.insert((*path).to_owned());
        }
        repository
    }

    /// Adds a package with what it depends on.
    pub(super) fn with_package(mut self, name: &str, folder: &str, dependencies: &[(&str, bool)]) -> Self {
        let dependencies = dependencies
            .iter()
            .map(|(name, tests_only)| Dependency { name: (*name).to_owned(), tests_only: *tests_only })
            .collect();
        self.packages.push(Package { name: name.to_owned(), folder: folder.to_owned(), dependencies });
        self
    }
}
