//! What the rules need to know of Rust files: which items and which files are tests.

use std::collections::BTreeSet;
use std::path::Path;

use syn::punctuated::Punctuated;
use syn::{Attribute, File, Item, Meta, Token};

use super::Problem;
use super::repository::Repository;

/// A parsed Rust file that is not a test.
pub(super) struct RustSource<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) syntax: File,
}

/// Parses the Rust files below these folders that hold more than tests; `""` is all. What does not parse is a
/// problem of its own.
pub(super) fn sources<'a>(repository: &'a Repository, below: &[&str]) -> (Vec<RustSource<'a>>, Vec<Problem>) {
    let is_wanted =
        |path: &str| below.iter().any(|folder| path.starts_with(folder)) && !is_in_tests_folder(path);
    let mut parsed = Vec::new();
    let mut problems = Vec::new();
    for (path, text) in repository.rust_files().filter(|(path, _)| is_wanted(path)) {
        match syn::parse_file(text) {
            Ok(syntax) => parsed.push(RustSource { path, text, syntax }),
            Err(error) => {
                let line = error.span().start().line;
                problems.push(Problem::at(path, line, format!("cannot be parsed: {error}")));
            }
        }
    }
    let test_modules: BTreeSet<String> = parsed.iter().flat_map(test_modules).collect();
    parsed.retain(|source| !test_modules.iter().any(|module| is_within(source.path, module)));
    (parsed, problems)
}

/// Whether an item exists only in test builds.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
        }
        meta => meta.path().segments.last().is_some_and(|segment| segment.ident == "test"),
    })
}

/// The attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|conditions| conditions.iter().any(needs_test)),
        _ => false,
    }
}

fn is_in_tests_folder(path: &str) -> bool {
    path.split('/').any(|folder| folder == "tests")
}

/// Where the test modules of a file live that it declares but does not hold, without `.rs`.
fn test_modules(source: &RustSource<'_>) -> Vec<String> {
    let path = Path::new(source.path);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let parent = path.parent().unwrap_or(Path::new(""));
    let folder = match &*stem {
        "mod" | "lib" | "main" => parent.to_path_buf(),
        stem => parent.join(stem),
    };
    source
        .syntax
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Mod(module) if module.content.is_none() && is_test_only(&module.attrs) => {
                Some(folder.join(module.ident.to_string()).to_string_lossy().into_owned())
            }
            _ => None,
        })
        .collect()
}

fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_items_are_told_from_others() {
        let test_only = |text: &str| is_test_only(attributes(&syn::parse_str::<Item>(text).unwrap()));
        assert!(test_only("#[cfg(test)] mod tests {}"));
        assert!(test_only("#[cfg(all(test, unix))] impl A {}"));
        assert!(test_only("#[tokio::test] async fn a() {}"));
        assert!(!test_only("#[cfg(not(test))] fn a() {}"));
        assert!(!test_only("#[cfg(any(test, unix))] fn a() {}"));
        assert!(!test_only("fn a() {}"));
    }

    #[test]
    fn files_of_test_modules_are_left_out() {
        let repository = Repository::of(&[
            ("a/src/lib.rs", "mod b; #[cfg(test)] mod sample;"),
            ("a/src/sample.rs", "fn only_for_tests() {}"),
            ("a/src/sample_rate.rs", "fn ours() {}"),
            ("a/src/b.rs", "#[cfg(test)] mod tests;"),
            ("a/src/b/tests.rs", ""),
            ("a/tests/run.rs", ""),
        ]);
        let (sources, problems) = sources(&repository, &[""]);
        let paths: Vec<&str> = sources.iter().map(|source| source.path).collect();
        assert_eq!(paths, ["a/src/b.rs", "a/src/lib.rs", "a/src/sample_rate.rs"]);
        assert_eq!(problems, []);
    }

    #[test]
    fn what_cannot_be_parsed_is_a_problem() {
        let repository = Repository::of(&[("a.rs", "\nfn (")]);
        let (_, problems) = sources(&repository, &[""]);
        assert!(problems[0].to_string().starts_with("a.rs:2: cannot be parsed: "), "{}", problems[0]);
    }
}
