//! The events of a trial: a closed enum, so that every reader handles all of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hit::HitName;
use crate::ledger::LedgerView;
use crate::plan::{Fault, Plan};
use crate::provider::ProviderEvent;
use crate::text_enum::text_enum;

text_enum! {
    /// How a worker's tree is held together, so that all of it can be killed.
    pub enum Containment {
        /// A PID namespace of its own: the kernel empties it.
        PidNamespace = "pid-namespace",
        /// A child subreaper that is swept until nothing is left.
        Subreaper = "subreaper",
    }
}

text_enum! {
    /// Which limit on the number of processes holds.
    pub enum ProcessLimit {
        /// `kernel.pid_max` of the worker's own PID namespace (Linux 6.14).
        NamespacePidMax = "namespace-pid-max",
        /// A pids control group.
        PidsCgroup = "pids-cgroup",
        /// `RLIMIT_NPROC`.
        Rlimit = "rlimit-nproc",
        /// The harness counts and kills.
        Watch = "watch",
    }
}

text_enum! {
    /// What a command of the configuration is for.
    pub enum CommandRole {
        /// Makes the fresh state.
        Prepare = "prepare",
        /// Commits the actions.
        Enqueue = "enqueue",
    }
}

text_enum! {
    /// How the settled end was found.
    pub enum SettledBy {
        /// The worker ended by itself.
        Exit = "exit",
        /// Nothing happened for the configured time.
        Quiet = "quiet",
        /// The configured query says so.
        Query = "query",
    }
}

/// Proof that a generation is dead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KillProof {
    /// The exit signal of the worker's root process; 9 when our SIGKILL landed.
    pub signal: Option<i32>,
    /// Its exit code, where it had exited before the signal.
    pub code: Option<i32>,
    /// Whether the root was alive when the signal was sent.
    pub was_alive: bool,
    /// Processes reaped, the root included.
    pub reaped: u32,
    /// Processes of the generation that are still there; must be 0.
    pub survivors: u32,
    /// What proves that: the containment that held.
    pub containment: Containment,
}

/// What one event says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The trial begins.
    TrialStarted {
        /// What will be done.
        plan: Plan,
        /// How the tree is contained.
        containment: Containment,
        /// Why a stronger containment is not used, where it is not.
        containment_reason: Option<String>,
        /// The process limit in force.
        process_limit: ProcessLimit,
    },
    /// The state directory is ready.
    StateReady {
        /// `fresh`, or the directory that was copied.
        from: String,
    },
    /// A command of the configuration ended.
    CommandRan {
        /// What for.
        role: CommandRole,
        /// Its words.
        argv: Vec<String>,
        /// Exit code; `None` when it was ended by a signal.
        code: Option<i32>,
    },
    /// A worker was started.
    Spawned {
        /// Which worker, from 1.
        worker: u32,
        /// Process id as the harness sees it.
        pid: u32,
        /// Its words, templates filled in.
        argv: Vec<String>,
    },
    /// A boundary was reached.
    Hit {
        /// Its name.
        hit: HitName,
        /// Whether the moment is exact (the worker waits or its tree stands still) or sampled.
        exact: bool,
        /// Whether a live worker could still be hit there; `false` after its exit.
        live: bool,
        /// What it is about: an attempt, a row, a process.
        subject: Option<String>,
        /// Which worker, from 1; 0 where it can't be told.
        worker: u32,
    },
    /// A fault is about to be done. Written before the act.
    FaultAnnounced {
        /// Where.
        at: HitName,
        /// What.
        fault: Fault,
    },
    /// The fault is over.
    FaultDone {
        /// Where.
        at: HitName,
        /// Whether it took hold.
        landed: bool,
        /// What was seen, in a few words.
        note: String,
    },
    /// A worker's whole tree was killed, and is proven dead.
    Killed {
        /// Which worker.
        worker: u32,
        /// The proof.
        proof: KillProof,
    },
    /// A worker's root process ended by itself.
    Exited {
        /// Which worker.
        worker: u32,
        /// Exit code.
        code: Option<i32>,
        /// Or signal.
        signal: Option<i32>,
    },
    /// Output of a generation, closed.
    Output {
        /// Which worker.
        worker: u32,
        /// `stdout` or `stderr`.
        stream: String,
        /// Bytes written by the worker.
        bytes: u64,
        /// Bytes not kept because of the cap.
        dropped: u64,
    },
    /// Something at the provider.
    Provider(ProviderEvent),
    /// The ledger was read from a copy.
    Ledger {
        /// The hit at which it was read, where it was at one.
        at: Option<HitName>,
        /// What it says.
        view: LedgerView,
    },
    /// Every fault of the plan is over; only recovery follows.
    FaultsOver,
    /// The trial is at rest.
    Settled {
        /// How that was found.
        by: SettledBy,
        /// Whether the whole quiet window passed, where it applies.
        window_complete: bool,
    },
    /// The deadline or the restart limit came first: a liveness finding, never a pass.
    NotSettled {
        /// Why.
        why: String,
    },
    /// The last look, after settling, on a dead and copied ledger.
    Final {
        /// The worker's own final state.
        view: LedgerView,
        /// Words and values in the state directory that could say "not delivered" openly; only where no
        /// mapping is configured.
        words: Vec<String>,
        /// Whether files in the state directory changed since the last kill.
        state_changed: bool,
    },
    /// The machine, not the worker, failed (EAGAIN, ENOSPC, …): no verdict can follow.
    Infrastructure {
        /// What was being done.
        doing: String,
        /// The operating system's words.
        error: String,
    },
    /// The trial is over; the file ends here.
    TrialEnded,
}

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// From 1, without gaps.
    pub seq: u64,
    /// Microseconds since the trial began.
    pub at_us: u64,
    /// Life of the worker: 0 before the first start, 1 before the first kill, 2 after the restart, …
    pub generation: u32,
    /// What happened.
    pub event: EventKind,
}
