//! Generated parts of hand-written pages, between `<!-- NAME -->` and `<!-- end -->`.

use std::path::Path;

use anyhow::{Context, Result};

/// A generated part.
pub(super) struct Block {
    /// The page, from the repository's root.
    pub(super) path: &'static str,
    /// What its first marker says.
    pub(super) name: &'static str,
    /// Makes the text between the markers.
    pub(super) render: fn() -> String,
}

impl Block {
    /// The page with this part renewed; `None` where it was right already.
    pub(super) fn renewed(&self, root: &Path) -> Result<Option<String>> {
        let page = std::fs::read_to_string(root.join(self.path))
            .with_context(|| format!("reading {}", self.path))?;
        let text = replaced(&page, self.name, &(self.render)()).with_context(|| {
            format!("{} has no block `<!-- {} -->` … `<!-- end -->`; add one", self.path, self.name)
        })?;
        Ok((text != page).then_some(text))
    }
}

fn replaced(page: &str, name: &str, inner: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("<!-- {name} -->\n"))?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}<!-- {name} -->\n{inner}<!-- end -->{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "a\n<!-- codes -->\nold\n<!-- end -->\nb\n<!-- end -->\n";
        let new = "a\n<!-- codes -->\nnew\n<!-- end -->\nb\n<!-- end -->\n";
        assert_eq!(replaced(page, "codes", "new\n").as_deref(), Some(new));
        assert_eq!(replaced(new, "codes", "new\n").as_deref(), Some(new));
    }

    #[test]
    fn a_page_without_the_markers_is_an_error() {
        assert_eq!(replaced("<!-- codes -->\n", "codes", "new\n"), None);
        assert_eq!(replaced("<!-- end -->\n", "codes", "new\n"), None);
    }
}
