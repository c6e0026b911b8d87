//! Every file in a folder of extensions is in the folder's slice. A file that is in no slice is never run,
//! and nothing else would say so.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ExprPath, File, Item, UseTree};

use super::Problem;
use super::repository::Repository;

/// A folder of extensions, one Rust file each.
struct Extensions {
    folder: &'static str,
    /// The slice in its `mod.rs`.
    slice: &'static str,
}

const EXTENSIONS: &[Extensions] = &[
    Extensions { folder: "harness/engine/src/faults", slice: "FAULTS" },
    Extensions { folder: "harness/engine/src/boundaries", slice: "BOUNDARIES" },
    Extensions { folder: "harness/engine/src/ledgers", slice: "LEDGERS" },
    Extensions { folder: "harness/checks/src/invariants", slice: "INVARIANTS" },
    Extensions { folder: "fake-provider/src/dialects", slice: "DIALECTS" },
    Extensions { folder: "reports/src/formats", slice: "FORMATS" },
];

/// Where the scenarios are that the program is built with, and the sources that include them.
const LIBRARY: &str = "scenarios/library";
const LIBRARY_SOURCES: &str = "scenarios/src/";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems = Vec::new();
    for extensions in EXTENSIONS {
        check_folder(repository, extensions, &mut problems);
    }
    check_library(repository, &mut problems);
    problems
}

fn check_folder(repository: &Repository, extensions: &Extensions, problems: &mut Vec<Problem>) {
    let Extensions { folder, slice } = extensions;
    let registry = format!("{folder}/mod.rs");
    let syntax = repository.texts.get(&registry).and_then(|text| syn::parse_file(text).ok());
    let Some(registered) = syntax.and_then(|syntax| modules_in_slice(&syntax, slice)) else {
        let what = format!("holds no slice `{slice}`: add it, or correct EXTENSIONS in {}", file!());
        problems.push(Problem::in_file(&registry, what));
        return;
    };
    let prefix = format!("{folder}/");
    for (path, _) in repository.rust_files().filter(|(path, _)| *path != registry) {
        let Some(module) = path.strip_prefix(&prefix).and_then(|file| file.strip_suffix(".rs")) else {
            continue;
        };
        // A large extension may be a folder of its own; then its parts are its own matter.
        if !module.contains('/') && !registered.contains(module) {
            let what =
                format!("is not in the slice: add a line to `{slice}` in {registry}, or move it elsewhere");
            problems.push(Problem::in_file(path, what));
        }
    }
}

fn check_library(repository: &Repository, problems: &mut Vec<Problem>) {
    let sources: String = repository
        .rust_files()
        .filter(|(path, _)| path.starts_with(LIBRARY_SOURCES))
        .map(|(_, text)| text)
        .collect();
    let prefix = format!("{LIBRARY}/");
    for path in repository.texts.keys() {
        let Some(scenario) = path.strip_prefix(&prefix).and_then(|file| file.strip_suffix(".toml")) else {
            continue;
        };
        if !sources.contains(&format!("\"{scenario}\""))
            && !sources.contains(&format!("library/{scenario}.toml"))
        {
            let what = format!("is not in the library: add a line to `LIBRARY` below {LIBRARY_SOURCES}");
            problems.push(Problem::in_file(path, what));
        }
    }
}

/// The modules that a slice takes something from, as `module::Type` or through a `use`.
fn modules_in_slice(syntax: &File, slice: &str) -> Option<BTreeSet<String>> {
    let value: &Expr = syntax.items.iter().find_map(|item| match item {
        Item::Static(item) if item.ident == slice => Some(&*item.expr),
        Item::Const(item) if item.ident == slice => Some(&*item.expr),
        _ => None,
    })?;
    let mut imported = BTreeMap::new();
    for item in &syntax.items {
        if let Item::Use(item) = item {
            collect_imports(&item.tree, None, &mut imported);
        }
    }
    let mut names = FirstSegments::default();
    names.visit_expr(value);
    Some(names.0.into_iter().map(|name| imported.get(&name).cloned().unwrap_or(name)).collect())
}

/// Maps each imported name to the first segment of its path below this module.
fn collect_imports(tree: &UseTree, module: Option<&str>, imported: &mut BTreeMap<String, String>) {
    match tree {
        UseTree::Path(path) if path.ident == "self" => collect_imports(&path.tree, module, imported),
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            collect_imports(&path.tree, Some(module.unwrap_or(&first)), imported);
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect_imports(tree, module, imported)),
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            imported.insert(name.clone(), module.map_or(name, str::to_owned));
        }
        UseTree::Rename(rename) => {
            let original = rename.ident.to_string();
            imported.insert(rename.rename.to_string(), module.map_or(original, str::to_owned));
        }
        UseTree::Glob(_) => {}
    }
}

#[derive(Default)]
struct FirstSegments(BTreeSet<String>);

impl<'ast> Visit<'ast> for FirstSegments {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.note(&path.path);
        visit::visit_expr_path(self, path);
    }

    fn visit_expr_struct(&mut self, value: &'ast syn::ExprStruct) {
        self.note(&value.path);
        visit::visit_expr_struct(self, value);
    }
}

impl FirstSegments {
    fn note(&mut self, path: &syn::Path) {
        let first = path.segments.iter().find(|segment| segment.ident != "self");
        self.0.extend(first.map(|segment| segment.ident.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(registry: &str) -> Vec<String> {
        let repository = Repository::of(&[
            ("faults/mod.rs", registry),
            ("faults/kill.rs", ""),
            ("faults/stop.rs", ""),
            ("faults/stop/parts.rs", ""),
        ]);
        let mut problems = Vec::new();
        check_folder(&repository, &Extensions { folder: "faults", slice: "FAULTS" }, &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn registered_files_are_fine() {
        let by_path =
            "mod kill; mod stop; pub static FAULTS: &[&dyn Fault] = &[&kill::Kill, &self::stop::STOP];";
        assert_eq!(problems(by_path), [""; 0]);
        let by_use = "mod kill; mod stop; use kill::Kill; use self::stop::{Stop as Halt};\n\
                      const FAULTS: &[Fault] = &[Kill { hard: true }, Halt::new()];";
        assert_eq!(problems(by_use), [""; 0]);
    }

    #[test]
    fn a_file_that_is_only_declared_is_a_problem() {
        let registry = "mod kill; mod stop; use stop::Stop; static FAULTS: &[&dyn Fault] = &[&kill::Kill];";
        assert_eq!(
            problems(registry),
            [
                "faults/stop.rs: is not in the slice: add a line to `FAULTS` in faults/mod.rs, or move it elsewhere"
            ]
        );
    }

    #[test]
    fn a_folder_without_its_slice_is_a_problem() {
        let found = problems("mod kill; static OTHERS: &[&dyn Fault] = &[&kill::Kill];");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("faults/mod.rs: holds no slice `FAULTS`"), "{}", found[0]);
    }

    #[test]
    fn scenarios_are_in_the_library() {
        let repository = Repository::of(&[
            ("scenarios/library/one.toml", ""),
            ("scenarios/library/two.toml", ""),
            ("scenarios/src/library.rs", "const LIBRARY: &[(&str, &str)] = &[scenario!(\"one\")];"),
        ]);
        let mut problems = Vec::new();
        check_library(&repository, &mut problems);
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "scenarios/library/two.toml: is not in the library: add a line to `LIBRARY` below scenarios/src/"
            ]
        );
    }
}
