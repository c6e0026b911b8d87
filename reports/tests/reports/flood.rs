//! A run of very many trials, made of those of the stored one.

use std::collections::BTreeMap;
use std::convert::Infallible;

use killpoint_model::provider::{Attempt, ProviderEvent};
use killpoint_model::{Event, EventKind, Fault, FaultAt, RunRecord, TrialRecord};
use killpoint_reports::{Reading, View};

use crate::stored::{Stored, stored};

const ORDINALS: usize = 25;
const SERIES: &[&str] =
    &["mark:result-committed", "mark:item-claimed", "provider:received", "provider:committed"];
const PLANS: &[&str] = &[
    "ok",
    "drop-after-accept",
    "drop-before-accept",
    "reset-after-accept",
    "reset-before-accept",
    "cut-headers-after-accept",
    "cut-body-after-accept",
    "timeout-after-accept",
    "timeout-before-accept",
    "error-after-accept",
    "error-before-accept",
    "rejected",
    "late-accept",
];

/// The fault-free trials of the stored run come first; every further trial is a copy of one of the others.
const BASELINES: usize = 2;

/// A view of so many trials with different boundaries, provider plans, process ids and keys.
pub(crate) fn flood(trials: usize) -> View {
    let Stored { record, histories } = stored();
    let mut origins = BTreeMap::new();
    let mut many = record.trials[..BASELINES].to_vec();
    for number in BASELINES..trials {
        let origin = &record.trials[origin(&record, number)];
        let trial = copy(origin, number);
        origins.insert(trial.folder.clone(), (number, origin.folder.clone()));
        many.push(trial);
    }
    let read = |trial: &TrialRecord, sink: &mut dyn FnMut(&Event)| {
        let (number, folder) =
            origins.get(&trial.folder).map_or((0, &trial.folder), |(n, folder)| (*n, folder));
        let history = &histories[folder];
        for event in &history.events {
            match varied(event, number) {
                Some(varied) => sink(&varied),
                None => sink(event),
            }
        }
        Ok(if history.truncated { Reading::Truncated } else { Reading::Whole })
    };
    let Ok(view) = View::read::<Infallible>(&RunRecord { trials: many, ..record.clone() }, read);
    view
}

/// Most hold; one in eight is violated; a few prove nothing, or can't be told.
fn origin(record: &RunRecord, number: usize) -> usize {
    let named = |name: &str| record.trials.iter().position(|trial| trial.folder.contains(name)).unwrap();
    match number % 64 {
        1 => named("mark-exported"),
        2 => named("server-error"),
        n if n % 8 == 3 => named("provider-committed"),
        _ => named("ack-committed"),
    }
}

fn copy(origin: &TrialRecord, number: usize) -> TrialRecord {
    let mut trial = origin.clone();
    let (plan, rest) = (PLANS[number % PLANS.len()], number / PLANS.len());
    let (ordinal, series) = (rest % ORDINALS + 1, rest / ORDINALS);
    let boundary = match SERIES.get(series) {
        Some(name) => format!("{name}#{ordinal}"),
        None => format!("mark:step-{series:02}#{ordinal}"),
    };
    trial.folder = format!("{number:04}-kill-at-{}", boundary.replace([':', '#'], "-"));
    trial.plan.name = format!("kill at {boundary}, {plan}");
    trial.plan.provider_plan = plan.into();
    trial.plan.scenario = None;
    trial.plan.faults = vec![FaultAt { at: boundary.parse().unwrap(), fault: Fault::named("kill") }];
    trial.replay = format!("killpoint demo --bug blind-resend --boundary '{boundary}' --plan {plan}");
    trial
}

/// The event with a process id or a key of its own, where it has one.
fn varied(event: &Event, number: usize) -> Option<Event> {
    let varied = match &event.event {
        EventKind::Spawned { worker, pid, argv } => {
            EventKind::Spawned { worker: *worker, pid: pid + number as u32, argv: argv.clone() }
        }
        EventKind::Provider(ProviderEvent::Received(attempt)) => {
            let key = attempt.key.as_ref().map(|key| format!("{key}-{number}"));
            EventKind::Provider(ProviderEvent::Received(Attempt { key, ..attempt.clone() }))
        }
        _ => return None,
    };
    Some(Event { event: varied, ..event.clone() })
}
