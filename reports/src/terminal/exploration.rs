//! What an exploration did, found and left out.

use std::io;

use killpoint_model::exploration::{
    Counterexample, CoveredPair, Exploration, ExplorationEnd, Regression, RegressionOutcome,
};

use super::page::{Page, Tone, span};
use super::{counted, duration, more};

/// Pairs that are named as not seen.
const UNSEEN_MAX: usize = 8;

pub(super) fn write(page: &mut Page, exploration: &Exploration) -> io::Result<()> {
    page.blank()?;
    page.text(0, &[span(Tone::Strong, headline(exploration))])?;
    if let Some(differs) = &exploration.differs {
        let text = format!(
            "two fault-free trials of this worker differ: {differs}. It is not deterministic; what is red is told as k of n"
        );
        page.text(2, &[span(Tone::Doubt, text)])?;
    }
    coverage(page, exploration)?;
    for regression in &exploration.regressions {
        one_regression(page, regression)?;
    }
    for found in &exploration.counterexamples {
        counterexample(page, found)?;
    }
    Ok(())
}

fn headline(exploration: &Exploration) -> String {
    let why = match exploration.ended {
        ExplorationEnd::Counterexample => "something was found",
        ExplorationEnd::Time => "the time was over",
        ExplorationEnd::Cases => "the cases were done",
        ExplorationEnd::Exhausted => "nothing was left",
        ExplorationEnd::Interrupted => "interrupted",
    };
    format!(
        "explored {} of about {}, seed {}; {why}",
        counted(exploration.cases, "plan"),
        large(exploration.plans_about),
        exploration.seed
    )
}

/// `9000`, `about 3e12`: nobody reads twenty digits.
fn large(number: u64) -> String {
    if number < 1_000_000 { number.to_string() } else { format!("{:.0e}", number as f64) }
}

fn coverage(page: &mut Page, exploration: &Exploration) -> io::Result<()> {
    let struck = exploration.covered.iter().filter(|pair| pair.struck > 0).count();
    let text = format!(
        "{} of boundary, provider outcome and life were reached, {struck} of them with a fault at the moment; {} not",
        counted(exploration.covered.len() as u32, "combination"),
        counted(exploration.unseen.len() as u32, "combination"),
    );
    page.text(2, &[span(Tone::Plain, text)])?;
    for pair in exploration.unseen.iter().take(UNSEEN_MAX) {
        page.text(4, &[span(Tone::Dim, pair_text(pair))])?;
    }
    more(page, 4, exploration.unseen.len(), UNSEEN_MAX)
}

fn pair_text(pair: &CoveredPair) -> String {
    format!("not seen: {} × {} in life {}", pair.boundary, pair.outcome, pair.generation)
}

fn one_regression(page: &mut Page, regression: &Regression) -> io::Result<()> {
    let (tone, mark) = match regression.outcome {
        RegressionOutcome::Fails => (Tone::Bad, "✗ fails"),
        RegressionOutcome::Flaky => (Tone::Bad, "✗ flaky"),
        RegressionOutcome::Stale => (Tone::Doubt, "○ stale"),
        RegressionOutcome::Fixed => (Tone::Good, "✓ fixed"),
    };
    let text = format!(" {}: {}", regression.file, regression.note);
    page.text(2, &[span(tone, mark), span(Tone::Plain, text)])
}

fn counterexample(page: &mut Page, found: &Counterexample) -> io::Result<()> {
    page.blank()?;
    page.text(
        0,
        &[
            span(Tone::Bad, format!("✗ {}", found.invariant)),
            span(Tone::Plain, format!(": {}", found.message)),
        ],
    )?;
    let before = found.confirmed_before;
    let how = if before.is_all() {
        format!(
            "found in case {}, red in {before} trials; made small in {} ({}), red in {} trials",
            found.case,
            counted(found.shrink_trials, "trial"),
            duration(found.shrink_ms),
            found.confirmed_after
        )
    } else {
        format!(
            "found in case {}, red in {before} trials only: it depends on luck, so it was not made small",
            found.case
        )
    };
    page.text(2, &[span(Tone::Plain, how)])?;
    page.text(4, &[span(Tone::Strong, &found.summary)])?;
    if let Some(file) = &found.file {
        page.text(2, &[span(Tone::Plain, format!("kept in {file}"))])?;
    }
    page.as_it_is(2, &[span(Tone::Plain, format!("killpoint replay {}", found.token))])
}
