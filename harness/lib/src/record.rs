//! What becomes of a trial that ended: judged, put on record, and where it is red, made to be done again.

use std::time::Instant;

use killpoint_model::event::EventKind;
use killpoint_model::run::TrialRole;
use killpoint_model::{TrialRecord, Verdict};

use crate::attempt::Ended;
use crate::check::{run_verdict, says_nothing};
use crate::error::RunError;
use crate::folder::RunFolder;
use crate::host;
use crate::progress::Progress;
use crate::run::Runner;

/// Putting the record on disk may take one part in so many of the time. The whole of it is written each time, and
/// a long run has thousands of trials; their histories are on disk as they happen.
const SAVING_SHARE: u32 = 20;

impl<P: Progress> Runner<'_, P> {
    /// Judges a trial that ended, and puts it on record.
    pub(crate) fn take(&mut self, ended: Ended) -> Result<(), RunError> {
        let broken = self.broken_baseline(&ended);
        let history = &ended.result.history;
        let mut verdict = broken.is_none().then(|| ended.judged.clone());
        if self.record.profile.is_some() && self.record.host.is_none() {
            self.record.host = Some(host::observe(&self.folder.trial(&ended.folder), &self.settings));
        }
        if verdict.as_ref().is_some_and(|judged| judged.verdict == Verdict::Holds) {
            self.folder.tidy(&ended.folder);
        }
        let drawn = self.drawing && ended.role == TrialRole::Faulted;
        let shows = verdict.as_ref().is_none_or(|judged| judged.verdict >= Verdict::Inconclusive);
        if drawn
            && !shows
            && let Some(judged) = &mut verdict
        {
            // There are thousands of them, and the history tells it all again.
            judged.outcomes.clear();
        }
        let source = ended.job.plan.source.clone().or_else(|| self.request.source.clone());
        let trial = TrialRecord {
            drawn,
            source,
            replay: self.replay(&ended)?,
            folder: ended.folder,
            role: ended.role,
            plan: ended.job.plan,
            repetition: ended.job.repetition,
            verdict,
            duration_ms: ended.duration_ms,
            shard: None,
        };
        if ended.role != TrialRole::Faulted
            && let Some(pair) = self.baselines.get_mut(ended.job.group)
        {
            pair.push(history.clone());
        }
        if drawn {
            self.drawn.push(ended.result.history.clone());
        }
        if shows || !drawn {
            self.histories.insert(trial.folder.clone(), ended.result.history);
        }
        self.progress.finished(&trial);
        self.record.trials.push(trial);
        self.record.verdict = run_verdict(&self.record);
        self.record.duration_ms = self.started.elapsed().as_millis() as u64;
        self.record.warnings.extend(broken.clone());
        self.save()?;
        broken.map_or(Ok(()), |why| Err(RunError::SetupFailed(why)))
    }

    /// Puts the record on disk, where that does not take too large a share of the time.
    fn save(&mut self) -> Result<(), RunError> {
        let (at, took) = self.saved;
        if at.elapsed() >= took * SAVING_SHARE {
            let begun = Instant::now();
            self.folder.write(&self.record)?;
            self.saved = (Instant::now(), begun.elapsed());
        }
        Ok(())
    }

    /// Why a baseline can't be judged, if so: then the set-up failed, and nothing can be compared with it.
    fn broken_baseline(&self, ended: &Ended) -> Option<String> {
        let history = &ended.result.history;
        let why = match &ended.result.error {
            _ if ended.role == TrialRole::Faulted => return None,
            Some(error) => return Some(format!("the baseline: {error}")),
            None if !says_nothing(history) => return None,
            None => history.events.iter().find_map(|event| match &event.event {
                EventKind::NotSettled { why } => Some(why),
                _ => None,
            }),
        };
        let what = why.map_or_else(
            || {
                "without any fault the worker sent nothing to the provider and its ledger shows no row; \
                 is the provider's address wired in (`{provider.rest}`), and is there something to do?"
                    .to_owned()
            },
            |why| format!("without any fault the worker sent nothing, and {why}"),
        );
        let output = killpoint_engine::output_tail(&self.folder.trial(&ended.folder));
        Some(format!("the baseline: {what}{output}"))
    }

    /// The place of the next trial in the run.
    pub(crate) fn next_index(&self) -> usize {
        let places = self.record.trials.iter().filter_map(|trial| RunFolder::place(&trial.folder));
        places.max().map_or(0, |last| last + 1).max(self.first_free)
    }

    /// The command that replays one trial, and the scenario file that it needs.
    fn replay(&self, ended: &Ended) -> Result<String, RunError> {
        let (begin, end) = &self.request.replay;
        let plan = &ended.job.plan;
        let selection = match plan.faults.as_slice() {
            [] if plan.rules.is_empty() => String::new(),
            [fault] if plan.rules.is_empty() && plan.scenario.is_none() && fault.fault.name == "kill" => {
                format!(" --boundary '{}'", fault.at)
            }
            _ => {
                let path = self.folder.trial(&ended.folder).join("scenario.toml");
                std::fs::write(&path, killpoint_scenarios::to_toml(plan))
                    .map_err(|error| RunError::File { path: path.clone(), error })?;
                format!(" --scenario '{}'", path.display())
            }
        };
        let end = if end.is_empty() { String::new() } else { format!(" {end}") };
        Ok(format!("{begin}{selection}{end}"))
    }
}
