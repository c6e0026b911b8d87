//! Queue cleanup: decided items leave the queue; their delivery rows stay, as the audit.

use killpoint_mark::mark;

use crate::error::WorkerError;
use crate::policy::Policy;
use crate::store::Store;

pub(crate) fn clean_up(store: &mut Store, policy: Policy) -> Result<(), WorkerError> {
    mark("before-cleanup")?;
    store.dequeue_decided(policy.cleanup_deletes_ledger)?;
    mark("cleanup-done")?;
    Ok(())
}
