//! When a claim has ended. No wall clock can tell, because its owner's may differ: a claim has ended when it was
//! seen here, unchanged, for as long as it lasts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::clock::now_ms;
use crate::policy::Recovery;
use crate::store::Item;

/// The claims of others, and since when they have been as they are.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    seen: BTreeMap<String, ((i64, i64), Instant)>,
    /// Whether this worker has looked before.
    looked: bool,
}

impl Sightings {
    /// Takes note of all claims, and returns the first item whose claim has ended.
    pub(crate) fn first_orphan(&mut self, claimed: Vec<Item>, recovery: Recovery) -> Option<Item> {
        self.seen.retain(|id, _| claimed.iter().any(|item| item.id == *id));
        let is_start = !std::mem::replace(&mut self.looked, true);
        let now = Instant::now();
        let mut orphan = None;
        for item in claimed {
            let (claim, since) = self.seen.entry(item.id.clone()).or_insert((item.claim(), now));
            if *claim != item.claim() {
                (*claim, *since) = (item.claim(), now);
            }
            let has_ended = match recovery {
                Recovery::Observed => {
                    now.duration_since(*since) >= Duration::from_millis(item.lease_ms.max(0).unsigned_abs())
                }
                Recovery::ByWallClock => item.lease_until <= now_ms(),
                Recovery::AtStartOnly => is_start && item.lease_until <= now_ms(),
                Recovery::Never => false,
            };
            if has_ended && orphan.is_none() {
                orphan = Some(item);
            }
        }
        orphan
    }
}
