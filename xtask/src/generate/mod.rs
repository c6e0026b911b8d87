//! Pages and schemas that are made from the same data as the program, so that they cannot drift.
//!
//! A page is one function and one line in [`PAGES`]; a part of a hand-written page is one line in [`BLOCKS`].

use std::path::Path;

use anyhow::{Context, Result, bail};

mod block;
mod cli;
mod diagnostics;
mod entries;
mod exit_codes;
mod provider_plans;
mod scenarios;
mod schemas;

use block::Block;
use cli::Program;

/// A generated page.
struct Page {
    /// Where it is, from the repository's root.
    path: &'static str,
    /// Makes its whole text.
    render: fn(&Program) -> Result<String>,
}

const PAGES: &[Page] = &[
    Page { path: "docs/reference/boundaries.md", render: |_| Ok(entries::boundaries()) },
    Page { path: "docs/reference/cli.md", render: cli::render },
    Page { path: "docs/reference/diagnostics.md", render: diagnostics::render },
    Page { path: "docs/reference/dialects.md", render: |_| Ok(entries::dialects()) },
    Page { path: "docs/reference/exit-codes.md", render: |_| Ok(exit_codes::render()) },
    Page { path: "docs/reference/faults.md", render: |_| Ok(entries::faults()) },
    Page { path: "docs/reference/formats.md", render: |_| Ok(entries::formats()) },
    Page { path: "docs/reference/invariants.md", render: |_| Ok(entries::invariants()) },
    Page { path: "docs/reference/ledgers.md", render: |_| Ok(entries::ledgers()) },
    Page { path: "docs/reference/provider-plans.md", render: |_| Ok(provider_plans::render()) },
    Page { path: "docs/reference/scenarios.md", render: |_| scenarios::render() },
    Page { path: "docs/schema/history-event.schema.json", render: |_| schemas::history_event() },
    Page { path: "docs/schema/report.schema.json", render: |_| schemas::report() },
    Page { path: "docs/schema/run.schema.json", render: |_| schemas::run() },
];

const BLOCKS: &[Block] = &[Block { path: "README.md", name: "exit-codes", render: exit_codes::rows }];

/// Writes every page that differs.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (path, text) in outdated(root, &Program::build(root)?)? {
        let file = root.join(path);
        let folder = file.parent().context("a page lies in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        std::fs::write(&file, text).with_context(|| format!("writing {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// Fails where a page on disk differs from what would be written.
pub(crate) fn check(root: &Path) -> Result<()> {
    let outdated: Vec<&str> =
        outdated(root, &Program::build(root)?)?.into_iter().map(|(path, _)| path).collect();
    if !outdated.is_empty() {
        bail!("out of date: {}: run `cargo xtask generate`", outdated.join(", "));
    }
    println!("{} generated pages and parts of pages are up to date", PAGES.len() + BLOCKS.len());
    Ok(())
}

/// Files that differ from what would be written, with their right text.
fn outdated(root: &Path, program: &Program) -> Result<Vec<(&'static str, String)>> {
    let mut outdated = Vec::new();
    for page in PAGES {
        let text = (page.render)(program).with_context(|| format!("making {}", page.path))?;
        let on_disk = std::fs::read_to_string(root.join(page.path)).ok();
        if on_disk.as_deref() != Some(&text) {
            outdated.push((page.path, text));
        }
    }
    for block in BLOCKS {
        outdated.extend(block.renewed(root)?.map(|text| (block.path, text)));
    }
    Ok(outdated)
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
        let program = Program::fake();
        let readme = "# Title\n\n<!-- exit-codes -->\n<!-- end -->\n\nText.\n";
        std::fs::write(root.path().join("README.md"), readme).unwrap();
        let put_right = || {
            let found = outdated(root.path(), &program).unwrap();
            for (path, text) in &found {
                let file = root.path().join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
            found.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
        };
        assert_eq!(put_right().len(), PAGES.len() + BLOCKS.len());
        assert_eq!(put_right(), [""; 0]);
        std::fs::write(root.path().join(PAGES[0].path), "edited").unwrap();
        assert_eq!(put_right(), [PAGES[0].path]);
    }

    #[test]
    fn cells_cannot_break_the_table() {
        let text = table(&["a", "b"], [vec!["x|y".to_owned(), "1\n2".to_owned()]]);
        assert_eq!(text, "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |\n");
    }
}
