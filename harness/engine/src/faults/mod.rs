//! What can be done at a hit. A fault is one file in this folder plus one line in [`FAULTS`].

mod barrier;
mod change;
mod cleanup;
mod clock;
mod hold_producer;
mod kill;
mod power_cut;
mod second_worker;
mod stop;
mod store_busy;
mod store_busy_snapshot;
mod store_copy;
mod store_lock;
mod store_no_space;
mod store_read_only;
mod store_restore;
mod store_rollback;
mod store_second;
mod terminate;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use killpoint_model::Entry;

use crate::error::TrialError;
pub use crate::parameters::Parameters;
use crate::trial::{ActiveFault, Trial};

/// Every fault.
pub static FAULTS: &[&dyn Fault] = &[
    &kill::Kill,
    &terminate::Terminate,
    &stop::Stop,
    &second_worker::SecondWorker,
    &barrier::Barrier,
    &change::Change,
    &cleanup::Cleanup,
    &hold_producer::HoldProducer,
    &clock::ProviderClock,
    &clock::WorkerClock,
    &store_busy::StoreBusy,
    &store_busy_snapshot::StoreBusySnapshot,
    &store_read_only::StoreReadOnly,
    &store_no_space::StoreNoSpace,
    &store_lock::StoreLock,
    &store_copy::StoreCopy,
    &store_restore::StoreRestore,
    &store_second::StoreSecond,
    &store_rollback::StoreRollback,
    &power_cut::PowerCut,
];

/// What came of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// Whether it took hold.
    pub landed: bool,
    /// What was seen, in a few words.
    pub note: String,
}

/// What comes of a fault that starts workers where each number has been used up.
fn no_number() -> Landing {
    Landing { landed: false, note: "no number was left for another worker".into() }
}

/// A fault under way.
pub type Applying<'t> = Pin<Box<dyn Future<Output = Result<Landing, TrialError>> + Send + 't>>;

/// One thing that can be done at a hit. It is announced in the history before `apply` is called.
pub trait Fault: Sync + std::fmt::Debug {
    /// Name and texts.
    fn entry(&self) -> &'static Entry;

    /// What is wrong with the parameters, if anything.
    ///
    /// # Errors
    /// A lower-case fragment that names the parameter.
    fn check(&self, with: &Parameters) -> Result<(), String>;

    /// Makes ready what must be there before the state directory is filled; `Err` says why that is not to be
    /// had here, and what to do.
    ///
    /// # Errors
    /// A text for a limitation.
    fn prepare(&self, _state: &Path) -> Result<Option<Box<dyn ActiveFault>>, String> {
        Ok(None)
    }

    /// Whether who waits at the hit is held for longer than an answer may take.
    fn holds_long(&self, _with: &Parameters) -> bool {
        false
    }

    /// Does it. The whole tree stands still; `worker` is the one at the hit, 0 where it can't be told.
    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t>;
}

/// Finds a fault by name.
pub fn find(name: &str) -> Option<&'static dyn Fault> {
    FAULTS.iter().copied().find(|fault| fault.entry().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_slice_is_well_formed() {
        let entries: Vec<Entry> = FAULTS.iter().map(|fault| *fault.entry()).collect();
        assert_eq!(killpoint_model::catalog::slice_problems(&entries), Vec::<String>::new());
    }

    #[test]
    fn unknown_parameters_are_refused() {
        let with: Parameters = [("colour".to_owned(), Value::from("red"))].into();
        for fault in FAULTS {
            assert!(fault.check(&with).is_err_and(|why| why.contains("colour")), "{fault:?}");
            assert_eq!(fault.check(&Parameters::new()), Ok(()), "{fault:?}");
        }
    }
}
