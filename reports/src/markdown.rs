//! The `markdown` format: a short page for the summary of a CI job.

mod grid;
mod inline;

use std::io::{self, Write};

use killpoint_model::Entry;
use killpoint_model::checklist::AnswerWord;

use self::inline::{code, fenced};
use crate::outcome::{self, Outcome, RunProblem, Told};
use crate::terminal::{counted, duration, mark_and_word, quoted, shares};
use crate::{Format, Options, View};

/// Most bytes of the trial that is shown in full. GitHub takes a summary of 1 MiB, and drops a larger one whole; the
/// limits here keep the page well below a quarter of that.
const BLOCK_BYTES_MAX: usize = 48 * 1024;
/// Most items of one list.
const ITEMS_MAX: usize = 10;

/// The format.
#[derive(Debug)]
pub(crate) struct Markdown;

static ENTRY: Entry = Entry {
    name: "markdown",
    summary: "a short page for the summary of a CI job",
    explanation: "The verdict, the matrix of boundaries and provider plans with a symbol and a word in each cell, the \
                  first violation in full with the command that replays it, and how many more there are; the answers \
                  to the checklist, where a profile has one, and what is missing of a merged run. Texts of the worker \
                  are code, so that none of them is markup, a link or a mention. It stays far below the size that \
                  GitHub takes, and says what it left out.",
    example: "killpoint run --report markdown=summary.md",
};

impl Format for Markdown {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn write(&self, view: &View, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let rows = outcome::rows(view);
        let problems = outcome::of_the_run(view, &rows);
        header(out, view)?;
        run_problems(out, &problems)?;
        grid::matrix(out, &rows)?;
        grid::scenarios(out, &rows)?;
        first(out, &rows)?;
        counterexamples(out, view)?;
        checklist(out, view)?;
        warnings(out, view)?;
        closing(out, view, options)
    }
}

fn header(out: &mut dyn Write, view: &View) -> io::Result<()> {
    let exit = view.exit_code();
    writeln!(out, "## {}: killpoint\n", mark_and_word(Some(view.verdict)))?;
    let shard = view
        .shard
        .map_or_else(String::new, |shard| format!("shard {} of {} alone · ", shard.index, shard.count));
    writeln!(
        out,
        "{shard}{} in {} · promise {} · exit code {}: {}\n",
        shares(view.tally),
        duration(view.duration_ms),
        view.promise,
        exit.code(),
        view.exit_meaning()
    )?;
    for words in outcome::gate_words(view) {
        writeln!(out, "{}\n", code(&words))?;
    }
    writeln!(out, "{}\n", code(&format!("killpoint {}", view.command_line.join(" "))))
}

fn run_problems(out: &mut dyn Write, problems: &[RunProblem]) -> io::Result<()> {
    let items = problems.iter().filter(|problem| !problem.is_answer).map(|problem| {
        let mark = if problem.outcome == Outcome::Failed { "✗" } else { "?" };
        format!("{mark} {}: {}", code(&problem.name), code(&problem.text))
    });
    list(out, "The run as a whole", items.collect())
}

/// The first violation in full, else the first trial that is not proven, else a known violation; the rest as counts.
fn first(out: &mut dyn Write, rows: &[Told]) -> io::Result<()> {
    let worst = [
        (Outcome::Failed, "The first violation"),
        (Outcome::Broken, "The first trial that is not proven"),
        (Outcome::Known, "The first known violation"),
    ];
    let of = |outcome| rows.iter().filter(move |told| told.outcome == outcome && !told.details.is_empty());
    let found = worst.into_iter().find_map(|(outcome, heading)| Some((of(outcome).next()?, heading)));
    let Some((told, heading)) = found else { return Ok(()) };
    writeln!(out, "### {heading}\n")?;
    for detail in told.details.iter().take(1) {
        writeln!(out, "{}\n", fenced(&quoted(detail, true), BLOCK_BYTES_MAX))?;
    }
    let words = [(Outcome::Failed, "violated"), (Outcome::Broken, "not proven"), (Outcome::Known, "known")];
    let more = words.into_iter().filter_map(|(outcome, word)| {
        let number = of(outcome).count() - usize::from(outcome == told.outcome);
        (number > 0).then(|| format!("{number} more {word}"))
    });
    let more: Vec<String> = more.collect();
    if !more.is_empty() {
        writeln!(out, "{} of {}.\n", more.join(", "), counted(rows.len() as u32, "row"))?;
    }
    Ok(())
}

/// What an exploration found, with the files in which it is kept.
fn counterexamples(out: &mut dyn Write, view: &View) -> io::Result<()> {
    let Some(exploration) = &view.exploration else { return Ok(()) };
    let items = exploration.counterexamples.iter().map(|found| {
        let kept = found.file.as_ref().map(|file| format!(", kept in {}", code(file))).unwrap_or_default();
        format!("✗ {}: {}{kept}", code(&found.invariant), code(&found.summary))
    });
    let cases = counted(exploration.cases, "plan");
    let found = counted(exploration.counterexamples.len() as u32, "counterexample");
    let heading = format!("Explored {cases}, seed {}: {found}", exploration.seed);
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return writeln!(out, "### {heading}\n");
    }
    list(out, &heading, items)
}

fn checklist(out: &mut dyn Write, view: &View) -> io::Result<()> {
    let Some(profile) = view.profile.as_ref().filter(|profile| !profile.answers.is_empty()) else {
        return Ok(());
    };
    let counts = AnswerWord::ALL
        .iter()
        .map(|word| format!("{} {}", profile.count(*word), word.as_str().replace('-', " ")));
    let heading = format!("Checklist {}: {}", profile.name, counts.collect::<Vec<_>>().join(", "));
    // A counterexample comes before what is only not shown.
    let of = |word| profile.answers.iter().filter(move |answered| answered.answer == word);
    let items = of(AnswerWord::No).map(|answered| ("✗ no", answered));
    let items = items.chain(of(AnswerWord::NotShown).map(|answered| ("○ not shown", answered)));
    let items = items.map(|(word, answered)| {
        format!(
            "{word}: {} {}",
            code(&format!("{} {}", answered.id, answered.question)),
            code(&answered.because)
        )
    });
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return writeln!(out, "### {heading}\n");
    }
    list(out, &heading, items)
}

fn warnings(out: &mut dyn Write, view: &View) -> io::Result<()> {
    list(out, "Warnings", view.warnings.iter().map(|warning| code(warning)).collect())
}

fn closing(out: &mut dyn Write, view: &View, options: &Options) -> io::Result<()> {
    if !view.not_shown.is_empty() {
        let number = counted(view.not_shown.len() as u32, "invariant");
        writeln!(out, "{number} had nothing to look at in some trials: `killpoint report` says why.\n")?;
    }
    match &options.run_dir {
        Some(run_dir) => writeln!(out, "Recorded in {}.", code(run_dir)),
        None => Ok(()),
    }
}

fn list(out: &mut dyn Write, heading: &str, items: Vec<String>) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "### {heading}\n")?;
    for item in items.iter().take(ITEMS_MAX) {
        writeln!(out, "- {item}")?;
    }
    match items.len().saturating_sub(ITEMS_MAX) {
        0 => {}
        more => writeln!(out, "- … {more} more")?,
    }
    writeln!(out)
}
