//! What faults did to processes, stores, clocks and configuration, and what was observed beside the ledger,
//! in words.

use killpoint_model::EventKind;
use killpoint_model::event::Leak;

use super::narrate::{TEXT_CHARS_MAX, Told, told};
use super::timeline::{StepKind, Weight};
use crate::sanitise::shorten;

/// `None` for events that are told elsewhere.
pub(super) fn tell(event: &EventKind) -> Option<Told> {
    use StepKind::{Fault, Final, Worker};
    use Weight::{Background, Major, Minor};
    let short = |text: &str| shorten(text, TEXT_CHARS_MAX);
    Some(match event {
        EventKind::Stopped { worker } => told(Worker, Major, format!("worker {worker} stopped (SIGSTOP)")),
        EventKind::Resumed { worker } => told(Worker, Major, format!("worker {worker} goes on (SIGCONT)")),
        EventKind::Signalled { worker, signal } => {
            told(Worker, Major, format!("signal {signal} sent to worker {worker}"))
        }
        EventKind::PartKilled { worker, part, processes } => told(
            Worker,
            Major,
            format!("{part} of worker {worker} killed: {processes} processes; the rest lives"),
        ),
        EventKind::StoreFault { name, path, begins, detail } => {
            let state = if *begins { "begins" } else { "is over" };
            told(Fault, Major, format!("{name} {state} on {}: {}", short(path), short(detail)))
        }
        EventKind::Integrity { sound: true, .. } => {
            told(Fault, Background, "the store calls itself sound".to_owned())
        }
        EventKind::Integrity { sound: false, detail } => {
            told(Fault, Major, format!("the store is damaged: {}", short(detail)))
        }
        EventKind::WorkerClock { worker, offset_ms, method } => {
            told(Worker, Major, format!("clock of worker {worker} is {offset_ms:+} ms off, by {method}"))
        }
        EventKind::Changed { what } => told(Fault, Major, format!("changed: {}", short(what))),
        EventKind::Metrics { values, error: None } => {
            let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
            told(Final, Minor, format!("the worker's metrics: {}", short(&values.join(", "))))
        }
        EventKind::Metrics { error: Some(error), .. } => {
            told(Final, Major, format!("the worker's metrics could not be read: {}", short(error)))
        }
        EventKind::Scanned { places, leaks } => told(Final, Minor, scanned(*places, leaks)),
        EventKind::Alarm { worker, source, text } => {
            told(Worker, Major, format!("worker {worker} raised an alarm by {source}: {}", short(text)))
        }
        EventKind::ProducerHeld => {
            told(Fault, Major, "the producer waits with its transaction open".to_owned())
        }
        EventKind::ProducerEnded { committed } => {
            let how = if *committed { "committed" } else { "rolled back" };
            told(Fault, Major, format!("the producer's transaction was {how}"))
        }
        EventKind::Limitation { what, why } => {
            told(Fault, Major, format!("`{what}` is not to be had here: {}", short(why)))
        }
        _ => return None,
    })
}

fn scanned(places: u32, leaks: &[Leak]) -> String {
    let found: Vec<String> = leaks.iter().map(|leak| format!("{} in {}", leak.canary, leak.place)).collect();
    if found.is_empty() {
        return format!("{places} places scanned for planted credentials: none outside the declared ones");
    }
    format!(
        "{places} places scanned for planted credentials, found: {}",
        shorten(&found.join(", "), TEXT_CHARS_MAX)
    )
}
