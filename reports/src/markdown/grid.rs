//! The tables: boundaries of the sweep against provider plans, and a line per scenario.

use std::collections::BTreeMap;
use std::io::{self, Write};

use killpoint_model::Verdict;

use super::inline::code;
use crate::outcome::{Outcome, Told};
use crate::terminal::mark_and_word;
use crate::{Row, Tally};

/// Most boundaries of the matrix.
const LINES_MAX: usize = 60;
/// Most provider plans of the matrix.
const COLUMNS_MAX: usize = 12;
/// Most scenarios.
const SCENARIOS_MAX: usize = 60;

/// The names of an axis: those with trials that do not hold come first where not all can be shown.
struct Axis<'v> {
    shown: Vec<&'v str>,
    left_out: usize,
}

impl<'v> Axis<'v> {
    fn new(rows: &[&'v Told], name: fn(&'v Row) -> &'v str, max: usize) -> Self {
        let mut names: Vec<(&str, u8)> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for told in rows {
            let name = name(told.row);
            let place = *places.entry(name).or_insert(names.len());
            if place == names.len() {
                names.push((name, u8::MAX));
            }
            names[place].1 = names[place].1.min(rank(told.outcome));
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|place| names[*place].1);
        order.truncate(max);
        order.sort_unstable();
        let left_out = names.len() - order.len();
        Self { shown: order.into_iter().map(|place| names[place].0).collect(), left_out }
    }
}

const fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Failed => 0,
        Outcome::Broken => 1,
        Outcome::Known => 2,
        Outcome::Aside => 3,
        Outcome::Passed => 4,
    }
}

/// The matrix of the rows that belong to no scenario.
pub(super) fn matrix(out: &mut dyn Write, rows: &[Told]) -> io::Result<()> {
    let rows: Vec<&Told> = rows.iter().filter(|told| told.row.scenario.is_none()).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let lines = Axis::new(&rows, |row| &row.boundary, LINES_MAX);
    let columns = Axis::new(&rows, |row| &row.provider_plan, COLUMNS_MAX);
    let mut cells: BTreeMap<(&str, &str), Vec<&Told>> = BTreeMap::new();
    for told in &rows {
        cells.entry((&told.row.boundary, &told.row.provider_plan)).or_default().push(*told);
    }
    let names: Vec<String> = columns.shown.iter().map(|name| code(name)).collect();
    writeln!(out, "| boundary | {} |", names.join(" | "))?;
    writeln!(out, "| --- |{}", " --- |".repeat(names.len()))?;
    let mut seen = 0;
    for line in &lines.shown {
        let texts = columns.shown.iter().map(|column| {
            let rows = cells.get(&(*line, *column)).map_or(&[][..], Vec::as_slice);
            seen += rows.len();
            cell(rows)
        });
        let texts: Vec<String> = texts.collect();
        writeln!(out, "| {} | {} |", code(line), texts.join(" | "))?;
    }
    writeln!(out)?;
    if lines.left_out + columns.left_out > 0 {
        writeln!(
            out,
            "… {} more boundaries and {} more provider plans, {} of {} rows, are not in this table.\n",
            lines.left_out,
            columns.left_out,
            rows.len() - seen,
            rows.len()
        )?;
    }
    Ok(())
}

/// The symbol and the word of what a cell's rows come to, with the share where repetitions differ.
fn cell(rows: &[&Told]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let tally = rows.iter().fold(Tally::default(), |sum, told| sum.plus(told.row.tally));
    let judged = rows.iter().map(|told| told.row.verdict).max().flatten();
    let worst = if judged == Some(Verdict::Holds) && tally.not_judged > 0 { None } else { judged };
    let is_known =
        judged == Some(Verdict::Violated) && !rows.iter().any(|told| told.outcome == Outcome::Failed);
    let known = if is_known { ", known" } else { "" };
    match tally.parts().as_slice() {
        [] | [_] => format!("{}{known}", mark_and_word(worst)),
        [(trials, _), ..] => format!("{}{known}, {trials} of {}", mark_and_word(worst), tally.trials),
    }
}

/// A line per row of a scenario.
pub(super) fn scenarios(out: &mut dyn Write, rows: &[Told]) -> io::Result<()> {
    let mut rows: Vec<&Told> = rows.iter().filter(|told| told.row.scenario.is_some()).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let all = rows.len();
    rows.sort_by_key(|told| rank(told.outcome));
    writeln!(out, "| scenario | boundary | provider plan | verdict |")?;
    writeln!(out, "| --- | --- | --- | --- |")?;
    for told in rows.iter().take(SCENARIOS_MAX) {
        let Row { scenario, boundary, provider_plan, .. } = told.row;
        let scenario = scenario.as_deref().unwrap_or_default();
        let verdict = cell(&[told]);
        writeln!(out, "| {} | {} | {} | {verdict} |", code(scenario), code(boundary), code(provider_plan))?;
    }
    writeln!(out)?;
    let left_out = rows.get(SCENARIOS_MAX..).unwrap_or_default();
    if !left_out.is_empty() {
        let bad = left_out.iter().filter(|told| told.outcome != Outcome::Passed).count();
        writeln!(
            out,
            "… {} more of {all}, {bad} of which do not hold, are not in this table.\n",
            left_out.len()
        )?;
    }
    Ok(())
}
