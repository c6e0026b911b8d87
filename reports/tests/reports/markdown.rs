//! What a CI job's summary shows.

use killpoint_reports::Options;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options as Extensions, Parser, Tag};

use crate::every::{crowded, every_verdict, green, hostile, known, red_without_a_red_row, view};
use crate::golden::{Golden, HOSTILE};
use crate::report;

/// GitHub drops a summary that is larger than 1 MiB; we stay far below.
const BYTES_MAX: usize = 256 * 1024;

fn markdown(golden: &Golden) -> String {
    let options = Options { run_dir: Some(".killpoint/runs/0001".into()), ..Options::default() };
    report("markdown", &view(golden), &options)
}

/// What a reader takes for prose, not code; panics at markup that only a worker could have written.
fn prose(markdown: &str) -> String {
    let mut prose = String::new();
    let mut code_depth = 0;
    for event in Parser::new_ext(markdown, Extensions::ENABLE_TABLES | Extensions::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code_depth += 1,
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => code_depth -= 1,
            Event::Start(
                tag @ (Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock | Tag::Emphasis | Tag::Strong),
            ) => {
                panic!("{tag:?}\n{markdown}")
            }
            Event::Html(text) | Event::InlineHtml(text) => panic!("{text}\n{markdown}"),
            Event::Text(text) if code_depth == 0 => prose.push_str(&text),
            _ => {}
        }
    }
    prose
}

#[test]
fn a_run_with_every_verdict() {
    insta::assert_snapshot!(markdown(&every_verdict()));
}

#[test]
fn the_first_violation_is_whole_and_the_rest_is_counted() {
    let text = markdown(&every_verdict());
    for part in [
        "## ✗ violated: killpoint",
        "| `provider:committed#1` | ✗ violated, 1 of 2 |",
        "### The first violation",
        "events 9, 17",
        "✗ duplicate",
        "generation 2, after a restart",
        "replay: killpoint replay .killpoint/runs/0001/003-kill",
        "1 more violated, 3 more not proven of 7 rows.",
        "### Checklist pre-hosting: 1 yes, 1 no, 1 not shown",
    ] {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
    let green = markdown(&green());
    assert!(green.starts_with("## ✓ holds: killpoint\n") && !green.contains("###  The first"), "{green}");
}

#[test]
fn a_known_violation_is_shown_as_what_it_is() {
    let text = markdown(&known());
    for part in [
        "| `provider:committed#1` | ✗ violated, known, 1 of 2 |",
        "`known failures of known.toml: 1 known, 0 new, 0 stale`",
        "### The first known violation",
        "1 more known of 4 rows.",
    ] {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
}

#[test]
fn what_no_row_shows_is_said() {
    for (what, golden) in red_without_a_red_row() {
        let text = markdown(&golden);
        let said = text.contains("### The run as a whole") || text.contains("### Checklist");
        assert!(said, "{what}:\n{text}");
    }
}

#[test]
fn a_crowd_is_capped_and_counted() {
    let text = markdown(&crowded());
    assert!(text.len() < BYTES_MAX, "{}", text.len());
    for part in
        ["more provider plans, ", " rows, are not in this table.", "151 more violated", "- … 294 more"]
    {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
    assert_eq!(text.matches("```text").count(), 1, "one trial is shown in full");
}

#[test]
fn hostile_text_is_code() {
    let text =
        markdown(&hostile(&format!("{HOSTILE} @octocat #1 [a](http://b) https://c.d **e** | `f` ``` ~~g~~")));
    let prose = prose(&text);
    for bad in ["octocat", "http", "alert", "**", "#1 "] {
        assert!(!prose.contains(bad), "`{bad}` is prose:\n{prose}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_a_worker_is_markup(
        text in r"(\PC|\p{C}|[<>&|`*_~#@\[\]()!:\\$-]|```|\n|https://a.b|@octocat){0,60}",
    ) {
        let page = markdown(&hostile(&text));
        prop_assert!(!page.contains('<'));
        prop_assert!(page.len() < BYTES_MAX);
        let harmless = prose(&markdown(&hostile("x")));
        let mut with_letters = prose(&page);
        // What is said of an empty text is ours.
        with_letters = with_letters.replace("(empty)", "");
        prop_assert_eq!(with_letters, harmless);
    }
}
