//! The checklist of "Your Agent Finished the Job. Did the Email Actually Leave?".

use killpoint_model::{ExecutionState, LedgerRow, RowState};

use super::Item;
use super::answer::Answer;
use super::claim::Claim;
use super::dossier::Dossier;
use super::exhibit::Exhibit;

const ARTICLE: &str = "Your Agent Finished the Job. Did the Email Actually Leave?";

pub(super) const ITEMS: &[Item] = &[
    Item {
        id: "a1-1",
        article: ARTICLE,
        question: "Is execution completion separate from outbound delivery confirmation?",
        answer: execution_apart,
    },
    Item {
        id: "a1-2",
        article: ARTICLE,
        question: "Is the idempotency key created before dispatch and persisted across restarts?",
        answer: key_persisted,
    },
    Item {
        id: "a1-3",
        article: ARTICLE,
        question: "Can a timeout enter an explicit unknown state?",
        answer: timeout_becomes_unknown,
    },
    Item {
        id: "a1-4",
        article: ARTICLE,
        question: "Is there a provider lookup or human reconciliation path?",
        answer: reconciliation,
    },
    Item {
        id: "a1-5",
        article: ARTICLE,
        question: "Do metrics distinguish accepted, delivered, unknown, and failed?",
        answer: metrics_apart,
    },
    Item {
        id: "a1-6",
        article: ARTICLE,
        question: "Does a clean-host rebuild preserve the ledger without widening credential access?",
        answer: rebuild,
    },
    Item {
        id: "a1-7",
        article: ARTICLE,
        question: "Have you injected a response-loss failure after provider acceptance?",
        answer: response_loss,
    },
];

/// What stages a rebuilt host.
pub(super) const REBUILD: &[&str] = &["store-restore", "store-second"];

/// Whether the work behind a row is done and its delivery is still open.
pub(super) fn is_owed(row: &LedgerRow) -> bool {
    let open = matches!(row.state, RowState::Created | RowState::Dispatching | RowState::Unknown);
    row.execution == Some(ExecutionState::Succeeded) && open
}

pub(super) fn execution_apart(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a kill that left a row whose execution had succeeded and whose delivery was open",
        look: |exhibit| exhibit.restarts_on(is_owed),
        faults: &["kill"],
        holds: &["no-false-success"],
        broken_by: &["no-false-success", "confirmed-after-acceptance"],
        to_do: "let the ledger's query give `execution` beside `state`, and kill at result-committed: \
                `killpoint run --boundary result-committed`",
    }
    .answer(dossier)
}

pub(super) fn key_persisted(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a restart after which an earlier attempt's key came again",
        look: |exhibit| exhibit.same_key_again(true),
        faults: &["kill"],
        holds: &["stable-key", "intent-before-dispatch"],
        broken_by: &["stable-key", "intent-before-dispatch"],
        to_do: "say where requests carry the key (`[provider.idempotency]`), map `key` in the ledger's query, \
                and kill at provider:received",
    }
    .answer(dossier)
}

fn timeout_becomes_unknown(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a timeout after which a row said unknown or review",
        look: |exhibit| doubt_after(exhibit, &exhibit.timeouts()),
        faults: &[],
        holds: &["unknown-is-explicit"],
        broken_by: &["unknown-is-explicit"],
        to_do: "map the worker's word for a doubtful delivery to `unknown` in `[ledger] states`, and keep \
                timeout-after-accept and timeout-before-accept among the sweep's plans",
    }
    .answer(dossier)
}

/// Events of doubt, each with the first reading after it in which a row says openly that it is not known.
pub(super) fn doubt_after(exhibit: &Exhibit<'_>, doubts: &[u64]) -> Vec<u64> {
    let explicit = |row: &LedgerRow| row.state.is_explicit_doubt();
    let shown = |doubt: &u64| exhibit.row_after(*doubt, explicit).map(|view| [*doubt, view]);
    doubts.iter().filter_map(shown).flatten().collect()
}

pub(super) fn reconciliation(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a lost answer that was followed by an answered lookup, or by a row that is parked with evidence",
        look: |exhibit| {
            let parked = |row: &LedgerRow| row.state.is_explicit_doubt() && row.evidence.is_some();
            let settled = |doubt: &u64| {
                let by = exhibit.lookup_after(*doubt).or_else(|| exhibit.row_after(*doubt, parked))?;
                Some([*doubt, by])
            };
            exhibit.doubts().iter().filter_map(settled).flatten().collect()
        },
        faults: &[],
        holds: &["no-blind-resend"],
        broken_by: &["no-blind-resend"],
        to_do: "let the worker ask the provider by key or id before it sends again, or park the row as unknown \
                with its evidence; map `evidence` in the ledger's query",
    }
    .answer(dossier)
}

fn metrics_apart(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "acceptances, reconciled successes, unknown and reconciled failures among the worker's metrics",
        look: |exhibit| {
            named(exhibit, &["acceptances", "reconciled-successes", "unknown", "reconciled-failures"])
        },
        faults: &[],
        holds: &["counters-agree"],
        broken_by: &["counters-agree"],
        to_do: "add `[metrics]` with a `url`, `file` or `query` and map the worker's own names to acceptances, \
                reconciled-successes, unknown and reconciled-failures",
    }
    .answer(dossier)
}

/// Readings of the metrics that have all of these.
pub(super) fn named(exhibit: &Exhibit<'_>, names: &[&str]) -> Vec<u64> {
    let all = exhibit.metrics().filter(|(_, values)| names.iter().all(|name| values.contains_key(*name)));
    all.map(|(seq, _)| seq).collect()
}

fn rebuild(dossier: &Dossier<'_>) -> Answer {
    Answer::all([ledger_rebuilt(dossier), credentials_kept_in(dossier)])
}

pub(super) fn ledger_rebuilt(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a host rebuilt from a copy of the ledger",
        look: |exhibit| exhibit.landed(REBUILD),
        faults: REBUILD,
        holds: &["no-lost-action", "terminal-state-explicit"],
        broken_by: &[],
        to_do: "keep the worker's whole state below `{state}` and map the ledger; the scenarios with \
                store-restore and store-second then stage a rebuild",
    }
    .answer(dossier)
}

pub(super) fn credentials_kept_in(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "planted credentials on a host rebuilt from a copy",
        look: |exhibit| exhibit.landed(REBUILD),
        faults: REBUILD,
        holds: &["no-secret-leak"],
        broken_by: &["no-secret-leak"],
        to_do: "name the variables that hold credentials under `[secrets] env`, and where they may be under \
                `declared`",
    }
    .answer(dossier)
}

fn response_loss(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "an answer that was lost after the provider had accepted",
        look: |exhibit| exhibit.lost_after_acceptance(),
        faults: &[],
        holds: &["no-duplicate-effect", "no-blind-resend", "no-lost-action"],
        broken_by: &[],
        to_do: "keep drop-after-accept among the sweep's plans, and kill at provider:committed",
    }
    .answer(dossier)
}
