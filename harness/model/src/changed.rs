//! The boundaries of a fault-free trial held against those of an earlier one: what is new, gone, more, fewer, or in
//! another place.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::EventKind;
use crate::hit::HitName;
use crate::{History, Plan};

/// A series of hits whose number changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeriesChange {
    /// The boundary without its ordinal.
    pub series: String,
    /// Hits before.
    pub before: u32,
    /// Hits now.
    pub now: u32,
}

/// What changed between two lists of hits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoundaryChanges {
    /// Hits that were not there before, in the order in which they come.
    pub new: Vec<HitName>,
    /// Hits that do not come any more.
    pub gone: Vec<HitName>,
    /// Series that were there before and still are, with another number of hits.
    pub counts: Vec<SeriesChange>,
    /// The fewest hits whose place among the others changed.
    pub moved: Vec<HitName>,
}

impl BoundaryChanges {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// The series in which something is new or changed.
    fn series(&self) -> BTreeSet<String> {
        let hits = self.new.iter().chain(&self.moved).chain(&self.gone).map(HitName::series);
        hits.chain(self.counts.iter().map(|change| change.series.clone())).collect()
    }

    /// Whether a trial of a sweep is about something that changed: a fault at a boundary of a series that did, or a
    /// provider plan without a fault where anything at the provider did.
    pub fn concern(&self, plan: &Plan) -> bool {
        let series = self.series();
        if plan.faults.is_empty() {
            return series.iter().any(|name| name.starts_with("provider:"));
        }
        plan.faults.iter().any(|fault| series.contains(&fault.at.series()))
    }
}

/// What a run that was asked for changes found and did, in its record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedRecord {
    /// The file of the stored boundaries, as the user named it.
    pub file: String,
    /// Whether there was none yet, so that nothing could be compared.
    pub is_first: bool,
    /// What changed.
    pub changes: BoundaryChanges,
    /// New hits at which no trial of the run, no committed scenario and no regression does anything.
    pub uncovered: Vec<HitName>,
    /// Trials of the sweep that were left out because nothing changed where they act.
    pub skipped: u32,
    /// Trials of the whole sweep.
    pub of: u32,
    /// Whether the file was written.
    #[serde(default)]
    pub written: bool,
    /// Why the file was not written though it was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_written: Option<String>,
}

/// The hits of a fault-free trial that a live worker reached, in order, each once.
pub fn live_hits(history: &History) -> Vec<HitName> {
    let mut seen = BTreeSet::new();
    let live = history.events.iter().filter_map(|event| match &event.event {
        EventKind::Hit { hit, live: true, .. } => Some(hit.clone()),
        _ => None,
    });
    live.filter(|hit| seen.insert(hit.clone())).collect()
}

/// What is steady in two fault-free trials: the hits of both, in the order of the first; and the positions in the
/// second, for hits that are there. What comes in one of them only is found by luck, and changes nothing.
pub fn steady(one: &[HitName], other: &[HitName]) -> Vec<HitName> {
    let there: BTreeSet<&HitName> = other.iter().collect();
    one.iter().filter(|hit| there.contains(hit)).cloned().collect()
}

/// Compares the hits of two fault-free trials of now with a stored list. A hit counts as gone only where neither of
/// the two has it, and as new where both do; an order counts only where both agree on it.
pub fn compare(stored: &[HitName], one: &[HitName], other: &[HitName]) -> BoundaryChanges {
    let before: BTreeSet<&HitName> = stored.iter().collect();
    let either: BTreeSet<&HitName> = one.iter().chain(other).collect();
    let now = steady(one, other);
    let new: Vec<HitName> = now.iter().filter(|hit| !before.contains(hit)).cloned().collect();
    let gone: Vec<HitName> = stored.iter().filter(|hit| !either.contains(hit)).cloned().collect();
    let common = |list: &[HitName]| -> Vec<HitName> {
        let both = now.iter().filter(|hit| before.contains(hit)).collect::<BTreeSet<_>>();
        list.iter().filter(|hit| both.contains(hit)).cloned().collect()
    };
    let agreed = common(one) == common(other);
    let moved = if agreed { moved(&common(stored), &common(one)) } else { Vec::new() };
    BoundaryChanges { counts: counts(stored, &new, &gone), new, gone, moved }
}

fn counts(stored: &[HitName], new: &[HitName], gone: &[HitName]) -> Vec<SeriesChange> {
    let tally = |list: &[HitName]| {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for hit in list {
            *counts.entry(hit.series()).or_default() += 1;
        }
        counts
    };
    let (more, fewer) = (tally(new), tally(gone));
    tally(stored)
        .into_iter()
        .filter_map(|(series, before)| {
            let added = more.get(&series).copied().unwrap_or_default();
            let now = before + added - fewer.get(&series).copied().unwrap_or_default();
            (now != before && now > 0).then_some(SeriesChange { series, before, now })
        })
        .collect()
}

/// The fewest hits that have to be taken away so that the rest is in the same order: those that are not in a longest
/// increasing subsequence of the old positions.
fn moved(before: &[HitName], now: &[HitName]) -> Vec<HitName> {
    let places: BTreeMap<&HitName, usize> = before.iter().enumerate().map(|(at, hit)| (hit, at)).collect();
    let old: Vec<usize> = now.iter().filter_map(|hit| places.get(hit).copied()).collect();
    // `ends[k]` is the position in `old` of the smallest end of an increasing sequence of k + 1 places.
    let (mut ends, mut previous): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (at, place) in old.iter().enumerate() {
        let length = ends.partition_point(|end| old[*end] < *place);
        previous.push(length.checked_sub(1).map(|before| ends[before]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut kept = BTreeSet::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        kept.insert(at);
        next = previous[at];
    }
    now.iter().enumerate().filter(|(at, _)| !kept.contains(at)).map(|(_, hit)| hit.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FaultAt;
    use crate::{Fault, Rule};
    use proptest::prelude::*;

    fn hits(names: &[&str]) -> Vec<HitName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn names(hits: &[HitName]) -> Vec<String> {
        hits.iter().map(ToString::to_string).collect()
    }

    const STORED: &[&str] =
        &["mark:claimed#1", "provider:received#1", "provider:committed#1", "ledger:confirmed#1"];

    #[test]
    fn the_same_boundaries_are_no_change() {
        let stored = hits(STORED);
        assert!(compare(&stored, &stored, &stored).is_empty());
    }

    #[test]
    fn what_is_new_gone_more_and_elsewhere_is_named() {
        let now =
            hits(&["provider:received#1", "mark:claimed#1", "provider:committed#1", "provider:committed#2"]);
        let changes = compare(&hits(STORED), &now, &now);
        assert_eq!(names(&changes.new), ["provider:committed#2"]);
        assert_eq!(names(&changes.gone), ["ledger:confirmed#1"]);
        assert_eq!(changes.counts, [SeriesChange { series: "provider:committed".into(), before: 1, now: 2 }]);
        assert_eq!(changes.moved.len(), 1, "one of the two that changed places");
    }

    #[test]
    fn what_only_one_of_two_fault_free_trials_has_is_luck() {
        let stored = hits(STORED);
        let more = hits(&[STORED, &["ledger:removed#1"]].concat());
        assert!(compare(&stored, &more, &stored).is_empty());
        assert!(compare(&stored, &stored[..3], &stored).is_empty(), "it is not gone");
        let mut swapped = stored.clone();
        swapped.swap(0, 1);
        assert!(compare(&stored, &swapped, &stored).is_empty(), "the two do not agree on an order");
        assert_eq!(compare(&stored, &swapped, &swapped).moved.len(), 1);
    }

    #[test]
    fn a_trial_is_concerned_by_its_series_and_a_provider_plan_by_the_provider() {
        let kill = |at: &str| Plan {
            faults: vec![FaultAt { at: at.parse().unwrap(), fault: Fault::named("kill") }],
            ..Plan::default()
        };
        let rule = Rule {
            id: "plan".into(),
            matches: crate::plan::Match::default(),
            plan: crate::ProviderPlan::default(),
            times: None,
        };
        let plan = Plan { rules: vec![rule], ..Plan::default() };
        let changes = BoundaryChanges { new: hits(&["provider:committed#2"]), ..BoundaryChanges::default() };
        assert!(changes.concern(&kill("provider:committed#1")) && changes.concern(&plan));
        assert!(!changes.concern(&kill("mark:claimed#1")));
        let changes = BoundaryChanges { gone: hits(&["mark:claimed#2"]), ..BoundaryChanges::default() };
        assert!(changes.concern(&kill("mark:claimed#1")) && !changes.concern(&plan));
        assert!(!BoundaryChanges::default().concern(&kill("mark:claimed#1")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_is_told_leads_from_the_one_list_to_the_other(
            before in prop::collection::btree_set(0_u32..12, 0..10),
            now in Just((0_u32..12).collect::<Vec<_>>()).prop_shuffle(),
            length in 0_usize..12,
        ) {
            let name = |number: &u32| HitName::new(crate::Source::Mark, format!("m{}", number / 3), number % 3 + 1);
            let before: Vec<HitName> = before.iter().map(name).collect();
            let now: Vec<HitName> = now[..length].iter().map(name).collect();
            let changes = compare(&before, &now, &now);
            let set = |list: &[HitName]| list.iter().cloned().collect::<BTreeSet<_>>();
            let mut made: BTreeSet<HitName> = set(&before).difference(&set(&changes.gone)).cloned().collect();
            made.extend(changes.new.iter().cloned());
            prop_assert_eq!(made, set(&now));
            let stays = |list: &[HitName]| -> Vec<HitName> {
                let left_out: BTreeSet<_> = set(&[changes.moved.clone(), changes.new.clone(), changes.gone.clone()].concat());
                list.iter().filter(|hit| !left_out.contains(hit)).cloned().collect()
            };
            prop_assert_eq!(stays(&before), stays(&now), "without what moved, the order is the same");
            prop_assert_eq!(changes.is_empty(), before == now);
        }
    }
}
