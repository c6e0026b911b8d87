//! What happened on the wire: attempts with their end, effects, lookups with their answers.

use crate::facts::index::Index;
use killpoint_model::plan::{CutAt, ProviderPlan, Reply};
use killpoint_model::provider::{Attempt, Effect, Lookup, ProviderEvent, Replay, Unanswered};

/// How an attempt ended, as the wire saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The whole reply was written.
    Replied(u16),
    /// No whole reply.
    Unanswered(Unanswered),
    /// Nothing was recorded: the worker died, or the trial ended.
    Nothing,
}

/// One attempt with all that followed from it.
#[derive(Debug)]
pub(crate) struct AttemptFact<'a> {
    pub(crate) seq: u64,
    pub(crate) attempt: &'a Attempt,
    /// The rule's plan, where a rule took it.
    pub(crate) plan: Option<ProviderPlan>,
    /// Where it was parked at the committed point.
    pub(crate) held: Option<u64>,
    /// The first reply byte.
    pub(crate) replying: Option<u64>,
    pub(crate) end: End,
    pub(crate) end_seq: Option<u64>,
    /// Whether the client reset the connection after the whole reply was written: it may not have heard it.
    pub(crate) unread: bool,
    /// After how long it may be tried again, by the answer, in milliseconds.
    pub(crate) retry_after_ms: Option<u64>,
    /// Why the contract made no new effect of it, and the earlier effect.
    pub(crate) replay: Option<(u64, Replay, Option<&'a str>)>,
    /// Effects that it made, by index.
    pub(crate) effects: Vec<usize>,
}

impl AttemptFact<'_> {
    /// The status that the dialect's answer stands for: some dialects carry an error in a 200.
    pub(crate) fn status(&self) -> Option<u16> {
        let End::Replied(status) = self.end else { return None };
        match self.plan.map(|plan| plan.reply) {
            Some(Reply::Status { code }) => Some(code),
            _ => Some(status),
        }
    }

    /// Whether a whole reply said that it was not taken. 408, 409 and 425 do not say that; in SMTP a
    /// transient or permanent refusal after the dot means that the server must not deliver (RFC 5321).
    pub(crate) fn refused(&self) -> bool {
        self.status().is_some_and(|status| match status {
            408 | 409 | 425 | 500..=599 => self.attempt.dialect == "smtp",
            400..=499 => true,
            _ => false,
        })
    }

    /// Whether it may have been accepted, as far as a worker can know after its death.
    pub(crate) fn doubtful(&self) -> bool {
        !self.refused()
    }

    /// From when the worker may know that it was accepted; `None` where nothing on the wire said so.
    /// The earliest bound, because a reply may be parsed before its last byte is recorded.
    pub(crate) fn acceptance_told(&self) -> Option<u64> {
        let first_byte = self.replying.into_iter().chain(self.end_seq).min();
        let said_so = match self.end {
            End::Replied(_) => self.status().is_some_and(|status| (200..300).contains(&status)),
            // Status line and header block went out whole.
            End::Unanswered(Unanswered::Cut) => self.cut_in_body(),
            // The last bytes may have been read before either side was gone.
            End::Unanswered(Unanswered::ClientGone | Unanswered::Abandoned) | End::Nothing => {
                self.replying.is_some() && self.reply_is_whole()
            }
            End::Unanswered(_) => false,
        };
        said_so.then_some(first_byte).flatten()
    }

    /// Whether the answer was a "duplicate" or a conflict: the success of an earlier attempt, where that one
    /// made an effect.
    pub(crate) fn says_already_done(&self) -> bool {
        let known = matches!(self.replay, Some((_, _, Some(_))));
        self.status().is_some_and(|status| status == 409 || (known && (400..500).contains(&status)))
    }

    /// Whether the only word of acceptance was a reply cut inside its body.
    pub(crate) fn cut_in_body(&self) -> bool {
        matches!(self.plan.map(|plan| plan.reply), Some(Reply::Cut { at: CutAt::Body }))
            && self.end == End::Unanswered(Unanswered::Cut)
    }

    fn reply_is_whole(&self) -> bool {
        matches!(self.plan.map(|plan| plan.reply), None | Some(Reply::Ok | Reply::Hold))
    }

    /// Whether no byte that says "accepted" can ever have left the provider, though the effect may exist:
    /// the reply was parked and never released, or is withheld by the plan.
    pub(crate) fn reply_withheld(&self) -> bool {
        let parked = self.held.is_some() && self.replying.is_none() && !matches!(self.end, End::Replied(_));
        parked || !self.reply_is_whole()
    }

    /// First event after which an effect, or a stored answer, existed for it.
    pub(crate) fn accepted_seq(&self, effects: &[EffectFact<'_>]) -> Option<u64> {
        let replay = self.replay.and_then(|(seq, _, effect)| effect.map(|_| seq));
        self.effects.iter().map(|index| effects[*index].seq).chain(replay).min()
    }
}

/// One commit with the copies that the recipient got of it.
#[derive(Debug)]
pub(crate) struct EffectFact<'a> {
    pub(crate) seq: u64,
    pub(crate) effect: &'a Effect,
    /// The attempt that made it, by index.
    pub(crate) attempt: Option<usize>,
    /// Copies in all, those of the provider's own doing included.
    pub(crate) copies: u32,
    /// The first commit of its attempt for this recipient: later ones are the provider's doing.
    pub(crate) first_of_attempt: bool,
    /// Where the provider delivered it again by itself.
    pub(crate) redelivered: Vec<u64>,
    /// The first delivery receipt that was sent.
    pub(crate) receipt: Option<u64>,
}

/// One lookup and whether its answer was written whole.
#[derive(Debug)]
pub(crate) struct LookupFact<'a> {
    pub(crate) seq: u64,
    pub(crate) lookup: &'a Lookup,
    plan: Option<ProviderPlan>,
    replied: Option<(u64, u16)>,
}

impl LookupFact<'_> {
    /// Where an answer that says something was written whole: a success or "there is none".
    pub(crate) fn answered(&self) -> Option<u64> {
        let (seq, status) = self.replied?;
        let status = match self.plan.map(|plan| plan.reply) {
            Some(Reply::Status { code }) => code,
            _ => status,
        };
        ((200..300).contains(&status) || status == 404 || status == 410).then_some(seq)
    }
}

/// The wire of one history.
#[derive(Debug, Default)]
pub(crate) struct Wire<'a> {
    pub(crate) attempts: Vec<AttemptFact<'a>>,
    pub(crate) effects: Vec<EffectFact<'a>>,
    pub(crate) lookups: Vec<LookupFact<'a>>,
    /// Polls and acknowledgements of the feed, and steps of the provider's clock.
    pub(crate) apart: Vec<(u64, &'a ProviderEvent)>,
    /// Connections that were accepted.
    pub(crate) connections: u32,
    /// Those of them that ended before a whole request was read.
    pub(crate) broken: u32,
}

/// Where each number is.
#[derive(Default)]
struct Places<'a> {
    attempts: Index<u32, usize>,
    effects: Index<&'a str, usize>,
    commits: Index<(u32, &'a str), usize>,
    lookups: Index<u32, usize>,
    /// Rules that took something, by whether it was a lookup and its number: in whichever order the log
    /// tells it.
    plans: Index<(bool, u32), ProviderPlan>,
}

impl<'a> Wire<'a> {
    /// Reads the provider's events of a history, in one pass.
    pub(crate) fn read(provider: &[(u64, &'a ProviderEvent)]) -> Self {
        let mut wire = Self::default();
        let mut index = Places::default();
        let received =
            provider.iter().filter(|(_, event)| matches!(event, ProviderEvent::Received(_))).count();
        wire.attempts.reserve(received);
        wire.effects.reserve(received);
        index.attempts.reserve(received);
        index.effects.reserve(received);
        index.commits.reserve(received);
        for (seq, event) in provider {
            wire.take(*seq, event, &mut index);
        }
        wire
    }

    fn take(&mut self, seq: u64, event: &'a ProviderEvent, index: &mut Places<'a>) {
        match event {
            ProviderEvent::Received(attempt) => {
                index.attempts.insert(attempt.id, self.attempts.len());
                self.attempts.push(AttemptFact {
                    seq,
                    attempt,
                    plan: index.plans.get(&(false, attempt.id)).copied(),
                    held: None,
                    replying: None,
                    end: End::Nothing,
                    end_seq: None,
                    unread: false,
                    retry_after_ms: None,
                    replay: None,
                    effects: Vec::new(),
                });
            }
            ProviderEvent::Committed(effect) => self.commit(seq, effect, index),
            ProviderEvent::Redelivered { effect } => {
                if let Some(at) = index.effects.get(effect.as_str()) {
                    self.effects[*at].copies += 1;
                    self.effects[*at].redelivered.push(seq);
                }
            }
            ProviderEvent::Receipt { effect, copies, .. } if *copies > 0 => {
                if let Some(at) = index.effects.get(effect.as_str()) {
                    self.effects[*at].receipt.get_or_insert(seq);
                }
            }
            ProviderEvent::LookedUp(lookup) => {
                index.lookups.insert(lookup.id, self.lookups.len());
                self.lookups.push(LookupFact {
                    seq,
                    lookup,
                    plan: index.plans.get(&(true, lookup.id)).copied(),
                    replied: None,
                });
            }
            ProviderEvent::LookupReplied { lookup, status } => {
                if let Some(at) = index.lookups.get(lookup) {
                    self.lookups[*at].replied = Some((seq, *status));
                }
            }
            ProviderEvent::RuleFired { attempt: id, lookup, plan, .. } => {
                index.plans.insert((*lookup, *id), *plan);
                match (lookup, index.attempts.get(id), index.lookups.get(id)) {
                    (true, _, Some(at)) => self.lookups[*at].plan = Some(*plan),
                    (false, Some(at), _) => self.attempts[*at].plan = Some(*plan),
                    _ => {}
                }
            }
            ProviderEvent::Connected { .. } => self.connections += 1,
            ProviderEvent::Partial { .. } => self.broken += 1,
            ProviderEvent::Fed { .. }
            | ProviderEvent::FeedAcknowledged { .. }
            | ProviderEvent::ClockStepped { .. } => self.apart.push((seq, event)),
            other => self.progress(seq, other, index),
        }
    }

    fn commit(&mut self, seq: u64, effect: &'a Effect, index: &mut Places<'a>) {
        let at = self.effects.len();
        let attempt = index.attempts.get(&effect.attempt).copied();
        if let Some(attempt) = attempt {
            self.attempts[attempt].effects.push(at);
        }
        index.effects.insert(&effect.id, at);
        let first = index.commits.insert((effect.attempt, &effect.recipient), at).is_none();
        self.effects.push(EffectFact {
            seq,
            effect,
            attempt,
            copies: effect.copies,
            first_of_attempt: first || attempt.is_none(),
            redelivered: Vec::new(),
            receipt: None,
        });
    }

    /// Events that move an attempt on.
    fn progress(&mut self, seq: u64, event: &'a ProviderEvent, index: &Places<'a>) {
        let (ProviderEvent::NotExecuted { attempt: id, .. }
        | ProviderEvent::Held { attempt: id }
        | ProviderEvent::Replying { attempt: id, .. }
        | ProviderEvent::Replied { attempt: id, .. }
        | ProviderEvent::Unread { attempt: id }
        | ProviderEvent::Unanswered { attempt: id, .. }) = event
        else {
            return;
        };
        let Some(at) = index.attempts.get(id) else { return };
        let fact = &mut self.attempts[*at];
        match event {
            ProviderEvent::NotExecuted { replay, effect, .. } => {
                fact.replay = Some((seq, *replay, effect.as_deref()));
            }
            ProviderEvent::Held { .. } => fact.held = Some(seq),
            ProviderEvent::Replying { bytes, .. } if *bytes > 0 => {
                fact.replying.get_or_insert(seq);
            }
            ProviderEvent::Replied { status, retry_after_ms, .. } => {
                (fact.end, fact.end_seq) = (End::Replied(*status), Some(seq));
                fact.retry_after_ms = *retry_after_ms;
            }
            ProviderEvent::Unread { .. } => fact.unread = true,
            ProviderEvent::Unanswered { how, .. } => {
                (fact.end, fact.end_seq) = (End::Unanswered(*how), Some(seq));
            }
            _ => {}
        }
    }
}
