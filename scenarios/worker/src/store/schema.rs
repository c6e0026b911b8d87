//! The tables.

/// Two state machines that never share a column: what became of the work, and what became of each message.
pub(super) const SCHEMA: &str = "
-- `executions` counts the results that were committed. Destinations are frozen here, when the run is asked for.
CREATE TABLE executions (
    run_id           TEXT PRIMARY KEY,
    input            TEXT NOT NULL,
    input_hash       TEXT NOT NULL,
    destinations     TEXT NOT NULL,
    execution_status TEXT NOT NULL CHECK (execution_status IN ('pending', 'running', 'succeeded', 'failed')),
    executions       INTEGER NOT NULL DEFAULT 0,
    result_ref       TEXT,
    started_at       INTEGER,
    finished_at      INTEGER,
    lease_owner      TEXT,
    lease_until      INTEGER NOT NULL DEFAULT 0,
    lease_token      INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE results (
    result_ref TEXT PRIMARY KEY,
    run_id     TEXT NOT NULL REFERENCES executions (run_id),
    text       TEXT NOT NULL
);
-- `payload` is the request's body, byte for byte. `doubts` counts attempts whose outcome was unknown. A row
-- whose `next_attempt_at` is NULL is not taken up again.
CREATE TABLE deliveries (
    delivery_id         TEXT PRIMARY KEY,
    run_id              TEXT NOT NULL REFERENCES executions (run_id),
    result_ref          TEXT NOT NULL REFERENCES results (result_ref),
    destination         TEXT NOT NULL,
    payload             TEXT NOT NULL,
    payload_hash        TEXT NOT NULL,
    delivery_status     TEXT NOT NULL CHECK (delivery_status IN
        ('pending', 'dispatching', 'unknown', 'delivered', 'failed', 'review', 'cancelled')),
    idempotency_key     TEXT UNIQUE,
    provider_message_id TEXT,
    attempt_count       INTEGER NOT NULL DEFAULT 0,
    doubts              INTEGER NOT NULL DEFAULT 0,
    first_sent_at       INTEGER,
    next_attempt_at     INTEGER DEFAULT 0,
    acknowledged_at     INTEGER,
    lease_owner         TEXT,
    lease_until         INTEGER NOT NULL DEFAULT 0,
    lease_token         INTEGER NOT NULL DEFAULT 0,
    last_error          TEXT,
    evidence            TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX one_item_per_destination ON deliveries (run_id, destination);
CREATE TABLE queue (delivery_id TEXT PRIMARY KEY);
CREATE TABLE lives (worker_id TEXT PRIMARY KEY, count INTEGER NOT NULL);
PRAGMA user_version = 1;
";
