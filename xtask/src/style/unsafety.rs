//! Unsafe code lives in one folder.

use proc_macro2::{TokenStream, TokenTree};

use super::Problem;
use super::repository::Repository;

const ALLOWED_BELOW: &str = "harness/engine/src/os/";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in repository.rust_files().filter(|(path, _)| !path.starts_with(ALLOWED_BELOW)) {
        // A file that is no Rust is reported by the rule on lengths.
        if let Ok(tokens) = text.parse::<TokenStream>() {
            for line in lines(tokens) {
                let what = format!("unsafe code: call a safe wrapper, and put it below {ALLOWED_BELOW}");
                problems.push(Problem::at(path, line, what));
            }
        }
    }
    problems
}

/// Looks at tokens, so that macros count, and comments and strings don't. An `allow(unsafe_code)` counts too.
fn lines(tokens: TokenStream) -> Vec<usize> {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) => lines(group.stream()),
            TokenTree::Ident(word) if word == "unsafe" || word == "unsafe_code" => {
                vec![word.span().start().line]
            }
            _ => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&Repository::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unsafe_code_outside_its_folder_is_a_problem() {
        let advice = "unsafe code: call a safe wrapper, and put it below harness/engine/src/os/";
        assert_eq!(problems("a.rs", "fn f() {\n unsafe { g() } }"), [format!("a.rs:2: {advice}")]);
        assert_eq!(problems("a.rs", "#![allow(unsafe_code)]"), [format!("a.rs:1: {advice}")]);
        assert_eq!(problems("a.rs", "m!(unsafe { g() });"), [format!("a.rs:1: {advice}")]);
    }

    #[test]
    fn its_folder_comments_and_strings_are_fine() {
        assert_eq!(problems("harness/engine/src/os/fork.rs", "unsafe fn f() {}"), [""; 0]);
        assert_eq!(problems("a.rs", "// unsafe\nconst A: &str = \"unsafe\";"), [""; 0]);
    }
}
