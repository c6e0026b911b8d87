//! What the worker believed, over time: ledger views and each row through them.

use crate::facts::index::Index;
use killpoint_model::event::{Event, EventKind};
use killpoint_model::{HitName, LedgerRow, LedgerView};

/// One reading of the ledger.
#[derive(Debug)]
pub(crate) struct ViewFact<'a> {
    pub(crate) seq: u64,
    /// The hit at which it was read.
    pub(crate) at: Option<&'a HitName>,
    pub(crate) generation: u32,
    pub(crate) view: &'a LedgerView,
    pub(crate) is_final: bool,
}

/// One row, by action and destination, through the exact views.
#[derive(Debug)]
pub(crate) struct RowFact<'a> {
    pub(crate) action: &'a str,
    pub(crate) destination: Option<&'a str>,
    /// View index and row, in order.
    pub(crate) sightings: Vec<(usize, &'a LedgerRow)>,
    /// Rows of this identity in the final view.
    pub(crate) last: Vec<&'a LedgerRow>,
}

/// The ledger of one history.
#[derive(Debug, Default)]
pub(crate) struct Ledger<'a> {
    /// Every exact view, the final one included, in order.
    pub(crate) views: Vec<ViewFact<'a>>,
    /// Every row that an exact view showed.
    pub(crate) rows: Vec<RowFact<'a>>,
    /// Rows of each view, as indices into `rows`, parallel to `views`.
    pub(crate) shown: Vec<Vec<usize>>,
    /// The final look.
    pub(crate) last: Option<usize>,
    /// Views that have rows, by sequence number.
    readable: Vec<(u64, usize)>,
}

impl<'a> Ledger<'a> {
    /// Reads the ledger views of a history.
    pub(crate) fn read(looks: &[&'a Event]) -> Self {
        let mut ledger = Self::default();
        let mut index: Index<(&str, Option<&str>), usize> = Index::default();
        for event in looks {
            let (at, view, is_final) = match &event.event {
                EventKind::Ledger { at, view } if view.exact => (at.as_ref(), view, false),
                EventKind::Final { view, .. } => (None, view, true),
                _ => continue,
            };
            let number = ledger.views.len();
            if is_final {
                ledger.last = Some(number);
            }
            if view.rows.is_some() {
                ledger.readable.push((event.seq, number));
            }
            let rows = view.rows.as_deref().unwrap_or_default();
            let mut shown = Vec::with_capacity(rows.len());
            for (place, row) in rows.iter().enumerate() {
                let next = ledger.rows.len();
                let identity = (row.action.as_str(), row.destination.as_deref());
                // Most rows stand where they stood in the look before.
                let before = ledger.shown.last().and_then(|shown| shown.get(place)).copied();
                let same = before.filter(|at| {
                    let known: &RowFact<'_> = &ledger.rows[*at];
                    (known.action, known.destination) == identity
                });
                let at = same.unwrap_or_else(|| *index.entry(identity).or_insert(next));
                if at == next {
                    ledger.rows.push(RowFact {
                        action: &row.action,
                        destination: row.destination.as_deref(),
                        sightings: Vec::new(),
                        last: Vec::new(),
                    });
                }
                ledger.rows[at].sightings.push((number, row));
                if is_final {
                    ledger.rows[at].last.push(row);
                }
                shown.push(at);
            }
            ledger.views.push(ViewFact { seq: event.seq, at, generation: event.generation, view, is_final });
            ledger.shown.push(shown);
        }
        ledger
    }

    /// The final rows, where they could be read.
    pub(crate) fn final_rows(&self) -> Option<(u64, &'a [LedgerRow])> {
        let view = &self.views[self.last?];
        view.view.rows.as_deref().map(|rows| (view.seq, rows))
    }

    /// The first exact view after `seq` with rows.
    pub(crate) fn first_after(&self, seq: u64) -> Option<usize> {
        let from = self.readable.partition_point(|(at, _)| *at <= seq);
        self.readable.get(from).map(|(_, index)| *index)
    }

    /// The last exact view up to `seq` with rows.
    pub(crate) fn last_until(&self, seq: u64) -> Option<usize> {
        let upto = self.readable.partition_point(|(at, _)| *at <= seq);
        self.readable[..upto].last().map(|(_, index)| *index)
    }

    /// Whether a row was first seen before the worker was started.
    pub(crate) fn shown_before_start(&self, row: usize) -> bool {
        self.rows[row].sightings.first().is_some_and(|(view, _)| self.views[*view].generation == 0)
    }
}
