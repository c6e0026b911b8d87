//! Schedules: each occurrence becomes a run with an identity of its own, in the transaction that moves the
//! schedule on.

use rusqlite::{Transaction, params};

use super::{Store, executions};
use crate::clock::now_ms;
use crate::error::WorkerError;

/// How long ago an occurrence must have been due to count as missed, in milliseconds: less is a busy moment.
const MISSED_AFTER_MS: i64 = 2000;

/// What happens at regular times. `#` in the texts stands for the occurrence's number, from 1.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// The runs' ids.
    pub(crate) run_id: String,
    /// Where the result goes.
    pub(crate) destination: String,
    /// What to work on.
    pub(crate) input: String,
    /// When the first occurrence is due, on the worker's clock.
    pub(crate) start_at: i64,
    /// Between two occurrences, in milliseconds.
    pub(crate) every_ms: i64,
    /// How many there are.
    pub(crate) occurrences: i64,
}

impl Schedule {
    fn due_at(&self, number: i64) -> i64 {
        self.start_at.saturating_add((number - 1).saturating_mul(self.every_ms))
    }

    /// The last occurrence that is due; 0 where none is.
    fn last_due(&self, now: i64) -> i64 {
        let since = now - self.start_at;
        if since < 0 { 0 } else { (since / self.every_ms + 1).min(self.occurrences) }
    }
}

impl Store {
    /// Registers a schedule. One that is there already is left as it is.
    pub(crate) fn register(&self, schedule: &Schedule) -> Result<(), WorkerError> {
        self.connection.execute(
            "INSERT INTO schedules (run_id, destination, input, start_at, every_ms, occurrences)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (run_id) DO NOTHING",
            params![
                schedule.run_id,
                schedule.destination,
                schedule.input,
                schedule.start_at,
                schedule.every_ms,
                schedule.occurrences
            ],
        )?;
        Ok(())
    }

    /// Makes runs of the occurrences that are due. Of several that were missed only the latest is to be done; the
    /// others are recorded as cancelled. `again` is what a bug appends to the id of an occurrence that is there already.
    /// Says whether there were any.
    pub(crate) fn fire(&mut self, again: Option<&str>) -> Result<bool, WorkerError> {
        let now = now_ms();
        if !self.is_any_due(now)? {
            return Ok(false);
        }
        let transaction = self.immediate()?;
        for (schedule, next) in due(&transaction, now)? {
            let last = schedule.last_due(now);
            for number in next..=last {
                let is_missed = number < last && now - schedule.due_at(number) > MISSED_AFTER_MS;
                materialise(&transaction, &schedule, number, is_missed, again)?;
            }
            transaction.execute(
                "UPDATE schedules SET next = ?2 WHERE run_id = ?1",
                params![schedule.run_id, last + 1],
            )?;
        }
        transaction.commit()?;
        Ok(true)
    }

    /// Whether an occurrence is still to come.
    pub(crate) fn owes_occurrence(&self) -> Result<bool, WorkerError> {
        Ok(self.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM schedules WHERE next <= occurrences)",
            [],
            |row| row.get(0),
        )?)
    }

    fn is_any_due(&self, now: i64) -> Result<bool, WorkerError> {
        Ok(self.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM schedules
                 WHERE next <= occurrences AND start_at + (next - 1) * every_ms <= ?1)",
            params![now],
            |row| row.get(0),
        )?)
    }
}

fn due(transaction: &Transaction<'_>, now: i64) -> Result<Vec<(Schedule, i64)>, WorkerError> {
    let mut statement = transaction.prepare(
        "SELECT * FROM schedules WHERE next <= occurrences AND start_at + (next - 1) * every_ms <= ?1",
    )?;
    let schedules = statement.query_map(params![now], |row| {
        let schedule = Schedule {
            run_id: row.get("run_id")?,
            destination: row.get("destination")?,
            input: row.get("input")?,
            start_at: row.get("start_at")?,
            every_ms: row.get("every_ms")?,
            occurrences: row.get("occurrences")?,
        };
        Ok((schedule, row.get("next")?))
    })?;
    Ok(schedules.collect::<Result<_, _>>()?)
}

fn materialise(
    transaction: &Transaction<'_>,
    schedule: &Schedule,
    number: i64,
    is_missed: bool,
    again: Option<&str>,
) -> Result<(), WorkerError> {
    let of = |text: &str| text.replace('#', &number.to_string());
    let (mut run_id, destinations) = (of(&schedule.run_id), [of(&schedule.destination)]);
    let mut is_new = executions::insert_run(transaction, &run_id, &destinations, &of(&schedule.input))?;
    if let (false, Some(again)) = (is_new, again) {
        run_id.push_str(again);
        is_new = executions::insert_run(transaction, &run_id, &destinations, &of(&schedule.input))?;
    }
    if is_missed && is_new {
        transaction.execute(
            "UPDATE executions SET execution_status = 'cancelled', finished_at = ?2,
                 evidence = 'missed while no worker ran; a later occurrence is sent instead'
             WHERE run_id = ?1",
            params![run_id, now_ms()],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Durability;

    fn schedule(start_at: i64) -> Schedule {
        Schedule {
            run_id: "tick-#".into(),
            destination: "user#@example.test".into(),
            input: "hello #".into(),
            start_at,
            every_ms: 3_600_000,
            occurrences: 5,
        }
    }

    fn runs(store: &Store) -> Vec<(String, String)> {
        let mut statement = store
            .connection()
            .prepare("SELECT run_id, execution_status FROM executions ORDER BY rowid")
            .unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn of_missed_occurrences_the_latest_is_done_and_the_others_are_recorded() {
        let mut store = Store::open(std::path::Path::new(":memory:"), Durability::Full).unwrap();
        store.register(&schedule(now_ms() - 3 * 3_600_000 + 60_000)).unwrap();
        assert!(store.fire(None).unwrap());
        let expected = [("tick-1", "cancelled"), ("tick-2", "cancelled"), ("tick-3", "pending")];
        assert_eq!(runs(&store), expected.map(|(id, state)| (id.to_owned(), state.to_owned())));
        assert!(!store.fire(None).unwrap(), "once each");
        assert!(store.owes_occurrence().unwrap(), "two are still to come");
    }

    #[test]
    fn nothing_is_due_before_its_time_and_nothing_after_the_last() {
        let schedule = schedule(1000);
        let hour = 3_600_000;
        assert_eq!([0, 999, 1000, hour + 1000, 99 * hour].map(|now| schedule.last_due(now)), [0, 0, 1, 2, 5]);
    }
}
