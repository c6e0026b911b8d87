//! What happens when a named moment is reached: stop the tree, read the ledger, do the fault that is due.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use killpoint_model::event::EventKind;
use killpoint_model::hit::CANONICAL;
use killpoint_model::ledger::LedgerView;
use killpoint_model::plan::FaultAt;
use killpoint_model::{HitName, Source};

use super::control::PRODUCER;
use super::setup::COMMANDS;
use super::worker::Life;
use super::{Trial, blocking};
use crate::boundaries::ledger::changes;
use crate::error::TrialError;
use crate::faults;
use crate::os::{OsError, Slot};
use crate::state::Signature;

/// A moment that was reached.
#[derive(Debug, Clone)]
pub(super) struct Reached {
    /// Its name; the ordinal is not counted yet.
    pub(super) name: HitName,
    /// What selectors can match beside the subject.
    pub(super) operation: Option<String>,
    /// What it is about.
    pub(super) subject: Option<String>,
    /// Which worker is there; 0 where it can't be told.
    pub(super) worker: u32,
    /// Whether the moment is exact.
    pub(super) exact: bool,
}

/// How it goes on for whoever waits at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    /// The worker lives.
    Go,
    /// The worker is dead.
    Dead,
}

/// Whether a canonical name can mean a hit.
fn is_meant(name: &HitName, hit: &HitName) -> bool {
    let everywhere =
        CANONICAL.iter().find(|(canonical, _)| *canonical == name.point).map(|(_, meaning)| *meaning);
    (hit.source == Some(Source::Mark) && hit.point == name.point) || everywhere == Some(hit.series().as_str())
}

impl Trial {
    /// Handles one moment from its name to the fault that is due there.
    pub(super) async fn reach(&mut self, reached: Reached) -> Result<Onward, TrialError> {
        let live = self.has_live_worker() || reached.worker == PRODUCER;
        let mut names = self.count(&reached);
        let due = live && names.iter().any(|name| self.pending.iter().any(|fault| fault.at == *name));
        if live && (due || self.ledger.is_some()) {
            self.freeze().await?;
        }
        for name in &names {
            self.record_hit(name.clone(), &reached, live);
        }
        if self.ledger.is_some() {
            let at = names.first().cloned();
            let seen = self.observe_ledger(at, true, live).await?;
            if reached.name.awaits_acceptance() {
                names.extend(self.postpone(seen));
            } else {
                names.extend(seen);
                names.append(&mut self.postponed);
            }
        }
        let onward = self.do_due(&names, reached.worker, live).await?;
        self.thaw().await?;
        Ok(onward)
    }

    /// Gives the moment its ordinal, and again for each selector that the plan asks for.
    fn count(&mut self, reached: &Reached) -> Vec<HitName> {
        let selectors: Vec<String> = self
            .plan
            .faults
            .iter()
            .filter(|fault| fault.at.source == reached.name.source && fault.at.point == reached.name.point)
            .filter_map(|fault| fault.at.selector.clone())
            .filter(|selector| {
                [&reached.operation, &reached.subject].into_iter().any(|text| text.as_ref() == Some(selector))
            })
            .collect();
        let mut names = vec![self.counter.count(reached.name.clone())];
        // Canonical names that the baseline did not reach belong to recovery: whichever of their meanings
        // comes, a mark of that name or what it means everywhere, is the moment.
        let unbound: BTreeSet<String> = self
            .plan
            .faults
            .iter()
            .filter(|fault| fault.at.source.is_none() && is_meant(&fault.at, &reached.name))
            .map(|fault| fault.at.point.clone())
            .collect();
        for point in unbound {
            names.push(self.counter.count(HitName { source: None, point, selector: None, ordinal: 1 }));
        }
        for selector in selectors {
            let selected = self.counter.count(HitName { selector: Some(selector), ..reached.name.clone() });
            if !names.contains(&selected) {
                names.push(selected);
            }
        }
        names
    }

    /// Takes out the hits of the ledger at which somebody is held for long. A request waits to be accepted meanwhile, only
    /// because the ledger was looked at just then: whoever looks it up would be told that there is nothing, and it
    /// would be accepted all the same afterwards. Nobody asked for that, so the fault waits for the next moment.
    fn postpone(&mut self, seen: Vec<HitName>) -> Vec<HitName> {
        let holds_long = |due: &FaultAt| {
            faults::find(&due.fault.name).is_some_and(|fault| fault.holds_long(&due.fault.with))
        };
        let (later, now) = seen
            .into_iter()
            .partition(|name| self.pending.iter().any(|due| due.at == *name && holds_long(due)));
        self.postponed.extend::<Vec<HitName>>(later);
        now
    }

    fn record_hit(&self, hit: HitName, reached: &Reached, live: bool) {
        self.recorder.append(EventKind::Hit {
            hit,
            exact: reached.exact,
            live,
            subject: reached.subject.clone(),
            worker: reached.worker,
        });
    }

    /// Does every fault that waits at one of these hits, in the order of the plan.
    async fn do_due(&mut self, names: &[HitName], worker: u32, live: bool) -> Result<Onward, TrialError> {
        let mut onward = Onward::Go;
        while live && let Some(fault) = self.take_due(names) {
            if self.apply(fault, worker).await? == Onward::Dead {
                onward = Onward::Dead;
            }
        }
        Ok(onward)
    }

    /// Puts a moment on record at which nothing else is done.
    pub(super) fn pass(&mut self, reached: Reached) {
        let live = self.has_live_worker();
        for name in self.count(&reached) {
            self.record_hit(name, &reached, live);
        }
    }

    fn take_due(&mut self, names: &[HitName]) -> Option<FaultAt> {
        let index = self.pending.iter().position(|fault| names.contains(&fault.at))?;
        Some(self.pending.remove(index))
    }

    async fn apply(&mut self, due: FaultAt, worker: u32) -> Result<Onward, TrialError> {
        self.recorder.append(EventKind::FaultAnnounced { at: due.at.clone(), fault: due.fault.clone() });
        self.at = Some(due.at.clone());
        let landing = match faults::find(&due.fault.name) {
            Some(fault) => fault.apply(self, worker, &due.fault.with).await?,
            None => faults::Landing {
                landed: false,
                note: format!("nobody knows the fault `{}`", due.fault.name),
            },
        };
        self.recorder.append(EventKind::FaultDone { at: due.at, landed: landing.landed, note: landing.note });
        if self.state_at_death.is_some() && !self.has_live_worker() {
            // What the fault itself did to the files is not the next life's doing.
            self.state_at_death = Some(Signature::of_tree(&self.state));
        }
        self.extend_deadline();
        let dead = match self.workers.get(&worker).filter(|_| worker != COMMANDS) {
            Some(worker) => worker.life == Life::Killed,
            None => !self.has_live_worker(),
        };
        Ok(if dead { Onward::Dead } else { Onward::Go })
    }

    /// Kills one worker, or all that live where `worker` is 0. Returns whether signal 9 landed.
    pub(crate) async fn kill(&mut self, worker: u32) -> Result<bool, TrialError> {
        self.scan_children();
        let recorder = Arc::clone(&self.recorder);
        let mut landed = true;
        let numbers: Vec<u32> = self
            .workers
            .values()
            .filter(|candidate| candidate.is_worker() && candidate.is_live())
            .map(|candidate| candidate.number)
            .filter(|number| worker == 0 || *number == worker)
            .collect();
        for number in &numbers {
            let Some(target) = self.workers.get_mut(number) else { continue };
            let proof = target.kill(&recorder).await?;
            landed &= proof.was_alive && proof.signal == Some(9) && proof.survivors == 0;
            recorder.append(EventKind::Killed { worker: *number, proof });
        }
        self.state_at_death = Some(Signature::of_tree(&self.state));
        if !self.has_live_worker() {
            self.frozen_since = None;
            self.finishing.clear();
            // What the next life sees first is not the moment that was asked for.
            self.postponed.clear();
        }
        Ok(landed && !numbers.is_empty())
    }

    /// Reads the ledger, records it, and records what changed as hits. Returns their names.
    pub(super) async fn observe_ledger(
        &mut self,
        at: Option<HitName>,
        exact: bool,
        live: bool,
    ) -> Result<Vec<HitName>, TrialError> {
        let (view, settle_value) = self.read_ledger(false).await?;
        let passed = changes(&self.view, &view);
        if at.is_some() || self.view != view {
            self.recorder.append(EventKind::Ledger { at, view: view.clone() });
        }
        self.view = view;
        self.settle_value = settle_value;
        let mut names = Vec::new();
        for (name, subject) in passed {
            let reached = Reached { name, operation: None, subject, worker: 0, exact };
            for name in self.count(&reached) {
                self.record_hit(name.clone(), &reached, live);
                names.push(name);
            }
            self.touch();
        }
        Ok(names)
    }

    /// Copies and reads the ledger. The tree must stand still.
    pub(super) async fn read_ledger(
        &mut self,
        must_exist: bool,
    ) -> Result<(LedgerView, Option<String>), TrialError> {
        let Some(reader) = self.ledger.clone() else { return Ok((self.view.clone(), None)) };
        let signature = reader.signature();
        // A command takes tens of milliseconds, during which the worker's own time-outs run: it is not asked
        // again about files that nobody touched.
        if !must_exist && reader.is_slow() && signature == self.seen {
            return Ok((self.view.clone(), self.settle_value.clone()));
        }
        self.seen = signature;
        let living = self.has_live_worker();
        let (read, is_quiet) = blocking(move || {
            let copy =
                reader.copy(living).map_err(|error| TrialError::from_io("copying the ledger", &error))?;
            Ok((reader.read(&copy, must_exist), copy.is_quiet))
        })
        .await?;
        if !is_quiet {
            self.seen = Signature::default();
        }
        Ok(read)
    }

    /// Samples the ledger while the worker runs free, and does the fault that is due by what it shows.
    pub(super) async fn sample_ledger(&mut self) -> Result<Onward, TrialError> {
        let Some(reader) = self.ledger.clone() else { return Ok(Onward::Go) };
        if reader.signature() == self.seen {
            return Ok(Onward::Go);
        }
        let live = self.has_live_worker();
        self.freeze().await?;
        let names = self.observe_ledger(None, false, live).await?;
        let onward = self.do_due(&names, 0, live).await?;
        self.thaw().await?;
        Ok(onward)
    }

    /// Reads the ledger while nobody of the trial lives: what it shows can't be hit any more.
    pub(super) async fn look_at_dead_ledger(&mut self) -> Result<(), TrialError> {
        if self.ledger.is_some() {
            let live = self.has_live_worker();
            self.freeze().await?;
            self.observe_ledger(None, true, live).await?;
            self.thaw().await?;
        }
        Ok(())
    }

    /// Stops every live worker's whole tree.
    pub(super) async fn freeze(&mut self) -> Result<(), TrialError> {
        if self.frozen_since.is_none() {
            self.for_live_slots(Slot::freeze, "stopping the worker's tree").await?;
            self.frozen_since = Some(Instant::now());
        }
        Ok(())
    }

    /// Lets every live worker go on, unless an exchange is between its last bytes and its end.
    pub(super) async fn thaw(&mut self) -> Result<(), TrialError> {
        if self.finishing.is_empty() { self.let_go_on().await } else { Ok(()) }
    }

    /// Lets every live worker go on. The time for which we held it is nobody's: it is neither quiet, nor part
    /// of the worker's deadline.
    pub(crate) async fn let_go_on(&mut self) -> Result<(), TrialError> {
        if let Some(since) = self.frozen_since.take() {
            self.for_live_slots(Slot::thaw, "letting the worker's tree go on").await?;
            self.last_activity += since.elapsed();
            self.deadline += since.elapsed();
        }
        Ok(())
    }

    async fn for_live_slots(
        &mut self,
        act: fn(&Slot) -> Result<(), OsError>,
        doing: &'static str,
    ) -> Result<(), TrialError> {
        for worker in self.workers.values().filter(|worker| worker.is_live() && !worker.stopped) {
            let slot = worker.shared_slot();
            blocking(move || act(&slot).map_err(|error| TrialError::from_os(doing, &error))).await?;
        }
        Ok(())
    }

    pub(super) fn has_live_worker(&self) -> bool {
        self.workers.values().any(|worker| worker.is_worker() && worker.is_live())
    }

    /// Whether a fault of the plan waits for the end of an exchange, so that the tree must stand still
    /// before the last byte is written.
    pub(super) fn needs_exact_end(&self) -> bool {
        self.pending.iter().any(|fault| {
            fault.at.source == Some(Source::Provider)
                && ["replied", "dropped"].contains(&fault.at.point.as_str())
        })
    }
}
