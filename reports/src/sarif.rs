//! The `sarif` format: violations as results of a static analysis, each at the line that its plan comes from.

mod place;

use std::collections::BTreeMap;
use std::io::{self, Write};

use chrono::{DateTime, SecondsFormat};
use killpoint_model::{Entry, ExitCode, SourceLine};
use serde_json::{Value, json};

use crate::json::escape_hazards;
use crate::outcome::{self, Outcome, Told};
use crate::sanitise::{clean, shorten};
use crate::{Detail, Format, Judged, Options, View};

/// Where the schema lies, for editors.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Most results; GitHub shows no more of a run.
const RESULTS_MAX: usize = 5000;
/// Most notifications.
const NOTIFICATIONS_MAX: usize = 500;
/// Most findings in one result's message.
const FINDINGS_MAX: usize = 5;
/// Most characters of one finding.
const FINDING_CHARS_MAX: usize = 1000;

/// The format.
#[derive(Debug)]
pub(crate) struct Sarif;

static ENTRY: Entry = Entry {
    name: "sarif",
    summary: "violations as SARIF 2.1.0, for code scanning",
    explanation: "A result per plan and invariant that is violated, at the line of the scenario file or of the \
                  configuration that the plan comes from, as it was named: run killpoint at the root of the \
                  repository. Repetitions are one result with a count; one that a file of known failures lists is \
                  suppressed. The fingerprint is made of what the plan does and of the invariant, so that it stays the \
                  same from run to run. A violation without a source line, such as one of a worker without a \
                  configuration, is no result but a notification, and so is everything that was not proven. \
                  `executionSuccessful` is false for a run that proves nothing, so that an empty list is not taken for a green.",
    example: "killpoint run --report sarif=killpoint.sarif",
};

impl Format for Sarif {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn write(&self, view: &View, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let found = Found::new(view);
        let mut rules: Vec<&str> = Vec::new();
        for one in &found.placed {
            if !rules.contains(&one.invariant) {
                rules.push(one.invariant);
            }
        }
        let results: Vec<Value> =
            found.placed.iter().take(RESULTS_MAX).map(|one| one.result(&rules)).collect();
        let rules: Vec<Value> = rules.iter().map(|rule| self::rule(rule, options)).collect();
        let mut driver = json!({ "name": "killpoint", "version": view.killpoint, "rules": rules });
        driver["semanticVersion"] = json!(view.killpoint);
        let log = json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": driver },
                "automationDetails": { "id": "killpoint/" },
                "invocations": [invocation(view, &found)],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }],
        });
        writeln!(out, "{}", escape_hazards(&serde_json::to_string_pretty(&log)?))
    }
}

/// The violations of a view, by whether a line of the user's shows where they come from.
struct Found<'v> {
    placed: Vec<Violation<'v>>,
    homeless: Vec<Violation<'v>>,
}

/// One invariant that one plan shows to be violated.
struct Violation<'v> {
    invariant: &'v str,
    detail: &'v Detail,
    judged: &'v Judged,
    source: Option<SourceLine>,
    /// Repetitions that show it.
    times: u32,
    /// The file of known failures that lists it, where one does.
    known: Option<&'v str>,
}

impl<'v> Found<'v> {
    fn new(view: &'v View) -> Self {
        let mut all: Vec<Violation> = Vec::new();
        let mut indices: BTreeMap<_, usize> = BTreeMap::new();
        for detail in &view.details {
            for judged in detail.violations() {
                let source = outcome::source(view, detail);
                let key = (source.clone(), &detail.content_id, &judged.invariant);
                let place = *indices.entry(key).or_insert(all.len());
                let is_known = outcome::is_known(view, detail);
                if let Some(again) = all.get_mut(place) {
                    again.times += 1;
                    // One that is new makes the result new.
                    again.known = again.known.filter(|_| is_known);
                    continue;
                }
                let file = view.baseline.as_ref().map(|baseline| baseline.file.as_str());
                let (invariant, known) = (&judged.invariant, file.filter(|_| is_known));
                all.push(Violation { invariant, detail, judged, source, times: 1, known });
            }
        }
        let (placed, homeless) = all.into_iter().partition(|one| one.source.is_some());
        Self { placed, homeless }
    }
}

impl Violation<'_> {
    fn text(&self) -> String {
        let mut lines = vec![format!("{} × {}", self.detail.boundary, self.detail.provider_plan)];
        let findings = self.judged.findings.iter().take(FINDINGS_MAX);
        lines.extend(findings.map(|finding| shorten(&finding.message, FINDING_CHARS_MAX)));
        let more = self.judged.findings.len().saturating_sub(FINDINGS_MAX);
        if more > 0 {
            lines.push(format!("… {more} more findings"));
        }
        if self.times > 1 {
            lines.push(format!("seen in {} repetitions", self.times));
        }
        lines.push(format!("replay: {}", self.detail.replay));
        lines.iter().map(|line| clean(line)).collect::<Vec<_>>().join("\n")
    }

    fn result(&self, rules: &[&str]) -> Value {
        let events: Vec<u64> =
            self.judged.findings.iter().flat_map(|finding| finding.events.iter().copied()).collect();
        let listed =
            |file| json!({ "kind": "external", "justification": clean(&format!("listed in {file}")) });
        json!({
            "ruleId": self.invariant,
            "suppressions": self.known.map(listed).into_iter().collect::<Vec<_>>(),
            "ruleIndex": rules.iter().position(|rule| *rule == self.invariant),
            "level": "error",
            "message": message(&self.text()),
            "locations": self.source.iter().map(place::location).collect::<Vec<_>>(),
            "partialFingerprints": {
                "planAndInvariant/v1": format!("{}:{}", self.detail.content_id, self.invariant),
            },
            "occurrenceCount": self.times,
            "properties": {
                "trial": self.detail.folder,
                "scenario": self.detail.scenario,
                "boundary": self.detail.boundary,
                "providerPlan": self.detail.provider_plan,
                "events": events,
            },
        })
    }
}

fn rule(name: &str, options: &Options) -> Value {
    let known = options.invariants.iter().find(|entry| entry.name == name);
    let mut rule = json!({ "id": name, "defaultConfiguration": { "level": "error" } });
    if let Some(Entry { summary, explanation, .. }) = known {
        rule["shortDescription"] = message(summary);
        rule["fullDescription"] = message(explanation);
        rule["help"] = message(&format!("{explanation}\n\nkillpoint explain {name}"));
    }
    rule
}

/// How the run went, with all that is no result.
fn invocation(view: &View, found: &Found) -> Value {
    let exit = view.exit_code();
    let mut notifications = Vec::new();
    let mut note = |level: &str, text: &str| {
        notifications.push(json!({ "level": level, "message": message(text) }));
    };
    for one in &found.homeless {
        note(
            if one.known.is_some() { "note" } else { "error" },
            &format!("{} is violated, and no line of a file shows where: {}", one.invariant, one.text()),
        );
    }
    let rows = outcome::rows(view);
    let is_told = |told: &&Told| match told.outcome {
        Outcome::Passed | Outcome::Aside => true,
        // Its violations are results, or were told above.
        Outcome::Failed | Outcome::Known => {
            told.details.iter().any(|detail| detail.violations().next().is_some())
        }
        Outcome::Broken => false,
    };
    for told in rows.iter().filter(|told| !is_told(told)) {
        note("warning", &clean(&format!("{} is {}: {}", told.name(), told.word(), told.headline())));
    }
    let problems = outcome::of_the_run(view, &rows);
    for problem in &problems {
        note("error", &clean(&format!("{}: {}", problem.name, problem.text)));
    }
    for warning in view.warnings.iter().filter(|warning| !problems.iter().any(|one| one.text == **warning)) {
        note("warning", &clean(warning));
    }
    for words in outcome::gate_words(view) {
        note("note", &clean(&words));
    }
    let left_out = found.placed.len().saturating_sub(RESULTS_MAX);
    if left_out > 0 {
        note("error", &format!("{left_out} more results are left out"));
    }
    let more = notifications.len().saturating_sub(NOTIFICATIONS_MAX);
    notifications.truncate(NOTIFICATIONS_MAX);
    if more > 0 {
        let text = format!("{more} more notifications are left out");
        notifications.push(json!({ "level": "warning", "message": message(&text) }));
    }
    let mut invocation = json!({
        "executionSuccessful": matches!(exit, ExitCode::Holds | ExitCode::Violated),
        "exitCode": exit.code(),
        "exitCodeDescription": view.exit_meaning(),
        "commandLine": clean(&format!("killpoint {}", view.command_line.join(" "))),
        "toolExecutionNotifications": notifications,
    });
    for (name, ms) in [("startTimeUtc", 0), ("endTimeUtc", view.duration_ms)] {
        let at = i64::try_from(view.started_at_ms.saturating_add(ms)).ok();
        if let Some(at) = at.and_then(DateTime::from_timestamp_millis) {
            invocation[name] = json!(at.to_rfc3339_opts(SecondsFormat::Millis, true));
        }
    }
    invocation
}

/// A message of plain text: braces are doubled, and what could be read as a link is none.
fn message(text: &str) -> Value {
    let text = text.replace('{', "{{").replace('}', "}}").replace("](", "] (");
    json!({ "text": text })
}
