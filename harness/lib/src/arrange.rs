//! Puts the trials of several parts into the order of the whole run, and says what is not there.

use std::collections::{BTreeMap, VecDeque};

use killpoint_model::run::TrialRole;
use killpoint_model::shard::{LackingShard, MissingTrial, PlannedTrial};
use killpoint_model::{MergedRecord, RunRecord, ShardRecord, TrialRecord};

use crate::shard::{planned_of, shard_of};

/// A trial's place in the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Position of its part in the list of parts.
    pub(crate) part: usize,
    /// Its position in the record of its part.
    pub(crate) trial: usize,
    /// Its number in the whole run. The baselines of all parts share theirs.
    pub(crate) number: usize,
}

/// The whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arranged {
    /// Every trial of every part, in order.
    pub(crate) places: Vec<Place>,
    /// What it is put together from, and what is not there.
    pub(crate) merged: MergedRecord,
    /// How many trials not every part that knew its trials had planned.
    pub(crate) disputed: usize,
}

/// Arranges parts, which are in the order of their indices. There is at least one.
pub(crate) fn arrange(parts: &[(&RunRecord, &ShardRecord)]) -> Arranged {
    let count = parts.first().map_or(1, |(_, shard)| shard.count);
    let mut places = Vec::new();
    let mut waiting: Vec<BTreeMap<PlannedTrial, VecDeque<usize>>> = Vec::new();
    for (part, (record, _)) in parts.iter().enumerate() {
        let mut own: BTreeMap<PlannedTrial, VecDeque<usize>> = BTreeMap::new();
        let mut baselines = 0;
        for (trial, one) in record.trials.iter().enumerate() {
            if one.role == TrialRole::Faulted {
                own.entry(planned_of(one)).or_default().push_back(trial);
            } else {
                places.push(Place { part, trial, number: baselines });
                baselines += 1;
            }
        }
        waiting.push(own);
    }
    places.sort_by_key(|place| place.number);
    let baselines = places.last().map_or(0, |place| place.number + 1);
    let mut missing = Vec::new();
    for (index, trial) in whole(parts).into_iter().enumerate() {
        let shard = shard_of(&trial, count);
        let part = parts.iter().position(|(_, record)| record.index == shard);
        let found = part.and_then(|part| Some((part, waiting[part].get_mut(&trial)?.pop_front()?)));
        match found {
            Some((part, trial)) => places.push(Place { part, trial, number: baselines + index }),
            None => missing.push(MissingTrial { shard, trial }),
        }
    }
    let lacking = (1..=count).filter_map(|index| {
        let part = parts.iter().find(|(_, shard)| shard.index == index);
        lacks(part.copied(), &missing, index).map(|why| LackingShard { index, why })
    });
    let merged = MergedRecord { count, lacking: lacking.collect(), missing };
    Arranged { places, merged, disputed: disputed(parts) }
}

/// Every trial that some part planned or ran, in the order of the first list that has it. One that a list has
/// several times is there as often.
fn whole(parts: &[(&RunRecord, &ShardRecord)]) -> Vec<PlannedTrial> {
    let planned = parts.iter().map(|(_, shard)| shard.planned.clone());
    // Nothing that was recorded is dropped, whatever was planned.
    let recorded = parts.iter().map(|(record, _)| faulted(record).map(planned_of).collect());
    let mut whole = Vec::new();
    let mut known: BTreeMap<PlannedTrial, usize> = BTreeMap::new();
    for list in planned.chain(recorded) {
        let mut seen: BTreeMap<PlannedTrial, usize> = BTreeMap::new();
        for trial in list {
            let nth = seen.entry(trial.clone()).or_default();
            *nth += 1;
            let known = known.entry(trial.clone()).or_default();
            if *nth > *known {
                *known += 1;
                whole.push(trial);
            }
        }
    }
    whole
}

fn faulted(record: &RunRecord) -> impl Iterator<Item = &TrialRecord> {
    record.trials.iter().filter(|trial| trial.role == TrialRole::Faulted)
}

/// What is wrong with a part, if something is.
fn lacks(part: Option<(&RunRecord, &ShardRecord)>, missing: &[MissingTrial], index: u32) -> Option<String> {
    let missing: Vec<&MissingTrial> = missing.iter().filter(|one| one.shard == index).collect();
    let Some((record, shard)) = part else {
        return Some(format!("no run of it is there, with {} trials", missing.len()));
    };
    if record.interrupted {
        return Some(format!("it was interrupted before {} of its trials", missing.len()));
    }
    if shard.planned.is_empty() {
        return Some("it ended before its trials were known".into());
    }
    let unplanned = missing.iter().filter(|one| !shard.planned.contains(&one.trial)).count();
    match missing.len() {
        0 => None,
        all if unplanned == 0 => Some(format!("it ended before {all} of its trials")),
        _ => Some(format!(
            "it did not plan {unplanned} trials that others did: its fault-free trials reached other boundaries, or it \
             was asked for other trials"
        )),
    }
}

/// How many trials are not in the list of every part that has one.
fn disputed(parts: &[(&RunRecord, &ShardRecord)]) -> usize {
    let lists = || parts.iter().map(|(_, shard)| &shard.planned).filter(|planned| !planned.is_empty());
    let mut all: Vec<&PlannedTrial> = lists().flatten().collect();
    all.sort();
    all.dedup();
    all.into_iter().filter(|trial| lists().any(|list| !list.contains(trial))).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::plan::FaultAt;
    use killpoint_model::{Fault, Plan};

    fn plan(ordinal: u32) -> Plan {
        let at = format!("provider:committed#{ordinal}").parse().unwrap();
        let faults = vec![FaultAt { at, fault: Fault::named("kill") }];
        Plan { name: format!("kill {ordinal}"), faults, ..Plan::default() }
    }

    fn trial(role: TrialRole, plan: Plan) -> TrialRecord {
        TrialRecord {
            drawn: false,
            folder: format!("0000-{}", plan.name),
            role,
            plan,
            repetition: 1,
            verdict: None,
            replay: String::new(),
            duration_ms: 0,
            shard: None,
            source: None,
        }
    }

    /// Parts of a run whose whole list is `ordinals`, each with two baselines and all of its trials.
    fn parts(ordinals: &[u32], count: u32) -> Vec<(RunRecord, ShardRecord)> {
        let planned: Vec<PlannedTrial> =
            ordinals.iter().map(|ordinal| planned_of(&trial(TrialRole::Faulted, plan(*ordinal)))).collect();
        let part = |index| {
            let mut record = crate::check::tests::record();
            record.trials = vec![
                trial(TrialRole::Baseline, Plan::default()),
                trial(TrialRole::BaselineAgain, Plan::default()),
            ];
            let own = ordinals.iter().map(|ordinal| trial(TrialRole::Faulted, plan(*ordinal)));
            record.trials.extend(own.filter(|trial| shard_of(&planned_of(trial), count) == index));
            let settings_id = String::new();
            (record, ShardRecord { index, count, planned: planned.clone(), settings_id })
        };
        (1..=count).map(part).collect()
    }

    fn arranged(parts: &[(RunRecord, ShardRecord)]) -> Arranged {
        arrange(&parts.iter().map(|(record, shard)| (record, shard)).collect::<Vec<_>>())
    }

    fn names(parts: &[(RunRecord, ShardRecord)], arranged: &Arranged) -> Vec<(usize, String)> {
        let faulted = arranged.places.iter().filter(|place| place.number > 1);
        faulted
            .map(|place| (place.number, parts[place.part].0.trials[place.trial].plan.name.clone()))
            .collect()
    }

    fn whys(arranged: &Arranged) -> Vec<(u32, &str)> {
        arranged.merged.lacking.iter().map(|lacking| (lacking.index, lacking.why.as_str())).collect()
    }

    /// Ordinals from 9 down, so that the order of the list is not that of the names.
    const ORDINALS: [u32; 9] = [9, 8, 7, 6, 5, 4, 3, 2, 1];

    #[test]
    fn whole_parts_give_the_whole_list_in_its_order() {
        let parts = parts(&ORDINALS, 3);
        let whole = arranged(&parts);
        assert!(whole.merged.is_complete(), "{:?}", whole.merged);
        assert_eq!(whole.disputed, 0);
        let expected: Vec<_> = ORDINALS
            .iter()
            .enumerate()
            .map(|(index, ordinal)| (index + 2, format!("kill {ordinal}")))
            .collect();
        assert_eq!(names(&parts, &whole), expected);
        let numbers: Vec<(usize, usize)> =
            whole.places.iter().take(6).map(|place| (place.number, place.part)).collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn a_part_that_is_not_there_is_named_with_its_trials() {
        let mut parts = parts(&ORDINALS, 3);
        let (gone, _) = parts.remove(1);
        let whole = arranged(&parts);
        let own: Vec<PlannedTrial> = faulted(&gone).map(planned_of).collect();
        assert!(!own.is_empty());
        assert_eq!(whole.merged.missing.iter().map(|one| one.trial.clone()).collect::<Vec<_>>(), own);
        assert!(whole.merged.missing.iter().all(|one| one.shard == 2));
        let why = format!("no run of it is there, with {} trials", own.len());
        assert_eq!(whys(&whole), [(2, why.as_str())]);
        assert_eq!(names(&parts, &whole).len(), 9 - own.len());
    }

    #[test]
    fn a_part_that_is_not_there_is_lacking_though_it_has_no_trials() {
        let mut parts = parts(&[1], 40);
        let empty = parts.iter().position(|(record, _)| faulted(record).next().is_none()).unwrap();
        let (_, shard) = parts.remove(empty);
        assert_eq!(whys(&arranged(&parts)), [(shard.index, "no run of it is there, with 0 trials")]);
    }

    #[test]
    fn a_part_that_ended_early_is_lacking() {
        let mut early = parts(&ORDINALS, 3);
        early[0].0.trials.pop();
        assert_eq!(whys(&arranged(&early)), [(1, "it ended before 1 of its trials")]);
        early[0].0.interrupted = true;
        assert_eq!(whys(&arranged(&early)), [(1, "it was interrupted before 1 of its trials")]);
        let mut nothing = parts(&ORDINALS, 3);
        nothing[2].0.trials.truncate(1);
        nothing[2].1.planned.clear();
        let whole = arranged(&nothing);
        assert_eq!(whys(&whole), [(3, "it ended before its trials were known")]);
        assert!(!whole.merged.missing.is_empty());
    }

    #[test]
    fn a_trial_that_only_others_planned_is_missing_and_disputed() {
        let mut parts = parts(&ORDINALS, 3);
        let owner = parts.iter().position(|(record, _)| faulted(record).next().is_some()).unwrap();
        let dropped = planned_of(&parts[owner].0.trials.remove(2));
        parts[owner].1.planned.retain(|one| *one != dropped);
        let whole = arranged(&parts);
        assert_eq!(whole.merged.missing.iter().map(|one| &one.trial).collect::<Vec<_>>(), [&dropped]);
        assert_eq!(whole.disputed, 1);
        assert!(whys(&whole)[0].1.starts_with("it did not plan 1 trials that others did"), "{whole:?}");
    }

    #[test]
    fn what_was_recorded_is_never_dropped() {
        let mut parts = parts(&ORDINALS, 2);
        for (_, shard) in &mut parts {
            shard.planned.retain(|one| one.name != "kill 5");
        }
        let whole = arranged(&parts);
        assert!(whole.merged.is_complete());
        assert_eq!(names(&parts, &whole).last().unwrap().1, "kill 5");
        assert_eq!(names(&parts, &whole).len(), 9);
    }

    #[test]
    fn a_trial_that_is_planned_twice_is_there_twice() {
        let mut parts = parts(&[1, 1, 2], 2);
        let whole = arranged(&parts);
        assert!(whole.merged.is_complete());
        assert_eq!(names(&parts, &whole).len(), 3);
        let owner =
            parts.iter().position(|(record, _)| record.trials.iter().any(|one| one.plan.name == "kill 1"));
        let trials = &mut parts[owner.unwrap()].0.trials;
        let first = trials.iter().position(|one| one.plan.name == "kill 1").unwrap();
        trials.remove(first);
        assert_eq!(arranged(&parts).merged.missing.len(), 1);
    }
}
