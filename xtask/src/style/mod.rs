//! The style of this repository as tests: each rule is a file, and each problem says what to do.

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

mod book;
mod code_map;
mod forbidden;
mod imports;
mod lengths;
mod links;
mod purity;
mod registration;
mod repository;
mod rust_source;
mod unsafety;

use repository::Repository;

/// One rule.
struct Rule {
    name: &'static str,
    check: fn(&Repository) -> Vec<Problem>,
}

const RULES: &[Rule] = &[
    Rule { name: "imports", check: imports::check },
    Rule { name: "purity", check: purity::check },
    Rule { name: "lengths", check: lengths::check },
    Rule { name: "registration", check: registration::check },
    Rule { name: "links", check: links::check },
    Rule { name: "book", check: book::check },
    Rule { name: "forbidden text", check: forbidden::check },
    Rule { name: "unsafe code", check: unsafety::check },
    Rule { name: "code map", check: code_map::check },
];

/// Where a rule is broken, how, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    /// A path from the root.
    path: String,
    /// From 1, where a line is to blame.
    line: Option<usize>,
    what: String,
}

impl Problem {
    fn in_file(path: &str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, what: what.into() }
    }

    fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// Checks every rule and prints all the problems, not only the first.
pub(crate) fn run(root: &Path) -> Result<()> {
    let repository = Repository::read(root)?;
    let mut count = 0;
    for rule in RULES {
        let problems = (rule.check)(&repository);
        println!("{}: {}", rule.name, if problems.is_empty() { "fine" } else { "broken" });
        for problem in &problems {
            println!("  {problem}");
        }
        count += problems.len();
    }
    for edge in imports::edges_for_tests(&repository) {
        println!("for tests only: {edge}");
    }
    if count > 0 {
        bail!("style problems: {count}; each line above says what to do");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_follows_its_style() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        run(root).unwrap();
    }

    #[test]
    fn a_problem_names_its_place() {
        assert_eq!(Problem::at("a.rs", 3, "too long").to_string(), "a.rs:3: too long");
        assert_eq!(Problem::in_file("a.rs", "too long").to_string(), "a.rs: too long");
    }
}
