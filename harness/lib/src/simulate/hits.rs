//! What happens at a named moment: the ledger is read, and the fault that is due is done. As in a real trial.

use killpoint_engine::boundaries::ledger::changes;
use killpoint_model::event::EventKind;
use killpoint_model::plan::FaultAt;
use killpoint_model::{HitName, LedgerView, Source};

use super::act::Outcome;
use super::process::{Doing, Stage};
use super::world::{World, empty_view};

/// How it goes on for whoever waits at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    Go,
    Dead,
}

impl World<'_> {
    pub(super) fn pass_mark(&mut self, number: u32, name: &'static str) {
        let Some(process) = self.processes.get_mut(&number) else { return };
        process.doing = Doing::Held;
        let life = process.lives;
        match self.reach(HitName::new(Source::Mark, name, 1), None, number) {
            Onward::Go => {
                self.go_on(number, life, Outcome::Done);
                self.revive_others();
            }
            Onward::Dead => self.revive(),
        }
    }

    /// Handles one moment from its name to the fault that is due there.
    pub(super) fn reach(&mut self, name: HitName, subject: Option<String>, worker: u32) -> Onward {
        self.touch();
        let live = self.has_live_worker();
        let hit = self.counter.count(name);
        self.record.push(EventKind::Hit { hit: hit.clone(), exact: true, live, subject, worker });
        let mut names = vec![hit.clone()];
        if self.settings.ledger.is_some() {
            names.extend(self.observe_ledger(Some(hit), true, live));
        }
        self.do_due(&names, worker, live)
    }

    /// Puts a moment on record at which nobody lives.
    pub(super) fn pass_dead(&mut self, name: HitName, subject: Option<String>) {
        let hit = self.counter.count(name);
        self.record.push(EventKind::Hit { hit, exact: true, live: false, subject, worker: 0 });
    }

    fn do_due(&mut self, names: &[HitName], worker: u32, live: bool) -> Onward {
        let mut onward = Onward::Go;
        while live && let Some(index) = self.pending.iter().position(|fault| names.contains(&fault.at)) {
            let due = self.pending.remove(index);
            if self.apply(due, worker) == Onward::Dead {
                onward = Onward::Dead;
            }
        }
        onward
    }

    fn apply(&mut self, due: FaultAt, worker: u32) -> Onward {
        // Which death belongs to which of them is a matter of opinion.
        let deadly =
            due.fault.name != "stop" && due.fault.name != "cleanup" && !due.fault.name.ends_with("clock");
        self.trace.overtaken += u32::from(deadly && !self.terminations.is_empty());
        let (at, fault) = (due.at.clone(), due.fault.clone());
        self.record.push(EventKind::FaultAnnounced { at, fault });
        let (landed, note) = self.do_fault(&due.fault, worker);
        if !landed {
            self.trace.undone.push(due.at.to_string());
        }
        self.record.push(EventKind::FaultDone { at: due.at, landed, note: note.to_owned() });
        self.extend_deadline();
        let dead = match self.processes.get(&worker) {
            Some(process) => process.stage == Stage::Killed,
            None => !self.has_live_worker(),
        };
        if dead { Onward::Dead } else { Onward::Go }
    }

    /// Reads the ledger, records it, and records what changed as hits. Returns their names.
    fn observe_ledger(&mut self, at: Option<HitName>, exact: bool, live: bool) -> Vec<HitName> {
        let version = self.ledger.borrow().version;
        let mut passed = Vec::new();
        let mut differs = false;
        if version != self.viewed {
            let view = LedgerView { rows: Some(self.ledger.borrow().rows()), ..empty_view() };
            differs = view != self.view;
            if differs {
                passed = changes(&self.view, &view);
                self.view = view;
            }
            self.viewed = version;
        }
        if at.is_some() || differs {
            let view = self.view.clone();
            self.record.push(EventKind::Ledger { at, view });
        }
        let mut names = Vec::new();
        for (name, subject) in passed {
            let hit = self.counter.count(name);
            self.record.push(EventKind::Hit { hit: hit.clone(), exact, live, subject, worker: 0 });
            names.push(hit);
            self.touch();
        }
        names
    }

    /// Samples the ledger while the workers run free, and does the fault that is due by what it shows.
    pub(super) fn sample_ledger(&mut self) {
        if self.settings.ledger.is_none() {
            return;
        }
        let live = self.has_live_worker();
        let names = self.observe_ledger(None, false, live);
        if self.do_due(&names, 0, live) == Onward::Dead {
            self.revive();
        }
        self.revive_others();
    }

    pub(super) fn look_at_dead_ledger(&mut self) {
        if self.settings.ledger.is_some() {
            let live = self.has_live_worker();
            self.observe_ledger(None, true, live);
        }
    }
}
