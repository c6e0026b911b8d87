CREATE TABLE outbound_actions (
    action_id TEXT PRIMARY KEY,
    execution_state TEXT NOT NULL,
    delivery_state TEXT NOT NULL CHECK (delivery_state IN ('pending', 'dispatch_started', 'delivered', 'on_hold')),
    idempotency_key TEXT NOT NULL UNIQUE,
    provider_id TEXT,
    attempt_count INTEGER NOT NULL DEFAULT 0,
    last_error TEXT
);
