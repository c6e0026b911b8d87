//! What a trial observes beside the wire and the ledger, and where it puts that on record.

use killpoint_model::event::{AlarmSource, EventKind, Leak};

use super::{Trial, blocking};
use crate::boundaries::Signal;
use crate::capture::OnLine;
use crate::error::TrialError;
use crate::observe::metrics;

/// Characters of an alarm's line that are kept.
const ALARM_CHARS_MAX: usize = 200;

impl Trial {
    /// Watches a worker's output for its own alarm, where one is configured.
    pub(super) fn alarm_watch(&self, worker: u32) -> Option<OnLine> {
        let wanted = self.settings.alarm.output.clone()?;
        let outbox = self.outbox.clone();
        Some(Box::new(move |line| {
            if line.contains(&wanted) {
                let text = line.chars().take(ALARM_CHARS_MAX).collect();
                // The trial may be over; then nobody needs the line.
                let _ = outbox.send(Signal::Alarm { worker, text });
            }
        }))
    }

    /// An exit code may be an alarm.
    pub(super) fn note_exit(&self, worker: u32, code: Option<i32>) {
        if let Some(code) = code.filter(|code| self.settings.alarm.exit_codes.contains(code)) {
            let text = format!("it exited with {code}");
            self.record(EventKind::Alarm { worker, source: AlarmSource::ExitCode, text });
        }
    }

    /// Reads the worker's own metrics, where they are configured.
    pub(super) async fn read_metrics(&mut self) -> Result<(), TrialError> {
        let Some(settings) = self.settings.metrics.clone() else { return Ok(()) };
        let (templates, reader) = (self.templates.clone(), self.ledger.clone());
        let read = blocking(move || {
            Ok(match (&settings.query, reader) {
                (Some(query), Some(reader)) => {
                    reader.named_values(query).map(|own| metrics::canonical(&own, &settings.names))
                }
                (Some(_), None) => Err("a metrics query needs an sqlite ledger".to_owned()),
                (None, _) => metrics::read(&settings, &templates),
            })
        })
        .await?;
        let (values, error) = match read {
            Ok(values) => (values, None),
            Err(error) => (std::collections::BTreeMap::new(), Some(error)),
        };
        let alarm = self
            .settings
            .alarm
            .metric
            .as_ref()
            .filter(|name| values.get(*name).is_some_and(|value| *value > 0));
        if let Some(name) = alarm {
            let text = format!("{name} is {}", values[name]);
            self.record(EventKind::Alarm { worker: 0, source: AlarmSource::Metric, text });
        }
        self.record(EventKind::Metrics { values, error });
        Ok(())
    }

    /// Asks the store whether it is sound, on the copy that was just read, after a kill.
    pub(super) async fn check_integrity(&mut self) -> Result<(), TrialError> {
        let kind = self.settings.ledger.as_ref().map(|ledger| ledger.kind.as_str());
        let Some(path) = self.ledger_path().filter(|_| kind == Some("sqlite")) else { return Ok(()) };
        let copy = self.folder.join("ledger-copy").join(path.file_name().unwrap_or_default());
        let event = blocking(move || Ok(crate::store::integrity(&copy))).await?;
        self.record(event);
        Ok(())
    }

    /// Looks for planted credentials in the environments of processes that workers started.
    pub(super) fn scan_children(&mut self) {
        if self.canaries.is_empty() {
            return;
        }
        for worker in self.workers.values().filter(|worker| worker.is_live() && worker.is_worker()) {
            let children: Vec<u32> =
                worker.slot().processes().into_iter().filter(|pid| *pid != worker.pid).collect();
            let (places, leaks) = self.canaries.scan_environments(&children);
            self.scanned.0 += places;
            self.scanned.1.extend(leaks);
        }
    }

    /// Looks for planted credentials in everything that the trial left, and on the wire.
    pub(super) async fn scan_secrets(&mut self) -> Result<(), TrialError> {
        if self.canaries.is_empty() {
            return Ok(());
        }
        let (canaries, folder) = (self.canaries.clone(), self.folder.clone());
        let (places, leaks) = blocking(move || Ok(canaries.scan_folder(&folder))).await?;
        let sightings = self.server.sightings();
        let seen = sightings
            .into_iter()
            .filter(|(_, place)| !self.canaries.is_declared(place))
            .map(|(canary, place)| Leak { canary, place });
        let mut all: Vec<Leak> =
            leaks.into_iter().chain(std::mem::take(&mut self.scanned.1)).chain(seen).collect();
        all.dedup();
        let attempts = self.recorder.history().counters().attempts;
        self.record(EventKind::Scanned { places: places + self.scanned.0 + attempts, leaks: all });
        Ok(())
    }
}
