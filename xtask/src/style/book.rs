//! Every page below `docs` is in the book's table of contents, once.

use super::Problem;
use super::repository::Repository;

const CONTENTS: &str = "docs/SUMMARY.md";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let Some(contents) = repository.texts.get(CONTENTS) else {
        return vec![Problem::in_file(CONTENTS, "is missing: write the book's table of contents")];
    };
    let mut problems = Vec::new();
    for (path, _) in repository.markdown_files() {
        let Some(page) = path.strip_prefix("docs/").filter(|_| path != CONTENTS) else { continue };
        match contents.matches(&format!("]({page})")).count() {
            1 => {}
            0 => problems.push(Problem::in_file(path, format!("is not in `{CONTENTS}`: add a line for it"))),
            _ => problems.push(Problem::in_file(CONTENTS, format!("has `{page}` twice: leave one"))),
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(contents: &str) -> Vec<String> {
        let files = [(CONTENTS, contents), ("docs/a.md", ""), ("docs/how-to/b.md", ""), ("README.md", "")];
        check(&Repository::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_page_is_in_the_book_once() {
        assert_eq!(problems("- [A](a.md)\n  - [B](how-to/b.md)\n"), [""; 0]);
        assert_eq!(
            problems("- [A](a.md)\n- [Again](a.md)\n"),
            [
                "docs/SUMMARY.md: has `a.md` twice: leave one",
                "docs/how-to/b.md: is not in `docs/SUMMARY.md`: add a line for it"
            ]
        );
        assert_eq!(check(&Repository::default()).len(), 1);
    }
}
