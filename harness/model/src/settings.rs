//! What the user configured, read and resolved. Paths are absolute; templates are not filled in yet.
//!
//! Templates in `argv` and `env`: `{state}` (the trial's state directory), `{provider.DIALECT}` (base
//! address, such as `http://127.0.0.1:40123`), `{actions}` (how many actions), `{producer.file}` (a JSON Lines file of one action that
//! is not among them, for the producer), `{actions.file}` (a JSON
//! Lines file of them), `{worker}` (1, 2, …), `{generation}`, and, in the ledger's command, `{copy}`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::credential;
use crate::event::ClockMethod;
use crate::hit::HitName;
use crate::ledger::{ExecutionState, RowState};
use crate::plan::{ActionSpec, Rule};
use crate::profile::IdempotencyProfile;
use crate::text_enum::text_enum;

text_enum! {
    /// What the worker claims.
    pub enum Promise {
        /// At most one effect per action and destination; each action ends delivered, explicitly failed or
        /// explicitly unknown.
        ExactlyOnce = "exactly-once",
        /// Never two; a loss must be visible in the ledger.
        AtMostOnce = "at-most-once",
        /// Each action delivered, all its attempts under one key; a second effect at a provider that does
        /// not dedupe is reported, not a violation.
        AtLeastOnceKeyed = "at-least-once-keyed",
    }
}

text_enum! {
    /// How the worker lives.
    pub enum Lifecycle {
        /// It does what is to be done and exits 0.
        Drains = "drains",
        /// It runs until it is stopped.
        RunsForever = "runs-forever",
        /// A scheduler starts it again and again; some exit codes mean "again".
        OneShot = "one-shot",
        /// It forks away and the first process exits.
        Daemonises = "daemonises",
    }
}

text_enum! {
    /// How a trial is known to be at rest.
    pub enum SettleBy {
        /// The worker's exit.
        Exit = "exit",
        /// No event for a time.
        Quiet = "quiet",
        /// A ledger query that gives 0, or rows that are all terminal where no query is given.
        Query = "query",
    }
}

/// A command: words and environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandSettings {
    /// Words with templates.
    pub argv: Vec<String>,
    /// Variables to add, with templates.
    pub env: BTreeMap<String, String>,
    /// Working directory; the configuration's folder.
    pub cwd: PathBuf,
    /// Variables that it gets from killpoint's own environment, where they are there; all of them where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<BTreeSet<String>>,
}

/// Variables that a command gets from killpoint's own environment even where it gets only some.
pub const INHERITED_ALWAYS: &[&str] =
    &["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TERM", "TMPDIR", "TZ", "USER"];

/// The program under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerSettings {
    /// How it is started.
    pub command: CommandSettings,
    /// How it lives.
    pub lifecycle: Lifecycle,
    /// Exit codes of a one-shot that mean "start me again".
    pub again_codes: Vec<i32>,
    /// Restarts that are allowed beside those after our own kills.
    pub restarts_max: u32,
    /// Delay before a restart after the worker's own exit, in milliseconds.
    pub restart_delay_ms: u64,
    /// Processes that its tree may have at once.
    pub processes_max: u32,
    /// Bytes of each output stream kept per generation.
    pub output_bytes_max: u64,
    /// How its wall clock can be moved.
    #[serde(default)]
    pub clock: ClockMethod,
}

/// When a trial is at rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettleSettings {
    /// The way.
    pub by: SettleBy,
    /// For `quiet`: how long nothing may happen, in milliseconds.
    pub quiet_ms: u64,
    /// For `query`: a query whose first value is 0 at rest.
    pub query: Option<String>,
    /// After this long a trial has not settled, in milliseconds.
    pub deadline_ms: u64,
}

/// The fake provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderSettings {
    /// The wire contract.
    pub dialect: String,
    /// What it does with keys.
    pub idempotency: IdempotencyProfile,
    /// JSON pointers to the recipient, first match wins.
    pub recipient: Vec<String>,
    /// JSON pointers to what a human reads, first match wins.
    pub text: Vec<String>,
    /// JSON pointer, or `header:NAME`, to the logical action id.
    pub action: Option<String>,
    /// Rules in force in every trial.
    pub rules: Vec<Rule>,
    /// A hang is ended (FIN) after this long, in milliseconds.
    pub hang_ms: u64,
}

/// One named query whose value's changes are a boundary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerQuery {
    /// The point's name.
    pub name: String,
    /// SQL that gives one value.
    pub query: String,
}

/// Where the worker's own record is and what its rows mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerSettings {
    /// A name from the ledger slice: `sqlite`, `command`.
    pub kind: String,
    /// For `sqlite`: the database file, with templates.
    pub path: Option<String>,
    /// For `sqlite`: a query that gives canonical columns, named as the fields of a ledger row.
    pub query: Option<String>,
    /// For `command`: run on a copy of the state directory; prints JSON lines of canonical rows.
    pub command: Option<CommandSettings>,
    /// The worker's own state words to canonical states.
    pub states: BTreeMap<String, RowState>,
    /// The worker's own execution words to canonical ones.
    pub executions: BTreeMap<String, ExecutionState>,
    /// What it means that a row is gone, for stores that delete finished work.
    pub absent: Option<RowState>,
    /// Queries that are boundaries.
    pub boundaries: Vec<LedgerQuery>,
    /// Pause between samples while the worker runs free, in milliseconds.
    pub sample_ms: u64,
}

/// The state that a trial starts from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateSettings {
    /// A directory to copy; an empty one where absent.
    pub from: Option<PathBuf>,
    /// A provider snapshot (JSON Lines of provider events) to start from.
    pub provider: Option<PathBuf>,
    /// Commands that make the state ready, in order.
    pub prepare: Vec<CommandSettings>,
    /// The command that commits the actions.
    pub enqueue: Option<CommandSettings>,
    /// A line of its output after which the enqueuer is killed rather than waited for.
    pub enqueue_kill_after: Option<String>,
    /// Files outside of the state directory that the commands may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
}

/// Which trials a sweep makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepSettings {
    /// Boundaries to kill at; all that the baseline reached where empty.
    pub boundaries: Vec<HitName>,
    /// Provider plans to try without a kill, by name.
    pub plans: Vec<String>,
    /// Hits per series that are tried at most; the rest is reported as left out.
    pub hits_per_series_max: u32,
}

/// Bounds of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckSettings {
    /// Attempts per action and destination that are still bounded.
    pub attempts_max: u32,
    /// How long a row may stay due and untouched before that is a violation, in milliseconds.
    pub overdue_ms: u64,
    /// How long an action may take to a decided state, in milliseconds; unbounded where absent.
    pub decided_within_ms: Option<u64>,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self { attempts_max: 10, overdue_ms: 5000, decided_within_ms: None }
    }
}

/// By what the worker itself raises an alarm. Reported apart from the verdict on its deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AlarmSettings {
    /// A text in a line of its output.
    pub output: Option<String>,
    /// Exit codes.
    pub exit_codes: Vec<i32>,
    /// A canonical metric that is above 0.
    pub metric: Option<String>,
}

/// The counters that checks compare with what the provider saw and the ledger says.
pub const CANONICAL_METRICS: &[&str] = &[
    "created",
    "attempts",
    "acceptances",
    "unknown",
    "reconciled-successes",
    "reconciled-failures",
    "awaiting-review",
    "execution-failures",
    "delivery-failures",
];

/// Where the worker's own metrics are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MetricsSettings {
    /// Address of a Prometheus text page on loopback, with templates.
    pub url: Option<String>,
    /// Or a file below the state directory in the same format (a textfile collector's), with templates.
    pub file: Option<String>,
    /// Or SQL on a copy of the ledger that gives rows of name and value.
    pub query: Option<String>,
    /// The worker's own metric names, labels included, to canonical ones.
    pub names: BTreeMap<String, String>,
}

/// Which credentials are planted, and where they may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SecretSettings {
    /// Variables of the worker's environment that get a canary.
    pub env: Vec<String>,
    /// Whether the provider's address carries one, as `http://user:CANARY@…`.
    pub url: bool,
    /// Places that may hold them, as patterns with `*`, such as `requests:header:authorization`.
    pub declared: Vec<String>,
}

/// The inbound feed that the fake provider serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InboundSettings {
    /// How many items it has.
    pub items: u32,
    /// Items per poll at most.
    pub page: u32,
    /// Polls (from 1) whose items are given again although they were acknowledged.
    pub redeliver: Vec<u32>,
    /// Acknowledgements (from 1) whose answer is lost.
    pub lose_answer: Vec<u32>,
}

/// Everything about one worker under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// What the worker claims.
    pub promise: Promise,
    /// The program.
    pub worker: WorkerSettings,
    /// How its state comes to be.
    pub state: StateSettings,
    /// Default actions of a trial.
    pub actions: Vec<ActionSpec>,
    /// When a trial is at rest.
    pub settle: SettleSettings,
    /// The fake provider.
    pub provider: ProviderSettings,
    /// The worker's record; `None`: the baseline is the only oracle.
    pub ledger: Option<LedgerSettings>,
    /// Canonical names to the hits that they mean here.
    pub bindings: BTreeMap<String, HitName>,
    /// Which trials a sweep makes.
    pub sweep: SweepSettings,
    /// Bounds of the checks.
    pub checks: CheckSettings,
    /// The worker's own retention or cleanup command.
    #[serde(default)]
    pub cleanup: Option<CommandSettings>,
    /// A command that commits actions in one transaction and makes the mark `producer-open` inside it; it
    /// commits where the mark is answered, and is killed, which rolls back, where it is not.
    #[serde(default)]
    pub producer: Option<CommandSettings>,
    /// By what the worker raises an alarm.
    #[serde(default)]
    pub alarm: AlarmSettings,
    /// The worker's own metrics.
    #[serde(default)]
    pub metrics: Option<MetricsSettings>,
    /// Planted credentials.
    #[serde(default)]
    pub secrets: SecretSettings,
    /// The inbound feed.
    #[serde(default)]
    pub inbound: Option<InboundSettings>,
}

impl Settings {
    /// Every command, that of the worker first.
    pub fn commands(&self) -> impl Iterator<Item = &CommandSettings> {
        let ledger = self.ledger.as_ref().and_then(|ledger| ledger.command.as_ref());
        let state = self.state.prepare.iter().chain(&self.state.enqueue);
        [&self.worker.command]
            .into_iter()
            .chain(state)
            .chain(&self.producer)
            .chain(&self.cleanup)
            .chain(ledger)
    }

    fn commands_mut(&mut self) -> impl Iterator<Item = &mut CommandSettings> {
        let ledger = self.ledger.as_mut().and_then(|ledger| ledger.command.as_mut());
        let state = self.state.prepare.iter_mut().chain(self.state.enqueue.as_mut());
        let others = self.cleanup.as_mut().into_iter().chain(self.producer.as_mut());
        [&mut self.worker.command].into_iter().chain(ledger).chain(state).chain(others)
    }

    /// The same with every secret masked, by its variable's name or by its form: for what is written down.
    #[must_use]
    pub fn masked(mut self) -> Self {
        for command in self.commands_mut() {
            for (name, value) in &mut command.env {
                *value = credential::masked_value(name, value);
            }
            command.argv = credential::masked_words(&command.argv);
        }
        self
    }

    /// Gives every command only these variables of killpoint's own environment, beside [`INHERITED_ALWAYS`] and
    /// those that it was given before.
    #[must_use]
    pub fn inheriting(mut self, names: &[String]) -> Self {
        for command in self.commands_mut() {
            let inherit = command.inherit.get_or_insert_default();
            inherit.extend(INHERITED_ALWAYS.iter().map(|name| (*name).to_owned()));
            inherit.extend(names.iter().cloned());
        }
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            promise: Promise::ExactlyOnce,
            worker: WorkerSettings {
                command: CommandSettings::default(),
                lifecycle: Lifecycle::Drains,
                again_codes: Vec::new(),
                restarts_max: 5,
                restart_delay_ms: 50,
                processes_max: 256,
                output_bytes_max: 1 << 20,
                clock: ClockMethod::default(),
            },
            state: StateSettings::default(),
            actions: Vec::new(),
            settle: SettleSettings { by: SettleBy::Exit, quiet_ms: 1500, query: None, deadline_ms: 30_000 },
            provider: ProviderSettings::default(),
            ledger: None,
            bindings: BTreeMap::new(),
            sweep: SweepSettings { boundaries: Vec::new(), plans: default_plans(), hits_per_series_max: 10 },
            checks: CheckSettings::default(),
            cleanup: None,
            producer: None,
            alarm: AlarmSettings::default(),
            metrics: None,
            secrets: SecretSettings::default(),
            inbound: None,
        }
    }
}

impl Default for ProviderSettings {
    fn default() -> Self {
        let pointers = |names: &[&str]| names.iter().map(|name| format!("/{name}")).collect();
        Self {
            dialect: "rest".into(),
            idempotency: IdempotencyProfile::default(),
            recipient: pointers(&["to", "recipient", "destination", "channel", "email", "user", "customer"]),
            text: pointers(&["text", "body", "message", "content", "subject", "description"]),
            action: None,
            rules: Vec::new(),
            hang_ms: 2000,
        }
    }
}

/// The plans that a sweep tries without a kill, unless told otherwise: both sides of each lost reply.
pub fn default_plans() -> Vec<String> {
    [
        "drop-after-accept",
        "drop-before-accept",
        "timeout-after-accept",
        "timeout-before-accept",
        "error-after-accept",
        "error-before-accept",
        "cut-body-after-accept",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_by_their_names_and_nothing_else_is() {
        let mut settings = Settings::default();
        let env = &mut settings.worker.command.env;
        env.insert("PROVIDER_URL".into(), "{provider.rest}".into());
        env.insert("Stripe_Api_Key".into(), "sk_live_1".into());
        env.insert("ACCOUNT".into(), "sk_live_0123456789".into());
        settings.worker.command.argv = vec!["w".into(), "--api-key=abc".into()];
        settings.producer = Some(settings.worker.command.clone());
        let masked = settings.clone().masked();
        assert_eq!(
            masked.producer.as_ref().map(|command| command.env["Stripe_Api_Key"].as_str()),
            Some("***")
        );
        assert_eq!(masked.worker.command.env["Stripe_Api_Key"], "***");
        assert_eq!(masked.worker.command.env["PROVIDER_URL"], "{provider.rest}");
        assert_eq!(masked.worker.command.env["ACCOUNT"], "sk_live_***");
        assert_eq!(masked.worker.command.argv, ["w", "--api-key=***"]);
        assert_eq!(settings.worker.command.env["Stripe_Api_Key"], "sk_live_1");
    }

    #[test]
    fn inheriting_only_some_is_for_every_command() {
        let mut settings = Settings::default();
        settings.state.prepare.push(CommandSettings::default());
        settings.cleanup =
            Some(CommandSettings { inherit: Some(["A".to_owned()].into()), ..CommandSettings::default() });
        let clean = settings.inheriting(&["B".to_owned()]);
        assert_eq!(clean.commands().count(), 3);
        for command in clean.commands() {
            let inherit = command.inherit.as_ref().unwrap();
            assert!(inherit.contains("PATH") && inherit.contains("B") && !inherit.contains("C"));
        }
        assert!(clean.cleanup.unwrap().inherit.unwrap().contains("A"));
    }
}
