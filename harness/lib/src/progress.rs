//! What a run tells while it is under way.

use std::time::Duration;

use killpoint_model::{Plan, TrialRecord};

use crate::job::Job;

/// A trial that is under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// Its position in the run.
    pub place: usize,
    /// What is done in it.
    pub plan: Plan,
    /// For how long it has been under way, earlier tries included.
    pub elapsed: Duration,
    /// How long it may take until it is given up, unless a fault gives it more time; absent where it waits for nothing
    /// yet.
    pub at_most: Option<Duration>,
    /// What it waits for, such as `the worker to exit`; empty where it waits for nothing yet.
    pub waits_for: String,
}

/// Receives news of a run; every method may be called from several threads.
pub trait Progress: Send + Sync {
    /// So many trials are now known to be needed, those that ended included.
    fn planned(&self, trials: usize);
    /// These trials are about to be done, in this order as far as there is room.
    fn scheduled(&self, _jobs: &[Job]) {}
    /// These trials are under way. Told again and again, so that one that hangs can be named while it does.
    fn running(&self, _trials: &[Running]) {}
    /// A trial began.
    fn started(&self, name: &str);
    /// A trial ended, and was judged.
    fn finished(&self, trial: &TrialRecord);
    /// Something that the user should know at once.
    fn note(&self, text: &str);
    /// Whether the user asked to stop. Looked at between trials.
    fn cancelled(&self) -> impl Future<Output = ()> + Send
    where
        Self: Sized,
    {
        std::future::pending()
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn planned(&self, _: usize) {}
    fn started(&self, _: &str) {}
    fn finished(&self, _: &TrialRecord) {}
    fn note(&self, _: &str) {}
}
