//! The boundaries of a fault-free trial as TOML.

use std::collections::BTreeSet;

use killpoint_model::HitName;

use crate::code::Code;
use crate::log::Loaded;

const HEAD: &str = "\
# What the fault-free trial reaches while a worker lives, in order. Written by `killpoint run --changed` where it is
# not there, and with --update-boundaries; compared by --changed.
version = 1
";

/// Writes the hits of a fault-free trial, in their order.
pub fn boundaries_toml(hits: &[HitName]) -> String {
    let lines = hits.iter().map(|hit| format!("    {},\n", toml::Value::from(hit.to_string())));
    format!("{HEAD}hits = [\n{}]\n", lines.collect::<String>())
}

/// Reads them. `file` is the file's name for diagnostics.
pub fn load_boundaries(text: &str, file: &str) -> Loaded<Vec<HitName>> {
    super::load(text, file, |root, log| {
        let help = "write the file anew: `killpoint run --changed --update-boundaries`";
        let list = root.required("hits", help, log);
        let mut hits = Vec::new();
        let mut seen = BTreeSet::new();
        for text in list.and_then(|item| item.texts(log)).unwrap_or_default() {
            match text.value.parse::<HitName>() {
                Ok(hit) if seen.insert(hit.clone()) => hits.push(hit),
                Ok(hit) => log.error(Code::Duplicate, text.span, format!("`{hit}` is there twice"), help),
                Err(error) => log.error(Code::BadBoundary, text.span, error.to_string(), help),
            }
        }
        hits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(names: &[&str]) -> Vec<HitName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_written_is_read_back_in_its_order() {
        let list = hits(&[
            "provider:committed#2",
            "mark:a\"b\\c#1",
            "provider:committed[create]#1",
            "item-claimed#1",
        ]);
        let text = boundaries_toml(&list);
        assert!(text.ends_with(
            "hits = [\n    \"provider:committed#2\",\n    'mark:a\"b\\c#1',\n    \"provider:committed[create]#1\",\n    \"item-claimed#1\",\n]\n"
        ), "{text}");
        assert_eq!(load_boundaries(&text, "b.toml").value, Some(list.clone()));
        assert_eq!(load_boundaries(&text.replace('\n', "\r\n"), "b.toml").value, Some(list));
        assert_eq!(load_boundaries(&boundaries_toml(&[]), "b.toml").value, Some(Vec::new()));
    }

    #[test]
    fn mistakes_are_errors() {
        for (text, code) in [
            ("version = 1\n", "missing-key"),
            ("version = 9\nhits = []\n", "out-of-range"),
            ("version = 1\nhits = [\"provider:comitted#1\"]\n", "bad-boundary"),
            ("version = 1\nhits = [\"mark:a\", \"mark:a#1\"]\n", "duplicate"),
            ("version = 1\nhits = []\nhit = []\n", "unknown-key"),
            ("hits = [\n", "syntax"),
        ] {
            let loaded = load_boundaries(text, "b.toml");
            assert_eq!(loaded.value, None);
            assert_eq!(loaded.diagnostics[0].code, code, "{text}");
        }
    }
}
