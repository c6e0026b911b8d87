//! Every item of the inbound feed is processed once.

use std::collections::{BTreeMap, BTreeSet};

use killpoint_model::Entry;
use killpoint_model::provider::ProviderEvent;

use super::{Invariant, Looked};
use crate::facts::Facts;
use crate::facts::units::Book;
use crate::volatile::leaves;

static ENTRY: Entry = Entry {
    name: "processed-equals-fed",
    summary: "each item of the inbound feed has its effect or its row, and none has two",
    explanation: "\
An item that the feed gave has neither an effect nor a row at the end, or has more than one. A cursor was written \
before the item was handed over, so a death in between skips it; or after its effect, so a death in between does it \
again; a redelivered item was taken for a new one; or the cursor belongs to another account and the items before it were \
never asked for.

Right is one transaction for the item's row and the cursor, and an acknowledgement after it; what comes again is found \
by its id. Fed, rows and effects are the same number. (K18 inbound-cursor-wrong, K16 progress-recorded-before-effect.)",
    example: "[inbound]\nitems = 3\npage = 2\nredeliver = [2]",
};

/// See [`ENTRY`].
pub(crate) struct ProcessedEqualsFed;

impl Invariant for ProcessedEqualsFed {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "the worker polled no item of an inbound feed: configure `[inbound]` with `items`",
        );
        let mut fed = Fed::read(&facts.book);
        let given = fed.items.len();
        for (item, _) in facts.baseline.iter().flat_map(|baseline| Fed::read(baseline).items) {
            fed.items.entry(item).or_default();
        }
        let items: BTreeSet<&str> = fed.items.keys().copied().collect();
        if items.is_empty() {
            return looked;
        }
        let here = Processed::of(&facts.book, &items);
        let there = facts.baseline.as_ref().map(|baseline| Processed::of(baseline, &items));
        let matched = !here.is_empty() || there.as_ref().is_some_and(|there| !there.is_empty());
        if !matched {
            without_ids(facts, given, &mut looked);
            return looked;
        }
        for (item, seqs) in &fed.items {
            looked.look();
            let expected = there.as_ref().map_or(1, |there| there.count(item)).max(1);
            judge(facts, item, seqs, &here, expected, &mut looked);
        }
        looked
    }
}

fn judge(
    facts: &Facts<'_>,
    item: &str,
    seqs: &[u64],
    here: &Processed<'_>,
    expected: usize,
    looked: &mut Looked,
) {
    let effects = here.effects.get(item).map_or(&[][..], Vec::as_slice);
    let rows = here.rows.get(item).copied().unwrap_or(0);
    let events =
        |more: &[u64]| -> Vec<u64> { seqs.iter().chain(more).copied().chain([facts.final_seq]).collect() };
    if effects.len() > expected {
        let message = format!("it has {} effects, {expected} is right", effects.len());
        looked.violation(format!("the item {item}"), message, events(effects));
    } else if rows > expected {
        let message = format!("it has {rows} rows, {expected} is right");
        looked.violation(format!("the item {item}"), message, events(&[]));
    } else if effects.is_empty() && rows == 0 {
        let what = if seqs.is_empty() { "it was never asked for" } else { "it was given to the worker" };
        let message = format!("{what}, and it has neither an effect nor a row");
        // Without rows a worker that parked it openly looks the same.
        if !facts.is_mapped() && !facts.new_words.is_empty() {
            looked.doubt(format!("the item {item}"), message, events(&[]));
        } else {
            looked.violation(format!("the item {item}"), message, events(&[]));
        }
    }
}

/// Nothing bears the items' ids: only their number can be compared.
fn without_ids(facts: &Facts<'_>, given: usize, looked: &mut Looked) {
    let made: u32 = facts.units().map(|(_, _, account)| account.made).sum();
    if made as usize == given {
        looked.look_at(given as u32);
    } else {
        looked.doubt(
            "the inbound feed",
            format!(
                "{given} items were given and {made} effects made, and none bears an item's id: let `action` or the key carry it"
            ),
            vec![facts.final_seq],
        );
    }
}

/// Items that the feed gave, each with the polls that gave it.
struct Fed<'b> {
    items: BTreeMap<&'b str, Vec<u64>>,
}

impl<'b> Fed<'b> {
    fn read(book: &Book<'b>) -> Self {
        let mut items: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (seq, event) in &book.wire.apart {
            let ProviderEvent::Fed { items: given, .. } = event else { continue };
            for item in given {
                items.entry(item).or_default().push(*seq);
            }
        }
        Self { items }
    }
}

/// What bears the id of each item.
struct Processed<'b> {
    effects: BTreeMap<&'b str, Vec<u64>>,
    rows: BTreeMap<&'b str, usize>,
}

impl<'b> Processed<'b> {
    fn of(book: &Book<'_>, items: &BTreeSet<&'b str>) -> Self {
        let mut processed = Self { effects: BTreeMap::new(), rows: BTreeMap::new() };
        for fact in book.wire.effects.iter().filter(|fact| fact.first_of_attempt) {
            let effect = fact.effect;
            let mut words: Vec<&str> =
                effect.action.as_deref().into_iter().chain(effect.key.as_deref()).collect();
            leaves(&effect.body, &mut words);
            for item in named(&words, items) {
                processed.effects.entry(item).or_default().push(fact.seq);
            }
        }
        for row in book.ledger.rows.iter().filter(|row| !row.last.is_empty()) {
            let last = row.last[0];
            let words: Vec<&str> = [row.action].into_iter().chain(last.key.as_deref()).collect();
            for item in named(&words, items) {
                *processed.rows.entry(item).or_default() += row.last.len();
            }
        }
        processed
    }

    fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.rows.is_empty()
    }

    fn count(&self, item: &str) -> usize {
        let effects = self.effects.get(item).map_or(0, Vec::len);
        effects.max(self.rows.get(item).copied().unwrap_or(0))
    }
}

/// Items whose id stands in one of the words, alone or between separators.
fn named<'b>(words: &[&str], items: &BTreeSet<&'b str>) -> BTreeSet<&'b str> {
    /// A name with more parts names no item.
    const PARTS_MAX: usize = 16;
    let mut found = BTreeSet::new();
    for word in words {
        found.extend(items.get(*word).copied());
        let mut starts: Vec<usize> = vec![0];
        let mut ends: Vec<usize> = Vec::new();
        for (at, separator) in word.match_indices(|c: char| !c.is_alphanumeric()).take(PARTS_MAX) {
            ends.push(at);
            starts.push(at + separator.len());
        }
        ends.push(word.len());
        for start in &starts {
            let pieces = ends.iter().filter(|end| *end > start).map(|end| &word[*start..*end]);
            found.extend(pieces.filter_map(|piece| items.get(piece).copied()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use killpoint_model::Settings;
    use killpoint_model::finding::InvariantStatus::{Holds, Inconclusive, NotShown, Violated};
    use killpoint_model::provider::ProviderEvent;
    use killpoint_model::{History, RowState};

    use super::named;
    use crate::sample::{Trial, judged, mapped, outcome, plain_baseline, row, status};

    const NAME: &str = "processed-equals-fed";

    fn fed(items: &[&str]) -> Trial {
        let mut trial = Trial::new();
        let items = items.iter().map(|item| (*item).to_owned()).collect();
        trial.provider(ProviderEvent::Fed { poll: 1, cursor: String::new(), items, again: Vec::new() });
        trial
    }

    fn answered(trial: &mut Trial, item: &str) {
        trial.deliver("bob@x", Some(&format!("k-{item}")), "hello");
    }

    fn processed(given: &[&str], done: &[&str]) -> History {
        let mut trial = fed(given);
        for item in done {
            answered(&mut trial, item);
        }
        trial.end()
    }

    fn verdict(given: &[&str], done: &[&str]) -> killpoint_model::finding::InvariantStatus {
        let baseline = processed(&["in-1", "in-2"], &["in-1", "in-2"]);
        outcome(&judged(&Settings::default(), &processed(given, done), &baseline), NAME).status
    }

    #[test]
    fn each_item_once() {
        assert_eq!(verdict(&["in-1", "in-2"], &["in-1", "in-2"]), Holds);
        assert_eq!(verdict(&["in-1", "in-2"], &["in-1"]), Violated, "skipped");
        assert_eq!(verdict(&["in-1", "in-2"], &["in-1", "in-2", "in-2"]), Violated, "twice");
        assert_eq!(verdict(&["in-2"], &["in-2"]), Violated, "the first was never asked for");
        assert_eq!(status(&Settings::default(), &plain_baseline(), NAME), NotShown);
    }

    #[test]
    fn a_row_is_enough_and_a_redelivery_changes_nothing() {
        let mut parked = fed(&["in-1"]);
        let items = vec!["in-1".to_owned()];
        parked.provider(ProviderEvent::Fed {
            poll: 2,
            cursor: "1".into(),
            items: items.clone(),
            again: items,
        });
        let rows = |state| vec![row("in-1", "bob@x", state)];
        let baseline = {
            let mut trial = fed(&["in-1"]);
            answered(&mut trial, "in-1");
            trial.end_rows(rows(RowState::Confirmed))
        };
        let verdict = judged(&mapped(), &parked.end_rows(rows(RowState::Review)), &baseline);
        assert_eq!(outcome(&verdict, NAME).status, Holds);
        let twice = vec![row("in-1", "bob@x", RowState::Review), row("in-1:b", "bob@x", RowState::Review)];
        let verdict = judged(&mapped(), &parked.end_rows(twice), &baseline);
        assert_eq!(outcome(&verdict, NAME).status, Violated);
    }

    #[test]
    fn without_ids_only_the_number_tells() {
        let plain = |times: usize| {
            let mut trial = fed(&["in-1", "in-2"]);
            (0..times).for_each(|n| _ = trial.deliver("bob@x", None, &format!("hello {n}")));
            trial.end()
        };
        let verdict = |times| outcome(&judged(&Settings::default(), &plain(times), &plain(2)), NAME).status;
        assert_eq!(verdict(2), Holds);
        assert_eq!(verdict(1), Inconclusive);
    }

    #[test]
    fn an_id_is_a_whole_name() {
        let items = BTreeSet::from(["in-1", "in-10"]);
        assert_eq!(named(&["msg:in-10/bob"], &items), BTreeSet::from(["in-10"]));
        assert_eq!(named(&["k-in-1"], &items), BTreeSet::from(["in-1"]));
        assert_eq!(named(&["begin-1", "in-100"], &items), BTreeSet::new());
    }
}
