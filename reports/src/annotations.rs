//! The `annotations` format: workflow commands, which GitHub shows beside the lines of the files that they name.

use std::io::{self, Write};

use killpoint_model::{Entry, SourceLine};

use crate::outcome::{self, Outcome, RunProblem, Told};
use crate::sanitise::{clean, shorten};
use crate::terminal::shares;
use crate::{Format, Options, View};

/// Annotations of one level; GitHub shows no more of a step.
const LEVEL_MAX: usize = 10;
/// Findings in one annotation.
const FINDINGS_MAX: usize = 5;
/// Characters of one line of an annotation.
const LINE_CHARS_MAX: usize = 600;

/// The format.
#[derive(Debug)]
pub(crate) struct Annotations;

static ENTRY: Entry = Entry {
    name: "annotations",
    summary: "workflow commands that GitHub shows beside the lines of files",
    explanation: "One `::error` per boundary and provider plan that is violated, one `::warning` for each that is not \
                  proven, and for each warning of the run; known failures are counted. Each names the scenario file or the configuration that the plan \
                  comes from, where there is one, as it was named: run killpoint at the root of the repository. \
                  GitHub shows ten of a level in a step, so that no more are written; a `::notice` says how many more \
                  there are, and always the verdict. `-` as the path prints them to standard output, after what \
                  `--format` asks for; commands in a file do nothing until a step prints it.",
    example: "killpoint run --report annotations=-",
};

impl Format for Annotations {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn write(&self, view: &View, _options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let rows = outcome::rows(view);
        let problems = outcome::of_the_run(view, &rows);
        let mut left_out = Vec::new();
        for (outcome, level) in [(Outcome::Failed, "error"), (Outcome::Broken, "warning")] {
            let mut all: Vec<Annotation> = rows
                .iter()
                .filter(|told| told.outcome == outcome)
                .map(|told| Annotation::of_row(view, told))
                .chain(problems.iter().filter(|problem| problem.outcome == outcome).map(Annotation::of_run))
                .collect();
            if outcome == Outcome::Broken {
                let told = |warning: &&String| !problems.iter().any(|problem| problem.text == **warning);
                all.extend(view.warnings.iter().filter(told).map(|warning| Annotation::warning(warning)));
            }
            for annotation in all.iter().take(LEVEL_MAX) {
                annotation.write(level, out)?;
            }
            if all.len() > LEVEL_MAX {
                left_out.push(format!("{} more {level}s", all.len() - LEVEL_MAX));
            }
        }
        let more = if left_out.is_empty() {
            String::new()
        } else {
            format!("; {} are not shown here: see the other reports", left_out.join(" and "))
        };
        let exit = view.exit_code();
        let text =
            format!("{}, exit code {}: {}{more}", shares(view.tally), exit.code(), view.exit_meaning());
        let lines = [vec![text], outcome::gate_words(view)].concat();
        Annotation { source: None, title: format!("killpoint: {}", view.verdict), lines }.write("notice", out)
    }
}

/// One annotation. Its texts are raw.
struct Annotation {
    source: Option<SourceLine>,
    title: String,
    lines: Vec<String>,
}

impl Annotation {
    fn of_row(view: &View, told: &Told) -> Self {
        let mut lines = vec![told.name()];
        lines.extend(told.row.agreement());
        let worst = told.details.first();
        let judged = worst.iter().flat_map(|detail| &detail.judged);
        let findings: Vec<String> = judged
            .flat_map(|judged| {
                judged.findings.iter().map(move |one| format!("{}: {}", judged.invariant, one.message))
            })
            .collect();
        lines.extend(findings.iter().take(FINDINGS_MAX).cloned());
        match findings.len().saturating_sub(FINDINGS_MAX) {
            0 if findings.is_empty() => lines.push(told.headline()),
            0 => {}
            more => lines.push(format!("… {more} more findings")),
        }
        lines.extend(worst.map(|detail| format!("replay: {}", detail.replay)));
        let invariant = worst.and_then(|detail| detail.judged.first());
        let about = invariant.map(|judged| format!(", {}", judged.invariant)).unwrap_or_default();
        let title = format!("killpoint: {}{about}", told.word());
        Self { source: told.source(view), title, lines }
    }

    fn of_run(problem: &RunProblem) -> Self {
        let title = format!("killpoint: {}", problem.name);
        Self { source: None, title, lines: vec![problem.text.clone()] }
    }

    fn warning(text: &str) -> Self {
        Self { source: None, title: "killpoint: warning".to_owned(), lines: vec![text.to_owned()] }
    }

    fn write(&self, level: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut properties = Vec::new();
        if let Some(SourceLine { file, line }) = &self.source {
            properties.push(format!("file={}", property(&clean(file))));
            properties.push(format!("line={line}"));
        }
        properties.push(format!("title={}", property(&shorten(&clean(&self.title), LINE_CHARS_MAX))));
        // A command to copy is whole, whatever its length.
        let line = |text: &String| {
            let text = clean(text);
            if text.starts_with("replay: ") { text } else { shorten(&text, LINE_CHARS_MAX) }
        };
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        writeln!(out, "::{level} {}::{}", properties.join(","), data(&lines.join("\n")))
    }
}

/// The message of a command, as the runner reads it back.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, as the runner reads it back.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_value_but_its_end() {
        assert_eq!(data("50%\r\n::stop::"), "50%25%0D%0A::stop::");
        assert_eq!(property("a:b,c%3A\n"), "a%3Ab%2Cc%253A%0A");
    }
}
