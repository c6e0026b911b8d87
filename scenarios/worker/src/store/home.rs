//! Where the ledger lives. A file that is not the one which was written last is a copy or a backup: what it calls
//! unsent may have been sent since.

use std::path::Path;

use rusqlite::params;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::Store;
use crate::error::WorkerError;

/// Device, inode and time of birth: another file at the same path has another identity. Asked of the kernel, because the
/// standard library knows no time of birth with every C library.
fn identity_of(path: &Path) -> String {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let Ok(file) = statx(CWD, path, AtFlags::empty(), wanted) else { return String::new() };
    let born = file.stx_btime;
    format!(
        "{}.{}:{}:{}.{:09}",
        file.stx_dev_major, file.stx_dev_minor, file.stx_ino, born.tv_sec, born.tv_nsec
    )
}

impl Store {
    /// Moves in. Where the ledger's file is another one than before, everything that is open becomes suspect. Says
    /// how many rows that concerns.
    pub(crate) fn move_in(&mut self) -> Result<usize, WorkerError> {
        let here = self.connection.path().map(|path| identity_of(Path::new(path))).unwrap_or_default();
        let transaction = self.immediate()?;
        let home: String = transaction.query_row("SELECT home FROM ledger", [], |row| row.get(0))?;
        let mut suspects = 0;
        if home != here {
            if !home.is_empty() {
                suspects += transaction.execute(
                    "UPDATE executions SET suspect = 1 WHERE execution_status IN ('pending', 'running')",
                    [],
                )?;
                suspects += transaction.execute(
                    "UPDATE deliveries SET suspect = 1
                     WHERE delivery_status IN ('pending', 'dispatching', 'unknown')",
                    [],
                )?;
            }
            transaction.execute("UPDATE ledger SET home = ?1", params![here])?;
        }
        transaction.commit()?;
        Ok(suspects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Durability;

    #[test]
    fn a_copy_is_noticed_once_and_the_original_never() {
        let folder = tempfile::tempdir().unwrap();
        let (original, copy) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let mut store = Store::open(&original, Durability::Full).unwrap();
        store.enqueue("a", &["x".into()], "text").unwrap();
        assert_eq!((store.move_in().unwrap(), store.move_in().unwrap()), (0, 0));
        drop(store);
        std::fs::copy(&original, &copy).unwrap();
        let mut store = Store::open(&copy, Durability::Full).unwrap();
        assert_eq!((store.move_in().unwrap(), store.move_in().unwrap()), (1, 0));
        assert!(store.next_run().unwrap().unwrap().suspect);
        assert_eq!(Store::open(&original, Durability::Full).unwrap().move_in().unwrap(), 0);
    }
}
