//! The durable ledger: rows that outlive every life. Each change is one commit; writes after a claim are guarded
//! by the claim's token.

use std::collections::BTreeMap;

use killpoint_model::plan::ActionSpec;
use killpoint_model::{ExecutionState, LedgerRow, RowState};
use serde_json::json;

/// No lease and no retry is ever granted further ahead, in milliseconds.
pub(super) const HORIZON_MS: i64 = 60_000;

/// One run: the work behind messages.
#[derive(Debug, Clone)]
pub(super) struct Run {
    action: String,
    to: Vec<String>,
    text: String,
    execution: ExecutionState,
    executions: u32,
    created_at: i64,
    owner: Option<u32>,
    lease_until: i64,
    token: u64,
}

/// One message, as it is kept.
#[derive(Debug, Clone)]
pub(super) struct Item {
    run: usize,
    pub(super) destination: String,
    pub(super) payload: String,
    pub(super) state: RowState,
    pub(super) own_key: String,
    stored_key: Option<String>,
    /// Every key that its row has had.
    pub(super) keys: Vec<String>,
    provider_id: Option<String>,
    acceptances: u32,
    found: u32,
    not_found: u32,
    next_at: Option<i64>,
    evidence: &'static str,
    queued: bool,
    /// Whether cleanup deleted its row.
    pub(super) erased: bool,
    seen: Seen,
}

/// One message, as a worker read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) item: usize,
    pub(super) state: RowState,
    pub(super) attempts: u32,
    pub(super) doubts: u32,
    pub(super) interruptions: u32,
    pub(super) first_sent_at: Option<i64>,
    pub(super) owner: Option<u32>,
    pub(super) lease_ms: i64,
    pub(super) lease_until: i64,
    pub(super) token: u64,
}

/// A run, as a worker read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenRun {
    pub(super) run: usize,
    token: u64,
}

/// What an item is settled as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Settlement {
    Delivered { id: Option<String>, found: bool },
    Failed,
    Review,
    Unknown { ask_at: i64, interrupted: bool },
    Pending { next_at: Option<i64> },
}

/// How an attempt begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    pub(super) after_absence: bool,
    pub(super) confirmed: bool,
}

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    runs: Vec<Run>,
    pub(super) items: Vec<Item>,
    lives: BTreeMap<u32, u32>,
    /// Counts commits.
    pub(super) version: u64,
}

impl Ledger {
    pub(super) fn enqueue(&mut self, actions: &[ActionSpec], now: i64) {
        let run = |action: &ActionSpec| Run {
            action: action.id.clone(),
            to: action.to.clone(),
            text: action.body.clone(),
            execution: ExecutionState::Pending,
            executions: 0,
            created_at: now,
            owner: None,
            lease_until: 0,
            token: 0,
        };
        self.runs.extend(actions.iter().map(run));
        self.version += 1;
    }

    /// A worker of this identity begins a life: which one it is, from 1.
    pub(super) fn begin_life(&mut self, identity: u32) -> u32 {
        self.version += 1;
        let lives = self.lives.entry(identity).or_default();
        *lives += 1;
        *lives
    }

    pub(super) fn action_of(&self, item: &Item) -> &str {
        &self.runs[item.run].action
    }

    pub(super) fn text_of(&self, item: &Item) -> &str {
        &self.runs[item.run].text
    }

    /// The first run that is pending, or running under a lease that has ended.
    pub(super) fn next_run(&self, now: i64) -> Option<SeenRun> {
        let is_free = |run: &Run| match run.execution {
            ExecutionState::Pending => true,
            ExecutionState::Running => !(now + 1..=now + HORIZON_MS).contains(&run.lease_until),
            ExecutionState::Succeeded | ExecutionState::Failed => false,
        };
        let run = self.runs.iter().position(is_free)?;
        Some(SeenRun { run, token: self.runs[run].token })
    }

    pub(super) fn start_run(&mut self, seen: &mut SeenRun, owner: u32, until: i64) -> bool {
        let run = &mut self.runs[seen.run];
        let open = matches!(run.execution, ExecutionState::Pending | ExecutionState::Running);
        if run.token != seen.token || !open {
            return false;
        }
        run.token += 1;
        (run.execution, run.owner, run.lease_until) = (ExecutionState::Running, Some(owner), until);
        seen.token = run.token;
        self.version += 1;
        true
    }

    /// Commits a result with its items. Returns the items' indices; `None` where the run has a new owner.
    pub(super) fn commit_result(
        &mut self,
        seen: SeenRun,
        more: Option<String>,
        start: (bool, bool),
        now: i64,
    ) -> Option<Vec<usize>> {
        let run = &mut self.runs[seen.run];
        if run.token != seen.token || run.execution != ExecutionState::Running {
            return None;
        }
        run.execution = ExecutionState::Succeeded;
        run.executions += 1;
        (run.owner, run.lease_until) = (None, 0);
        let destinations: Vec<String> = run.to.iter().cloned().chain(more).collect();
        self.version += 1;
        Some(destinations.into_iter().map(|to| self.insert(seen.run, to, start, now)).collect())
    }

    /// An item that is there already stays as it is.
    fn insert(
        &mut self,
        run: usize,
        destination: String,
        (with_key, delivered): (bool, bool),
        now: i64,
    ) -> usize {
        let known = |item: &Item| item.run == run && item.destination == destination && !item.erased;
        if let Some(known) = self.items.iter().position(known) {
            return known;
        }
        let action = &self.runs[run].action;
        let own_key = format!("{action}-{destination}-key");
        let reference = format!("{action}/{destination}");
        let payload = json!({ "to": destination, "body": self.runs[run].text, "ref": reference }).to_string();
        let state = if delivered { RowState::Confirmed } else { RowState::Created };
        let item = self.items.len();
        let seen = Seen {
            item,
            state,
            attempts: 0,
            doubts: 0,
            interruptions: 0,
            first_sent_at: None,
            owner: None,
            lease_ms: 0,
            lease_until: 0,
            token: 0,
        };
        self.items.push(Item {
            run,
            destination,
            payload,
            state,
            stored_key: with_key.then(|| own_key.clone()),
            keys: with_key.then(|| own_key.clone()).into_iter().collect(),
            own_key,
            provider_id: None,
            acceptances: 0,
            found: 0,
            not_found: 0,
            next_at: Some(now),
            evidence: "",
            queued: true,
            erased: false,
            seen,
        });
        item
    }

    /// The item as it is now.
    pub(super) fn read(&self, item: usize) -> Seen {
        let item = &self.items[item];
        Seen { state: item.state, ..item.seen }
    }

    fn open(&self) -> impl Iterator<Item = (usize, &Item)> {
        let is_open =
            |item: &Item| matches!(item.state, RowState::Created | RowState::Dispatching | RowState::Unknown);
        self.items.iter().enumerate().filter(move |(_, item)| is_open(item) && item.queued && !item.erased)
    }

    /// The first item that nobody has claimed and that is due.
    pub(super) fn next_due(&self, now: i64) -> Option<Seen> {
        let is_due = |at: i64| !(now + 1..=now + HORIZON_MS).contains(&at);
        let mut due =
            self.open().filter(|(_, item)| item.seen.owner.is_none() && item.next_at.is_some_and(is_due));
        due.next().map(|(index, _)| self.read(index))
    }

    /// Every open item that somebody has claimed.
    pub(super) fn claimed(&self) -> Vec<Seen> {
        let claimed = self.open().filter(|(_, item)| item.seen.owner.is_some());
        claimed.map(|(index, _)| self.read(index)).collect()
    }

    /// Claims an item unless somebody touched it since it was read; or, without comparing, in any case.
    pub(super) fn claim(
        &mut self,
        seen: &mut Seen,
        owner: u32,
        lease_ms: i64,
        now: i64,
        compares: bool,
    ) -> bool {
        let until = now + lease_ms;
        let item = &mut self.items[seen.item];
        let same = item.seen.token == seen.token
            && item.state == seen.state
            && item.seen.lease_until == seen.lease_until;
        if (compares && !same) || item.erased {
            return false;
        }
        item.seen.token += u64::from(compares);
        (item.seen.owner, item.seen.lease_ms, item.seen.lease_until) = (Some(owner), lease_ms, until);
        (seen.token, seen.lease_until) = (item.seen.token, until);
        self.version += 1;
        true
    }

    fn held(&mut self, seen: &Seen, fenced: bool) -> Option<&mut Item> {
        let item = &mut self.items[seen.item];
        if item.erased || (fenced && item.seen.token != seen.token) {
            return None;
        }
        self.version += 1;
        Some(item)
    }

    /// Commits the intent to send. Whether the claim still held.
    pub(super) fn begin_dispatch(
        &mut self,
        seen: &mut Seen,
        key: &str,
        lease_ms: i64,
        now: i64,
        begin: Begin,
        fenced: bool,
    ) -> bool {
        seen.attempts += 1;
        seen.lease_until = now + lease_ms;
        let until = seen.lease_until;
        let Some(item) = self.held(seen, fenced) else { return false };
        item.state = if begin.confirmed { RowState::Confirmed } else { RowState::Dispatching };
        item.seen.attempts += 1;
        item.stored_key = Some(key.to_owned());
        if !item.keys.iter().any(|known| known == key) {
            item.keys.push(key.to_owned());
        }
        item.seen.first_sent_at.get_or_insert(now);
        item.not_found += u32::from(begin.after_absence);
        (item.seen.lease_ms, item.seen.lease_until) = (lease_ms, until);
        true
    }

    /// Keeps a claim for longer. Whether it still held.
    pub(super) fn renew(&mut self, seen: &mut Seen, lease_ms: i64, now: i64, fenced: bool) -> bool {
        seen.lease_until = now + lease_ms;
        let until = seen.lease_until;
        let Some(item) = self.held(seen, fenced) else { return false };
        item.seen.lease_until = until;
        true
    }

    pub(super) fn release(&mut self, seen: &Seen, fenced: bool) {
        if let Some(item) = self.held(seen, fenced) {
            (item.seen.owner, item.seen.lease_until) = (None, 0);
        }
    }

    /// Writes what became of an item and gives the claim back. Whether the claim still held.
    pub(super) fn settle(&mut self, seen: &Seen, settlement: &Settlement, fenced: bool) -> bool {
        let Some(item) = self.held(seen, fenced) else { return false };
        item.next_at = None;
        (item.seen.owner, item.seen.lease_until) = (None, 0);
        match settlement {
            Settlement::Delivered { id, found } => {
                item.state = RowState::Confirmed;
                item.acceptances += u32::from(id.is_some() && !found);
                item.found += u32::from(*found);
                item.provider_id = id.clone().or(item.provider_id.take());
                item.evidence = if *found { "found by a lookup" } else { "accepted" };
            }
            Settlement::Failed => (item.state, item.evidence) = (RowState::Failed, "refused"),
            Settlement::Review => (item.state, item.evidence) = (RowState::Review, "nobody knows"),
            Settlement::Unknown { ask_at, interrupted } => {
                (item.state, item.evidence) = (RowState::Unknown, "no answer");
                item.seen.doubts += 1;
                item.seen.interruptions += u32::from(*interrupted);
                item.next_at = Some(*ask_at);
            }
            Settlement::Pending { next_at } => {
                (item.state, item.evidence) = (RowState::Created, "to be tried again");
                item.next_at = *next_at;
            }
        }
        true
    }

    /// Whether a run or an item is neither decided nor given up.
    pub(super) fn owes(&self, deliveries: bool, with_claimed: bool) -> bool {
        let runs = self
            .runs
            .iter()
            .any(|run| matches!(run.execution, ExecutionState::Pending | ExecutionState::Running));
        let waits = |item: &Item| item.next_at.is_some() && (item.seen.owner.is_none() || with_claimed);
        runs || (deliveries && self.open().any(|(_, item)| waits(item)))
    }

    /// Takes decided items off the queue, and deletes their rows where a bug wants it.
    pub(super) fn clean_up(&mut self, erases: bool) {
        for item in &mut self.items {
            if item.state.is_terminal() && item.state != RowState::Unknown {
                item.queued = false;
                item.erased |= erases;
            }
        }
        self.version += 1;
    }

    pub(super) fn reopen_failed(&mut self, now: i64) {
        for item in self.items.iter_mut().filter(|item| item.state == RowState::Failed && !item.erased) {
            (item.state, item.next_at) = (RowState::Created, Some(now));
        }
        self.version += 1;
    }

    fn undelivered_runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = self.open().map(|(_, item)| item.run).collect();
        runs.dedup();
        runs
    }

    pub(super) fn reopen_undelivered_runs(&mut self) {
        for run in self.undelivered_runs() {
            self.runs[run].execution = ExecutionState::Pending;
        }
        self.version += 1;
    }

    pub(super) fn add_destination(&mut self, destination: &str, now: i64) {
        for run in self.undelivered_runs() {
            self.insert(run, destination.to_owned(), (true, false), now);
        }
        self.version += 1;
    }

    /// How often each run's result was committed at most.
    pub(super) fn most_executions(&self) -> u32 {
        self.runs.iter().map(|run| run.executions).max().unwrap_or(0)
    }

    /// Canonical rows, sorted: one per item, and one per destination of a run that has none yet.
    pub(super) fn rows(&self) -> Vec<LedgerRow> {
        let mut rows = Vec::with_capacity(self.items.len() + self.runs.len());
        for (index, run) in self.runs.iter().enumerate() {
            let mut items = self.items.iter().filter(|item| item.run == index && !item.erased).peekable();
            if items.peek().is_none() && run.execution != ExecutionState::Succeeded {
                rows.extend(run.to.iter().map(|to| planned_row(run, to)));
            }
            rows.extend(items.map(|item| row(run, item)));
        }
        rows.sort();
        rows
    }

    /// The canonical counters.
    pub(super) fn metrics(&self) -> BTreeMap<String, u64> {
        let items = || self.items.iter().filter(|item| !item.erased);
        let sum = |count: fn(&Item) -> u32| items().map(|item| u64::from(count(item))).sum::<u64>();
        let in_state = |state| items().filter(|item| item.state == state).count() as u64;
        let values = [
            ("created", self.rows().len() as u64),
            ("attempts", sum(|item| item.seen.attempts)),
            ("acceptances", sum(|item| item.acceptances)),
            ("unknown", sum(|item| item.seen.doubts)),
            ("reconciled-successes", sum(|item| item.found)),
            ("reconciled-failures", sum(|item| item.not_found)),
            ("awaiting-review", in_state(RowState::Review)),
            ("execution-failures", 0),
            ("delivery-failures", in_state(RowState::Failed)),
        ];
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A row of a run whose messages are not made yet.
fn planned_row(run: &Run, to: &str) -> LedgerRow {
    LedgerRow {
        destination: Some(to.to_owned()),
        execution: Some(run.execution),
        executions: Some(run.executions),
        attempts: Some(0),
        owner: run.owner.map(owner_name),
        due_at_ms: Some(run.created_at as u64),
        ..LedgerRow::new(run.action.clone(), RowState::Created)
    }
}

fn row(run: &Run, item: &Item) -> LedgerRow {
    LedgerRow {
        destination: Some(item.destination.clone()),
        execution: Some(run.execution),
        executions: Some(run.executions),
        key: item.stored_key.clone(),
        provider_id: item.provider_id.clone(),
        attempts: Some(item.seen.attempts),
        text: Some(run.text.clone()),
        owner: item.seen.owner.or(run.owner).map(owner_name),
        due_at_ms: item.next_at.map(|at| at as u64),
        evidence: (!item.evidence.is_empty()).then(|| item.evidence.to_owned()),
        ..LedgerRow::new(run.action.clone(), item.state)
    }
}

fn owner_name(identity: u32) -> String {
    format!("host-{identity}")
}
