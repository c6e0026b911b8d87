//! A table of choices with weights, from which a number chooses: smaller numbers choose earlier ones, so that a
//! choice shrinks towards the beginning of the table.

use std::ops::Range;

#[derive(Debug, Clone)]
pub(super) struct Weighted<T> {
    items: Vec<T>,
    /// For each item, the sum of the weights up to and with it.
    ends: Vec<u32>,
}

impl<T> Weighted<T> {
    /// Items without weight are left out.
    pub(super) fn new(items: impl IntoIterator<Item = (u32, T)>) -> Self {
        let mut table = Self { items: Vec::new(), ends: Vec::new() };
        for (weight, item) in items {
            let total = table.total().checked_add(weight);
            if let Some(end) = total.filter(|_| weight > 0) {
                table.items.push(item);
                table.ends.push(end);
            }
        }
        table
    }

    pub(super) fn total(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The numbers that choose; `0..1` in an empty table, of which no number chooses.
    pub(super) fn draws(&self) -> Range<u32> {
        0..self.total().max(1)
    }

    pub(super) fn pick(&self, draw: u32) -> Option<&T> {
        self.items.get(self.ends.partition_point(|end| *end <= draw))
    }

    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_chooses_by_weight() {
        let table = Weighted::new([(2, 'a'), (0, 'b'), (1, 'c')]);
        let chosen: String = table.draws().filter_map(|draw| table.pick(draw)).collect();
        assert_eq!((chosen.as_str(), table.pick(3)), ("aac", None));
        let empty: Weighted<char> = Weighted::new([]);
        assert_eq!((empty.draws(), empty.pick(0)), (0..1, None));
    }
}
