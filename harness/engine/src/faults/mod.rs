//! What can be done at a hit. A fault is one file in this folder plus one line in [`FAULTS`].

mod kill;
mod second_worker;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use killpoint_model::Entry;
use serde_json::Value;

use crate::error::TrialError;
use crate::trial::Trial;

/// Every fault.
pub static FAULTS: &[&dyn Fault] = &[&kill::Kill, &second_worker::SecondWorker];

/// The parameters of a fault, as in the scenario's `with`.
pub type Parameters = BTreeMap<String, Value>;

/// What came of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// Whether it took hold.
    pub landed: bool,
    /// What was seen, in a few words.
    pub note: String,
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

    /// Does it. The whole tree stands still; `worker` is the one at the hit, 0 where it can't be told.
    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t>;
}

/// Finds a fault by name.
pub fn find(name: &str) -> Option<&'static dyn Fault> {
    FAULTS.iter().copied().find(|fault| fault.entry().name == name)
}

/// Refuses parameters that a fault does not know.
fn known_only(with: &Parameters, known: &[&str]) -> Result<(), String> {
    match with.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) if known.is_empty() => Err(format!("`{name}`: this fault has no parameters")),
        Some(name) => Err(format!("`{name}`: this fault knows {}", known.join(", "))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
