//! One write from its last byte to the end of its reply.

use std::future::pending;

use killpoint_model::plan::{CutAt, Reply};
use killpoint_model::provider::Unanswered;
use tokio::time::timeout;

use super::After;
use super::link::{Link, cut};
use crate::answer::{answer_write, retry_after_ms};
use crate::core::{Admission, Arrival, Execution, Outcome, Ruling};
use crate::http::{Request, Response};
use crate::observer::{Moment, Point};

/// One write in progress.
struct Write<'a> {
    link: &'a mut Link,
    operation: String,
    keep_alive: bool,
    admission: Admission,
    /// Whether [`Point::Finishing`] was reached, so that the watcher waits for an end.
    is_finishing: bool,
}

/// Receives, executes and answers a write.
pub(super) async fn serve(link: &mut Link, request: Request, operation: String) -> After {
    let keep_alive = request.keep_alive;
    let arrival = Arrival {
        connection: link.connection,
        operation: operation.clone(),
        target: format!("{} {}", request.method, request.path),
        headers: request.headers,
        body: request.body,
    };
    let admission = link.shared.step(|core, now_ms| core.receive(&arrival, now_ms));
    drop(arrival);
    let mut write = Write { link, operation, keep_alive, admission, is_finishing: false };
    match write.run().await {
        Ok(after) => after,
        Err(how) => {
            write.drop_exchange(how).await;
            After::Close
        }
    }
}

impl Write<'_> {
    async fn run(&mut self) -> Result<After, Unanswered> {
        self.reach(Point::Received).await?;
        let outcome = self.execute().await?;
        if outcome.committed.is_some() {
            self.reach(Point::Committed).await?;
        }
        let mut reply = self.admission.plan.reply;
        if matches!(reply, Reply::Hang | Reply::Hold) {
            reply = self.park(reply).await?;
        }
        self.reply(&outcome.ruling, reply).await
    }

    async fn reach(&mut self, point: Point) -> Result<(), Unanswered> {
        let moment = Moment {
            point,
            operation: self.operation.clone(),
            connection: self.link.connection,
            attempt: Some(self.admission.attempt),
            lookup: None,
        };
        self.link.reach(moment).await
    }

    /// Ends without a whole reply. Where that is the provider's doing, the end is a point of its own, and
    /// the watcher can stop the worker before it sees the closed connection.
    async fn drop_exchange(&mut self, how: Unanswered) {
        let ours = matches!(how, Unanswered::Fin | Unanswered::Rst | Unanswered::Cut | Unanswered::Hang)
            && !self.link.abandonment.has_come();
        if ours {
            // The exchange ends whatever the watcher answers here and below.
            let _ = self.reach(Point::Finishing).await;
        }
        let attempt = self.admission.attempt;
        self.link.shared.step(|core, _| core.unanswered(attempt, how));
        self.link.close(how).await;
        if ours {
            let _ = self.reach(Point::Dropped).await;
        } else if self.is_finishing && how == Unanswered::ClientGone && !self.link.abandonment.has_come() {
            // Whoever stopped the worker for the end of this exchange must let it go on.
            let _ = self.reach(Point::Ended).await;
        }
    }

    /// Executes, after waiting for the first request with the key where the contract says so. A wait
    /// that lasts as long as a hang ends as a conflict.
    async fn execute(&mut self) -> Result<Outcome, Unanswered> {
        let attempt = self.admission.attempt;
        let Link { shared, stream, buffer, abandonment, .. } = &mut *self.link;
        let mut changes = shared.changes();
        let decided = async {
            loop {
                changes.borrow_and_update();
                if !shared.look(|core, _| core.waits(attempt))
                    && let Execution::Done(outcome) =
                        shared.step(|core, now_ms| core.execute(attempt, now_ms, true))
                {
                    return outcome;
                }
                // The sender lives in `shared`: the wait ends with a change or with this exchange.
                let _ = changes.changed().await;
            }
        };
        let limit = shared.hang_limit();
        let waited = tokio::select! {
            biased;
            waited = timeout(limit, decided) => waited,
            () = abandonment.wait() => return Err(Unanswered::Abandoned),
            () = Link::client_gone(stream, buffer) => return Err(Unanswered::ClientGone),
        };
        if let Ok(outcome) = waited {
            return Ok(outcome);
        }
        match shared.step(|core, now_ms| core.execute(attempt, now_ms, false)) {
            Execution::Done(outcome) => Ok(outcome),
            Execution::Wait => Ok(Outcome { ruling: Ruling::Concurrent, committed: None }),
        }
    }

    /// Silent until somebody releases it, the client leaves, the harness abandons it or, for a hang, its
    /// time is over. Gives the reply with which it was released.
    async fn park(&mut self, reply: Reply) -> Result<Reply, Unanswered> {
        let attempt = self.admission.attempt;
        let hang = reply == Reply::Hang;
        let Link { shared, stream, buffer, abandonment, .. } = &mut *self.link;
        let (_guard, released) = shared.park(attempt);
        if !hang {
            shared.step(|core, _| core.hold(attempt));
        }
        let time_over =
            async { if hang { tokio::time::sleep(shared.hang_limit()).await } else { pending().await } };
        tokio::select! {
            biased;
            released = released => released.map_err(|_| Unanswered::Abandoned),
            () = abandonment.wait() => Err(if hang { Unanswered::Hang } else { Unanswered::Abandoned }),
            () = Link::client_gone(stream, buffer) => Err(Unanswered::ClientGone),
            () = time_over => Err(Unanswered::Hang),
        }
    }

    async fn reply(&mut self, ruling: &Ruling, reply: Reply) -> Result<After, Unanswered> {
        let Link { shared, .. } = &*self.link;
        let dialect = shared.dialect();
        let attempt = self.admission.attempt;
        let response = shared.look(|core, _| answer_write(core, dialect, attempt, ruling, reply));
        match reply {
            Reply::Ok | Reply::Status { .. } => self.deliver(&response).await,
            Reply::Fin => Err(Unanswered::Fin),
            Reply::Rst => Err(Unanswered::Rst),
            Reply::Cut { at } => self.cut_short(&response, at).await,
            // Parked before, and a release never asks for it again.
            Reply::Hang | Reply::Hold => Err(Unanswered::Hang),
        }
    }

    async fn cut_short(&mut self, response: &Response, at: CutAt) -> Result<After, Unanswered> {
        let part = cut(response, self.keep_alive, at);
        if !part.is_empty() {
            self.part_written(&part).await?;
        }
        Err(Unanswered::Cut)
    }

    /// The whole answer, in two parts, so that "part of the reply was sent" is a real point.
    async fn deliver(&mut self, response: &Response) -> Result<After, Unanswered> {
        let (bytes, head_len) = response.to_bytes(self.keep_alive, false);
        // Without a body the empty line that ends the headers is the rest.
        let middle = if bytes.len() > head_len { head_len + response.body.len() / 2 } else { head_len - 2 };
        let (part, rest) = bytes.split_at(middle);
        self.part_written(part).await?;
        self.is_finishing = true;
        self.reach(Point::Finishing).await?;
        self.link.write(rest).await?;
        let (attempt, status) = (self.admission.attempt, response.status);
        self.link.shared.step(|core, _| core.replied(attempt, status, retry_after_ms(status)));
        if self.reach(Point::Replied).await.is_err() {
            return Ok(After::Close);
        }
        if self.keep_alive {
            self.link.answered = Some(attempt);
            return Ok(After::Next);
        }
        if self.link.closes_unread().await {
            self.link.shared.step(|core, _| core.unread(attempt));
        }
        Ok(After::Close)
    }

    async fn part_written(&mut self, part: &[u8]) -> Result<(), Unanswered> {
        self.link.write(part).await?;
        let attempt = self.admission.attempt;
        self.link.shared.step(|core, _| core.replying(attempt, part.len() as u64));
        self.reach(Point::Replying).await
    }
}
