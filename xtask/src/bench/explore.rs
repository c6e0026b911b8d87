//! How soon exploring finds each seeded bug of the reference worker, and that it finds nothing in the right one.

use std::path::Path;

use anyhow::{Result, ensure};
use killpoint::model::exploration::{Counterexample, KOfN};

use super::explored::{Bench, Explored, Options, load, size};

/// Prints the table; fails where the right worker has a finding.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let options = Options::of(words)?;
    let bench = Bench::new(root, options.runs.as_deref())?;
    println!("each bug up to {}, {}", options.time, load());
    println!(
        "| bug | found | invariant | cases to find | trials to shrink | shrink seconds | faults+rules+actions+workers | red in replays |"
    );
    println!("| :-- | :-- | :-- | --: | --: | --: | --: | :-- |");
    let (mut all, mut missed, mut vacuous, mut drawn) = (0, Vec::new(), 0, 0);
    for bug in options.bugs() {
        let explored = bench.explore(Some(bug), &options.time)?;
        all += 1;
        let counts = explored.vacuous();
        (vacuous, drawn) = (vacuous + counts.0, drawn + counts.1);
        match (explored.counterexample(), explored.red_without_a_fault()) {
            (Some(found), without) => {
                let replayed = bench.replayed(&found.token)?;
                println!("{}", found_line(bug, found, without.is_some(), replayed));
            }
            // So wrong that nothing can be compared with its fault-free trial.
            (None, Some(invariant)) => {
                println!("| {bug} | without a fault | {invariant} | 0 | | | 0+0+0+1 | |");
            }
            (None, None) => {
                println!("| {bug} | no | | of {} | | | | |", explored.cases());
                missed.push(bug);
            }
        }
    }
    println!(
        "\n{} of {all} bugs found; {vacuous} of {drawn} trials showed nothing; {}",
        all - missed.len(),
        load()
    );
    if !missed.is_empty() {
        println!("not found: {}", missed.join(", "));
    }
    if options.right == "0s" {
        return Ok(());
    }
    right_worker(&bench.explore(None, &options.right)?, &options.right)
}

fn found_line(bug: &str, found: &Counterexample, without_a_fault: bool, replayed: KOfN) -> String {
    let how = match (without_a_fault, found.confirmed_before.is_all()) {
        (true, _) => "without a fault".to_owned(),
        (false, true) => "yes".to_owned(),
        (false, false) => format!("{}, flaky", found.confirmed_before),
    };
    format!(
        "| {bug} | {how} | {} | {} | {} | {}.{} | {} | {} |",
        found.invariant,
        found.case,
        found.shrink_trials,
        found.shrink_ms / 1000,
        found.shrink_ms % 1000 / 100,
        size(&found.smallest),
        replayed
    )
}

fn right_worker(explored: &Explored, time: &str) -> Result<()> {
    let findings = explored.record.exploration.as_ref().map_or(0, |it| it.counterexamples.len())
        + usize::from(explored.red_without_a_fault().is_some());
    let (vacuous, drawn) = explored.vacuous();
    println!(
        "the right worker, {time}: {} cases, {findings} findings; {vacuous} of {drawn} trials showed nothing; {}",
        explored.cases(),
        load()
    );
    if let Some(found) = explored.counterexample() {
        println!("red by `{}`: {}\n{}\n{}", found.invariant, found.message, found.summary, found.token);
    }
    ensure!(explored.cases() > 0, "the right worker was not explored");
    ensure!(findings == 0, "the right worker has a finding; its words are above");
    Ok(())
}
