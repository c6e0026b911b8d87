//! What GitHub shows beside the lines of files.

use killpoint_reports::Options;
use proptest::prelude::*;

use crate::every::{crowded, every_verdict, green, hostile, known, red_without_a_red_row, view};
use crate::golden::Golden;
use crate::report;

fn annotations(golden: &Golden) -> String {
    report("annotations", &view(golden), &Options::default())
}

/// A command as the runner reads it.
#[derive(Debug)]
struct Command {
    level: String,
    properties: Vec<(String, String)>,
    message: String,
}

fn decoded(text: &str) -> String {
    text.replace("%0D", "\r").replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
}

/// Reads as `actions/runner` does: a line that begins with `::`, up to the next `::`.
fn read(line: &str) -> Command {
    let (head, message) = line.strip_prefix("::").and_then(|rest| rest.split_once("::")).expect(line);
    let (level, properties) = head.split_once(' ').expect(line);
    let pair = |text: &str| {
        let (name, value) = text.split_once('=').expect(line);
        (name.to_owned(), decoded(value))
    };
    Command {
        level: level.to_owned(),
        properties: properties.split(',').map(pair).collect(),
        message: decoded(message),
    }
}

fn commands(text: &str) -> Vec<Command> {
    text.lines().map(read).collect()
}

fn count(commands: &[Command], level: &str) -> usize {
    commands.iter().filter(|command| command.level == level).count()
}

#[test]
fn a_run_with_every_verdict() {
    insta::assert_snapshot!(annotations(&every_verdict()));
}

#[test]
fn violations_are_errors_at_their_lines_and_the_unproven_are_warnings() {
    let commands = commands(&annotations(&every_verdict()));
    // Two rows and a line of the checklist; three rows, a line of the checklist and a warning of the run.
    assert_eq!((count(&commands, "error"), count(&commands, "notice")), (3, 1));
    let placed = commands.iter().find(|command| command.properties.len() == 3).unwrap();
    assert_eq!(placed.properties[0], ("file".into(), "killpoint/late-accept.toml".into()));
    assert_eq!(placed.properties[1], ("line".into(), "3".into()));
    assert_eq!(placed.properties[2], ("title".into(), "killpoint: violated, no-duplicate-effects".into()));
    assert!(
        placed.message.ends_with("\nreplay: killpoint replay .killpoint/runs/0001/003-kill"),
        "{placed:?}"
    );
}

#[test]
fn ten_of_a_level_and_a_word_about_the_rest() {
    let commands = commands(&annotations(&crowded()));
    assert_eq!(
        (count(&commands, "error"), count(&commands, "warning"), count(&commands, "notice")),
        (10, 10, 1)
    );
    let last = commands.last().unwrap();
    assert!(last.message.contains("143 more errors and 298 more warnings are not shown here"), "{last:?}");
}

#[test]
fn known_violations_are_counted_and_no_errors() {
    let commands = commands(&annotations(&known()));
    assert_eq!(commands.len(), 1, "{commands:?}");
    assert!(
        commands[0].message.ends_with("\nknown failures of known.toml: 1 known, 0 new, 0 stale"),
        "{commands:?}"
    );
}

#[test]
fn only_a_green_run_has_nothing_but_its_notice() {
    let mut green = green();
    green.record.warnings.clear();
    green.histories.insert("002-drop".into(), crate::golden::history("002-drop", Vec::new()));
    let commands_of_green = commands(&annotations(&green));
    assert_eq!(commands_of_green.len(), 1, "{commands_of_green:?}");
    for (what, golden) in red_without_a_red_row() {
        let commands = commands(&annotations(&golden));
        assert!(count(&commands, "error") + count(&commands, "warning") > 0, "{what}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_a_worker_is_a_command(text in r"(\PC|\p{C}|[:,%]|::|\n|\r|%0A|::error ::x){0,60}") {
        let told = annotations(&hostile(&text));
        let levels: Vec<String> = commands(&told).into_iter().map(|command| command.level).collect();
        let expected: Vec<String> = commands(&annotations(&hostile("x"))).into_iter().map(|one| one.level).collect();
        prop_assert_eq!(levels, expected);
        prop_assert!(!told.chars().any(|c| c.is_control() && c != '\n'));
    }
}
