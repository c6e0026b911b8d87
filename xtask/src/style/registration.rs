//! Every extension is in its slice. One that is in no slice is never run, and nothing else would say so.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ExprPath, File, Item, UseTree};

use super::Problem;
use super::repository::Repository;

/// One extension point.
struct Extensions {
    /// The file that holds the slice; the extensions are files beside it.
    registry: &'static str,
    slice: &'static str,
    which: Which,
}

/// Which files beside the registry are extensions.
enum Which {
    Every,
    /// Those that implement this trait; others are what they share.
    Implementing(&'static str),
}

const EXTENSIONS: &[Extensions] = &[
    Extensions { registry: "harness/engine/src/faults/mod.rs", slice: "FAULTS", which: Which::Every },
    Extensions { registry: "harness/engine/src/boundaries/mod.rs", slice: "BOUNDARIES", which: Which::Every },
    Extensions { registry: "harness/engine/src/ledgers/mod.rs", slice: "LEDGERS", which: Which::Every },
    Extensions { registry: "harness/checks/src/invariants/mod.rs", slice: "INVARIANTS", which: Which::Every },
    Extensions { registry: "fake-provider/src/dialects/mod.rs", slice: "DIALECTS", which: Which::Every },
    Extensions { registry: "reports/src/lib.rs", slice: "FORMATS", which: Which::Implementing("Format") },
];

/// Where the scenarios are that the program is built with, and the sources that include them.
const LIBRARY: &str = "scenarios/library";
const LIBRARY_SOURCES: &str = "scenarios/src/";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems = Vec::new();
    for extensions in EXTENSIONS {
        check_extensions(repository, extensions, &mut problems);
    }
    check_library(repository, &mut problems);
    problems
}

fn check_extensions(repository: &Repository, extensions: &Extensions, problems: &mut Vec<Problem>) {
    let Extensions { registry, slice, which } = extensions;
    let syntax = repository.texts.get(*registry).and_then(|text| syn::parse_file(text).ok());
    let Some(registered) = syntax.and_then(|syntax| modules_in_slice(&syntax, slice)) else {
        let what = format!("holds no slice `{slice}`: add it, or correct EXTENSIONS in {}", file!());
        problems.push(Problem::in_file(registry, what));
        return;
    };
    let folder = registry.rsplit_once('/').map_or("", |(folder, _)| folder);
    for (path, text) in repository.rust_files().filter(|(path, _)| path != registry) {
        let Some(below) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else { continue };
        let (module, is_part) = match below.split_once('/') {
            Some((module, _)) => (module, true),
            None => (below.trim_end_matches(".rs"), false),
        };
        let is_extension = match which {
            // A large extension may have a folder of its own; then its parts are its own matter.
            Which::Every => !is_part,
            Which::Implementing(name) => implements(text, name),
        };
        if is_extension && !registered.contains(module) {
            let what =
                format!("is not in the slice: add a line to `{slice}` in {registry}, or move it elsewhere");
            problems.push(Problem::in_file(path, what));
        }
    }
}

/// Whether a file implements a trait outside its tests.
fn implements(text: &str, name: &str) -> bool {
    let Ok(syntax) = syn::parse_file(text) else { return false };
    syntax.items.iter().any(|item| match item {
        Item::Impl(item) => item
            .trait_
            .as_ref()
            .is_some_and(|(_, path, _)| path.segments.last().is_some_and(|segment| segment.ident == name)),
        _ => false,
    })
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
        let extensions = Extensions { registry: "faults/mod.rs", slice: "FAULTS", which: Which::Every };
        check_extensions(&repository, &extensions, &mut problems);
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
    fn files_beside_extensions_that_implement_nothing_are_fine() {
        let repository = Repository::of(&[
            ("r/lib.rs", "mod html; mod json; mod view; static FORMATS: &[&dyn Format] = &[&html::Html];"),
            ("r/html.rs", ""),
            ("r/html/page.rs", "impl crate::Format for Html {}"),
            ("r/json.rs", "impl Format for Json {}"),
            ("r/view.rs", "impl Clone for View {}"),
        ]);
        let which = Which::Implementing("Format");
        let mut problems = Vec::new();
        check_extensions(
            &repository,
            &Extensions { registry: "r/lib.rs", slice: "FORMATS", which },
            &mut problems,
        );
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].path, "r/json.rs");
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
