//! One line per boundary and provider plan; where the page is too narrow for columns, a few lines each.

use std::fmt::Write as _;
use std::io;

use killpoint_model::Verdict;

use super::page::{Page, Tone, span};
use super::{duration, mark_and_word, tone_of};
use crate::Row;
use crate::sanitise::{clean, columns, cut};

const VERDICT_COLUMNS: usize = 14;
/// Columns of a share such as `3 of 4`.
const SHARE_COLUMNS: usize = 10;
/// Columns of attempts, effects, acknowledged and time: as wide as their headings, and as `12.34s`.
const NUMBER_COLUMNS: [usize; 4] = [8, 7, 5, 7];
const GAP: usize = 2;
/// Boundary and provider plan need at least so much together.
const NAMES_COLUMNS_MIN: usize = 34;

/// Most rows that are shown; those that do not hold come before those that do.
const ROWS_MAX: usize = 200;

/// Widths of the columns that depend on the rows and the page.
struct Layout {
    boundary: usize,
    plan: usize,
    /// Whether any row has repetitions.
    trials: bool,
}

pub(super) fn write(page: &mut Page, rows: &[Row]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    page.blank()?;
    let layout = layout(page.width(), rows);
    if let Some(layout) = &layout {
        let numbers = ["attempts", "effects", "acked", "time"].map(str::to_owned);
        let trials = layout.trials.then(|| "trials".to_owned());
        let line = columns_line(layout, "boundary", "provider plan", trials, &numbers);
        page.as_it_is(0, &[span(Tone::Dim, format!("{:VERDICT_COLUMNS$}{line}", "verdict"))])?;
    }
    let mut scenario: Option<&str> = None;
    let shown = shown(rows);
    for row in &shown {
        if row.scenario.as_deref() != scenario {
            scenario = row.scenario.as_deref();
            let name = scenario.map_or_else(|| "no scenario".to_owned(), |name| format!("scenario {name}"));
            page.text(0, &[span(Tone::Strong, name)])?;
        }
        match &layout {
            Some(layout) => wide(page, layout, row)?,
            None => narrow(page, row)?,
        }
    }
    match rows.len() - shown.len() {
        0 => Ok(()),
        more => page.text(2, &[span(Tone::Dim, format!("… {more} more"))]),
    }
}

/// The rows that there is room for, in their order.
fn shown(rows: &[Row]) -> Vec<&Row> {
    let holds = |row: &Row| row.verdict == Some(Verdict::Holds) && row.tally.not_judged == 0;
    let bad_count = rows.iter().filter(|row| !holds(row)).count();
    let (mut bad_room, mut good_room) = (ROWS_MAX, ROWS_MAX.saturating_sub(bad_count));
    let has_room = |row: &&Row| {
        let room = if holds(row) { &mut good_room } else { &mut bad_room };
        let fits = *room > 0;
        *room = room.saturating_sub(1);
        fits
    };
    rows.iter().filter(has_room).collect()
}

/// `None` where the page is too narrow for columns.
fn layout(width: usize, rows: &[Row]) -> Option<Layout> {
    let trials = rows.iter().any(|row| row.tally.trials > 1);
    let numbers: usize = NUMBER_COLUMNS.iter().map(|columns| columns + GAP).sum();
    let share = if trials { SHARE_COLUMNS + GAP } else { 0 };
    let fixed = VERDICT_COLUMNS + 2 * GAP + numbers + share;
    let room = width.checked_sub(fixed).filter(|room| *room >= NAMES_COLUMNS_MIN)?;
    let widest = |text: fn(&Row) -> &str, heading: usize| {
        rows.iter().map(|row| columns(&clean(text(row)))).max().unwrap_or(0).max(heading)
    };
    let boundary = widest(|row| &row.boundary, "boundary".len());
    let plan = widest(|row| &row.provider_plan, "provider plan".len());
    let plan = plan.min(room.saturating_sub(boundary).max(room / 2));
    Some(Layout { boundary: boundary.min(room - plan), plan, trials })
}

fn wide(page: &mut Page, layout: &Layout, row: &Row) -> io::Result<()> {
    let share = || match row.tally.parts().first() {
        Some((trials, _)) if row.tally.trials > 1 => format!("{trials} of {}", row.tally.trials),
        _ => String::new(),
    };
    let line = columns_line(
        layout,
        &row.boundary,
        &row.provider_plan,
        layout.trials.then(share),
        &[
            row.spread(|counters| counters.attempts),
            row.spread(|counters| counters.effects),
            row.spread(|counters| counters.acknowledged),
            duration(row.duration_ms),
        ],
    );
    let verdict = span(tone_of(row.verdict), format!("{:VERDICT_COLUMNS$}", mark_and_word(row.verdict)));
    page.as_it_is(0, &[verdict, span(Tone::Plain, line)])?;
    match row.agreement() {
        Some(text) if row.tally.parts().len() > 1 => {
            page.text(VERDICT_COLUMNS + GAP, &[span(Tone::Doubt, text)])
        }
        _ => Ok(()),
    }
}

fn columns_line(
    layout: &Layout,
    boundary: &str,
    plan: &str,
    trials: Option<String>,
    numbers: &[String; 4],
) -> String {
    let mut line = format!("  {}  {}", cell(boundary, layout.boundary), cell(plan, layout.plan));
    if let Some(share) = trials {
        let _ = write!(line, "  {share:>SHARE_COLUMNS$}");
    }
    for (number, columns) in numbers.iter().zip(NUMBER_COLUMNS) {
        let _ = write!(line, "  {number:>columns$}");
    }
    line
}

/// A text cut in its middle and padded: a hit's ordinal is at its end.
fn cell(text: &str, width: usize) -> String {
    let text = clean(text);
    let wide = columns(&text);
    if wide <= width {
        return format!("{text}{:pad$}", "", pad = width - wide);
    }
    let tail: String = {
        let mut used = 0;
        let from = text.char_indices().rev().take_while(|(_, c)| {
            used += columns(c.encode_utf8(&mut [0; 4]));
            used <= width / 3
        });
        from.last().map(|(index, _)| text[index..].to_owned()).unwrap_or_default()
    };
    let head = cut(&text, width - columns(&tail));
    let pad = width - columns(&tail) - columns(&head);
    format!("{head}{tail}{:pad$}", "")
}

fn narrow(page: &mut Page, row: &Row) -> io::Result<()> {
    let agreement = row.agreement().map(|text| format!(", {text}")).unwrap_or_default();
    page.text(
        0,
        &[
            span(tone_of(row.verdict), mark_and_word(row.verdict)),
            span(Tone::Plain, format!("{agreement}, {}", duration(row.duration_ms))),
        ],
    )?;
    page.text(2, &[span(Tone::Plain, format!("{} × {}", row.boundary, row.provider_plan))])?;
    let numbers = format!(
        "attempts {}, effects {}, acked {}",
        row.spread(|counters| counters.attempts),
        row.spread(|counters| counters.effects),
        row.spread(|counters| counters.acknowledged)
    );
    page.text(2, &[span(Tone::Dim, numbers)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_keeps_its_end_and_its_width() {
        assert_eq!(cell("abc", 5), "abc  ");
        assert_eq!(cell("provider:committed[create]#12", 15), "provider:…e]#12");
        for width in 1..40 {
            assert_eq!(columns(&cell("漢字漢字漢字漢字#1\x1b[31m and more", width)), width);
        }
    }
}
