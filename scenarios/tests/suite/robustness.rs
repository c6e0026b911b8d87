//! Whatever is in a file, reading it ends in a value or in an error with a place inside the file.

use std::path::Path;

use killpoint_model::Severity;
use killpoint_scenarios::{LIBRARY, Loaded, load_config, load_scenario};
use proptest::prelude::*;

use crate::catalog;

const EXAMPLE: &str = include_str!("../../README.md");

fn example() -> &'static str {
    EXAMPLE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap()
}

fn check<T>(loaded: &Loaded<T>, text: &str) {
    let failed = loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(loaded.value.is_none(), failed);
    for diagnostic in &loaded.diagnostics {
        let span = diagnostic.span.unwrap();
        assert!(span.start <= span.end && text.get(span.start..span.end).is_some(), "{diagnostic:?}");
        assert!(diagnostic.file.is_some());
    }
}

fn check_both(text: &str) {
    check(&load_config(text, "killpoint.toml", Path::new("/project"), &catalog()), text);
    check(&load_scenario(text, "scenario.toml", &catalog()), text);
}

/// One change to a text: a piece removed, doubled, or replaced.
fn mutate(text: &str, at: usize, length: usize, put: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let at = at % characters.len();
    let end = (at + length).min(characters.len());
    characters[..at].iter().copied().chain(put.chars()).chain(characters[end..].iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(text in "\\PC{0,200}|[\\[\\]{}=\"'.,#a-z0-9\\n -]{0,200}") {
        check_both(&text);
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_both(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_changed_configuration_is_read(
        at in any::<usize>(),
        length in 0..30_usize,
        put in prop_oneof!["-?[0-9]{0,20}", "\\[|\\]|\\{|\\}|\"|\n|=", "true|1.5|1979-05-27|nan|\"\"|\"\\\\u0000\"|\\[\\]|\\{\\}"],
    ) {
        check_both(&mutate(example(), at, length, &put));
    }

    #[test]
    fn a_changed_scenario_is_read(file in 0..LIBRARY.len(), at in any::<usize>(), length in 0..30_usize) {
        check_both(&mutate(LIBRARY[file].text, at, length, ""));
    }
}
