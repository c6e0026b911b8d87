//! Exchanges between workers and the provider, point by point, in the order of the real wire. The provider's own
//! state machine decides; here is only who waits, who leaves, and what the worker gets to see.

use fake_provider::core::{Arrival, Execution, Looked, Outcome as Ruled, Query};
use killpoint_model::plan::{CutAt, ProviderPlan, Reply};
use killpoint_model::provider::Unanswered;
use killpoint_model::{HitName, Source};

use super::act::{Answer, Found, Letter, Outcome};
use super::exchange::{Client, Exchange, Stage, answer_of, retry_after_ms};
use super::hits::Onward;
use super::life::{LEASE_MS, TIMEOUT_MS};
use super::process::Doing;
use super::truth::{Asked, Sent};
use super::world::World;

/// Bytes of a part of a reply.
const PART_BYTES: u64 = 150;
/// A request that takes so long to be read was held up by the harness, in microseconds.
const HELD_UP_US: u64 = 50_000;
/// How long the provider may take to see that a dead worker's connections are closed, in microseconds.
const DRAIN_US: u64 = 5_000_000;

impl World<'_> {
    /// A worker begins a write, or a lookup. Returns the exchange's number.
    pub(super) fn call(&mut self, worker: u32, request: Result<Letter, (usize, String)>) -> u32 {
        let number = self.next_exchange;
        self.next_exchange += 1;
        let wake = Some(self.soon());
        let process = self.processes.get(&worker);
        let (life, now_ms) = process.map_or((0, 0), |process| (process.lives, process.desk.now_ms.get()));
        let is_stale =
            request.as_ref().is_ok_and(|letter| now_ms - letter.sure_at_ms > LEASE_MS - TIMEOUT_MS);
        let exchange = Exchange {
            worker,
            life,
            request,
            connection: 0,
            called_seq: self.record.seq(),
            called_us: self.record.now_us,
            left_us: None,
            is_stale,
            stage: Stage::Connect,
            wake,
            held: false,
            client: Client::Waits,
            id: 0,
            plan: ProviderPlan::default(),
            status: 0,
            answer: None,
            found: None,
            told: false,
            over: false,
        };
        self.exchanges.insert(number, exchange);
        number
    }

    /// A worker has waited long enough.
    pub(super) fn leave(&mut self, number: u32) {
        let now_us = self.record.now_us;
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.lose(Client::GaveUp, now_us);
            exchange.left_us = Some(now_us);
            if exchange.id > 0 && exchange.request.is_ok() {
                self.trace.left_us.insert(exchange.id, now_us);
            }
        }
    }

    /// The clients of these exchanges are dead.
    pub(super) fn bereave(&mut self, worker: u32) {
        let now_us = self.record.now_us;
        for exchange in self.exchanges.values_mut().filter(|exchange| exchange.worker == worker) {
            exchange.lose(Client::Dead, now_us);
        }
    }

    /// Takes an exchange to its next point.
    pub(super) fn advance(&mut self, number: u32) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.wake = None;
        match exchange.stage {
            Stage::Connect => self.connect(number),
            Stage::Read if exchange.request.is_ok() => self.receive(number),
            Stage::Read => self.look_up(number),
            Stage::Execute { until_us } => self.execute(number, until_us),
            Stage::Parked => self.unpark(number),
            Stage::Part => self.write_part(number),
            Stage::Last => self.write_last(number),
            Stage::Drop(how) => self.drop_exchange(number, how),
            Stage::AnswerLookup => self.answer_lookup(number),
        }
    }

    fn go_to(&mut self, number: u32, stage: Stage) {
        let wake = self.soon();
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            (exchange.stage, exchange.wake) = (stage, Some(wake));
        }
    }

    /// Ends without a whole answer, and without a point.
    fn end(&mut self, number: u32, how: Unanswered) {
        let Some(exchange) = self.exchanges.remove(&number) else { return };
        match (exchange.id, exchange.request.is_ok()) {
            _ if exchange.over => {}
            (0, _) => self.core.partial(exchange.connection, 0),
            (attempt, true) => self.core.unanswered(attempt, how),
            (lookup, false) => self.core.lookup_unanswered(lookup, how),
        }
        self.log();
    }

    /// Waits at a point for the harness. Whether the exchange goes on.
    fn pass(&mut self, number: u32, point: &str) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return false };
        let subject = if exchange.id > 0 { exchange.id } else { exchange.connection };
        let name = HitName::new(Source::Provider, point, 1);
        if self.draining {
            self.pass_dead(name, Some(subject.to_string()));
            return true;
        }
        exchange.held = true;
        let onward = self.reach(name, Some(subject.to_string()), 0);
        let exists = self.exchanges.get_mut(&number).map(|exchange| exchange.held = false).is_some();
        if onward == Onward::Dead {
            self.end(number, Unanswered::Abandoned);
            self.revive();
            return false;
        }
        self.revive_others();
        exists
    }

    fn connect(&mut self, number: u32) {
        let connection = self.core.connect();
        self.log();
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.connection = connection;
        }
        if self.pass(number, "connected") {
            self.go_to(number, Stage::Read);
        }
    }

    /// A request of a dead worker may have been sent whole, or not.
    fn was_cut(&mut self, number: u32) -> bool {
        let dead = self.exchanges.get(&number).is_some_and(|exchange| exchange.client == Client::Dead);
        let cut = dead && self.dice.one_in(2);
        if cut {
            self.end(number, Unanswered::ClientGone);
        }
        cut
    }

    fn receive(&mut self, number: u32) {
        if self.was_cut(number) {
            return;
        }
        let now_ms = self.provider_ms();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let Ok(letter) = &exchange.request else { return };
        let arrival = Arrival {
            connection: exchange.connection,
            operation: "create".into(),
            target: "POST /v1/messages".into(),
            headers: vec![
                ("content-type".to_owned(), "application/json".to_owned()),
                ("idempotency-key".to_owned(), letter.key.clone()),
            ],
            body: letter.body.clone().into_bytes(),
        };
        let admission = self.core.receive(&arrival, now_ms);
        (exchange.id, exchange.plan) = (admission.attempt, admission.plan);
        let (item, key) = (letter.item, letter.key.clone());
        let sent = Sent {
            item,
            attempt: admission.attempt,
            key,
            at_ms: now_ms,
            called_us: exchange.called_us,
            is_held_up: self.record.now_us > exchange.called_us + HELD_UP_US,
            is_stale: exchange.is_stale,
            called_seq: exchange.called_seq,
            seq: self.record.seq() + 1,
        };
        if let Some(left_us) = exchange.left_us {
            self.trace.left_us.insert(admission.attempt, left_us);
        }
        self.log();
        self.trace.sent.push(sent);
        if self.pass(number, "received") {
            let until_us = self.record.now_us + self.settings.provider.hang_ms * 1000;
            self.go_to(number, Stage::Execute { until_us });
        }
    }

    fn execute(&mut self, number: u32, until_us: u64) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        let attempt = exchange.id;
        let waits = self.core.waits(attempt);
        if waits && exchange.client != Client::Waits {
            return self.end(number, Unanswered::ClientGone);
        }
        let patient = self.record.now_us < until_us;
        let now_ms = self.provider_ms();
        let executed = self.core.execute(attempt, now_ms, patient);
        self.log();
        let Execution::Done(Ruled { ruling, committed }) = executed else {
            return self.go_to(number, Stage::Execute { until_us });
        };
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let (status, answer) = answer_of(&self.core, attempt, &ruling, exchange.plan.reply);
        (exchange.status, exchange.answer) = (status, Some(answer));
        if committed.is_some() && !self.pass(number, "committed") {
            return;
        }
        self.reply_or_park(number);
    }

    fn reply_or_park(&mut self, number: u32) {
        let now_us = self.record.now_us;
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let (reply, attempt) = (exchange.plan.reply, exchange.id);
        match reply {
            Reply::Ok | Reply::Status { .. } | Reply::Cut { at: CutAt::Headers | CutAt::Body } => {
                self.go_to(number, Stage::Part);
            }
            Reply::Cut { at: CutAt::Zero } => self.go_to(number, Stage::Drop(Unanswered::Cut)),
            Reply::Fin => self.go_to(number, Stage::Drop(Unanswered::Fin)),
            Reply::Rst => self.go_to(number, Stage::Drop(Unanswered::Rst)),
            Reply::Hang | Reply::Hold => {
                let forever = reply == Reply::Hold;
                let left = exchange.client != Client::Waits;
                let over_us = (!forever).then(|| now_us + self.settings.provider.hang_ms * 1000);
                exchange.stage = Stage::Parked;
                exchange.wake = if left { Some(now_us) } else { over_us };
                if forever && exchange.request.is_ok() {
                    self.core.hold(attempt);
                    self.log();
                }
            }
        }
    }

    fn unpark(&mut self, number: u32) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        match exchange.client {
            Client::Waits => self.drop_exchange(number, Unanswered::Hang),
            Client::GaveUp | Client::Dead => self.end(number, Unanswered::ClientGone),
        }
    }

    fn write_part(&mut self, number: u32) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        let (attempt, reply) = (exchange.id, exchange.plan.reply);
        // The first bytes may still go out to who is not there any more.
        if exchange.client != Client::Waits && self.dice.one_in(2) {
            return self.end(number, Unanswered::ClientGone);
        }
        self.core.replying(attempt, PART_BYTES);
        self.log();
        if !self.pass(number, "replying") {
            return;
        }
        if matches!(reply, Reply::Cut { .. }) {
            return self.go_to(number, Stage::Drop(Unanswered::Cut));
        }
        // Unless a fault waits for the end, the worker may have read the answer before that is on record.
        if !self.needs_exact_end() && self.dice.one_in(4) {
            self.tell(number);
        }
        self.go_to(number, Stage::Last);
    }

    /// Whether a fault of the plan waits for the end of an exchange: then workers stand still at the last byte.
    fn needs_exact_end(&self) -> bool {
        self.pending.iter().any(|fault| {
            fault.at.source == Some(Source::Provider)
                && ["replied", "dropped"].contains(&fault.at.point.as_str())
        })
    }

    fn write_last(&mut self, number: u32) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        if exchange.client != Client::Waits && !exchange.told {
            return self.end(number, Unanswered::ClientGone);
        }
        let (attempt, status) = (exchange.id, exchange.status);
        self.core.replied(attempt, status, retry_after_ms(status));
        self.log();
        self.set_over(number);
        self.tell(number);
        if self.pass(number, "replied") {
            self.exchanges.remove(&number);
        }
    }

    fn drop_exchange(&mut self, number: u32, how: Unanswered) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        if let Err((_, _)) = exchange.request {
            exchange.found = Some(Found::Failed);
            self.tell(number);
            return self.end(number, how);
        }
        exchange.answer = match (exchange.plan.reply, exchange.answer.take()) {
            // The status line and the headers went out.
            (Reply::Cut { at: CutAt::Body }, Some(limited @ Answer::RateLimited { .. })) => Some(limited),
            _ => Some(Answer::Doubtful { retry_after_ms: None }),
        };
        let attempt = exchange.id;
        self.core.unanswered(attempt, how);
        self.log();
        self.set_over(number);
        self.tell(number);
        if self.pass(number, "dropped") {
            self.exchanges.remove(&number);
        }
    }

    fn set_over(&mut self, number: u32) {
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.over = true;
        }
    }

    fn look_up(&mut self, number: u32) {
        if self.was_cut(number) {
            return;
        }
        let now_ms = self.provider_ms();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let Err((item, key)) = &exchange.request else { return };
        let query = Query::Key(key.clone());
        let Looked { lookup, plan, found, .. } =
            self.core.look_up(exchange.connection, "GET /v1/messages", &[], &query, now_ms);
        (exchange.id, exchange.plan) = (lookup, plan);
        exchange.found = Some(found.first().map_or(Found::None, |one| Found::One { id: one.id.clone() }));
        let (item, key, seq) = (*item, key.clone(), self.record.seq() + 1);
        let asked = Asked { item, key, lookup, seq, answered: None };
        self.log();
        self.trace.asked.push(asked);
        if self.pass(number, "lookup") {
            self.go_to(number, Stage::AnswerLookup);
        }
    }

    fn answer_lookup(&mut self, number: u32) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let lookup = exchange.id;
        let how = match exchange.plan.reply {
            Reply::Ok => None,
            Reply::Status { .. } => {
                exchange.found = Some(Found::Failed);
                None
            }
            Reply::Fin => Some(Unanswered::Fin),
            Reply::Rst => Some(Unanswered::Rst),
            Reply::Cut { .. } => Some(Unanswered::Cut),
            Reply::Hang | Reply::Hold => return self.reply_or_park(number),
        };
        if exchange.client != Client::Waits {
            return self.end(number, Unanswered::ClientGone);
        }
        if let Some(how) = how {
            return self.drop_exchange(number, how);
        }
        let status = match exchange.plan.reply {
            Reply::Status { code } => code,
            _ => 200,
        };
        self.core.lookup_replied(lookup, status);
        self.log();
        let seq = self.record.seq();
        let says_something = (200..300).contains(&status) || status == 404 || status == 410;
        if let Some(asked) = self.trace.asked.iter_mut().find(|asked| asked.lookup == lookup) {
            asked.answered = says_something.then_some(seq);
        }
        self.tell(number);
        self.exchanges.remove(&number);
    }

    /// The worker gets to see the answer, if it still waits for it.
    fn tell(&mut self, number: u32) {
        let wake = self.soon();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let Some(process) = self.processes.get_mut(&exchange.worker) else { return };
        let waits = matches!(process.doing, Doing::Calling { exchange: of, .. } if of == number);
        if exchange.told || !waits || process.lives != exchange.life || !process.is_live() {
            return;
        }
        exchange.told = true;
        if exchange.request.is_ok() {
            self.trace.left_us.insert(exchange.id, self.record.now_us);
        }
        let outcome = match &exchange.request {
            Ok(_) => exchange.answer.clone().map(Outcome::Sent),
            Err(_) => exchange.found.clone().map(Outcome::Asked),
        };
        *process.desk.outcome.borrow_mut() = outcome;
        (process.doing, process.wake) = (Doing::Thinking, Some(wake));
    }

    /// Lets exchanges of dead workers end: a request that was read whole is still carried out.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        loop {
            let waking = self.exchanges.iter().filter(|(_, exchange)| !exchange.held);
            let next = waking.filter_map(|(number, exchange)| Some((exchange.wake?, *number))).min();
            let Some((at_us, number)) = next else { break };
            self.record.now_us = self.record.now_us.max(at_us);
            self.advance(number);
        }
        let held: Vec<u32> = self.exchanges.keys().copied().collect();
        if !held.is_empty() {
            // What the harness itself holds at a hit is abandoned in the end.
            self.record.now_us += DRAIN_US;
            for number in held {
                self.end(number, Unanswered::Abandoned);
            }
        }
        self.draining = false;
    }
}
