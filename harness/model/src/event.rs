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
        /// The worker's own retention or cleanup command.
        Cleanup = "cleanup",
        /// Commits actions in a transaction that the harness holds open.
        Producer = "producer",
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

text_enum! {
    /// How a worker's wall clock is made to differ.
    #[derive(Default)]
    pub enum ClockMethod {
        /// By the one documented environment variable, for workers that read it.
        Environment = "environment",
        /// By patching the vDSO of its processes, which needs nothing of the worker.
        #[default]
        Vdso = "vdso",
    }
}

text_enum! {
    /// Where the worker itself raised an alarm.
    pub enum AlarmSource {
        /// Its exit code.
        ExitCode = "exit-code",
        /// A line of its output.
        Output = "output",
        /// One of its metrics.
        Metric = "metric",
    }
}

/// A planted credential that was found where it must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Leak {
    /// Name of the canary; never its value.
    pub canary: String,
    /// Where it was found, such as `ledger.db:deliveries.last_error` or `worker1-generation1.stderr`.
    pub place: String,
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
    /// A worker's whole tree was stopped (SIGSTOP) by a fault.
    Stopped {
        /// Which worker.
        worker: u32,
    },
    /// It goes on (SIGCONT).
    Resumed {
        /// Which worker.
        worker: u32,
    },
    /// A signal was sent to a worker's first process.
    Signalled {
        /// Which worker.
        worker: u32,
        /// Such as 15.
        signal: i32,
    },
    /// Part of a worker's tree was killed, and the rest was left alive.
    PartKilled {
        /// Which worker.
        worker: u32,
        /// `root` or `children`.
        part: String,
        /// How many processes.
        processes: u32,
    },
    /// A fault of the store began or ended.
    StoreFault {
        /// The fault's name, such as `store-busy`.
        name: String,
        /// The file or directory.
        path: String,
        /// Whether it begins here; a fault that is done in one step begins only.
        begins: bool,
        /// What was done, in a few words.
        detail: String,
    },
    /// The ledger's integrity was checked on a copy after a kill.
    Integrity {
        /// Whether the store calls itself sound.
        sound: bool,
        /// The store's own words.
        detail: String,
    },
    /// A worker's wall clock was stepped, or starts with an offset.
    WorkerClock {
        /// Which worker.
        worker: u32,
        /// Offset to the harness's clock in milliseconds.
        offset_ms: i64,
        /// How.
        method: ClockMethod,
    },
    /// The worker's configuration was changed: what the next life is started with.
    Changed {
        /// What, such as `env ROSTER`; never a value.
        what: String,
    },
    /// The worker's own metrics were read. Canonical names: `created`, `attempts`, `acceptances`, `unknown`,
    /// `reconciled-successes`, `reconciled-failures`, `awaiting-review`, `execution-failures`, `delivery-failures`.
    Metrics {
        /// Canonical name to value.
        values: std::collections::BTreeMap<String, u64>,
        /// Why they could not be read.
        error: Option<String>,
    },
    /// Everything that the trial left was scanned for planted credentials.
    Scanned {
        /// Files, tables, environments and requests that were looked at.
        places: u32,
        /// What was found outside the declared places.
        leaks: Vec<Leak>,
    },
    /// The worker itself raised an alarm.
    Alarm {
        /// Which worker.
        worker: u32,
        /// Where.
        source: AlarmSource,
        /// What it said, in a few words.
        text: String,
    },
    /// The producer waits with its transaction open.
    ProducerHeld,
    /// The producer's transaction is over.
    ProducerEnded {
        /// Whether it was committed; else it was rolled back.
        committed: bool,
    },
    /// Something that the plan needs is not to be had here: nothing is shown, and never green.
    Limitation {
        /// What is lacking, such as `worker-clock`.
        what: String,
        /// Why, and what to do.
        why: String,
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
