//! The tables.

/// Which schema this worker reads and writes.
pub(super) const VERSION: i64 = 2;

/// Two state machines that never share a column: what became of the work, and what became of each message.
pub(super) const SCHEMA: &str = "
-- `executions` counts the results that were committed, `starts` the times that one was begun. Destinations are
-- frozen here, when the run is asked for. A suspect row comes from a file that was copied or restored.
CREATE TABLE executions (
    run_id           TEXT PRIMARY KEY,
    input            TEXT NOT NULL,
    input_hash       TEXT NOT NULL,
    destinations     TEXT NOT NULL,
    execution_status TEXT NOT NULL CHECK (execution_status IN
        ('pending', 'running', 'succeeded', 'failed', 'quarantined', 'cancelled')),
    executions       INTEGER NOT NULL DEFAULT 0,
    starts           INTEGER NOT NULL DEFAULT 0,
    result_ref       TEXT,
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER,
    lease_owner      TEXT,
    lease_until      INTEGER NOT NULL DEFAULT 0,
    lease_token      INTEGER NOT NULL DEFAULT 0,
    suspect          INTEGER NOT NULL DEFAULT 0,
    evidence         TEXT
);
CREATE TABLE results (
    result_ref TEXT PRIMARY KEY,
    run_id     TEXT NOT NULL REFERENCES executions (run_id),
    text       TEXT NOT NULL
);
-- `payload` is the request's body, byte for byte. `doubts` counts attempts whose outcome was unknown, and
-- `interruptions` those among them that ended with their owner. `found` and `not_found` are what reconciling came
-- to. A row whose `next_attempt_at` is NULL is not taken up again. A claim lasts `lease_ms`; `lease_until` is its
-- end by its owner's clock, and changes whenever the claim is renewed.
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
    interruptions       INTEGER NOT NULL DEFAULT 0,
    doubts              INTEGER NOT NULL DEFAULT 0,
    acceptances         INTEGER NOT NULL DEFAULT 0,
    found               INTEGER NOT NULL DEFAULT 0,
    not_found           INTEGER NOT NULL DEFAULT 0,
    first_sent_at       INTEGER,
    next_attempt_at     INTEGER,
    acknowledged_at     INTEGER,
    lease_owner         TEXT,
    lease_ms            INTEGER NOT NULL DEFAULT 0,
    lease_until         INTEGER NOT NULL DEFAULT 0,
    lease_token         INTEGER NOT NULL DEFAULT 0,
    suspect             INTEGER NOT NULL DEFAULT 0,
    last_error          TEXT,
    evidence            TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX one_item_per_destination ON deliveries (run_id, destination);
CREATE TABLE queue (delivery_id TEXT PRIMARY KEY);
CREATE TABLE lives (worker_id TEXT PRIMARY KEY, count INTEGER NOT NULL);
-- `epoch` makes this ledger's keys its own; `home` is the file that it was last written in.
CREATE TABLE ledger (epoch TEXT NOT NULL, home TEXT NOT NULL);
INSERT INTO ledger VALUES (lower(hex(randomblob(8))), '');
-- An item of the feed is known by its id for ever; `cursor` is where the next poll goes on.
CREATE TABLE inbox (item_id TEXT PRIMARY KEY, acknowledged INTEGER NOT NULL DEFAULT 0);
CREATE TABLE feed (cursor TEXT NOT NULL);
INSERT INTO feed VALUES ('');
-- `#` in the texts stands for the occurrence's number; `next` is the first one that is not in `executions`.
CREATE TABLE schedules (
    run_id      TEXT PRIMARY KEY,
    destination TEXT NOT NULL,
    input       TEXT NOT NULL,
    start_at    INTEGER NOT NULL,
    every_ms    INTEGER NOT NULL,
    occurrences INTEGER NOT NULL,
    next        INTEGER NOT NULL DEFAULT 1
);
PRAGMA user_version = 2;
";
