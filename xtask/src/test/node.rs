//! The modules that the Node examples and the tests in a browser require, in a folder for each.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::environment::{Folders, Prepared, files_of_examples};
use super::tools::{find, fingerprint, link, once, run, version};

pub(super) fn prepare(folders: &Folders) -> Result<Prepared> {
    with_node(|node, npm| {
        let modules = folders.prepared.join("node");
        for manifest in files_of_examples(folders, |file| file.ends_with("package.json"))? {
            let example = manifest.parent().context("a manifest lies in a folder")?;
            let name = example.file_name().context("an example has a name")?;
            let target = modules.join(name);
            install(node, npm, example, &target)?;
            // Node looks for modules beside the program that asks for them.
            link(&example.join("node_modules"), &target.join("node_modules"))?;
        }
        install(node, npm, &folders.browser, &modules.join("browser"))?;
        Ok(modules)
    })
}

/// Only what the tests in a browser require.
pub(super) fn prepare_browser(folders: &Folders) -> Result<Prepared> {
    with_node(|node, npm| {
        let modules = folders.prepared.join("node");
        install(node, npm, &folders.browser, &modules.join("browser"))?;
        Ok(modules)
    })
}

/// Installs modules, and gives their folder to the tests.
fn with_node(install: impl FnOnce(&Path, &Path) -> Result<PathBuf>) -> Result<Prepared> {
    let missing = |why: &str| Ok(Prepared::Missing { tests: "Node", why: why.to_owned() });
    let Some(node) = find("node") else { return missing("no `node` on the PATH") };
    let Some(npm) = find("npm") else { return missing("no `npm` on the PATH") };
    let modules = install(&node, &npm)?;
    Ok(Prepared::Ready(vec![
        ("KILLPOINT_TEST_NODE", node.into()),
        ("KILLPOINT_TEST_NODE_MODULES", modules.into()),
    ]))
}

/// Installs in a copy, below the folder that holds all that is built.
fn install(node: &Path, npm: &Path, example: &Path, target: &Path) -> Result<()> {
    let mut inputs = vec![version(node)?];
    let mut files = Vec::new();
    for name in ["package.json", "package-lock.json"] {
        if let Ok(text) = std::fs::read_to_string(example.join(name)) {
            files.push((name, text.clone()));
            inputs.push(text);
        }
    }
    once(&target.join("stamp"), &fingerprint(inputs.iter().map(String::as_str)), || {
        if target.exists() {
            std::fs::remove_dir_all(target).with_context(|| format!("removing {}", target.display()))?;
        }
        std::fs::create_dir_all(target).with_context(|| format!("creating {}", target.display()))?;
        for (name, text) in &files {
            std::fs::write(target.join(name), text)?;
        }
        let mut command = Command::new(npm);
        command.args(["install", "--no-audit", "--no-fund", "--fetch-retries=2"]).current_dir(target);
        // A module in C++ whose ready-made binary cannot be had is compiled, which takes minutes, and would
        // first fetch Node's headers from the network if we did not point at those of this Node.
        if let Some(headers) = folder_of_headers(node) {
            command.env("npm_config_nodedir", headers);
        }
        run(&mut command)
    })
}

/// The folder whose `include/node` holds the headers of this Node.
fn folder_of_headers(node: &Path) -> Option<PathBuf> {
    let folder = node.canonicalize().ok()?.parent()?.parent()?.to_path_buf();
    folder.join("include/node/node.h").is_file().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_beside_the_real_program() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap().join("opt/node");
        for folder in ["bin", "include/node"] {
            std::fs::create_dir_all(real.join(folder)).unwrap();
        }
        std::fs::write(real.join("bin/node"), "").unwrap();
        let link = root.path().join("node");
        std::os::unix::fs::symlink(real.join("bin/node"), &link).unwrap();
        assert_eq!(folder_of_headers(&link), None);
        std::fs::write(real.join("include/node/node.h"), "").unwrap();
        assert_eq!(folder_of_headers(&link), Some(real));
    }
}
