//! One trial, tried again where luck or the machine spoilt it, and judged.

use std::sync::Arc;
use std::time::Instant;

use killpoint_checks::{Case, judge};
use killpoint_engine::{Pulse, TrialError, TrialResult, TrialSpec, run_trial};
use killpoint_model::event::EventKind;
use killpoint_model::run::TrialRole;
use killpoint_model::{History, HitName, Plan, Settings, TrialVerdict, Verdict};

use crate::error::RunError;
use crate::folder::RunFolder;
use crate::job::Job;
use crate::progress::Running;

/// How often a trial is tried at most.
const TRIES_MAX: u32 = 5;

/// A trial that ended.
pub(crate) struct Ended {
    pub(crate) job: Job,
    /// The folder of the try that counts.
    pub(crate) folder: String,
    pub(crate) role: TrialRole,
    pub(crate) result: TrialResult,
    pub(crate) judged: TrialVerdict,
    pub(crate) duration_ms: u64,
}

/// What the tries of one trial share.
pub(crate) struct Trying {
    pub(crate) settings: Arc<Settings>,
    pub(crate) run: RunFolder,
    /// What it is compared with.
    pub(crate) baselines: Arc<Vec<History>>,
}

/// A trial that is under way, as it is watched.
pub(crate) struct Watch {
    place: usize,
    plan: Plan,
    begun: Instant,
    pub(crate) pulse: Pulse,
}

impl Watch {
    pub(crate) fn new(job: &Job) -> Self {
        Self { place: job.index, plan: job.plan.clone(), begun: Instant::now(), pulse: Pulse::default() }
    }

    /// What there is to say of it now.
    pub(crate) fn look(&self) -> Running {
        let beat = self.pulse.read();
        Running {
            place: self.place,
            plan: self.plan.clone(),
            elapsed: self.begun.elapsed(),
            at_most: beat.deadline.map(|deadline| deadline.saturating_duration_since(self.begun)),
            waits_for: beat.waits_for,
        }
    }
}

/// Runs one trial; again where only the machine failed, or where a fault did not come to its moment though the
/// baseline reached it: a sample taken too late, a worker's time-out on a busy machine. Every try has a folder of
/// its own, and the last one counts. A try that showed anything but a vacuous trial is the last: a retry never
/// hides a violation.
pub(crate) async fn try_job(
    job: Job,
    role: TrialRole,
    place: Trying,
    pulse: Pulse,
) -> Result<Ended, RunError> {
    let Trying { settings, run, baselines } = place;
    let mut attempt = 1;
    loop {
        let begun = Instant::now();
        let retry = if attempt == 1 { String::new() } else { format!("-try{attempt}") };
        let folder = format!("{}{retry}", job.folder());
        let spec = TrialSpec {
            settings: Arc::clone(&settings),
            plan: job.plan.clone(),
            folder: run.trial(&folder),
            pulse: Some(pulse.clone()),
        };
        let result = run_trial(spec).await.map_err(|error| RunError::SetupFailed(error.to_string()))?;
        let case = Case { settings: &settings, role, history: &result.history, baselines: &baselines };
        let judged = judge(&case);
        let infrastructure = matches!(result.error, Some(TrialError::Infrastructure { .. }));
        let missed = was_missed(&job, &result.history, &baselines);
        if attempt < TRIES_MAX && is_spoilt(judged.verdict, infrastructure, missed) {
            attempt += 1;
            continue;
        }
        let duration_ms = begun.elapsed().as_millis() as u64;
        return Ok(Ended { job, folder, role, result, judged, duration_ms });
    }
}

/// Whether a try says nothing of the worker, by luck or by the machine's fault. A violation always says something,
/// also where the machine failed after it.
fn is_spoilt(verdict: Verdict, infrastructure: bool, missed: bool) -> bool {
    match verdict {
        Verdict::Violated => false,
        Verdict::Vacuous => infrastructure || missed,
        Verdict::Holds | Verdict::Inconclusive => infrastructure,
    }
}

/// Whether a fault of the plan was not done, though its moment is known to come, or the baselines reach it.
fn was_missed(job: &Job, history: &History, baselines: &[History]) -> bool {
    let announced = |at: &HitName| {
        history
            .events
            .iter()
            .any(|event| matches!(&event.event, EventKind::FaultAnnounced { at: done, .. } if done == at))
    };
    let reachable = |at: &HitName| {
        let events = baselines.iter().flat_map(|baseline| &baseline.events);
        events
            .into_iter()
            .any(|event| matches!(&event.event, EventKind::Hit { hit, live: true, .. } if hit == at))
    };
    let comes = |at: &HitName| job.known.contains(at) || reachable(at);
    job.plan.faults.iter().any(|fault| !announced(&fault.at) && comes(&fault.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::history::Header;
    use killpoint_model::plan::FaultAt;
    use killpoint_model::{Event, Fault};

    fn history(events: Vec<EventKind>) -> History {
        let event = |(index, event)| Event { seq: index as u64 + 1, at_us: 0, generation: 1, event };
        let events = events.into_iter().enumerate().map(event).collect();
        History { header: Header::new("t"), events, truncated: false }
    }

    #[test]
    fn a_retry_never_hides_a_violation() {
        for (infrastructure, missed) in [(false, false), (false, true), (true, false), (true, true)] {
            assert!(!is_spoilt(Verdict::Violated, infrastructure, missed));
            assert_eq!(is_spoilt(Verdict::Holds, infrastructure, missed), infrastructure);
            assert_eq!(is_spoilt(Verdict::Inconclusive, infrastructure, missed), infrastructure);
            assert_eq!(is_spoilt(Verdict::Vacuous, infrastructure, missed), infrastructure || missed);
        }
    }

    #[test]
    fn only_what_the_baseline_reaches_is_worth_another_try() -> Result<(), Box<dyn std::error::Error>> {
        let at: HitName = "mark:ack-committed#2".parse()?;
        let fault = FaultAt { at: at.clone(), fault: Fault::named("kill") };
        let plan = Plan { faults: vec![fault.clone()], ..Plan::default() };
        let job = Job { index: 0, repetition: 1, plan, group: 0, known: Vec::new() };
        let hit = EventKind::Hit { hit: at.clone(), exact: true, live: true, subject: None, worker: 1 };
        let baseline = [history(vec![hit])];
        assert!(was_missed(&job, &history(vec![]), &baseline));
        assert!(!was_missed(&job, &history(vec![]), &[history(vec![])]), "it is never reached");
        let known = Job { known: vec![at.clone()], ..job.clone() };
        assert!(was_missed(&known, &history(vec![]), &[history(vec![])]), "the recovery reaches it");
        let done = EventKind::FaultAnnounced { at, fault: fault.fault };
        assert!(!was_missed(&job, &history(vec![done]), &baseline), "it was done");
        Ok(())
    }
}
