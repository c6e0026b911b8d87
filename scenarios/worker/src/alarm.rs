//! The alarm: lines on stderr that begin with `ALARM`, for whoever is on duty.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::clock::now_ms;
use crate::error::WorkerError;
use crate::store::Store;

/// How often overdue rows are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Raises an alarm.
pub(crate) fn raise(what: &str) {
    // Nothing can be done about a closed stderr.
    let _ = writeln!(std::io::stderr(), "ALARM {what}");
}

/// Looks for rows that should have been taken up long ago, by whomever. Each is told of once per life.
#[derive(Debug)]
pub(crate) struct Overdue {
    bound_ms: i64,
    looked: Option<Instant>,
    told: BTreeSet<String>,
}

impl Overdue {
    /// `bound_ms` is how long a row may be due without anything happening to it.
    pub(crate) fn new(bound_ms: i64) -> Self {
        Self { bound_ms, looked: None, told: BTreeSet::new() }
    }

    pub(crate) fn look(&mut self, store: &Store) -> Result<(), WorkerError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let now = now_ms();
        for (id, due_at) in store.due_before(now - self.bound_ms)? {
            if self.told.insert(id.clone()) {
                raise(&format!("overdue {id}: due for {} ms", now - due_at));
            }
        }
        Ok(())
    }
}
