//! The words by which things are usually called, as data.

use killpoint_model::RowState;

use super::finding::Role;

/// Subcommands by what they are for. Of several words for one role the first that a program has wins.
pub(super) const ROLES: &[(Role, &[&str])] = &[
    (
        Role::Run,
        &[
            "run", "worker", "work", "serve", "start", "consume", "process", "loop", "daemon", "drain",
            "poll", "dispatch", "deliver", "send-all", "flush",
        ],
    ),
    (
        Role::Enqueue,
        &[
            "enqueue", "submit", "produce", "publish", "add", "push", "put", "schedule", "seed", "create",
            "insert", "queue", "send",
        ],
    ),
    (
        Role::Setup,
        &[
            "setup",
            "init",
            "migrate",
            "init-db",
            "initdb",
            "create-tables",
            "create-db",
            "prepare",
            "bootstrap",
        ],
    ),
    (Role::Cleanup, &["cleanup", "clean", "purge", "prune", "retention", "gc"]),
    (Role::Status, &["status", "show", "list", "dump", "state", "inspect", "stats"]),
];

/// The role of a subcommand, and its rank among the words for it.
pub(super) fn role_of(word: &str) -> Option<(Role, usize)> {
    let plain = word.to_ascii_lowercase().replace('_', "-");
    ROLES.iter().find_map(|(role, words)| Some((*role, words.iter().position(|known| *known == plain)?)))
}

/// Parts of a credential's name. A part counts between underscores only.
const SECRETS: &[&str] =
    &["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "AUTH", "DSN"];
/// Ends of the name of a base address.
const ADDRESSES: &[&str] = &["URL", "URI", "BASE", "ENDPOINT", "ORIGIN"];
/// Such a name that is not about the provider of messages.
const NOT_PROVIDERS: &[&str] = &[
    "REDIS", "POSTGRES", "PG", "MYSQL", "MONGO", "MONGODB", "AMQP", "BROKER", "RABBITMQ", "KAFKA", "SENTRY",
    "OTEL", "METRICS", "STATSD", "PROXY", "CALLBACK", "PUBLIC", "REDIRECT", "REGISTRY",
];
/// Parts of the name of a store.
const STORES: &[&str] = &[
    "DB", "DATABASE", "SQLITE", "LEDGER", "OUTBOX", "JOURNAL", "QUEUE", "STATE", "STORE", "STORAGE", "DATA",
    "SPOOL",
];
/// Ends of a name that make a number or a word of a store's name, not a place.
const NOT_PLACES: &[&str] = &[
    "S", "SECONDS", "MS", "TIMEOUT", "SIZE", "MAX", "MIN", "LIMIT", "COUNT", "NAME", "TABLE", "MODE", "PORT",
    "HOST", "USER", "LEVEL", "TTL", "LEASE", "INTERVAL", "TYPE",
];

/// What a name speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Secret,
    Address,
    /// An address by its end that belongs to something other than the provider.
    OtherAddress,
    Store,
    Host,
    Other,
}

/// Reads a name, of a variable or of an option without its dashes.
pub(super) fn name_kind(name: &str) -> NameKind {
    let upper = name.to_ascii_uppercase().replace('-', "_");
    let parts: Vec<&str> = upper.split('_').filter(|part| !part.is_empty()).collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    let last = parts.last().copied().unwrap_or_default();
    let is_address = ADDRESSES.contains(&last) || (last == "HOST");
    if has(SECRETS) {
        return NameKind::Secret;
    }
    if has(STORES) && !NOT_PLACES.contains(&last) {
        return NameKind::Store;
    }
    match (is_address, has(NOT_PROVIDERS) || has(STORES)) {
        (true, true) => NameKind::OtherAddress,
        (true, false) if last == "HOST" => NameKind::Host,
        (true, false) => NameKind::Address,
        (false, _) => NameKind::Other,
    }
}

/// Names of programs that work, best first, without their ends.
pub(super) const WORKERS: &[&str] = &[
    "worker",
    "workers",
    "consumer",
    "dispatcher",
    "sender",
    "outbox",
    "relay",
    "deliver",
    "delivery",
    "runner",
    "agent",
    "daemon",
    "processor",
    "queue",
    "jobs",
    "main",
    "app",
    "run",
    "index",
    "cli",
    "server",
    "__main__",
];
/// Names of programs that enqueue.
pub(super) const ENQUEUERS: &[&str] =
    &["enqueue", "enqueuer", "producer", "produce", "submit", "publisher", "publish", "seed"];
/// Names of programs that do neither.
pub(super) const OTHERS: &[&str] =
    &["status", "setup", "conftest", "config", "settings", "models", "schema", "db", "__init__", "migrate"];

/// Columns with the state of a delivery, best first.
pub(super) const STATE_COLUMNS: &[&str] = &[
    "delivery_state",
    "delivery_status",
    "message_state",
    "message_status",
    "send_status",
    "send_state",
    "state",
    "status",
];
/// Canonical columns by their usual names, best first. Left out are those whose meaning differs too much to be
/// guessed: `retries` may count failures only, a `body` may be a template, a due time has no unit.
pub(super) const COLUMNS: &[(&str, &[&str])] = &[
    (
        "action",
        &[
            "action_id",
            "ref",
            "reference",
            "external_ref",
            "run_id",
            "job_id",
            "message_id",
            "task_id",
            "uuid",
            "id",
        ],
    ),
    (
        "destination",
        &["destination", "recipient", "to_addr", "to_address", "to_email", "to", "email", "channel"],
    ),
    ("key", &["idempotency_key", "idem_key", "dedupe_key"]),
    ("provider_id", &["provider_id", "provider_message_id", "remote_id"]),
    ("attempts", &["attempts", "attempt_count", "attempt"]),
    ("execution", &["execution_state", "execution_status"]),
    ("evidence", &["last_error", "error", "evidence", "failure_reason"]),
];
/// Tables that hold what is to be delivered, best first.
pub(super) const TABLES: &[&str] = &[
    "outbox",
    "outbound",
    "deliver",
    "message",
    "notification",
    "email",
    "action",
    "job",
    "task",
    "queue",
    "event",
];

/// Words for states that no preset has.
pub(super) const MORE_STATES: &[(&str, RowState)] = &[
    ("new", RowState::Created),
    ("ready", RowState::Created),
    ("open", RowState::Created),
    ("todo", RowState::Created),
    ("waiting", RowState::Created),
    ("scheduled", RowState::Created),
    ("enqueued", RowState::Created),
    ("retry", RowState::Created),
    ("processing", RowState::Dispatching),
    ("in_progress", RowState::Dispatching),
    ("in-progress", RowState::Dispatching),
    ("in-flight", RowState::Dispatching),
    ("inflight", RowState::Dispatching),
    ("running", RowState::Dispatching),
    ("locked", RowState::Dispatching),
    ("started", RowState::Dispatching),
    ("active", RowState::Dispatching),
    ("in-doubt", RowState::Unknown),
    ("in_doubt", RowState::Unknown),
    ("uncertain", RowState::Unknown),
    ("done", RowState::Confirmed),
    ("ok", RowState::Confirmed),
    ("success", RowState::Confirmed),
    ("succeeded", RowState::Confirmed),
    ("complete", RowState::Confirmed),
    ("completed", RowState::Confirmed),
    ("finished", RowState::Confirmed),
    ("processed", RowState::Confirmed),
    ("published", RowState::Confirmed),
    ("acked", RowState::Confirmed),
    ("error", RowState::Failed),
    ("errored", RowState::Failed),
    ("permanent_failure", RowState::Failed),
    ("dead_letter", RowState::Failed),
    ("gave_up", RowState::Failed),
    ("parked", RowState::Review),
    ("manual", RowState::Review),
    ("quarantined", RowState::Review),
];

/// What a word for a state usually means, in any case.
pub(super) fn state_of(word: &str) -> Option<RowState> {
    let plain = word.to_ascii_lowercase();
    let known = killpoint_scenarios::PRESET_STATES.iter().chain(MORE_STATES);
    let known = known.clone().find(|(known, _)| *known == plain).map(|(_, state)| *state);
    known.or_else(|| plain.parse().ok())
}

/// Fields of a body that name the action, best first.
pub(super) const ACTION_FIELDS: &[&str] =
    &["ref", "reference", "action_id", "actionId", "client_reference", "clientReference", "external_id"];
/// Fields of a body that name a recipient, beside those that the provider knows by itself.
pub(super) const RECIPIENT_FIELDS: &[&str] =
    &["chat_id", "chatId", "phone", "phone_number", "address", "target", "room", "receiver", "recipients"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let all = [
            ("PROVIDER_URL", NameKind::Address),
            ("API_BASE_URL", NameKind::Address),
            ("base-url", NameKind::Address),
            ("MAIL_HOST", NameKind::Host),
            ("REDIS_URL", NameKind::OtherAddress),
            ("DATABASE_URL", NameKind::Store),
            ("WORKER_DB", NameKind::Store),
            ("db", NameKind::Store),
            ("STATE_DIR", NameKind::Store),
            ("QUEUE_TIMEOUT", NameKind::Other),
            ("WORKER_LEASE_S", NameKind::Other),
            ("PROVIDER_API_KEY", NameKind::Secret),
            ("DB_PASSWORD", NameKind::Secret),
            ("MONKEY_URL", NameKind::Address),
        ];
        for (name, kind) in all {
            assert_eq!(name_kind(name), kind, "{name}");
        }
    }

    #[test]
    fn no_word_has_two_meanings() {
        let mut words: Vec<&str> = ROLES.iter().flat_map(|(_, words)| words.iter().copied()).collect();
        words.sort_unstable();
        let count = words.len();
        words.dedup();
        assert_eq!(words.len(), count);
        let known = killpoint_scenarios::PRESET_STATES.iter().chain(MORE_STATES).map(|(word, _)| *word);
        let mut known: Vec<&str> = known.collect();
        known.sort_unstable();
        let count = known.len();
        known.dedup();
        assert_eq!(known.len(), count);
        assert_eq!(role_of("Create_Tables"), Some((Role::Setup, 5)));
        assert_eq!(role_of("pending"), None);
    }
}
