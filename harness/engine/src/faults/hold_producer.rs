//! The producer's transaction, held open.

use std::time::Duration;

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::{duration, known_only, word};
use crate::trial::{PRODUCER_MARK, Trial};

/// How long the worker must be quiet before the transaction ends.
const QUIET_DEFAULT: Duration = Duration::from_secs(1);

/// The `hold-producer` fault.
#[derive(Debug)]
pub(super) struct HoldProducer;

static ENTRY: Entry = Entry {
    name: "hold-producer",
    summary: "holds the producer's transaction open while the worker runs, then commits or rolls back",
    explanation: "The producer writes the business change and the outbox row in one transaction and makes the mark producer-open \
        before it commits. The worker runs meanwhile. Nothing may be sent for what is not committed: an effect before the commit \
        stays when the transaction is rolled back.",
    example: "[[fault]]\nat = \"mark:producer-open#1\"\ndo = \"hold-producer\"\nwith = { end = \"rollback\" }",
};

impl Fault for HoldProducer {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["end", "quiet"])?;
        duration(with, "quiet")?;
        word(with, "end", &["rollback", "commit"]).map(drop)
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, _: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            if trial.at().is_none_or(|at| at.point != PRODUCER_MARK) {
                let note = format!("the producer waits at `mark:{PRODUCER_MARK}#1` and nowhere else");
                return Ok(Landing { landed: false, note });
            }
            let commit = word(with, "end", &["rollback", "commit"]) == Ok("commit");
            let quiet = duration(with, "quiet").ok().flatten().unwrap_or(QUIET_DEFAULT);
            trial.hold_producer(commit, quiet).await?;
            let note = if commit {
                "committed after the worker rested"
            } else {
                "rolled back after the worker rested"
            };
            Ok(Landing { landed: true, note: note.into() })
        })
    }
}
