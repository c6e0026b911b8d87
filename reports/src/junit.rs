//! The `junit` format: for the test view of a CI system.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use chrono::DateTime;
use killpoint_model::checklist::AnswerWord;
use killpoint_model::{Entry, Verdict};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite, XmlString};

use crate::outcome::{self, Outcome, RunProblem, Told};
use crate::sanitise::{clean, first_lines, shorten};
use crate::terminal::{events_text, quoted};
use crate::{Format, Options, View};

/// Most test cases whose text has a timeline: a report of thousands must stay readable for a CI system.
const TIMELINES_MAX: usize = 100;
/// Most repetitions of one test case that are told in full.
const REPETITIONS_MAX: usize = 3;
/// Most further repetitions that are named.
const NAMED_MAX: usize = 20;
/// Most bytes of one test case's text.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Most characters of a name or a message.
const LINE_CHARS_MAX: usize = 400;
/// Most problems of the run as a whole that are test cases of their own.
const PROBLEMS_MAX: usize = 1000;
/// Most warnings and notes.
const LINES_MAX: usize = 200;

/// The format.
#[derive(Debug)]
pub(crate) struct Junit;

static ENTRY: Entry = Entry {
    name: "junit",
    summary: "test cases as JUnit XML, for the test view of a CI system",
    explanation: "One test case per boundary and provider plan, in a suite per scenario; those of a sweep are in the \
                  suite `sweep`. A violation is a failure, also where only some of the repetitions show it, and its \
                  text holds the findings with the numbers of their events, the actions, the counters, a timeline and \
                  the replay command. One that a file of known failures lists is skipped, with the same text. What is \
                  vacuous, inconclusive, not judged or missing is an error: it is never skipped and never passed, unless an \
                  exploration drew the plan, which then does not count. The suite `run` says what no test case can, such \
                  as a shard that is not there; the lines of a checklist are a suite, too. The document is valid for the schema of the \
                  Jenkins xUnit plugin.",
    example: "killpoint run --report junit=killpoint.xml",
};

impl Format for Junit {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn write(&self, view: &View, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let mut report = Report::new("killpoint");
        report.set_time(Duration::from_millis(view.duration_ms));
        report.add_test_suites(suites(view, options));
        let text = report.to_string().map_err(io::Error::other)?;
        // The schema that Jenkins holds reports to has no such attribute at the root.
        let at_the_root = format!(" skipped=\"{}\"", report.skipped);
        out.write_all(text.replacen(&at_the_root, "", 1).as_bytes())
    }
}

fn suites(view: &View, options: &Options) -> Vec<TestSuite> {
    let rows = outcome::rows(view);
    let mut suites: Vec<(TestSuite, BTreeSet<String>, u64)> = Vec::new();
    let mut timelines = 0;
    for told in &rows {
        let name = suite_name(view, told);
        let place = suites.iter().position(|(suite, ..)| suite.name.as_str() == name).unwrap_or_else(|| {
            suites.push((suite(view, &name), BTreeSet::new(), 0));
            suites.len() - 1
        });
        let (suite, names, ms) = &mut suites[place];
        timelines += usize::from(told.outcome != Outcome::Passed);
        let case_name = unique(names, line(&told.name()));
        suite.add_test_case(row_case(told, &name, &case_name, timelines <= TIMELINES_MAX));
        *ms = ms.saturating_add(told.row.duration_ms);
    }
    let mut suites: Vec<TestSuite> = suites
        .into_iter()
        .map(|(mut suite, _, ms)| {
            suite.set_time(Duration::from_millis(ms));
            suite
        })
        .collect();
    suites.extend(checklist(view));
    suites.push(whole(view, options, &outcome::of_the_run(view, &rows)));
    suites
}

fn suite(view: &View, name: &str) -> TestSuite {
    let mut suite = TestSuite::new(name);
    if let Some(started) = i64::try_from(view.started_at_ms).ok().and_then(DateTime::from_timestamp_millis) {
        suite.set_timestamp(started);
    }
    suite
}

fn suite_name(view: &View, told: &Told) -> String {
    match &told.row.scenario {
        Some(scenario) => line(scenario),
        None if view.exploration.is_some() => "explore".to_owned(),
        None => "sweep".to_owned(),
    }
}

/// A name that no test case of the suite has yet: a CI system would take two for one.
fn unique(names: &mut BTreeSet<String>, name: String) -> String {
    let mut candidate = name.clone();
    let mut number = 2;
    while !names.insert(candidate.clone()) {
        candidate = format!("{name} ({number})");
        number += 1;
    }
    candidate
}

fn row_case(told: &Told, suite: &str, name: &str, with_timeline: bool) -> TestCase {
    let status = match told.outcome {
        Outcome::Passed => TestCaseStatus::success(),
        outcome => status(outcome, told.word(), &told.headline(), &evidence(told, with_timeline)),
    };
    let mut case = case(name, suite, status);
    case.set_time(Duration::from_millis(told.row.duration_ms));
    case
}

fn case(name: &str, suite: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(xml(name), status);
    case.set_classname(xml(suite));
    case
}

fn status(outcome: Outcome, word: &str, message: &str, text: &str) -> TestCaseStatus {
    let mut status = match outcome {
        Outcome::Passed => return TestCaseStatus::success(),
        Outcome::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        // As everywhere for a failure that is expected: seen, and not counted.
        Outcome::Known | Outcome::Aside => TestCaseStatus::skipped(),
        Outcome::Broken => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    status.set_type(word).set_message(line(message)).set_description(xml(&first_lines(text, TEXT_BYTES_MAX)));
    status
}

/// Everything about the trials of a row that do not hold.
fn evidence(told: &Told, with_timeline: bool) -> String {
    let mut parts: Vec<String> =
        told.row.agreement().iter().map(|text| format!("\n{}\n", clean(text))).collect();
    for detail in told.details.iter().take(REPETITIONS_MAX) {
        parts.push(format!("\n{}", quoted(detail, with_timeline)));
        if !with_timeline && detail.timeline.is_some() {
            parts.push("  the timeline is left out; the replay command shows it\n".to_owned());
        }
    }
    for detail in told.details.iter().skip(REPETITIONS_MAX).take(NAMED_MAX) {
        let word = detail.verdict.map_or("not judged", Verdict::as_str);
        let (repetition, replay) = (detail.repetition, clean(&detail.replay));
        parts.push(format!("{word} in repetition {repetition}, replay: {replay}\n"));
    }
    let more = told.details.len().saturating_sub(REPETITIONS_MAX + NAMED_MAX);
    if more > 0 {
        parts.push(format!("… {more} more repetitions that do not hold\n"));
    }
    parts.concat()
}

fn checklist(view: &View) -> Option<TestSuite> {
    let profile = view.profile.as_ref().filter(|profile| !profile.answers.is_empty())?;
    let name = format!("checklist {}", profile.name);
    let mut suite = suite(view, &name);
    for answered in &profile.answers {
        let proofs = answered
            .proofs
            .iter()
            .map(|proof| format!("\ntrial {}, {}", clean(&proof.trial), events_text(&proof.events)));
        let to_do = answered.to_do.iter().map(|to_do| format!("\nto do: {}", clean(to_do)));
        let text = format!("\n{}{}\n", clean(&answered.because), proofs.chain(to_do).collect::<String>());
        let status = match answered.answer {
            AnswerWord::Yes => TestCaseStatus::success(),
            AnswerWord::No => status(Outcome::Failed, "no", &answered.because, &text),
            AnswerWord::NotShown => status(Outcome::Broken, "not shown", &answered.because, &text),
        };
        suite.add_test_case(case(&line(&format!("{} {}", answered.id, answered.question)), &name, status));
    }
    let skipped = profile.skipped.iter().map(|one| format!("not staged: {}; {}", one.why, one.to_do));
    set_output(&mut suite, skipped.collect());
    Some(suite)
}

/// The suite of what no row can say.
fn whole(view: &View, options: &Options, problems: &[RunProblem]) -> TestSuite {
    let mut suite = suite(view, "run");
    suite.set_time(Duration::from_millis(view.duration_ms));
    let exit = view.exit_code();
    let properties = [
        ("killpoint", view.killpoint.clone()),
        ("command", format!("killpoint {}", view.command_line.join(" "))),
        ("promise", view.promise.to_string()),
        ("verdict", view.verdict.to_string()),
        ("exit-code", format!("{}: {}", exit.code(), view.exit_meaning())),
        ("recorded-in", options.run_dir.clone().unwrap_or_default()),
    ];
    suite.add_properties(properties.map(|(name, value)| Property::new(name, line(&value))));
    // The lines of the checklist are a suite of their own.
    let problems: Vec<_> = problems.iter().filter(|one| !one.is_answer).collect();
    let mut names = BTreeSet::new();
    for problem in problems.iter().take(PROBLEMS_MAX) {
        let status = status(problem.outcome, "run", &problem.text, &clean(&problem.text));
        suite.add_test_case(case(&unique(&mut names, line(&problem.name)), "run", status));
    }
    let more = problems.len().saturating_sub(PROBLEMS_MAX);
    if more > 0 {
        let text = format!("{more} more problems of the run are not shown one by one");
        suite.add_test_case(case(&text, "run", status(Outcome::Broken, "run", &text, &text)));
    }
    let notes = view.notes.iter().map(|one| {
        format!(
            "note: {} × {}: {}: {}",
            one.boundary, one.provider_plan, one.note.invariant, one.note.message
        )
    });
    let not_shown = view.not_shown.iter().map(|one| {
        format!("not shown in {} of {} trials: {}: {}", one.trials, one.of, one.invariant, one.reason)
    });
    let warnings = view.warnings.iter().map(|warning| format!("warning: {warning}"));
    let gate = outcome::gate_words(view).into_iter();
    set_output(&mut suite, gate.chain(warnings).chain(not_shown).chain(notes).collect());
    suite
}

fn set_output(suite: &mut TestSuite, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let mut shown: Vec<String> = lines.iter().take(LINES_MAX).map(|one| clean(one)).collect();
    let more = lines.len().saturating_sub(LINES_MAX);
    if more > 0 {
        shown.push(format!("… {more} more"));
    }
    suite.set_system_out(xml(&format!("\n{}\n", shown.join("\n"))));
}

/// One clean line of limited length.
fn line(text: &str) -> String {
    shorten(&clean(text), LINE_CHARS_MAX).chars().map(allowed).collect()
}

/// A text that was cleaned, with what XML can't hold either shown as what it is.
fn xml(text: &str) -> XmlString {
    text.chars().map(allowed).collect::<String>().into()
}

/// XML 1.0 has no place for these two, and the writer does not know it.
const fn allowed(c: char) -> char {
    if matches!(c, '\u{fffe}' | '\u{ffff}') { char::REPLACEMENT_CHARACTER } else { c }
}
