//! What faults do to a model: the same as to a real trial, as far as there is something to do it to.

use killpoint_model::Fault;
use killpoint_model::event::{ClockMethod, CommandRole, EventKind};
use killpoint_model::plan::duration_ms;

use super::process::Process;
use super::world::{Goal, World};

/// Added to a worker's number where it is to have another identity.
const NEW_IDENTITY: u32 = 100;

/// Faults that can be modelled, with the parameters that can.
const MODELLED: &[(&str, &[&str])] = &[
    ("kill", &["worker", "new-identity", "part"]),
    ("terminate", &["grace", "worker", "answer-after"]),
    ("stop", &["for", "worker"]),
    ("second-worker", &["quiet", "then", "stop", "same-identity", "count"]),
    ("provider-clock", &["by"]),
    ("worker-clock", &["by", "worker"]),
    ("cleanup", &[]),
];

/// Why a fault can't be modelled, if it can't.
pub(super) fn unsupported(fault: &Fault) -> Option<String> {
    let Some((_, known)) = MODELLED.iter().find(|(name, _)| *name == fault.name) else {
        return Some(format!("the fault `{}`", fault.name));
    };
    if let Some(other) = fault.with.keys().find(|name| !known.contains(&name.as_str())) {
        return Some(format!("`{other}` of the fault `{}`", fault.name));
    }
    let part = fault.with.get("part").is_some_and(|part| part.as_str() != Some("tree"));
    part.then(|| "a kill of a part of a tree".to_owned())
}

fn text<'f>(fault: &'f Fault, name: &str) -> Option<&'f str> {
    fault.with.get(name).and_then(|value| value.as_str())
}

fn flag(fault: &Fault, name: &str) -> bool {
    fault.with.get(name).and_then(serde_json::Value::as_bool).unwrap_or_default()
}

fn number(fault: &Fault, name: &str) -> Option<u32> {
    fault.with.get(name).and_then(serde_json::Value::as_u64).and_then(|number| u32::try_from(number).ok())
}

fn ms(fault: &Fault, name: &str, default: u64) -> u64 {
    text(fault, name).and_then(duration_ms).unwrap_or(default)
}

fn signed_ms(fault: &Fault, name: &str, default: i64) -> i64 {
    let Some(text) = text(fault, name) else { return default };
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    duration_ms(digits).map_or(default, |ms| sign * ms as i64)
}

impl World<'_> {
    /// Does it. Whether it took hold, and what was seen.
    pub(super) fn do_fault(&mut self, fault: &Fault, worker: u32) -> (bool, &'static str) {
        let named = number(fault, "worker");
        let target = named.unwrap_or(if worker == 0 { 1 } else { worker });
        let now_us = self.record.now_us;
        match fault.name.as_str() {
            "kill" => {
                if flag(fault, "new-identity") {
                    *self.identities.entry(target).or_insert(target) += NEW_IDENTITY;
                }
                (self.kill(named.unwrap_or(worker)), "signal 9")
            }
            "terminate" => {
                let answer_us = ms(fault, "answer-after", 0) * 1000;
                (self.terminate(target, ms(fault, "grace", 5000) * 1000, answer_us), "SIGTERM")
            }
            "stop" => {
                if !self.stop(target) {
                    return (false, "no live worker was left to stop");
                }
                self.drive(Goal::Elapsed { until_us: now_us + ms(fault, "for", 1000) * 1000 });
                self.resume(target);
                (true, "stopped for a time")
            }
            "second-worker" => self.second_worker(fault, target),
            "provider-clock" => {
                let by_ms = ms(fault, "by", 25 * 3_600_000);
                self.stepped_ms += by_ms;
                self.core.step_clock(by_ms);
                let now = self.provider_ms();
                self.core.land_due(now);
                self.log();
                (true, "the provider's clock is later")
            }
            "worker-clock" => {
                let offset_ms = signed_ms(fault, "by", 300_000);
                self.clocks_to_come.insert(target, offset_ms);
                let method = ClockMethod::Environment;
                self.record.push(EventKind::WorkerClock { worker: target, offset_ms, method });
                (true, "from the next start on")
            }
            "cleanup" => {
                if self.settings.cleanup.is_none() {
                    let (what, why) = ("cleanup".into(), "no cleanup command is configured".into());
                    self.record.push(EventKind::Limitation { what, why });
                    return (false, "no cleanup command is configured");
                }
                self.ledger.borrow_mut().clean_up(self.worker.policy.cleanup_erases);
                let (role, argv) = (CommandRole::Cleanup, vec!["cleanup".to_owned()]);
                self.record.push(EventKind::CommandRan { role, argv, code: Some(0) });
                (true, "the cleanup command ended")
            }
            _ => (false, "nobody knows the fault"),
        }
    }

    fn terminate(&mut self, number: u32, grace_us: u64, answer_us: u64) -> bool {
        let Some(process) = self.processes.get(&number).filter(|process| process.is_live()) else {
            return false;
        };
        process.desk.stop.set(true);
        self.record.push(EventKind::Signalled { worker: number, signal: 15 });
        let asked_us = self.record.now_us;
        self.terminations.push((number, asked_us + grace_us));
        self.drive(Goal::Gone { worker: number, until_us: asked_us + answer_us.min(grace_us) });
        true
    }

    fn stop(&mut self, number: u32) -> bool {
        let Some(process) = self.processes.get_mut(&number).filter(|process| process.is_live()) else {
            return false;
        };
        process.stopped = true;
        self.record.push(EventKind::Stopped { worker: number });
        true
    }

    fn resume(&mut self, number: u32) {
        if let Some(process) = self.processes.get_mut(&number).filter(|process| process.stopped) {
            process.stopped = false;
            self.record.push(EventKind::Resumed { worker: number });
            self.touch();
        }
    }

    fn second_worker(&mut self, fault: &Fault, first: u32) -> (bool, &'static str) {
        let stop = flag(fault, "stop");
        if stop && !self.stop(first) {
            return (false, "no live worker was left to stop");
        }
        let others = first + 1..=first + number(fault, "count").unwrap_or(1);
        for other in others.clone() {
            if flag(fault, "same-identity") {
                self.identities.insert(other, first);
            }
            // One that lives already is beside the first as it is.
            if !self.processes.get(&other).is_some_and(Process::is_live) {
                self.start(other);
            }
        }
        for other in others {
            self.drive(Goal::WorkerRests { worker: other, quiet_us: ms(fault, "quiet", 1000) * 1000 });
        }
        if text(fault, "then") == Some("kill") {
            return (self.kill(first), "the first worker was killed");
        }
        self.resume(first);
        (true, "the first worker goes on")
    }
}
