//! Crates that are pure touch nothing outside: no files, sockets, processes, threads.

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, ItemUse, Path, UseTree};

use super::Problem;
use super::repository::Repository;
use super::rust_source::{attributes, is_test_only, sources};

const PURE: &[&str] = &["harness/model/src/", "harness/checks/src/", "scenarios/src/", "reports/src/"];
const OUTSIDE: &[&str] = &["env", "fs", "net", "os", "process", "thread"];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems = Vec::new();
    // What cannot be parsed is reported by the rule on lengths.
    for source in sources(repository, PURE).0 {
        let mut uses = Uses::default();
        uses.visit_file(&source.syntax);
        for (line, module) in uses.0 {
            let what = format!("`std::{module}` in a pure crate: take what it gives as an argument");
            problems.push(Problem::at(source.path, line, what));
        }
    }
    problems
}

/// Where modules of `std` are used that reach outside.
#[derive(Default)]
struct Uses(Vec<(usize, String)>);

impl Uses {
    fn note(&mut self, first: &Ident, second: &Ident) {
        if first == "std" && OUTSIDE.iter().any(|module| second == module) {
            self.0.push((second.span().start().line, second.to_string()));
        }
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test_only(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let UseTree::Path(path) = &item.tree else { return };
        for module in first_names(&path.tree) {
            self.note(&path.ident, module);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let mut segments = path.segments.iter();
        if let (Some(first), Some(second)) = (segments.next(), segments.next()) {
            self.note(&first.ident, &second.ident);
        }
        visit::visit_path(self, path);
    }
}

/// The first names that a tree of imports takes, of every branch.
fn first_names(tree: &UseTree) -> Vec<&Ident> {
    match tree {
        UseTree::Path(path) => vec![&path.ident],
        UseTree::Name(name) => vec![&name.ident],
        UseTree::Rename(rename) => vec![&rename.ident],
        UseTree::Glob(_) => Vec::new(),
        UseTree::Group(group) => group.items.iter().flat_map(first_names).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&Repository::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn reaching_outside_is_a_problem_however_it_is_written() {
        let advice = "in a pure crate: take what it gives as an argument";
        for text in [
            "use std::fs;",
            "use std::fs::File;",
            "use std::{io, fs::{self, File}};",
            "fn f() { std::fs::read(p); }",
        ] {
            assert_eq!(
                problems("reports/src/a.rs", text),
                [format!("reports/src/a.rs:1: `std::fs` {advice}")],
                "{text}"
            );
        }
    }

    #[test]
    fn the_rest_of_std_other_crates_and_tests_are_fine() {
        let text =
            "use std::io::Write; use std::collections::BTreeMap;\n#[cfg(test)] mod tests { use std::fs; }";
        assert_eq!(problems("reports/src/a.rs", text), [""; 0]);
        assert_eq!(problems("harness/engine/src/a.rs", "use std::fs;"), [""; 0]);
    }
}
