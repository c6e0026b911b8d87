//! Links between our Markdown files resolve, with their anchors.

use std::collections::BTreeMap;

use super::Problem;
use super::repository::Repository;

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in repository.markdown_files() {
        for (line, target) in targets(text) {
            if let Err(what) = resolve(repository, path, target) {
                problems.push(Problem::at(path, line, what));
            }
        }
    }
    problems
}

/// Whether a link in the file `from` leads somewhere. Links out of the repository are not followed.
fn resolve(repository: &Repository, from: &str, target: &str) -> Result<(), String> {
    let is_remote = target.split(['/', '#']).next().is_some_and(|start| start.contains(':'));
    if is_remote || target.is_empty() {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { from.to_owned() } else { join(from, file) };
    if !repository.paths.contains(&path) && !path.is_empty() {
        return Err(format!("link to `{target}`: there is no `{path}`; correct the path or remove the link"));
    }
    match repository.texts.get(&path) {
        Some(text) if !anchor.is_empty() && !anchors(text).iter().any(|found| found == anchor) => {
            Err(format!("link to `{target}`: `{path}` has no heading `#{anchor}`; correct the anchor"))
        }
        _ => Ok(()),
    }
}

/// Joins a relative link to the folder of the file it stands in.
fn join(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The targets of all links, `[text](target)` and `[name]: target`, each with its line.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (number, line) in prose(text) {
        if let Some((name, target)) = line.split_once("]: ")
            && name.starts_with('[')
        {
            targets.push((number, target.split_whitespace().next().unwrap_or_default()));
        }
        for (start, _) in line.match_indices("](").filter(|(start, _)| !is_in_code(line, *start)) {
            let rest = &line[start + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            targets.push((number, rest[..end].trim_matches(['<', '>'])));
        }
    }
    targets
}

/// The lines outside fenced code, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_in_fence = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        is_in_fence ^= is_fence;
        (!is_fence && !is_in_fence).then_some((index + 1, line))
    })
}

fn is_in_code(line: &str, position: usize) -> bool {
    line[..position].matches('`').count() % 2 == 1
}

/// The anchors that a page on a code host gets from its headings, and explicit ones.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() < line.len() && title.starts_with(' ') {
            let slug = slug(title.trim());
            let count = seen.entry(slug.clone()).or_default();
            anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
            *count += 1;
        }
        for (start, _) in line.match_indices("id=\"") {
            let rest = &line[start + 4..];
            anchors.push(rest.split('"').next().unwrap_or_default().to_owned());
        }
    }
    anchors
}

fn slug(title: &str) -> String {
    // Of a link in a heading only its text counts.
    let text = title.split("](").map(|part| part.rsplit_once(')').map_or(part, |(_, rest)| rest));
    let text = if title.contains("](") { text.collect::<String>() } else { title.to_owned() };
    text.to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let repository = Repository::of(&[
            ("docs/page.md", text),
            ("docs/other.md", "# A `title`, with: words\n## Twice\n## Twice\n<a id=\"own\"></a>\n"),
            ("LICENSE", ""),
        ]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "# Here\n[a](other.md) [b](other.md#a-title-with-words) ![c](../LICENSE \"title\")\n\
                    [d](#here) [e](../docs/) [f](other.md#twice-1) [g](other.md#own)\n[h]: ./other.md\n";
        assert_eq!(problems(text), [""; 0]);
    }

    #[test]
    fn remote_links_and_code_are_left_alone() {
        let text = "[a](https://example.com/#x) <mailto:a@b.c>\n`[b](none.md)`\n```\n[c](none.md)\n```\n";
        assert_eq!(problems(text), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_problems() {
        assert_eq!(
            problems("\n[a](none.md)"),
            [
                "docs/page.md:2: link to `none.md`: there is no `docs/none.md`; correct the path or remove the link"
            ]
        );
        assert_eq!(
            problems("[a](other.md#none)"),
            [
                "docs/page.md:1: link to `other.md#none`: `docs/other.md` has no heading `#none`; correct the anchor"
            ]
        );
        assert_eq!(problems("[a]: ../none/").len(), 1);
    }

    #[test]
    fn a_linked_heading_is_named_by_its_text() {
        assert_eq!(slug("[Keep](https://a.b/c) it"), "keep-it");
        assert_eq!(slug("`run --jobs`"), "run---jobs");
    }
}
