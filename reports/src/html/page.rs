//! The page as its templates see it. Every value in them is made harmless by [`super::escape::Hostile`].

use std::borrow::Borrow;
use std::io::{self, Write};

use askama::Template;
use base64::Engine as _;
use killpoint_model::checklist::AnswerWord;
use killpoint_model::exploration::{CoveredPair, ExplorationEnd, RegressionOutcome};
use killpoint_model::{ExitCode, Verdict};
use sha2::{Digest, Sha256};

use super::data::{Data, LeftOut};
use super::escape::json_in_script;
use crate::outcome::is_known;
use crate::terminal::{counted, duration, events_text, quoted_gate};
use crate::{Boundary, Detail, NotShown, Options, Precision, Row, View};

/// Most sentences of one list; what is left out is counted.
const SENTENCES_MAX: usize = 200;
/// Most rows without a script.
const PLAIN_ROWS_MAX: usize = 300;
/// Most trials in full without a script.
const PLAIN_DETAILS_MAX: usize = 25;
/// Most pairs that an exploration did not see.
const UNSEEN_MAX: usize = 40;

const STYLE: &str = concat!(
    include_str!("../../templates/style/page.css"),
    include_str!("../../templates/style/map.css"),
    include_str!("../../templates/style/trial.css"),
    include_str!("../../templates/style/print.css"),
);

const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("../../templates/script/base.js"),
    include_str!("../../templates/script/rows.js"),
    include_str!("../../templates/script/state.js"),
    include_str!("../../templates/script/map.js"),
    include_str!("../../templates/script/picture.js"),
    include_str!("../../templates/script/trial.js"),
    include_str!("../../templates/script/page.js"),
    "})();\n",
);

/// The page.
#[derive(Debug, Template)]
#[template(path = "report.html")]
pub(super) struct Page<'a> {
    view: &'a View,
    options: &'a Options,
    /// The verdict, as trials have one.
    verdict: Option<Verdict>,
    exit: ExitCode,
    /// Known failures and changed boundaries, in the words of the terminal; empty where there is nothing to say.
    gate: Vec<String>,
    left_out: LeftOut,
    policy: String,
    style: &'static str,
    script: &'static str,
    data: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(view: &'a View, options: &'a Options) -> io::Result<Self> {
        let data = Data::new(view);
        let policy = format!(
            "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'",
            source(STYLE),
            source(SCRIPT)
        );
        Ok(Self {
            view,
            options,
            verdict: Some(view.verdict),
            exit: view.exit_code(),
            gate: quoted_gate(view).lines().map(str::to_owned).collect(),
            left_out: data.left_out,
            policy,
            style: STYLE,
            script: SCRIPT,
            data: json_in_script(&serde_json::to_string(&data)?),
        })
    }

    pub(super) fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let text = self.render().map_err(io::Error::other)?;
        out.write_all(text.as_bytes())
    }

    /// The day and minute in UTC.
    fn started(&self) -> String {
        let seconds = (self.view.started_at_ms / 1000) as i64;
        time::OffsetDateTime::from_unix_timestamp(seconds).map_or_else(
            |_| "at no known time".to_owned(),
            |at| {
                let (year, month, day) = at.to_calendar_date();
                format!("{year}-{:02}-{day:02} {:02}:{:02} UTC", month as u8, at.hour(), at.minute())
            },
        )
    }

    /// One sentence that says the result.
    fn sentence(&self) -> String {
        let tally = self.view.tally;
        let parts: Vec<String> =
            tally.parts().iter().map(|(count, word)| format!("{count} {word}")).collect();
        let missing = self.view.merged.as_ref().map_or(0, |merged| merged.missing.len());
        let missing = if missing == 0 { String::new() } else { format!(", {missing} missing") };
        match parts.as_slice() {
            [] => format!("No trials{missing}."),
            [_] => format!("All {}: {}{missing}.", counted(tally.trials, "trial"), tally.parts()[0].1),
            _ => format!("{} of {}{missing}.", parts.join(", "), counted(tally.trials, "trial")),
        }
    }

    /// The first trial that is violated and that no file of known failures lists, else the first that is violated; with
    /// what to call it, and its first finding.
    fn first_violation(&self) -> Option<(&'static str, &Detail, &str, &str)> {
        let violated = || self.view.details.iter().filter(|one| one.verdict == Some(Verdict::Violated));
        let new = violated().find(|detail| !is_known(self.view, detail));
        let detail = new.or_else(|| violated().next())?;
        let which = match (&self.view.baseline, new) {
            (None, _) => "first violation",
            (Some(_), Some(_)) => "first new violation",
            (Some(_), None) => "first known violation",
        };
        let judged = detail.judged.iter().find(|judged| !judged.findings.is_empty())?;
        Some((which, detail, &judged.invariant, &judged.findings.first()?.message))
    }

    /// Boundaries by where they were reached and how sharply they are known, hits of one series as one name.
    fn boundaries(&self) -> Vec<(&'static str, &'static str, String)> {
        let mut groups = Vec::new();
        for (in_baseline, place) in [(true, "without faults"), (false, "only under faults")] {
            for precision in [Precision::Exact, Precision::Sampled, Precision::Mixed] {
                let is_here = |one: &&Boundary| one.in_baseline == in_baseline && one.precision == precision;
                let mut names = crate::terminal::folded(self.view.boundaries.iter().filter(is_here));
                let more = names.len().saturating_sub(SENTENCES_MAX);
                names.truncate(SENTENCES_MAX);
                if more > 0 {
                    names.push(format!("… {more} more"));
                }
                if !names.is_empty() {
                    groups.push((place, precision.as_str(), names.join(", ")));
                }
            }
        }
        groups
    }

    fn plain_rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.view.rows.iter().collect();
        rows.sort_by_key(|row| super::data::code(row.verdict));
        rows.truncate(PLAIN_ROWS_MAX);
        rows
    }

    fn plain_details(&self) -> &[Detail] {
        &self.view.details[..self.view.details.len().min(PLAIN_DETAILS_MAX)]
    }

    /// What is left out of this file, one sentence each.
    fn left_out(&self) -> Vec<String> {
        let LeftOut { rows, repetitions, wrong, holding, timelines } = self.left_out;
        [
            (rows, "more rows that hold are not in the list"),
            (repetitions, "more repetitions are counted, and not listed"),
            (wrong, "more trials that do not hold have a line in the list, and are not told in full"),
            (timelines, "trials are told in full but for their timeline"),
            (holding, "more trials that hold have a line in the list, and no timeline"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// What a policy calls a script or a style that stands in the page.
fn source(text: &str) -> String {
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}

/// `violated`, for styles.
fn class(verdict: impl Borrow<Option<Verdict>>) -> &'static str {
    verdict.borrow().map_or("unjudged", Verdict::as_str)
}

fn mark(verdict: impl Borrow<Option<Verdict>>) -> &'static str {
    match verdict.borrow() {
        Some(Verdict::Holds) => "✓",
        Some(Verdict::Vacuous) => "○",
        Some(Verdict::Inconclusive) => "?",
        Some(Verdict::Violated) => "✗",
        None => "–",
    }
}

fn word(verdict: impl Borrow<Option<Verdict>>) -> &'static str {
    verdict.borrow().map_or("not judged", Verdict::as_str)
}

const fn answer(word: AnswerWord) -> (&'static str, &'static str, &'static str) {
    match word {
        AnswerWord::Yes => ("holds", "✓", "yes"),
        AnswerWord::No => ("violated", "✗", "no"),
        AnswerWord::NotShown => ("vacuous", "○", "not shown"),
    }
}

const fn ended(end: ExplorationEnd) -> &'static str {
    match end {
        ExplorationEnd::Counterexample => "something was found",
        ExplorationEnd::Time => "the time was over",
        ExplorationEnd::Cases => "the cases were done",
        ExplorationEnd::Exhausted => "nothing was left",
        ExplorationEnd::Interrupted => "it was interrupted",
    }
}

const fn regression(outcome: RegressionOutcome) -> (&'static str, &'static str) {
    match outcome {
        RegressionOutcome::Fails => ("violated", "✗ fails"),
        RegressionOutcome::Flaky => ("violated", "✗ flaky"),
        RegressionOutcome::Stale => ("vacuous", "○ stale"),
        RegressionOutcome::Fixed => ("holds", "✓ fixed"),
    }
}

fn struck(covered: &[CoveredPair]) -> usize {
    covered.iter().filter(|pair| pair.struck > 0).count()
}

/// `in 3 of 5 trials`, or nothing where it is all of them.
fn share(one: &NotShown) -> String {
    if one.trials == one.of { String::new() } else { format!(" (in {} of {} trials)", one.trials, one.of) }
}

/// Attempts, effects and acknowledgements of a row.
fn numbers(row: &Row) -> (String, String, String) {
    (
        row.spread(|counters| counters.attempts),
        row.spread(|counters| counters.effects),
        row.spread(|counters| counters.acknowledged),
    )
}
