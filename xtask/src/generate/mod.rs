//! Pages that are made from the same data as the program, so that they cannot drift.
//!
//! A page is one function and one line in [`PAGES`].

use std::path::Path;

use anyhow::{Context, Result, bail};

mod exit_codes;
mod provider_plans;

/// A generated page.
struct Page {
    /// Where it is, from the repository's root.
    path: &'static str,
    /// Makes its whole text.
    render: fn() -> String,
}

const PAGES: &[Page] = &[
    Page { path: "docs/reference/exit-codes.md", render: exit_codes::render },
    Page { path: "docs/reference/provider-plans.md", render: provider_plans::render },
];

/// Writes every page that differs.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (page, text) in outdated(root) {
        let path = root.join(page.path);
        let folder = path.parent().context("a page lies in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        println!("wrote {}", page.path);
    }
    Ok(())
}

/// Fails where a page on disk differs from what would be written.
pub(crate) fn check(root: &Path) -> Result<()> {
    let outdated: Vec<&str> = outdated(root).map(|(page, _)| page.path).collect();
    if !outdated.is_empty() {
        bail!("out of date: {}: run `cargo xtask generate`", outdated.join(", "));
    }
    println!("{} generated pages are up to date", PAGES.len());
    Ok(())
}

fn outdated(root: &Path) -> impl Iterator<Item = (&'static Page, String)> {
    PAGES.iter().filter_map(move |page| {
        let text = (page.render)();
        let on_disk = std::fs::read_to_string(root.join(page.path)).ok();
        (on_disk.as_deref() != Some(&text)).then_some((page, text))
    })
}

/// The first lines of a page: its title, and where it comes from.
fn heading(title: &str) -> String {
    format!("# {title}\n\n<!-- Written by `cargo xtask generate`; do not edit. -->\n\n")
}

/// A Markdown table. A bar inside a cell would end the cell, so it is escaped.
fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(columns.iter().map(ToString::to_string).collect());
    text += &line(columns.iter().map(|_| "---".to_owned()).collect());
    for cells in rows {
        text += &line(cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_page_is_up_to_date_and_an_edited_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        assert!(check(root.path()).is_err());
        write(root.path()).unwrap();
        check(root.path()).unwrap();
        std::fs::write(root.path().join(PAGES[0].path), "edited").unwrap();
        let error = check(root.path()).unwrap_err().to_string();
        assert_eq!(error, format!("out of date: {}: run `cargo xtask generate`", PAGES[0].path));
    }

    #[test]
    fn cells_cannot_break_the_table() {
        let text = table(&["a", "b"], [vec!["x|y".to_owned(), "1\n2".to_owned()]]);
        assert_eq!(text, "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |\n");
    }
}
