//! What the test view of a CI system reads.

use std::path::PathBuf;
use std::process::Command;

use killpoint_model::exploration::{Exploration, ExplorationEnd};
use killpoint_model::run::TrialRole;
use killpoint_model::{ExitCode, Verdict};
use killpoint_reports::Options;
use proptest::prelude::*;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus};

use crate::every::{crowded, every_verdict, green, hostile, known, red_without_a_red_row, view};
use crate::golden::{Golden, HOSTILE, holds, plan, trial};
use crate::report;

fn junit(golden: &Golden) -> String {
    let options = Options { run_dir: Some(".killpoint/runs/0001".into()), ..Options::default() };
    report("junit", &view(golden), &options)
}

fn read(xml: &str) -> Report {
    Report::deserialize_from_str(xml).unwrap_or_else(|error| panic!("{error}\n{xml}"))
}

/// The test cases of a suite.
fn cases<'r>(report: &'r Report, suite: &str) -> &'r [TestCase] {
    let found = report.test_suites.iter().find(|one| one.name.as_str() == suite);
    &found.unwrap_or_else(|| panic!("no suite {suite}: {report:?}")).test_cases
}

/// `passed`, or the element, the type, the message and the text.
fn came_to(case: &TestCase) -> (&'static str, &str, &str, &str) {
    match &case.status {
        TestCaseStatus::Success { flaky_runs } => {
            assert!(flaky_runs.is_empty(), "a flaky pass would hide a violation");
            ("passed", "", "", "")
        }
        TestCaseStatus::NonSuccess { kind, message, ty, description, .. } => {
            let kind = if *kind == NonSuccessKind::Failure { "failure" } else { "error" };
            (kind, ty.as_deref().unwrap(), message.as_deref().unwrap(), description.as_deref().unwrap())
        }
        TestCaseStatus::Skipped { message, ty, description } => {
            let word = ty.as_deref().unwrap();
            let explored = case.classname.as_ref().is_some_and(|suite| suite.as_str() == "explore");
            let aside = explored && ["inconclusive", "vacuous"].contains(&word);
            assert!(word == "known violation" || aside, "nothing else is ever skipped: {case:?}");
            ("skipped", word, message.as_deref().unwrap(), description.as_deref().unwrap())
        }
    }
}

#[test]
fn a_run_with_every_verdict() {
    insta::assert_snapshot!(junit(&every_verdict()));
}

#[test]
fn each_row_is_a_case_and_nothing_but_a_proof_passes() {
    let report = read(&junit(&every_verdict()));
    let words: Vec<(&str, &str, &str)> = cases(&report, "sweep")
        .iter()
        .map(|case| {
            let (kind, word, ..) = came_to(case);
            (case.name.as_str(), kind, word)
        })
        .collect();
    assert_eq!(
        words,
        [
            ("baseline × ok", "passed", ""),
            ("no boundary × drop-after-accept", "passed", ""),
            ("provider:committed#1 × ok", "failure", "violated"),
            ("mark:before-cleanup#1 × ok", "error", "vacuous"),
            ("mark:a#1 × reset-after-accept", "error", "inconclusive"),
            ("mark:b#1 × ok", "error", "not judged"),
        ]
    );
    let (_, _, message, text) = came_to(&cases(&report, "sweep")[2]);
    assert!(message.contains("(repetitions differ: 1 of 2 violated, 1 of 2 holds)"), "{message}");
    for part in [
        "no-duplicate-effects violated",
        "events 9, 17",
        "2 attempts, 2 effects, 1 acknowledged",
        "✗ duplicate",
        "generation 2, after a restart",
        "replay: killpoint replay .killpoint/runs/0001/003-kill",
    ] {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
    assert_eq!(came_to(&cases(&report, "late-accept")[0]).0, "failure");
    let checklist: Vec<&str> =
        cases(&report, "checklist pre-hosting").iter().map(|case| came_to(case).0).collect();
    assert_eq!(checklist, ["passed", "failure", "error"]);
    assert_eq!((report.failures, report.test_suites.iter().map(|suite| suite.skipped).sum()), (3, 0));
}

#[test]
fn what_no_row_shows_is_red_all_the_same() {
    for (what, golden) in red_without_a_red_row() {
        let report = read(&junit(&golden));
        assert!(report.failures + report.errors > 0, "{what}: {report:?}");
    }
    let green = read(&junit(&green()));
    assert_eq!((green.tests, green.failures, green.errors), (2, 0, 0));
    let (_, dead) = red_without_a_red_row().remove(0);
    let report = read(&junit(&dead));
    let named: Vec<&str> = cases(&report, "run").iter().map(|case| case.name.as_str()).collect();
    assert_eq!(named[..2], ["shard 2/2", "missing: kill at a#1, repetition 1 (shard 2)"]);
    assert!(cases(&report, "run").iter().all(|case| came_to(case).0 == "error"));
    assert!(named[2..].contains(&"warning"), "what may explain it is red too: {named:?}");
}

#[test]
fn a_drawn_plan_that_shows_nothing_is_as_green_as_the_exit_code() {
    let mut golden = green();
    let mut doubtful =
        trial("007-kill", TrialRole::Faulted, plan("doubt", &["mark:a#1"], "reset-after-accept"), holds());
    doubtful.verdict.as_mut().unwrap().verdict = Verdict::Inconclusive;
    golden.record.trials.push(doubtful);
    let gate = read(&junit(&golden));
    assert_eq!((gate.failures, gate.errors), (0, 1), "a gate asked for just this");

    golden.record.trials.last_mut().unwrap().drawn = true;
    golden.record.exploration = Some(Exploration {
        seed: 1,
        cases: 1,
        plans_about: 9,
        ended: ExplorationEnd::Cases,
        covered: Vec::new(),
        unseen: Vec::new(),
        differs: None,
        counterexamples: Vec::new(),
        regressions: Vec::new(),
    });
    assert_eq!(view(&golden).exit_code(), ExitCode::Holds);
    let explored = read(&junit(&golden));
    assert_eq!((explored.failures, explored.errors), (0, 0), "{explored:?}");
    let (kind, word, ..) = came_to(cases(&explored, "explore").last().unwrap());
    assert_eq!((kind, word), ("skipped", "inconclusive"), "it is told all the same");
    for format in ["annotations", "sarif"] {
        let text = report(format, &view(&golden), &Options::default());
        assert!(!text.contains("mark:a#1"), "{text}");
    }
}

#[test]
fn a_known_violation_is_skipped_with_its_evidence_and_a_new_one_fails() {
    let report = read(&junit(&known()));
    let skipped: usize = report.test_suites.iter().map(|suite| suite.skipped).sum();
    assert_eq!((report.failures, report.errors, skipped), (0, 0, 2));
    let (kind, _, _, text) = came_to(&cases(&report, "sweep")[2]);
    assert!(kind == "skipped" && text.contains("no-duplicate-effects violated"), "{text}");

    let mut golden = known();
    golden.record.baseline.as_mut().unwrap().entries.pop();
    let report = read(&junit(&golden));
    assert!(report.failures > 0, "{report:?}");
}

#[test]
fn a_crowd_stays_readable_and_says_what_it_leaves_out() {
    let xml = junit(&crowded());
    let report = read(&xml);
    let cases = cases(&report, "sweep");
    assert_eq!(cases.len(), 1506, "every row is a case");
    let texts: Vec<&str> = cases.iter().map(|case| came_to(case).3).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts.len(), 154);
    let with = |part: &str| texts.iter().filter(|text| text.contains(part)).count();
    // Of the first hundred one is of a scenario, and two have no history.
    assert_eq!((with("timeline (* marks evidence)"), with("the timeline is left out")), (97, 55));
    assert_eq!(with("replay: killpoint replay "), texts.len(), "each can be done again");
    // 304 warnings, one invariant that is not shown, and a note of each of 1351 trials; 200 lines are shown.
    assert!(xml.contains("\n… 1456 more\n"), "lines that are left out are counted");
    assert!(xml.len() < 2_000_000, "{}", xml.len());
}

#[test]
fn names_are_unique_within_their_suite() {
    let mut golden = every_verdict();
    for number in 0..3 {
        let mut trial = golden.record.trials[1].clone();
        trial.plan.name = format!("again {number}");
        golden.record.trials.push(trial);
    }
    let report = read(&junit(&golden));
    let mut names: Vec<&str> = cases(&report, "sweep").iter().map(|case| case.name.as_str()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(names.contains(&"no boundary × drop-after-accept (4)"), "{names:?}");
}

/// What a run says that a validator must accept.
fn documents() -> Vec<(String, String)> {
    let mut documents: Vec<(String, String)> =
        red_without_a_red_row().iter().map(|(what, golden)| ((*what).to_owned(), junit(golden))).collect();
    for (what, golden) in [
        ("every verdict", every_verdict()),
        ("green", green()),
        ("known", known()),
        ("crowded", crowded()),
        ("hostile", hostile(HOSTILE)),
        ("no characters of XML", hostile("\u{0}\u{b}\u{fffe}\u{ffff}]]>&amp;<!--")),
    ] {
        documents.push((what.to_owned(), junit(&golden)));
    }
    documents
}

/// The validator, or nothing where it is not there and may be missing.
#[expect(clippy::print_stdout, reason = "a skipped test must be seen in its output")]
fn validator() -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join("xmllint"))
        .find(|file| file.is_file());
    let is_required = std::env::var_os("KILLPOINT_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(
        found.is_some() || !is_required,
        "no `xmllint` on the PATH; install it, or unset KILLPOINT_REQUIRE_ALL"
    );
    if found.is_none() {
        println!("skipped: no `xmllint` on the PATH");
    }
    found
}

#[test]
fn it_is_valid_for_the_schema_of_jenkins() {
    let Some(xmllint) = validator() else { return };
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemas/junit-10.xsd");
    let folder = tempfile::tempdir().unwrap();
    let validate = |name: &str, xml: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, xml).unwrap();
        let output = Command::new(&xmllint)
            .args(["--huge", "--noout", "--schema", schema])
            .arg(&file)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (index, (what, xml)) in documents().into_iter().enumerate() {
        let (valid, said) = validate(&format!("{index}.xml"), &xml);
        assert!(valid, "{what}: {said}");
    }
    let wrong = junit(&green()).replace("<testcase ", "<testcase skipped=\"0\" ");
    assert!(!validate("wrong.xml", &wrong).0, "the check itself can fail");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_a_worker_breaks_the_document(text in r"(\PC|\p{C}|[<>&]|\]\]>|\x1b\[31m){0,80}") {
        let xml = junit(&hostile(&text));
        let forbidden = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{202e}');
        prop_assert!(!xml.contains(forbidden));
        let report = read(&xml);
        prop_assert!(report.failures > 0 && report.test_suites.iter().all(|suite| suite.skipped == 0));
    }
}
