//! One part of a run: which of its trials belong to it.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use killpoint_model::shard::PlannedTrial;
use killpoint_model::{Plan, Settings, ShardRecord, TrialRecord};
use sha2::{Digest, Sha256};

/// Into how many parts a run can be divided at most.
const COUNT_MAX: u32 = 1000;

/// One of several parts of a run, written `2/4`. The baselines are in every part, because trials are compared with
/// them; every other trial is in exactly one, by what it does and not by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Why a text names no part of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Not two numbers.
    #[error("a shard is written I/N, such as 2/4 for the second of four")]
    NotTwoNumbers,
    /// No parts, or too many.
    #[error("a run can be divided into 1 to {COUNT_MAX} shards, not {0}")]
    Count(u32),
    /// There is no such part.
    #[error("there is no shard {index} of {count}; they are counted from 1")]
    Index {
        /// Which one was asked for.
        index: u32,
        /// How many there are.
        count: u32,
    },
}

impl Shard {
    /// The part `index` (from 1) of `count`.
    ///
    /// # Errors
    /// There is no such part, or there are too many.
    pub const fn new(index: u32, count: u32) -> Result<Self, ShardError> {
        if count == 0 || count > COUNT_MAX {
            return Err(ShardError::Count(count));
        }
        if index == 0 || index > count {
            return Err(ShardError::Index { index, count });
        }
        Ok(Self { index, count })
    }

    /// Whether a trial belongs to this part.
    pub fn has(self, trial: &PlannedTrial) -> bool {
        shard_of(trial, self.count) == self.index
    }

    /// What a run's record says of the part before its trials are known.
    pub(crate) fn record(self, settings: &Settings) -> ShardRecord {
        let Self { index, count } = self;
        ShardRecord { index, count, planned: Vec::new(), settings_id: settings_id(settings) }
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| ShardError::NotTwoNumbers);
        let (index, count) = text.split_once('/').ok_or(ShardError::NotTwoNumbers)?;
        Self::new(number(index)?, number(count)?)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The part, from 1, to which a trial belongs: a function of what it does and of its repetition alone.
pub(crate) fn shard_of(trial: &PlannedTrial, count: u32) -> u32 {
    let digest = Sha256::digest(format!("{}#{}", trial.content_id, trial.repetition));
    let begin = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    (begin % u64::from(count.max(1))) as u32 + 1
}

/// What tells a planned trial from others.
pub(crate) fn planned(plan: &Plan, repetition: u32) -> PlannedTrial {
    PlannedTrial { content_id: plan.content_id(), name: plan.name.clone(), repetition }
}

/// The same of a trial on record.
pub(crate) fn planned_of(trial: &TrialRecord) -> PlannedTrial {
    planned(&trial.plan, trial.repetition)
}

/// SHA-256 of settings as they are written down: parts with different ones are no parts of one run.
pub(crate) fn settings_id(settings: &Settings) -> String {
    // Settings have only text keys, so this can't fail; maps are ordered, so it is the same each time.
    let text = serde_json::to_vec(settings).unwrap_or_default();
    Sha256::digest(text).iter().fold(String::new(), |mut id, byte| {
        // Writing to a String cannot fail.
        let _ = write!(id, "{byte:02x}");
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::{Fault, plan::FaultAt};
    use proptest::prelude::*;

    fn trial(number: u32) -> PlannedTrial {
        PlannedTrial {
            content_id: format!("{:016x}", number / 3),
            name: format!("trial {number}"),
            repetition: 1 + number % 3,
        }
    }

    #[test]
    fn shards_are_read_and_shown() {
        assert_eq!("2/4".parse::<Shard>().map(|shard| shard.to_string()), Ok("2/4".to_owned()));
        assert_eq!("1000/1000".parse::<Shard>(), Shard::new(1000, 1000));
        for (text, error) in [
            ("", ShardError::NotTwoNumbers),
            ("3", ShardError::NotTwoNumbers),
            ("a/4", ShardError::NotTwoNumbers),
            ("1/4/4", ShardError::NotTwoNumbers),
            ("-1/4", ShardError::NotTwoNumbers),
            ("1/99999999999", ShardError::NotTwoNumbers),
            ("1/0", ShardError::Count(0)),
            ("1/1001", ShardError::Count(1001)),
            ("0/4", ShardError::Index { index: 0, count: 4 }),
            ("5/4", ShardError::Index { index: 5, count: 4 }),
        ] {
            assert_eq!(text.parse::<Shard>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_trial_belongs_to_the_same_shard_on_every_machine_and_in_every_version() {
        let at = "provider:committed#1".parse().unwrap();
        let kill = Plan { faults: vec![FaultAt { at, fault: Fault::named("kill") }], ..Plan::default() };
        let shards: Vec<u32> = (1..=6).map(|again| shard_of(&planned(&kill, again), 1000)).collect();
        assert_eq!(shards, [455, 78, 467, 250, 446, 293]);
    }

    #[test]
    fn a_name_is_not_what_a_trial_does() {
        let renamed = PlannedTrial { name: "another".into(), ..trial(1) };
        assert_eq!(shard_of(&renamed, 97), shard_of(&trial(1), 97));
    }

    #[test]
    fn settings_that_differ_have_another_id() {
        let mut settings = Settings::default();
        let before = settings_id(&settings);
        assert_eq!(before.len(), 64);
        assert_eq!(before, settings_id(&settings.clone()));
        settings.checks.attempts_max += 1;
        assert_ne!(before, settings_id(&settings));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn each_trial_is_in_exactly_one_shard(count in 1..=COUNT_MAX, number in 0_u32..5000) {
            let trial = trial(number);
            let shards = (1..=count).map(|index| Shard::new(index, count).unwrap());
            prop_assert_eq!(shards.filter(|shard| shard.has(&trial)).count(), 1);
        }

        #[test]
        fn neither_order_nor_additions_move_a_trial(
            count in 1_u32..50,
            numbers in prop::collection::btree_set(0_u32..500, 1..40),
            more in prop::collection::btree_set(500_u32..900, 0..20),
        ) {
            let of = |list: &[u32], index| {
                let shard = Shard::new(index, count).unwrap();
                list.iter().copied().filter(|number| shard.has(&trial(*number))).collect::<std::collections::BTreeSet<_>>()
            };
            let list: Vec<u32> = numbers.iter().copied().collect();
            let longer: Vec<u32> = more.iter().chain(numbers.iter().rev()).copied().collect();
            for index in 1..=count {
                let before = of(&list, index);
                let after: std::collections::BTreeSet<u32> = of(&longer, index).intersection(&numbers).copied().collect();
                prop_assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn many_trials_are_spread_over_all_shards() {
        for count in 1..9 {
            let mut sizes = vec![0_u32; count as usize];
            for number in 0..400 {
                sizes[shard_of(&trial(number), count) as usize - 1] += 1;
            }
            let fair = 400 / count;
            assert!(sizes.iter().all(|size| (fair / 2..=2 * fair).contains(size)), "{sizes:?}");
        }
    }
}
