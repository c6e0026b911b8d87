//! What a run tells while it is under way.

use killpoint_model::TrialRecord;

/// Receives news of a run; every method may be called from several threads.
pub trait Progress: Send + Sync {
    /// So many trials are now known to be needed, those that ended included.
    fn planned(&self, trials: usize);
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
