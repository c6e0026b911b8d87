//! The inbox: an item of the feed becomes a run, its id a marker and its page a cursor in one transaction.

use rusqlite::params;

use super::{Store, executions};
use crate::error::WorkerError;

/// One item of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedItem {
    /// Its identity at the feed, and the run's.
    pub(crate) id: String,
    /// Where what follows from it goes.
    pub(crate) to: Vec<String>,
    /// Its text.
    pub(crate) body: String,
}

impl Store {
    /// Where the next poll goes on.
    pub(crate) fn cursor(&self) -> Result<String, WorkerError> {
        Ok(self.connection.query_row("SELECT cursor FROM feed", [], |row| row.get(0))?)
    }

    /// Commits items and cursor together. An item that is known already is left as it is.
    pub(crate) fn take_in(&mut self, items: &[FeedItem], cursor: &str) -> Result<(), WorkerError> {
        let transaction = self.immediate()?;
        for item in items {
            let new = transaction.execute(
                "INSERT INTO inbox (item_id) VALUES (?1) ON CONFLICT (item_id) DO NOTHING",
                params![item.id],
            )?;
            if new == 1 {
                executions::insert_run(&transaction, &item.id, &item.to, &item.body)?;
            } else {
                // It was given again, so the feed does not know that it arrived.
                transaction
                    .execute("UPDATE inbox SET acknowledged = 0 WHERE item_id = ?1", params![item.id])?;
            }
        }
        transaction.execute("UPDATE feed SET cursor = ?1", params![cursor])?;
        transaction.commit()?;
        Ok(())
    }

    /// Items whose arrival the feed has not confirmed yet.
    pub(crate) fn unacknowledged(&self) -> Result<Vec<String>, WorkerError> {
        let mut statement =
            self.connection.prepare("SELECT item_id FROM inbox WHERE NOT acknowledged ORDER BY rowid")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Notes that the feed confirmed their arrival.
    pub(crate) fn note_acknowledged(&mut self, items: &[String]) -> Result<(), WorkerError> {
        let transaction = self.immediate()?;
        for item in items {
            transaction.execute("UPDATE inbox SET acknowledged = 1 WHERE item_id = ?1", params![item])?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Moves the cursor alone: what the worker does that acknowledges before it has anything.
    pub(crate) fn move_cursor(&self, cursor: &str) -> Result<(), WorkerError> {
        self.connection.execute("UPDATE feed SET cursor = ?1", params![cursor])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Durability;

    #[test]
    fn an_item_that_is_given_again_is_acknowledged_again_and_done_once() {
        let mut store = Store::open(std::path::Path::new(":memory:"), Durability::Full).unwrap();
        let item = FeedItem { id: "in-1".into(), to: vec!["x".into()], body: "text".into() };
        store.take_in(std::slice::from_ref(&item), "1").unwrap();
        assert_eq!(store.unacknowledged().unwrap(), ["in-1"]);
        store.note_acknowledged(&["in-1".into()]).unwrap();
        store.take_in(&[item], "1").unwrap();
        assert_eq!(store.unacknowledged().unwrap(), ["in-1"]);
        assert_eq!(store.cursor().unwrap(), "1");
        let runs: i64 =
            store.connection().query_row("SELECT count(*) FROM executions", [], |row| row.get(0)).unwrap();
        assert_eq!(runs, 1);
    }
}
