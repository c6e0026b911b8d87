//! The code map in ARCHITECTURE.md names every crate and every module folder, and nothing that is gone.

use std::collections::BTreeSet;

use super::Problem;
use super::repository::Repository;

const MAP: &str = "ARCHITECTURE.md";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let Some(text) = repository.texts.get(MAP) else {
        return vec![Problem::in_file(MAP, "is missing: write the code map")];
    };
    let named: BTreeSet<&str> = code_spans(text).map(|span| span.trim_end_matches('/')).collect();
    let mut problems = Vec::new();
    for package in &repository.packages {
        if !named.contains(&*package.name) || !named.contains(&*package.folder) {
            let what =
                format!("names no crate `{}` in `{}`: add a line for it", package.name, package.folder);
            problems.push(Problem::in_file(MAP, what));
        }
    }
    for folder in module_folders(repository) {
        if !named.contains(&*folder) {
            problems.push(Problem::in_file(MAP, format!("does not mention `{folder}`: add a line for it")));
        }
    }
    for path in named.iter().filter(|name| is_path_of_ours(repository, name)) {
        if !repository.paths.contains(*path) {
            problems
                .push(Problem::in_file(MAP, format!("mentions `{path}`, which is gone: correct the line")));
        }
    }
    problems
}

/// Folders below a crate's `src` that hold Rust files, apart from those of tests.
fn module_folders(repository: &Repository) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for package in &repository.packages {
        let sources = format!("{}/src/", package.folder);
        for (path, _) in repository.rust_files() {
            let Some(below) = path.strip_prefix(&sources) else { continue };
            if let Some((folder, _)) = below.rsplit_once('/')
                && !folder.split('/').any(|part| part == "tests")
            {
                folders.insert(format!("{sources}{folder}"));
            }
        }
    }
    folders
}

/// The pieces of text between backticks, outside fenced code.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("```")).flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Whether a piece of code is meant as a path: it has a slash and starts with one of our folders.
fn is_path_of_ours(repository: &Repository, code: &str) -> bool {
    let is_plain = code.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    is_plain && code.split_once('/').is_some_and(|(folder, _)| repository.paths.contains(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(map: &str) -> Vec<String> {
        let repository = Repository::of(&[
            (MAP, map),
            ("parts/one/src/lib.rs", ""),
            ("parts/one/src/wheels/front.rs", ""),
            ("parts/one/src/wheels/tests/roll.rs", ""),
        ])
        .with_package("part-one", "parts/one", &[]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_map_that_names_all_is_fine() {
        assert_eq!(problems("`part-one` in `parts/one/`: `parts/one/src/wheels`, and/or `a/b`"), [""; 0]);
    }

    #[test]
    fn what_is_missing_and_what_is_gone_are_problems() {
        assert_eq!(
            problems("`part-one` in `parts/two`"),
            [
                "ARCHITECTURE.md: names no crate `part-one` in `parts/one`: add a line for it",
                "ARCHITECTURE.md: does not mention `parts/one/src/wheels`: add a line for it",
                "ARCHITECTURE.md: mentions `parts/two`, which is gone: correct the line",
            ]
        );
    }

    #[test]
    fn no_map_is_a_problem() {
        assert_eq!(check(&Repository::default()).len(), 1);
    }
}
