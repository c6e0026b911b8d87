//! What the three articles ask of a host, and of whoever moves to one.

use killpoint_model::{LedgerRow, RowState};

use super::Item;
use super::answer::{Answer, proofs};
use super::article1::{
    REBUILD, credentials_kept_in, execution_apart, key_persisted, ledger_rebuilt, named, reconciliation,
};
use super::article3::{effects_forgotten, restore_without_replay, stable_identity, unknown_blocks};
use super::claim::{Claim, counted};
use super::dossier::Dossier;
use super::exhibit::Exhibit;

const HOSTING_1: &str = "Hosting changes the recovery surface";
const HOSTING_2: &str = "Hosting is part of recovery";
const HOSTING_3: &str = "Hosting changes the recovery story";

pub(super) const ITEMS: &[Item] = &[
    item("h1-1", HOSTING_1, "Does the ledger lie on durable storage?", durable_storage),
    item("h1-2", HOSTING_1, "Is there a restart policy?", restart_policy),
    item("h1-3", HOSTING_1, "Is queue pressure observable?", queue_pressure),
    item("h1-4", HOSTING_1, "Does a rebuild procedure restore state?", ledger_rebuilt),
    item(
        "h1-5",
        HOSTING_1,
        "Does it do so without restoring stale credentials into an unintended environment?",
        credentials_kept_in,
    ),
    item(
        "h1-6",
        HOSTING_1,
        "Clean rebuild: restore the ledger, start one worker, replay unknown actions.",
        clean_rebuild,
    ),
    item(
        "h1-7",
        HOSTING_1,
        "Can no second worker claim the same row without a lease or compare-and-swap transition?",
        second_worker,
    ),
    item(
        "h1-8",
        HOSTING_1,
        "Are idempotency and reconciliation the worker's own, whatever the host offers?",
        own_safety,
    ),
    item("h2-1", HOSTING_2, "Does the host keep persistent state?", persistent_state),
    item("h2-2", HOSTING_2, "Is there restart behavior?", restart_policy),
    item("h2-3", HOSTING_2, "Is there a way to inspect failed deliveries?", failures_inspected),
    item("h3-1", HOSTING_3, "Are the execution and delivery ledgers on persistent storage?", both_ledgers),
    item("h3-2", HOSTING_3, "Can they be backed up?", backed_up),
    item("h3-3", HOSTING_3, "Are they included in restore tests?", restore_without_replay),
    item("h3-4", HOSTING_3, "Does the application have explicit delivery state?", unknown_blocks),
    item("h3-5", HOSTING_3, "Does the application have idempotency?", stable_identity),
    item("h3-6", HOSTING_3, "Does the application have reconciliation?", reconciliation),
    item("h3-7", HOSTING_3, "Does the application have duplicate-send tests?", duplicate_send_tests),
];

const fn item(
    id: &'static str,
    article: &'static str,
    question: &'static str,
    answer: fn(&Dossier<'_>) -> Answer,
) -> Item {
    Item { id, article, question, answer }
}

/// File systems that are gone with the machine or the container.
const VOLATILE: &[&str] = &["tmpfs", "ramfs", "devtmpfs", "overlay", "aufs", "rootfs"];
/// File systems of another machine, on which SQLite's locks and its write-ahead log are not to be relied on.
const REMOTE: &[&str] = &["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "fuse.sshfs"];

fn durable_storage(dossier: &Dossier<'_>) -> Answer {
    if let Some(no) = damaged(dossier) {
        return no;
    }
    let survived = Claim {
        staged: "a power cut, by which every commit that was not on the disk is lost",
        look: |exhibit| exhibit.landed(&["power-cut"]),
        faults: &["power-cut"],
        holds: &["acknowledged-is-durable"],
        broken_by: &["acknowledged-is-durable"],
        to_do: "use an SQLite ledger with a write-ahead log and `synchronous = FULL`, and give `--run-dir` a folder \
                on a disk's file system; the level is the connection's own and can't be read from the file: only \
                a power cut shows it",
    };
    let file_system = on_disk(dossier);
    let journal = dossier.host.and_then(|host| host.journal_mode.as_deref()).unwrap_or("of unknown kind");
    Answer::all([survived.answer(dossier), file_system]).and(&format!("its journal is {journal}"))
}

/// Where a store called itself damaged after a crash.
fn damaged(dossier: &Dossier<'_>) -> Option<Answer> {
    let mut found = dossier.exhibits.iter().filter_map(|exhibit| Some((exhibit, exhibit.damage()?)));
    let (exhibit, (seq, detail)) = found.next()?;
    let because = format!("after a crash the ledger is damaged: {detail}");
    let to_do = "use a journal mode that survives a crash (`wal` or `delete`), and `synchronous = FULL`";
    Some(Answer::no(because, proofs([(exhibit, vec![seq])]), to_do))
}

/// Whether the trials' state lay on a disk's own file system.
fn on_disk(dossier: &Dossier<'_>) -> Answer {
    let to_do = "give `--run-dir` a folder on the volume that will hold the ledger";
    let Some(kind) = dossier.host.and_then(|host| host.file_system.as_deref()) else {
        return Answer::not_shown("this machine does not say on which file system the ledger lay", to_do);
    };
    if VOLATILE.contains(&kind) {
        return Answer::not_shown(
            format!("the ledger lay on {kind}, which is gone with the machine or container"),
            to_do,
        );
    }
    if REMOTE.contains(&kind) {
        let because = format!("the ledger lay on {kind}, where SQLite's locks and log can't be relied on");
        return Answer::not_shown(because, to_do);
    }
    let read = dossier.with(|exhibit| exhibit.views().last().map(|(seq, _)| seq).into_iter().collect());
    if read.is_empty() {
        return Answer::not_shown(
            "no ledger was read",
            "map the ledger: add a `[ledger]` section with a `query`",
        );
    }
    Answer::yes(format!("the ledger lay on {kind}"), proofs(read))
}

fn restart_policy(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a kill and a restart that recovered",
        look: |exhibit| {
            let recovered = exhibit.judged.evidence.recovery_acted == Some(true);
            if recovered { exhibit.restarts() } else { Vec::new() }
        },
        faults: &["kill"],
        holds: &["no-lost-action", "terminal-state-explicit"],
        broken_by: &[],
        to_do: "map the ledger, and let `[worker] lifecycle` say how the worker lives, so that it is killed and \
                started again",
    }
    .answer(dossier)
    .and(&format!(
        "its lifecycle is `{}`; the host's own supervisor must restart it in the same way",
        dossier.settings.worker.lifecycle
    ))
}

fn queue_pressure(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "created, acceptances, unknown and awaiting-review among the worker's metrics",
        look: |exhibit| named(exhibit, &["created", "acceptances", "unknown", "awaiting-review"]),
        faults: &[],
        holds: &["counters-agree"],
        broken_by: &["counters-agree"],
        to_do: "add `[metrics]` with a `url`, `file` or `query` and map the worker's own names to created, \
                acceptances, unknown and awaiting-review: what is created and in none of the others waits",
    }
    .answer(dossier)
}

fn clean_rebuild(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "an earlier ledger put back after an effect that it does not know",
        look: |exhibit| {
            if exhibit.landed(&["store-restore"]).is_empty() { Vec::new() } else { effects_forgotten(exhibit) }
        },
        faults: &["store-restore"],
        holds: &["no-duplicate-effect", "no-blind-resend", "terminal-state-explicit"],
        broken_by: &[],
        to_do: "keep the worker's whole state below `{state}`, so that a copy of it is a backup, and map the ledger",
    }
    .answer(dossier)
}

fn second_worker(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "a second worker on the same ledger",
        look: |exhibit| {
            let started = exhibit.second_workers();
            if exhibit.landed(&["second-worker", "barrier"]).is_empty() && exhibit.plan.workers <= 1 {
                return Vec::new();
            }
            started
        },
        faults: &["second-worker", "barrier"],
        holds: &["claim-is-exclusive", "no-duplicate-effect"],
        broken_by: &["claim-is-exclusive"],
        to_do: "let the worker's command take its identity from `{worker}`, let the ledger's query give `owner`, and \
                make the mark `before-claim` between the choice of a row and its claim",
    }
    .answer(dossier)
}

fn own_safety(dossier: &Dossier<'_>) -> Answer {
    Answer::all([key_persisted(dossier), reconciliation(dossier)])
}

fn persistent_state(dossier: &Dossier<'_>) -> Answer {
    let kept = Claim {
        staged: "a kill that left rows in the ledger",
        look: |exhibit| exhibit.restarts_on(|_| true),
        faults: &["kill"],
        holds: &["audit-survives"],
        broken_by: &["audit-survives"],
        to_do: "map the ledger: add a `[ledger]` section with a `query`, a `preset` or a `command`",
    };
    Answer::all([kept.answer(dossier), on_disk(dossier)])
}

fn both_ledgers(dossier: &Dossier<'_>) -> Answer {
    Answer::all([execution_apart(dossier), persistent_state(dossier)])
}

fn failures_inspected(dossier: &Dossier<'_>) -> Answer {
    let to_do = "keep the provider's answer or the error with a row that failed or is parked, and map it as \
                 `evidence` in the ledger's query";
    let parked =
        |row: &LedgerRow| matches!(row.state, RowState::Failed | RowState::Unknown | RowState::Review);
    let final_rows = |exhibit: &Exhibit<'_>, wanted: &dyn Fn(&LedgerRow) -> bool| {
        let found = exhibit.history.final_rows().filter(|(_, rows)| rows.iter().any(wanted));
        found.map(|(seq, _)| seq).into_iter().collect::<Vec<u64>>()
    };
    let mut told = dossier.with(|exhibit| final_rows(exhibit, &|row| parked(row) && row.evidence.is_some()));
    let silent = dossier.with(|exhibit| final_rows(exhibit, &|row| parked(row) && row.evidence.is_none()));
    told.retain(|(exhibit, _)| exhibit.is_sound());
    match (told.is_empty(), silent.is_empty()) {
        (true, true) => Answer::not_shown(
            "no trial ended with a failed or parked row",
            "keep the scenario `rejected` in the run",
        ),
        (true, false) => {
            Answer::not_shown("failed and parked rows have no evidence that killpoint can read", to_do)
        }
        (false, false) => {
            Answer::no("some failed or parked rows have evidence, and some have none", proofs(silent), to_do)
        }
        (false, true) => {
            let because = format!("failed and parked rows carry evidence in {}", counted(told.len()));
            Answer::yes(because, proofs(told))
        }
    }
}

fn backed_up(dossier: &Dossier<'_>) -> Answer {
    if let Some(no) = damaged(dossier) {
        return no;
    }
    Claim {
        staged: "a copy of the state directory that was taken at a boundary and brought back to life",
        look: |exhibit| {
            let copied = exhibit.landed(&["store-copy"]);
            let revived = exhibit.landed(REBUILD);
            if copied.is_empty() || revived.is_empty() { Vec::new() } else { [copied, revived].concat() }
        },
        faults: &["store-copy", "store-restore", "store-second"],
        holds: &["no-lost-action", "terminal-state-explicit"],
        broken_by: &[],
        to_do: "keep the worker's whole state below `{state}`, so that a copy of it is a backup",
    }
    .answer(dossier)
    .and("a copy serves as a backup; to take them is the host's part")
}

fn duplicate_send_tests(dossier: &Dossier<'_>) -> Answer {
    Claim {
        staged: "an answer that was lost after acceptance, and a restart",
        look: |exhibit| {
            let lost = exhibit.lost_after_acceptance();
            let restarts = exhibit.restarts();
            if lost.is_empty() || restarts.is_empty() { Vec::new() } else { [lost, restarts].concat() }
        },
        faults: &["kill"],
        holds: &["no-duplicate-effect"],
        broken_by: &[],
        to_do: "kill at provider:committed: `killpoint run --boundary provider:committed`",
    }
    .answer(dossier)
}
