//! Text that must not be committed. The needles are put together here so that this file passes too.

use super::Problem;
use super::repository::Repository;

/// A piece of text and what to do in its place.
struct Forbidden {
    text: &'static str,
    advice: &'static str,
}

const UNFINISHED: &str = "finish it, or leave it out";
const HOST: &str = "name the package, and let the tool's own configuration name the registry";

const FORBIDDEN: &[Forbidden] = &[
    Forbidden { text: concat!("todo", "!("), advice: UNFINISHED },
    Forbidden { text: concat!("unimplemented", "!("), advice: UNFINISHED },
    Forbidden { text: concat!("FIX", "ME"), advice: UNFINISHED },
    Forbidden { text: concat!("dbg", "!("), advice: "remove it" },
    Forbidden {
        text: concat!("#[", "ignore"),
        advice: "make the test fast and certain, or let it say what it skips for",
    },
    Forbidden { text: concat!("crates", ".io"), advice: HOST },
    Forbidden { text: concat!("registry.", "npmjs"), advice: HOST },
    Forbidden { text: concat!("pypi", ".org"), advice: HOST },
    Forbidden { text: concat!("python", "hosted"), advice: HOST },
    Forbidden { text: concat!("deb.", "debian"), advice: HOST },
];

/// Files that tools write.
const WRITTEN_BY_TOOLS: &[&str] = &["Cargo.lock", "package-lock.json"];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in &repository.texts {
        let name = path.rsplit('/').next().unwrap_or(path);
        if WRITTEN_BY_TOOLS.contains(&name) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            for forbidden in FORBIDDEN.iter().filter(|forbidden| line.contains(forbidden.text)) {
                let what = format!("`{}` is forbidden: {}", forbidden.text, forbidden.advice);
                problems.push(Problem::at(path, index + 1, what));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_forbidden_text_is_found_with_its_line() {
        for forbidden in FORBIDDEN {
            let text = format!("fine\n  {} …\n", forbidden.text);
            let problems = check(&Repository::of(&[("a/b.py", &text)]));
            let what = format!("`{}` is forbidden: {}", forbidden.text, forbidden.advice);
            assert_eq!(problems, [Problem::at("a/b.py", 2, what)]);
        }
    }

    #[test]
    fn other_text_and_lock_files_are_fine() {
        let lock = format!("source = \"{}\"", concat!("crates", ".io"));
        let repository =
            Repository::of(&[("Cargo.lock", &lock), ("a.rs", "/// What is left to do.\nfn f() {}")]);
        assert_eq!(check(&repository), []);
    }
}
