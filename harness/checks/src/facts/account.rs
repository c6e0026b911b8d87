//! The account of one unit: what was owed, what the recipient got, what the worker says.

use std::collections::BTreeMap;

use killpoint_model::RowState;
use killpoint_model::settings::Promise;
use killpoint_model::verdict::ActionVerdict;

use crate::facts::Facts;
use crate::facts::units::Unit;

/// Whether something that was owed is missing, and whether anything says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing is missing, or the worker says so openly.
    None,
    /// It is missing and nothing says so; the reason in words.
    Silent(&'static str),
    /// It is missing; whether something says so can't be told without a ledger mapping.
    Undetermined,
}

/// The numbers of one unit.
#[derive(Debug)]
pub(crate) struct Account {
    /// What was owed.
    pub(crate) expected: u32,
    /// Effects of the worker's doing: one per attempt that made one and was not refused.
    pub(crate) made: u32,
    /// Copies that the recipient got, whoever made them.
    pub(crate) total: u32,
    /// Effects of attempts that were refused in a whole reply: the provider's lie, by index.
    pub(crate) lies: Vec<usize>,
    /// More effects than owed, of the worker's doing.
    pub(crate) duplicate: bool,
    /// Confirmed rows without an effect.
    pub(crate) false_success: u32,
    /// Failed or cancelled rows with an effect.
    pub(crate) false_failure: u32,
    pub(crate) loss: Loss,
    /// Final rows by state; a missing row counts as what the settings say that means.
    pub(crate) states: BTreeMap<RowState, u32>,
    /// Rows that were there before the trial and that it never touched.
    pub(crate) preexisting: bool,
    pub(crate) verdict: ActionVerdict,
    /// Events that show it; never empty.
    pub(crate) events: Vec<u64>,
}

impl Account {
    /// Rows in a final state.
    pub(crate) fn count(&self, state: RowState) -> u32 {
        self.states.get(&state).copied().unwrap_or(0)
    }

    fn open(&self) -> u32 {
        self.count(RowState::Created) + self.count(RowState::Dispatching)
    }

    fn failed(&self) -> u32 {
        self.count(RowState::Failed) + self.count(RowState::Cancelled)
    }

    fn doubt(&self) -> u32 {
        self.count(RowState::Unknown) + self.count(RowState::Review)
    }

    /// The worker's own final words, in short.
    pub(crate) fn state_words(&self) -> Option<String> {
        if let (1, Some((state, 1))) = (self.states.len(), self.states.first_key_value()) {
            return Some(state.to_string());
        }
        let words: Vec<String> = (self.states.iter())
            .map(|(state, count)| if *count == 1 { state.to_string() } else { format!("{count} {state}") })
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Effects of a unit, told apart by whose doing they are.
struct Delivered {
    /// Effects, one per attempt.
    any: u32,
    /// The worker's doing.
    made: u32,
    /// Effects that make a `failed` false.
    denied_wrongly: u32,
    total: u32,
    lies: Vec<usize>,
}

fn delivered(facts: &Facts<'_>, unit: &Unit) -> Delivered {
    let wire = &facts.book.wire;
    let last_attempt_ms = unit.attempts.last().map_or(0, |index| wire.attempts[*index].attempt.at_ms);
    let mut counts = Delivered { any: 0, made: 0, denied_wrongly: 0, total: 0, lies: Vec::new() };
    for index in &unit.effects {
        let fact = &wire.effects[*index];
        counts.total += fact.copies;
        if !fact.first_of_attempt {
            continue;
        }
        counts.any += 1;
        if fact.attempt.is_some_and(|attempt| wire.attempts[attempt].refused()) {
            counts.lies.push(*index);
            continue;
        }
        // A message that came back before the next attempt was not received.
        let bounced_before = fact.effect.bounced_at_ms.is_some_and(|at_ms| at_ms <= last_attempt_ms);
        counts.made += u32::from(!bounced_before);
        counts.denied_wrongly += u32::from(fact.effect.bounced_at_ms.is_none());
    }
    counts
}

/// Final rows of a unit: by state, and how many are gone without a meaning.
fn final_states(facts: &Facts<'_>, unit: &Unit) -> (BTreeMap<RowState, u32>, u32) {
    let mut states = BTreeMap::new();
    let mut gone = 0;
    if facts.final_rows().is_none() {
        return (states, 0);
    }
    let absent = facts.settings.ledger.as_ref().and_then(|ledger| ledger.absent);
    for row in &unit.rows {
        match (facts.book.ledger.rows[*row].last.first(), absent) {
            (Some(row), _) => *states.entry(row.state).or_insert(0) += 1,
            // A row that should say "delivered" by its absence may as well have been lost.
            (None, None | Some(RowState::Confirmed)) => gone += 1,
            (None, Some(state)) => *states.entry(state).or_insert(0) += 1,
        }
    }
    (states, gone)
}

/// Draws up the account of one unit.
pub(crate) fn draw_up(facts: &Facts<'_>, unit: &Unit) -> Account {
    let counts = delivered(facts, unit);
    let (states, gone) = final_states(facts, unit);
    let rows = unit.rows.len() as u32;
    // Messages that one row stands for.
    let weight = unit.baseline.effects.div_ceil(unit.baseline.rows.max(1)).max(1);
    let weight = if unit.baseline.rows == 0 { 1 } else { weight };
    let expected = expected(facts, unit, counts.made);
    let mut account = Account {
        expected,
        made: counts.made,
        total: counts.total,
        duplicate: counts.made > expected.max(1) || (counts.made > 0 && facts.is_second_identity(unit)),
        lies: counts.lies,
        false_success: 0,
        false_failure: 0,
        loss: Loss::None,
        states,
        preexisting: is_preexisting(facts, unit),
        verdict: ActionVerdict::DeliveredOnce,
        events: events(facts, unit),
    };
    if account.preexisting || (facts.unjoined && rows > 0) {
        account.expected = 0;
        account.states.clear();
        return account;
    }
    let confirmed = account.count(RowState::Confirmed) * weight;
    account.false_success = confirmed.saturating_sub(counts.any);
    if account.failed() > 0 {
        let others = (rows - account.failed()) * weight;
        account.false_failure = counts.denied_wrongly.saturating_sub(others).min(account.failed());
    }
    let without_row = expected.saturating_sub(rows * weight);
    let needed = confirmed + gone * weight + without_row;
    if gone + without_row > 0 && counts.any < needed {
        account.loss = loss(facts, unit);
    }
    account.verdict = verdict(facts, &account, counts.any);
    account
}

fn expected(facts: &Facts<'_>, unit: &Unit, made: u32) -> u32 {
    let rows = unit.rows.len() as u32;
    let paired = unit.baseline;
    if facts.unjoined {
        return if facts.baseline.is_some() { paired.effects } else { made };
    }
    match (facts.baseline.is_some(), paired.units > 0, rows) {
        (true, true, _) => paired.effects.max(paired.rows),
        (false, _, 0) => made,
        (true, false, rows) | (false, _, rows) => rows,
    }
}

/// Rows that came with the state directory, decided before the trial and untouched since: they owe
/// nothing. Where a baseline is there, it has to agree.
fn is_preexisting(facts: &Facts<'_>, unit: &Unit) -> bool {
    let rows = unit.rows.iter().map(|row| &facts.book.ledger.rows[*row]);
    let mut sightings = rows.flat_map(|row| &row.sightings).peekable();
    let decided = sightings.peek().is_some() && sightings.all(|(_, row)| row.state.is_terminal());
    let came_with_state = facts.settings.state.from.is_some()
        || unit.rows.iter().all(|row| facts.book.ledger.shown_before_start(*row));
    let baseline_agrees = facts.baseline.is_none()
        || (unit.baseline.units > 0 && unit.baseline.attempts == 0 && unit.baseline.effects == 0);
    decided && came_with_state && baseline_agrees && unit.attempts.is_empty() && unit.effects.is_empty()
}

fn loss(facts: &Facts<'_>, unit: &Unit) -> Loss {
    if facts.is_mapped() {
        return match facts.final_rows() {
            Some(_) if unit.rows.is_empty() => Loss::Silent("the ledger has no row for it"),
            Some(_) => Loss::Silent("its row is gone"),
            None => Loss::Undetermined,
        };
    }
    if facts.settings.promise == Promise::AtLeastOnceKeyed {
        return Loss::Silent("the promise is that each action is delivered");
    }
    let says_so = if unit.attempts.is_empty() {
        // Nothing was in flight as far as the wire shows; only a plain word of doubt, and only after a kill, a stop or
        // a connection that broke under a request, may still be a worker that parked what it could not know.
        let interrupted = facts.timeline.interruptions() > 0 || facts.book.wire.broken > 0;
        interrupted && facts.new_words.iter().any(|word| is_word_of_doubt(word))
    } else {
        !facts.new_words.is_empty()
    };
    match (says_so, unit.attempts.is_empty()) {
        (true, _) => Loss::Undetermined,
        (false, true) => {
            Loss::Silent("no request for it reached the provider, and nothing in the state directory says so")
        }
        (false, false) => Loss::Silent("nothing in the state directory says so"),
    }
}

fn is_word_of_doubt(word: &str) -> bool {
    const STEMS: [&str; 9] =
        ["unknown", "review", "fail", "uncertain", "unconfirmed", "park", "doubt", "cancel", "dead"];
    let word = word.to_lowercase();
    STEMS.iter().any(|stem| word.contains(stem))
}

fn verdict(facts: &Facts<'_>, account: &Account, any: u32) -> ActionVerdict {
    if account.duplicate {
        ActionVerdict::Duplicate
    } else if account.false_success > 0 {
        ActionVerdict::FalseSuccess
    } else if account.false_failure > 0 {
        ActionVerdict::FalseFailure
    } else if matches!(account.loss, Loss::Silent(_)) {
        ActionVerdict::Lost
    } else if account.open() > 0 {
        ActionVerdict::Stuck
    } else if account.loss == Loss::Undetermined
        || (facts.is_mapped() && facts.final_rows().is_none() && any < account.expected)
    {
        ActionVerdict::Undetermined
    } else if account.doubt() > 0 {
        ActionVerdict::ExplicitUnknown
    } else if account.failed() > 0 {
        ActionVerdict::ExplicitFailure
    } else {
        ActionVerdict::DeliveredOnce
    }
}

fn events(facts: &Facts<'_>, unit: &Unit) -> Vec<u64> {
    let mut events = Vec::with_capacity(unit.attempts.len() + unit.effects.len() + 1);
    events.extend(unit.attempts.iter().map(|index| facts.book.wire.attempts[*index].seq));
    for fact in unit.effects.iter().map(|index| &facts.book.wire.effects[*index]) {
        events.push(fact.seq);
        events.extend(&fact.redelivered);
    }
    if events.is_empty() {
        events.extend(&facts.kills);
    }
    events.push(facts.final_seq);
    events.sort_unstable();
    events.dedup();
    events
}
