//! Events in words. Every kind has its sentence, because any event can be evidence.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use killpoint_model::event::{CommandRole, KillProof, SettledBy};
use killpoint_model::{EventKind, HitName, LedgerView, Plan, Source};

use super::ledger_changes::LedgerChanges;
use super::rows::fault_text;
use super::timeline::{StepKind, Weight};
use super::{narrate_control, narrate_provider};
use crate::sanitise::shorten;

/// Longest worker's or system's text within a step, in characters.
pub(super) const TEXT_CHARS_MAX: usize = 120;

/// One event in words.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) kind: StepKind,
    pub(super) weight: Weight,
    pub(super) text: String,
}

pub(super) const fn told(kind: StepKind, weight: Weight, text: String) -> Told {
    Told { kind, weight, text }
}

/// Tells the events of one history in order: what the ledger says is told as a change.
#[derive(Debug)]
pub(super) struct Narrator<'a> {
    plan: &'a Plan,
    ledger: LedgerChanges,
}

impl<'a> Narrator<'a> {
    pub(super) const fn new(plan: &'a Plan, subjects: BTreeSet<String>) -> Self {
        Self { plan, ledger: LedgerChanges::new(subjects) }
    }

    pub(super) fn tell(&mut self, event: &EventKind) -> Told {
        use StepKind::{Fault, Killed, Machine, Settled, Trial, Worker};
        use Weight::{Background, Major, Minor};
        if let Some(told) = narrate_control::tell(event) {
            return told;
        }
        match event {
            EventKind::Spawned { worker, pid, .. } => {
                told(Worker, Major, format!("worker {worker} started, pid {pid}"))
            }
            EventKind::Exited { worker, code, signal } => {
                told(Worker, Major, format!("worker {worker} ended by itself, {}", ending(*code, *signal)))
            }
            EventKind::Output { worker, stream, bytes, dropped } => {
                told(Worker, Background, output_text(*worker, stream, *bytes, *dropped))
            }
            EventKind::Hit { hit, exact, live, subject, worker } => {
                self.hit(hit, *exact, *live, subject.as_deref(), *worker)
            }
            EventKind::FaultAnnounced { at, fault } => {
                told(Fault, Major, format!("{} at {at} announced", fault_text(fault)))
            }
            EventKind::FaultDone { at, landed: true, note } => {
                told(Fault, Minor, format!("done at {at}: {}", shorten(note, TEXT_CHARS_MAX)))
            }
            EventKind::FaultDone { at, landed: false, note } => {
                told(Fault, Major, format!("did not take hold at {at}: {}", shorten(note, TEXT_CHARS_MAX)))
            }
            EventKind::Killed { worker, proof } => told(Killed, Major, proof_text(*worker, proof)),
            EventKind::Provider(event) => narrate_provider::tell(event),
            EventKind::Ledger { at, view } => self.ledger_read(at.as_ref(), view),
            EventKind::FaultsOver => {
                told(Fault, Minor, "every fault of the plan is over; only recovery follows".to_owned())
            }
            EventKind::Settled { by, window_complete } => {
                told(Settled, Major, settled_text(*by, *window_complete))
            }
            EventKind::NotSettled { why } => {
                told(Settled, Major, format!("not settled: {}", shorten(why, TEXT_CHARS_MAX)))
            }
            EventKind::Final { view, words, state_changed } => self.last_look(view, words, *state_changed),
            EventKind::Infrastructure { doing, error } => {
                let text = format!("{}: {}", shorten(doing, TEXT_CHARS_MAX), shorten(error, TEXT_CHARS_MAX));
                told(Machine, Major, text)
            }
            EventKind::TrialStarted { plan, .. } => {
                told(Trial, Background, format!("trial of `{}` begins", shorten(&plan.name, TEXT_CHARS_MAX)))
            }
            EventKind::StateReady { from } => {
                told(Trial, Background, format!("state is ready: {}", shorten(from, TEXT_CHARS_MAX)))
            }
            EventKind::CommandRan { role, argv, code } => command(*role, argv, *code),
            // Listed, so that a new event is not overlooked here; all but the end are told above.
            EventKind::Stopped { .. }
            | EventKind::Resumed { .. }
            | EventKind::Signalled { .. }
            | EventKind::PartKilled { .. }
            | EventKind::StoreFault { .. }
            | EventKind::Integrity { .. }
            | EventKind::WorkerClock { .. }
            | EventKind::Changed { .. }
            | EventKind::Metrics { .. }
            | EventKind::Scanned { .. }
            | EventKind::Alarm { .. }
            | EventKind::ProducerHeld
            | EventKind::ProducerEnded { .. }
            | EventKind::Limitation { .. }
            | EventKind::TrialEnded => told(Trial, Background, "trial ends".to_owned()),
        }
    }

    fn hit(&self, hit: &HitName, exact: bool, live: bool, subject: Option<&str>, worker: u32) -> Told {
        let planned = self.plan.faults.iter().any(|fault| fault.at == *hit);
        // The provider's own events already tell what its hits would.
        let weight = match hit.source {
            _ if planned => Weight::Major,
            Some(Source::Provider) => Weight::Background,
            _ => Weight::Minor,
        };
        let mut text = format!("{hit} reached, {}", if exact { "exact" } else { "sampled" });
        if worker > 0 {
            let _ = write!(text, ", worker {worker}");
        }
        if !live {
            text.push_str(", after the worker's exit");
        }
        if let Some(subject) = subject {
            let _ = write!(text, ", about {}", shorten(subject, TEXT_CHARS_MAX));
        }
        told(StepKind::Boundary, weight, text)
    }

    fn ledger_read(&mut self, at: Option<&HitName>, view: &LedgerView) -> Told {
        let changes = self.ledger.take(view);
        let precision = if view.exact { "exact" } else { "sampled" };
        let at = at.map(|hit| format!(" at {hit}")).unwrap_or_default();
        if changes.is_empty() {
            let text = format!("read{at}, {precision}: nothing changed");
            return told(StepKind::Ledger, Weight::Background, text);
        }
        told(StepKind::Ledger, Weight::Minor, format!("{changes} ({precision}{at})"))
    }

    fn last_look(&mut self, view: &LedgerView, words: &[String], state_changed: bool) -> Told {
        let mut parts = vec![match (&view.rows, &view.error) {
            (_, Some(error)) => format!("the ledger could not be read: {}", shorten(error, TEXT_CHARS_MAX)),
            (Some(rows), None) => format!("ledger: {}", self.ledger.list(rows)),
            (None, None) => "no ledger rows are mapped".to_owned(),
        }];
        if !words.is_empty() {
            parts.push(format!("words in the state: {}", shorten(&words.join(", "), TEXT_CHARS_MAX)));
        }
        if !state_changed {
            parts.push("no file of the state changed since the last kill".to_owned());
        }
        told(StepKind::Final, Weight::Major, parts.join("; "))
    }
}

fn output_text(worker: u32, stream: &str, bytes: u64, dropped: u64) -> String {
    let dropped = if dropped > 0 { format!(", {dropped} of them not kept") } else { String::new() };
    format!("worker {worker} wrote {bytes} bytes to {stream}{dropped}")
}

fn command(role: CommandRole, argv: &[String], code: Option<i32>) -> Told {
    let weight = if code == Some(0) { Weight::Background } else { Weight::Major };
    let words = shorten(&argv.join(" "), TEXT_CHARS_MAX);
    let ending = ending(code, None);
    told(StepKind::Trial, weight, format!("{role} command ended, {ending}: {words}"))
}

fn ending(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "by a signal".to_owned(),
    }
}

fn proof_text(worker: u32, proof: &KillProof) -> String {
    let landed = match (proof.signal, proof.was_alive) {
        (Some(9), true) => format!("signal 9 landed on live worker {worker}"),
        (signal, _) => {
            format!("worker {worker} was gone before the signal, {}", ending(proof.code, signal))
        }
    };
    let survivors = match proof.survivors {
        0 => "no survivor".to_owned(),
        1 => "1 SURVIVOR".to_owned(),
        survivors => format!("{survivors} SURVIVORS"),
    };
    format!("{landed}; {} reaped, {survivors}, proven by {}", proof.reaped, proof.containment)
}

fn settled_text(by: SettledBy, window_complete: bool) -> String {
    let by = match by {
        SettledBy::Exit => "the worker ended by itself",
        SettledBy::Quiet => "nothing happened for the configured time",
        SettledBy::Query => "the configured query says so",
    };
    let window = if window_complete { "" } else { "; the settle window was not complete" };
    format!("at rest: {by}{window}")
}
