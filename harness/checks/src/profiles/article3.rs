//! The operational checklist of "Your Agent Recovered the Run. Did It Recover the Message?".

use killpoint_model::{LedgerRow, RowState};

use super::Item;
use super::answer::{Answer, proofs};
use super::article1::{doubt_after, execution_apart};
use super::article2::result_durable;
use super::claim::{Claim, counted};
use super::dossier::Dossier;
use super::exhibit::Exhibit;

const ARTICLE: &str = "Your Agent Recovered the Run. Did It Recover the Message?";

pub(super) const ITEMS: &[Item] = &[
    Item {
        id: "a3-1",
        article: ARTICLE,
        question: "Is execution state durable and versioned?",
        answer: durable_and_versioned,
    },
    Item {
        id: "a3-2",
        article: ARTICLE,
        question: "Is outbound delivery represented by a separate durable queue?",
        answer: durable_queue,
    },
    Item {
        id: "a3-3",
        article: ARTICLE,
        question: "Does every delivery have a stable identity?",
        answer: stable_identity,
    },
    Item {
        id: "a3-4",
        article: ARTICLE,
        question: "Can the provider be queried after a timeout?",
        answer: queried_after_timeout,
    },
    Item {
        id: "a3-5",
        article: ARTICLE,
        question: "Are leases and acknowledgements crash-safe?",
        answer: crash_safe,
    },
    Item {
        id: "a3-6",
        article: ARTICLE,
        question: "Are credentials and destination scopes visible in the audit trail?",
        answer: audit_trail,
    },
    Item {
        id: "a3-7",
        article: ARTICLE,
        question: "Can a restore reproduce the decision without replaying the side effect?",
        answer: restore_without_replay,
    },
    Item {
        id: "a3-8",
        article: ARTICLE,
        question: "Is \u{201c}unknown\u{201d} an explicit state that blocks unsafe retries?",
        answer: unknown_blocks,
    },
];

fn durable_and_versioned(dossier: &Dossier<'_>) -> Answer {
    Answer::all([result_durable(dossier), versioned(dossier)])
}

/// Whether the store says which schema its rows follow.
fn versioned(dossier: &Dossier<'_>) -> Answer {
    let to_do = "give the SQLite file a schema version (`PRAGMA user_version`), so that a worker of another \
                 version knows what it reads; other stores can't be judged here";
    let Some(version) = dossier.host.and_then(|host| host.schema_version).filter(|version| *version > 0)
    else {
        return Answer::not_shown("the ledger does not say which version its state has", to_do);
    };
    let read = dossier.with(|exhibit| exhibit.views().next().map(|(seq, _)| seq).into_iter().collect());
    Answer::yes(format!("the ledger's schema version is {version}"), proofs(read))
}

fn durable_queue(dossier: &Dossier<'_>) -> Answer {
    let queue = Claim {
        staged: "a kill that left a queued delivery which was not yet sent",
        look: |exhibit| exhibit.restarts_on(|row| row.state == RowState::Created),
        faults: &["kill"],
        holds: &["no-lost-action", "no-manufactured-item"],
        broken_by: &["no-manufactured-item", "intent-before-dispatch"],
        to_do: "map the ledger with the state that means queued as `created`, and kill at item-enqueued",
    };
    Answer::all([queue.answer(dossier), execution_apart(dossier)])
}

pub(super) fn stable_identity(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a kill and a restart",
        look: |exhibit| exhibit.restarts(),
        faults: &["kill"],
        holds: &["one-identity-per-destination", "no-manufactured-item", "stable-key"],
        broken_by: &["one-identity-per-destination", "no-manufactured-item", "stable-key"],
        to_do: "map `key` and `destination` in the ledger's query, and say where requests carry the key \
                (`[provider.idempotency]`)",
    }
    .answer(dossier)
}

fn queried_after_timeout(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a timeout that was followed by an answered lookup",
        look: |exhibit| {
            let asked = |doubt: &u64| exhibit.lookup_after(*doubt).map(|answer| [*doubt, answer]);
            exhibit.timeouts().iter().filter_map(asked).flatten().collect()
        },
        faults: &[],
        holds: &["no-blind-resend"],
        broken_by: &["no-blind-resend"],
        to_do: "let the worker ask the provider by key, id or listing after a timeout, and keep \
                timeout-after-accept among the sweep's plans",
    }
    .answer(dossier)
}

fn crash_safe(dossier: &Dossier<'_>) -> Answer {
    let leases = Claim {
        staged: "a kill that left a claimed row",
        look: |exhibit| exhibit.restarts_on(|row| row.state == RowState::Dispatching && row.owner.is_some()),
        faults: &["kill"],
        holds: &["claim-is-exclusive", "terminal-state-explicit"],
        broken_by: &["claim-is-exclusive"],
        to_do: "let the ledger's query give `owner`, map the worker's word for a claimed row to `dispatching`, \
                and kill at item-claimed",
    };
    let acknowledgements = Claim {
        staged: "a kill right after the ledger had acknowledged a delivery",
        look: |exhibit| exhibit.restarts_on(|row| row.state == RowState::Confirmed),
        faults: &["kill"],
        holds: &["no-duplicate-effect", "decided-is-final"],
        broken_by: &["decided-is-final"],
        to_do: "map the worker's word for a delivered row to `confirmed`, and kill at ack-committed",
    };
    Answer::all([leases.answer(dossier), acknowledgements.answer(dossier)])
}

fn audit_trail(dossier: &Dossier<'_>) -> Answer {
    Answer::all([destinations_recorded(dossier), credentials_named(dossier)])
}

/// Rows that were attempted, by trial.
fn attempted<'e>(exhibit: &'e Exhibit<'_>) -> Option<(u64, Vec<&'e LedgerRow>)> {
    let (seq, rows) = exhibit.history.final_rows()?;
    let sent: Vec<&LedgerRow> = rows.iter().filter(|row| row.state == RowState::Confirmed).collect();
    (!sent.is_empty()).then_some((seq, sent))
}

fn destinations_recorded(dossier: &Dossier<'_>) -> Answer {
    let to_do = "let the ledger's query give `destination`, and keep it with the row";
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for exhibit in &dossier.exhibits {
        let Some((seq, rows)) = attempted(exhibit) else { continue };
        if rows.iter().any(|row| row.destination.is_none()) {
            return Answer::not_shown(
                format!("delivered rows in {} have no destination", exhibit.folder),
                to_do,
            );
        }
        let known = |recipient: &str| {
            let (_, all) = exhibit.history.final_rows().unwrap_or_default();
            all.iter().any(|row| row.destination.as_deref() == Some(recipient))
        };
        let stray = exhibit.history.effects().find(|(_, effect)| !known(&effect.recipient));
        match stray {
            Some((effect, _)) => wrong.push((exhibit, vec![effect, seq])),
            None => right.push((exhibit, vec![seq])),
        }
    }
    if !wrong.is_empty() {
        let because = "somebody received a message whose destination is in no row of the audit trail";
        return Answer::no(because, proofs(wrong), "record every destination before it is sent to");
    }
    right.retain(|(exhibit, _)| exhibit.is_sound());
    if right.is_empty() {
        return Answer::not_shown("no trial with a delivered row in the ledger", to_do);
    }
    Answer::yes(
        format!("every delivered row of {} names its destination", counted(right.len())),
        proofs(right),
    )
}

/// Whether delivered rows say which credential was used: by its name, never by its value.
fn credentials_named(dossier: &Dossier<'_>) -> Answer {
    let names = &dossier.settings.secrets.env;
    let to_do = "name the variables that hold credentials under `[secrets] env`, and let the rows' `evidence` \
                 name the one that was used: its name, never its value";
    if names.is_empty() {
        return Answer::not_shown("no credential is configured", to_do);
    }
    let leak = Claim {
        staged: "planted credentials",
        look: |exhibit| attempted(exhibit).map(|(seq, _)| seq).into_iter().collect(),
        faults: &[],
        holds: &["no-secret-leak"],
        broken_by: &["no-secret-leak"],
        to_do,
    };
    let says_which = |row: &&LedgerRow| {
        let evidence = row.evidence.as_deref().unwrap_or_default();
        names.iter().any(|name| evidence.contains(name.as_str()))
    };
    let rows = dossier.with(|exhibit| {
        let all = attempted(exhibit).filter(|(_, rows)| rows.iter().all(says_which) && exhibit.is_sound());
        all.map(|(seq, _)| seq).into_iter().collect()
    });
    let visible = if rows.is_empty() {
        Answer::not_shown("no delivered row names the credential that was used", to_do)
    } else {
        Answer::yes("delivered rows name the credential that was used", proofs(rows))
    };
    Answer::all([leak.answer(dossier), visible])
}

pub(super) fn restore_without_replay(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "an earlier ledger put back after an effect that it does not know",
        look: effects_forgotten,
        faults: &["store-restore", "store-second"],
        holds: &["no-duplicate-effect", "no-lost-action"],
        broken_by: &[],
        to_do: "keep the worker's whole state below `{state}`; the scenarios with store-copy and store-restore \
                then put an earlier ledger back after a message was accepted",
    }
    .answer(dossier)
}

/// A copy, the effects since, and the moment at which the copy came to life.
pub(super) fn effects_forgotten(exhibit: &Exhibit<'_>) -> Vec<u64> {
    let copied = exhibit.landed(&["store-copy"]);
    let revived = exhibit.landed(&["store-restore", "store-second"]);
    let (Some(from), Some(to)) = (copied.first(), revived.last()) else { return Vec::new() };
    let mut effects = exhibit.effects_between(*from, *to);
    if !effects.is_empty() {
        effects.extend([*from, *to]);
    }
    effects
}

pub(super) fn unknown_blocks(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a lost answer after which a row said unknown or review",
        look: |exhibit| doubt_after(exhibit, &exhibit.doubts()),
        faults: &[],
        holds: &["unknown-is-explicit", "no-blind-resend"],
        broken_by: &["unknown-is-explicit", "no-blind-resend"],
        to_do: "map the worker's word for a doubtful delivery to `unknown` in `[ledger] states`, and keep \
                drop-after-accept among the sweep's plans",
    }
    .answer(dossier)
}
