//! Short functions and short files. Tests are exempt: a long table of cases is no god object.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, ImplItemFn, Item, ItemFn, Signature, TraitItemFn};

use super::Problem;
use super::repository::Repository;
use super::rust_source::{RustSource, attributes, is_test_only, sources};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;

/// Extensions of code in other languages, whose files have the same limit.
const OTHER_CODE: &[&str] = &["c", "css", "js", "mjs", "py", "sh", "ts"];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let (sources, mut problems) = sources(repository, &[""]);
    for source in &sources {
        check_rust(source, &mut problems);
    }
    for (path, text) in &repository.texts {
        let extension = Path::new(path).extension().unwrap_or_default().to_string_lossy();
        if OTHER_CODE.contains(&&*extension) && !path.contains("test") {
            check_file(path, text.lines().count(), &mut problems);
        }
    }
    problems
}

fn check_rust(source: &RustSource<'_>, problems: &mut Vec<Problem>) {
    let mut measure = Measure::default();
    measure.visit_file(&source.syntax);
    for function in measure.functions.iter().filter(|it| it.lines > FUNCTION_LINES_MAX) {
        let what = format!(
            "`{}` has {} lines, limit {FUNCTION_LINES_MAX}: move one of its steps into a named function",
            function.name, function.lines
        );
        problems.push(Problem::at(source.path, function.at, what));
    }
    check_file(source.path, source.text.lines().count() - measure.test_lines, problems);
}

fn check_file(path: &str, lines: usize, problems: &mut Vec<Problem>) {
    if lines > FILE_LINES_MAX {
        let what =
            format!("{lines} lines without tests, limit {FILE_LINES_MAX}: split it by what its parts hold");
        problems.push(Problem::in_file(path, what));
    }
}

struct Function {
    name: String,
    /// The line of its `fn`.
    at: usize,
    lines: usize,
}

#[derive(Default)]
struct Measure {
    functions: Vec<Function>,
    test_lines: usize,
}

impl Measure {
    fn measure(&mut self, signature: &Signature, body: &Block) {
        let at = signature.fn_token.span.start().line;
        let end = body.brace_token.span.close().end().line;
        self.functions.push(Function { name: signature.ident.to_string(), at, lines: end + 1 - at });
    }
}

impl<'ast> Visit<'ast> for Measure {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(attributes(item)) {
            let span = item.span();
            self.test_lines += span.end().line + 1 - span.start().line;
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test_only(&function.attrs) {
            self.measure(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&Repository::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    /// A function of so many lines, blank lines and comments included.
    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "// why\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_at_the_limit_is_fine_and_one_line_more_is_not() {
        assert_eq!(problems("a.rs", &function(FUNCTION_LINES_MAX)), [""; 0]);
        assert_eq!(
            problems("a.rs", &format!("/// Doc.\n{}", function(FUNCTION_LINES_MAX + 1))),
            ["a.rs:2: `f` has 71 lines, limit 70: move one of its steps into a named function"]
        );
    }

    #[test]
    fn methods_and_default_methods_count() {
        let long = function(FUNCTION_LINES_MAX + 1);
        assert_eq!(problems("a.rs", &format!("impl A {{\n{long}}}")).len(), 1);
        assert_eq!(problems("a.rs", &format!("trait A {{\n{long}}}")).len(), 1);
    }

    #[test]
    fn tests_are_exempt() {
        let long = function(FILE_LINES_MAX + 1);
        assert_eq!(problems("a.rs", &format!("#[cfg(test)]\nmod tests {{\n{long}}}")), [""; 0]);
        assert_eq!(problems("a.rs", &format!("#[test]\n{long}")), [""; 0]);
        assert_eq!(problems("tests/a.rs", &long), [""; 0]);
    }

    #[test]
    fn long_files_are_named_in_every_language() {
        let message = "501 lines without tests, limit 500: split it by what its parts hold";
        let lines = "\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(problems("a.rs", &lines), [format!("a.rs: {message}")]);
        assert_eq!(problems("a.py", &lines), [format!("a.py: {message}")]);
        assert_eq!(problems("a.rs", &"\n".repeat(FILE_LINES_MAX)), [""; 0]);
        assert_eq!(problems("a.md", &lines), [""; 0]);
    }
}
