//! What the page's script works on: every row, and trials in full as far as there is room for them.

use std::collections::BTreeMap;

use killpoint_model::Verdict;
use serde::Serialize;

use super::full::{Full, KINDS};
use super::texts::{Piece, Texts};
use crate::{Detail, Repetition, Row, View};

/// Most rows of a page; those that do not hold come first where not all have room.
const ROWS_MAX: usize = 12_000;
/// Most repetitions of one row.
const REPETITIONS_MAX: usize = 200;
/// Bytes for the trials in full that do not hold.
const WRONG_BYTES_MAX: usize = 800_000;
/// Bytes for all trials in full.
const FULL_BYTES_MAX: usize = 1_100_000;
/// Bytes for what trials say beside their timelines, once there is no more room for those.
const SPARE_BYTES: usize = 200_000;

/// The data of a page.
#[derive(Debug, Serialize)]
pub(super) struct Data {
    texts: Vec<String>,
    wordings: Vec<Vec<Piece>>,
    kinds: Vec<&'static str>,
    rows: Vec<RowData>,
    full: Vec<Full>,
    #[serde(skip)]
    pub(super) left_out: LeftOut,
}

/// What a page does not hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Rows that are not in the list.
    pub(super) rows: usize,
    /// Repetitions that are not with their rows.
    pub(super) repetitions: usize,
    /// Trials that do not hold and have no more than a line.
    pub(super) wrong: usize,
    /// Trials that hold and have no more than a line.
    pub(super) holding: usize,
    /// Trials that are told without their timeline, though they have one.
    pub(super) timelines: usize,
}

/// Boundary, provider plan, name, scenario (-1 where there is none), verdict, repetitions.
#[derive(Debug, Serialize)]
struct RowData(usize, usize, usize, i64, u8, Vec<TrialData>);

/// Repetition, verdict, folder, the provider's three numbers (absent where it was not judged), milliseconds, replay,
/// place in `full` (-1 where it is not there).
#[derive(Debug, Serialize)]
struct TrialData(u32, u8, usize, Option<[u32; 3]>, u64, usize, i64);

impl Data {
    pub(super) fn new(view: &View) -> Self {
        let mut made = Made::default();
        let wrong = made.add(&view.details, WRONG_BYTES_MAX);
        let holding = made.add(&view.holding, FULL_BYTES_MAX);
        let rows = kept(&view.rows);
        let trials = |rows: &[&Row]| rows.iter().map(|row| row.repetitions.len()).sum::<usize>();
        let left_out = LeftOut {
            rows: view.rows.len() - rows.len(),
            repetitions: rows.iter().map(|row| row.repetitions.len().saturating_sub(REPETITIONS_MAX)).sum(),
            wrong: view.details.len() - wrong,
            holding: trials(&view.rows.iter().collect::<Vec<_>>())
                .saturating_sub(view.details.len() + holding),
            timelines: made.full.iter().filter(|full| full.is_cut()).count(),
        };
        let rows = rows.into_iter().map(|row| made.row(row)).collect();
        let (texts, wordings) = made.texts.into_parts();
        let kinds = KINDS.iter().map(|kind| kind.as_str()).collect();
        Self { texts, wordings, kinds, rows, full: made.full, left_out }
    }
}

/// The data while it is made.
#[derive(Debug, Default)]
struct Made {
    texts: Texts,
    full: Vec<Full>,
    /// Places in `full` by folder.
    places: BTreeMap<String, usize>,
    bytes: usize,
}

impl Made {
    /// Adds trials in full until so many bytes are reached, and gives how many there was room for.
    fn add(&mut self, details: &[Detail], bytes_max: usize) -> usize {
        let before = self.full.len();
        for detail in details {
            let texts_before = self.texts.bytes();
            let full = if self.bytes + Full::bytes_about(detail) <= bytes_max {
                Full::new(detail, true, &mut self.texts)
            } else if self.bytes + Full::bytes_without_timeline_about(detail) <= bytes_max + SPARE_BYTES {
                Full::new(detail, false, &mut self.texts)
            } else {
                continue;
            };
            self.bytes += self.texts.bytes() - texts_before + full.bytes();
            self.places.insert(detail.folder.clone(), self.full.len());
            self.full.push(full);
        }
        self.full.len() - before
    }

    fn row(&mut self, row: &Row) -> RowData {
        let repetitions = row.repetitions.iter().take(REPETITIONS_MAX);
        let trials = repetitions.map(|one| self.trial(row, one)).collect();
        RowData(
            self.texts.place(&row.boundary),
            self.texts.place(&row.provider_plan),
            self.texts.wording(&row.plan, &row.boundary, ""),
            row.scenario.as_ref().map_or(-1, |scenario| self.texts.place(scenario) as i64),
            code(row.verdict),
            trials,
        )
    }

    fn trial(&mut self, row: &Row, one: &Repetition) -> TrialData {
        TrialData(
            one.repetition,
            code(one.verdict),
            self.texts.place(&one.folder),
            one.counters.map(|counters| [counters.attempts, counters.effects, counters.acknowledged]),
            one.duration_ms,
            self.texts.wording(&one.replay, &row.boundary, &one.folder),
            self.places.get(&one.folder).map_or(-1, |place| *place as i64),
        )
    }
}

/// The rows that there is room for, in their order.
fn kept(rows: &[Row]) -> Vec<&Row> {
    let holds = |row: &Row| row.verdict == Some(Verdict::Holds) && row.tally.not_judged == 0;
    let wrong = rows.iter().filter(|row| !holds(row)).count();
    let (mut wrong_room, mut good_room) = (ROWS_MAX, ROWS_MAX.saturating_sub(wrong));
    let has_room = |row: &&Row| {
        let room = if holds(row) { &mut good_room } else { &mut wrong_room };
        let fits = *room > 0;
        *room = room.saturating_sub(1);
        fits
    };
    rows.iter().filter(has_room).collect()
}

/// A verdict as a number, worst first; the script has the same list.
pub(super) const fn code(verdict: Option<Verdict>) -> u8 {
    match verdict {
        Some(Verdict::Violated) => 0,
        Some(Verdict::Inconclusive) => 1,
        Some(Verdict::Vacuous) => 2,
        None => 3,
        Some(Verdict::Holds) => 4,
    }
}
