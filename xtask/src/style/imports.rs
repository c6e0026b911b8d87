//! Who imports whom: data flows one way, from scenarios through the harness to reports.

use super::Problem;
use super::repository::{Package, Repository};

/// A crate of ours, and which of ours it may import.
struct Edges {
    from: &'static str,
    to: &'static [&'static str],
}

const ALLOWED: &[Edges] = &[
    Edges { from: "killpoint-model", to: &[] },
    Edges { from: "fake-provider", to: &["killpoint-model"] },
    Edges { from: "killpoint-scenarios", to: &["killpoint-model"] },
    Edges { from: "killpoint-checks", to: &["killpoint-model"] },
    Edges { from: "killpoint-engine", to: &["killpoint-model", "fake-provider"] },
    Edges { from: "killpoint-reports", to: &["killpoint-model"] },
    Edges {
        from: "killpoint",
        to: &[
            "killpoint-model",
            "fake-provider",
            "killpoint-scenarios",
            "killpoint-checks",
            "killpoint-engine",
            "killpoint-reports",
        ],
    },
    // The program ships the demo's worker, and is the client for marks of languages that have none; it
    // reaches all else through the façade.
    Edges { from: "killpoint-cli", to: &["killpoint", "killpoint-mark", "outbox-worker"] },
    Edges { from: "killpoint-mark", to: &[] },
    Edges { from: "outbox-worker", to: &["killpoint-mark"] },
];

/// The one package that may import anything.
const TASKS: &str = "xtask";

/// A library of others that only some of our crates may use.
struct Restricted {
    library: &'static str,
    users: &'static [&'static str],
    advice: &'static str,
}

const RESTRICTED: &[Restricted] = &[
    Restricted {
        library: "tokio",
        users: &["killpoint-engine", "fake-provider", "killpoint", "killpoint-cli"],
        advice: "keep it synchronous, or move the waiting into the engine",
    },
    Restricted { library: "anyhow", users: &[TASKS], advice: "write a small thiserror enum beside the code" },
];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in repository.packages.iter().filter(|package| package.name != TASKS) {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let Some(edges) = ALLOWED.iter().find(|edges| edges.from == package.name) else {
            let what = format!("`{}` is in no table: add it to ALLOWED in {}", package.name, file!());
            problems.push(Problem::in_file(&manifest, what));
            continue;
        };
        for name in imported(package, false) {
            if is_ours(repository, name) && !edges.to.contains(&name) {
                let what = format!(
                    "`{}` must not import `{name}`: move what is shared into `killpoint-model`, or pass it in",
                    package.name
                );
                problems.push(Problem::in_file(&manifest, what));
            }
            for rule in RESTRICTED.iter().filter(|rule| rule.library == name) {
                if !rule.users.contains(&&*package.name) {
                    let what = format!("`{}` must not use `{name}`: {}", package.name, rule.advice);
                    problems.push(Problem::in_file(&manifest, what));
                }
            }
        }
    }
    problems
}

/// The edges between our crates that only tests use: allowed, and said aloud.
pub(super) fn edges_for_tests(repository: &Repository) -> Vec<String> {
    let mut edges = Vec::new();
    for package in &repository.packages {
        for name in imported(package, true).filter(|name| is_ours(repository, name)) {
            edges.push(format!("{} -> {name}", package.name));
        }
    }
    edges
}

fn imported(package: &Package, tests_only: bool) -> impl Iterator<Item = &str> {
    let wanted = move |found: bool| found == tests_only;
    package.dependencies.iter().filter(move |it| wanted(it.tests_only)).map(|it| &*it.name)
}

fn is_ours(repository: &Repository, name: &str) -> bool {
    repository.packages.iter().any(|package| package.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(from: &str, dependencies: &[(&str, bool)]) -> Repository {
        Repository::default()
            .with_package("killpoint-model", "harness/model", &[])
            .with_package("killpoint-engine", "harness/engine", &[])
            .with_package(from, "x", dependencies)
    }

    fn problems(from: &str, dependencies: &[(&str, bool)]) -> Vec<String> {
        check(&workspace(from, dependencies)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_allowed_direction_is_fine() {
        let allowed = [("killpoint-model", false), ("serde", false)];
        assert_eq!(problems("killpoint-reports", &allowed), [""; 0]);
        assert_eq!(problems("fake-provider", &[("tokio", false)]), [""; 0]);
        assert_eq!(problems("xtask", &[("killpoint-engine", false), ("anyhow", false)]), [""; 0]);
    }

    #[test]
    fn the_other_direction_is_a_problem() {
        assert_eq!(
            problems("killpoint-reports", &[("killpoint-engine", false)]),
            [
                "x/Cargo.toml: `killpoint-reports` must not import `killpoint-engine`: move what is shared into \
              `killpoint-model`, or pass it in"
            ]
        );
    }

    #[test]
    fn tests_may_import_and_are_listed() {
        let dependencies = [("killpoint-engine", true), ("proptest", true), ("tokio", true)];
        assert_eq!(problems("killpoint-reports", &dependencies), [""; 0]);
        assert_eq!(
            edges_for_tests(&workspace("killpoint-reports", &dependencies)),
            ["killpoint-reports -> killpoint-engine"]
        );
    }

    #[test]
    fn pure_crates_stay_synchronous_and_new_crates_declare_themselves() {
        assert_eq!(
            problems("killpoint-checks", &[("tokio", false)]),
            [
                "x/Cargo.toml: `killpoint-checks` must not use `tokio`: keep it synchronous, or move the waiting \
              into the engine"
            ]
        );
        assert!(problems("newcomer", &[])[0].contains("`newcomer` is in no table"));
    }
}
