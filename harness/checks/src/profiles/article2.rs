//! The acceptance checklist of "Your AI Agent Finished the Job, But the Message Never Sent".

use killpoint_model::checklist::Proof;
use killpoint_model::event::EventKind;
use killpoint_model::provider::{ProviderEvent, Replay};
use killpoint_model::{ExecutionState, LedgerRow, RowState};

use super::Item;
use super::answer::{Answer, proofs};
use super::article1::named;
use super::claim::Claim;
use super::dossier::Dossier;
use super::exhibit::Exhibit;

const ARTICLE: &str = "Your AI Agent Finished the Job, But the Message Never Sent";
const EXECUTION_FAILURES: &str = "execution-failures";
const DELIVERY_FAILURES: &str = "delivery-failures";

pub(super) const ITEMS: &[Item] = &[
    Item {
        id: "a2-1",
        article: ARTICLE,
        question: "Result is durable before execution success.",
        answer: result_durable,
    },
    Item {
        id: "a2-2",
        article: ARTICLE,
        question: "Delivery has its own state and retry schedule.",
        answer: own_schedule,
    },
    Item {
        id: "a2-3",
        article: ARTICLE,
        question: "Retries reuse a stable idempotency key.",
        answer: key_reused,
    },
    Item {
        id: "a2-4",
        article: ARTICLE,
        question: "Receiver deduplicates or exposes a delivery ID.",
        answer: receiver_helps,
    },
    Item {
        id: "a2-5",
        article: ARTICLE,
        question: "Restart recovery scans pending delivery.",
        answer: pending_scanned,
    },
    Item {
        id: "a2-6",
        article: ARTICLE,
        question: "Metrics distinguish execution failures from delivery failures.",
        answer: failures_apart,
    },
    Item {
        id: "a2-7",
        article: ARTICLE,
        question: "Logs include job ID and attempt, but never credentials.",
        answer: logs,
    },
];

pub(super) fn result_durable(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a kill right after the ledger had called an execution succeeded",
        look: |exhibit| exhibit.restarts_on(|row| row.execution == Some(ExecutionState::Succeeded)),
        faults: &["kill"],
        holds: &["execution-not-repeated", "no-lost-action"],
        broken_by: &["execution-not-repeated"],
        to_do: "let the ledger's query give `execution` and `executions`, and kill at result-committed",
    }
    .answer(dossier)
}

fn own_schedule(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "an open delivery that has a state, beside its execution's, and a time at which it is due",
        look: |exhibit| {
            let scheduled = |row: &LedgerRow| {
                row.execution.is_some()
                    && row.due_at_ms.is_some()
                    && !matches!(row.state, RowState::Confirmed)
            };
            exhibit.row_after(0, scheduled).into_iter().collect()
        },
        faults: &[],
        holds: &["due-is-served"],
        broken_by: &["due-is-served"],
        to_do: "let the ledger's query give `execution` and `due_at_ms` (milliseconds since the Unix epoch)",
    }
    .answer(dossier)
}

pub(super) fn key_reused(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "two attempts under one key",
        look: |exhibit| exhibit.same_key_again(false),
        faults: &[],
        holds: &["stable-key"],
        broken_by: &["stable-key"],
        to_do: "say where requests carry the key (`[provider.idempotency]`), and keep drop-before-accept among \
                the sweep's plans: it makes the worker send again",
    }
    .answer(dossier)
}

fn receiver_helps(dossier: &Dossier<'_>) -> Answer {
    let has_ids = |exhibit: &Exhibit<'_>| {
        let ids = exhibit.effect_ids();
        exhibit.row_after(0, |row| row.provider_id.as_deref().is_some_and(|id| ids.contains(id)))
    };
    let to_do = "let `[provider.idempotency]` say what the real receiver does with keys, or map the id that it \
                 gives as `provider_id` in the ledger's query";
    let twice = dossier.with(|exhibit| match has_ids(exhibit) {
        None => exhibit.effects_of_one_key(),
        Some(_) => Vec::new(),
    });
    if !twice.is_empty() {
        let because = "the receiver made two effects of one key, and the worker keeps no id of its";
        return Answer::no(because, proofs(twice), to_do);
    }
    let replayed = |exhibit: &Exhibit<'_>| {
        let mut repeats = exhibit.history.provider().filter(|(_, event)| {
            matches!(event, ProviderEvent::NotExecuted { replay: Replay::Replayed, .. })
        });
        repeats.next().map(|(seq, _)| seq)
    };
    let mut helped = dossier.with(|exhibit| replayed(exhibit).into_iter().chain(has_ids(exhibit)).collect());
    helped.retain(|(exhibit, _)| exhibit.is_sound());
    if helped.is_empty() {
        let because = "no repeat was answered from the receiver's memory, and no row has an id that it gave";
        return Answer::not_shown(because, to_do);
    }
    Answer::yes(
        "a repeat was answered from memory, or a row has the receiver's id; the fake one keeps the configured \
         contract, and whether the real one does is for a sandbox to show",
        proofs(helped),
    )
}

pub(super) fn pending_scanned(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a kill that left a delivery pending",
        look: |exhibit| {
            exhibit.restarts_on(|row| matches!(row.state, RowState::Created | RowState::Dispatching))
        },
        faults: &["kill"],
        holds: &["no-lost-action", "terminal-state-explicit"],
        broken_by: &[],
        to_do: "map the ledger with its states, and kill at item-enqueued",
    }
    .answer(dossier)
}

fn failures_apart(dossier: &Dossier<'_>) -> Answer {
    let both = |exhibit: &Exhibit<'_>| named(exhibit, &[EXECUTION_FAILURES, DELIVERY_FAILURES]);
    // A delivery that failed behind an execution that did not: the two counters must tell them apart.
    let failed =
        |row: &LedgerRow| row.state == RowState::Failed && row.execution == Some(ExecutionState::Succeeded);
    let staged = dossier.with(|exhibit| {
        let Some((_, rows)) = exhibit.history.final_rows() else { return Vec::new() };
        if rows.iter().any(failed) { both(exhibit) } else { Vec::new() }
    });
    let to_do = "add `[metrics]` and map the worker's own names to execution-failures and delivery-failures; \
                 the scenario `rejected` makes a delivery fail";
    let value = |exhibit: &Exhibit<'_>, name: &str| {
        exhibit.metrics().last().and_then(|(_, values)| values.get(name).copied()).unwrap_or_default()
    };
    let failures_of_work = |exhibit: &Exhibit<'_>| {
        let rows = exhibit.history.final_rows().map_or(&[][..], |(_, rows)| rows);
        rows.iter().filter(|row| row.execution == Some(ExecutionState::Failed)).count() as u64
    };
    let told = |exhibit: &Exhibit<'_>| {
        value(exhibit, DELIVERY_FAILURES) > 0
            && value(exhibit, EXECUTION_FAILURES) <= failures_of_work(exhibit)
    };
    let (right, wrong): (Vec<_>, Vec<_>) = staged.into_iter().partition(|(exhibit, _)| told(exhibit));
    if let Some((exhibit, _)) = wrong.first() {
        let because = format!(
            "a delivery failed behind work that had succeeded, and the metrics say {} execution failures and {} \
             delivery failures",
            value(exhibit, EXECUTION_FAILURES),
            value(exhibit, DELIVERY_FAILURES)
        );
        return Answer::no(because, proofs(wrong), "count a delivery's failure apart from its execution's");
    }
    let sound: Vec<_> = right.into_iter().filter(|(exhibit, _)| exhibit.is_sound()).collect();
    if sound.is_empty() {
        return Answer::not_shown(
            "no trial with a failed delivery and both counters among the metrics",
            to_do,
        );
    }
    Answer::yes("a delivery failed and only the counter of deliveries says so", proofs(sound))
}

fn logs(dossier: &Dossier<'_>) -> Answer {
    let no_leak = Claim {
        staged: "planted credentials that were searched for in everything that the trial left",
        look: |exhibit| {
            let scans = exhibit.history.events.iter();
            scans
                .filter(|event| matches!(event.event, EventKind::Scanned { .. }))
                .map(|event| event.seq)
                .collect()
        },
        faults: &[],
        holds: &["no-secret-leak"],
        broken_by: &["no-secret-leak"],
        to_do: "name the variables that hold credentials under `[secrets] env`",
    };
    Answer::all([no_leak.answer(dossier), log_lines(dossier)])
}

/// Whether a line of the output names an action and its attempt. Logs that go elsewhere are not seen.
fn log_lines(dossier: &Dossier<'_>) -> Answer {
    let to_do = "let the worker write a line with the action's id and the attempt's number to its output for \
                 each attempt";
    let Some(line) = dossier.host.and_then(|host| host.log.as_ref()) else {
        return Answer::not_shown("no line of the worker's output names an action", to_do);
    };
    if !line.names_attempt {
        let because = format!("{} in {} names an action but no attempt", line.file, line.trial);
        return Answer::not_shown(because, to_do);
    }
    let exhibit = dossier.exhibits.iter().find(|exhibit| exhibit.folder == line.trial);
    let outputs = exhibit.iter().flat_map(|exhibit| &exhibit.history.events);
    let closed = outputs.filter(|event| matches!(event.event, EventKind::Output { bytes: 1.., .. }));
    let events: Vec<u64> = closed.map(|event| event.seq).take(2).collect();
    if events.is_empty() {
        return Answer::not_shown("the trial of that line has no output on record", to_do);
    }
    let because = format!("{} line {} names an action and its attempt", line.file, line.line);
    Answer::yes(because, vec![Proof { trial: line.trial.clone(), events }])
}
