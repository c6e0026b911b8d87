"""The reference behaviour in Python: an outbox that is right in every schedule, and ten ways to be wrong.

Standard library only. One table, `outbound_actions`, with one row per action and destination. A row is claimed
under a lease, its intent is committed, and only then is it sent; what comes back decides it, and where nothing
decides it the row says `unknown` until the provider has been asked.
"""

import argparse
import hashlib
import http.client
import json
import os
import signal
import sqlite3
import sys
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness/clients/python"))
from killpoint_mark import MarkError, mark  # noqa: E402

# Each changes one decision of the worker. The names are those of the other reference worker.
BUGS = {
    "blind-resend": "an item that may have been accepted is sent again without a lookup",
    "trust-first-lookup": "the first lookup that finds nothing is taken as proof that nothing will arrive",
    "key-per-attempt": "every time an item is taken up it gets a new idempotency key",
    "mark-before-send": "the row says confirmed before the request is sent",
    "send-before-intent": "the request is sent before intent and key are in the ledger",
    "swallow-timeout": "a timeout or a lost reply is taken for a success",
    "unknown-as-failed": "a timeout or a lost reply is taken for a failure",
    "orphans-stay-locked": "an item whose owner died stays claimed for ever",
    "never-starts-sending": "the delivery loop never starts, and the worker exits 0",
    "retry-refused": "a definite refusal is retried like anything else",
}

BUSY_TIMEOUT_S = 5.0
POLL_S = 0.01
LOOKUP_PAUSE_S = 0.1
LOOKUP_FAILURES_MAX = 6
RATE_PAUSE_MS = 100
SEND_MARGIN_MS = 100
INTERRUPTIONS_MAX = 8
EXCERPT_CHARS_MAX = 200
EXIT_UNWRITABLE = 74
# Due times further ahead were written before the clock was stepped back, and nobody must wait for them.
HORIZON_MS = 60_000

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (epoch TEXT NOT NULL);
INSERT INTO ledger SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM ledger);
CREATE TABLE IF NOT EXISTS outbound_actions (
    id              INTEGER PRIMARY KEY,
    action_id       TEXT NOT NULL,
    destination     TEXT NOT NULL,
    payload         TEXT NOT NULL,
    execution_state TEXT NOT NULL DEFAULT 'succeeded',
    delivery_state  TEXT NOT NULL DEFAULT 'created' CHECK (delivery_state IN
        ('created', 'dispatching', 'unknown', 'confirmed', 'failed', 'review', 'cancelled')),
    idempotency_key TEXT NOT NULL UNIQUE,
    provider_id     TEXT,
    attempt_count   INTEGER NOT NULL DEFAULT 0,
    interruptions   INTEGER NOT NULL DEFAULT 0,
    doubts          INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER,
    lease_owner     TEXT,
    lease_ms        INTEGER NOT NULL DEFAULT 0,
    lease_until     INTEGER NOT NULL DEFAULT 0,
    lease_token     INTEGER NOT NULL DEFAULT 0,
    queued          INTEGER NOT NULL DEFAULT 1,
    last_error      TEXT,
    UNIQUE (action_id, destination)
);
"""

STATUS = """
SELECT action_id AS action, destination, delivery_state AS state, execution_state AS execution,
       idempotency_key AS key, provider_id, attempt_count AS attempts, json_extract(payload, '$.body') AS text,
       lease_owner AS owner, next_attempt_at AS due_at_ms, last_error AS evidence
FROM outbound_actions ORDER BY id
"""

OPEN = "delivery_state IN ('created', 'dispatching', 'unknown') AND queued"


def now_ms():
    """The wall clock, with the offset that a harness may ask for."""
    try:
        offset = int(os.environ.get("KILLPOINT_CLOCK_OFFSET_MS", "0"))
    except ValueError:
        offset = 0
    return time.time_ns() // 1_000_000 + offset


def alarm(text):
    print("ALARM", text, file=sys.stderr, flush=True)


def open_ledger(path):
    """Each statement is a transaction of its own; a commit survives a power cut."""
    db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
    return db


def enqueue(db, path):
    """Commits the actions one by one. One that is there already stays as it is, if it is the same."""
    (epoch,) = db.execute("SELECT epoch FROM ledger").fetchone()
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            action = json.loads(line)
            name, body = action["id"], action["body"].replace("{run}", action["id"])
            to = [action["to"]] if isinstance(action["to"], str) else action["to"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            sys.exit(f"outbox_worker: {path}, line {number}: {error!r}")
        db.execute("BEGIN IMMEDIATE")
        for destination in dict.fromkeys(to):
            ref = f"{name}/{destination}"
            payload = json.dumps({"to": destination, "body": body, "ref": ref})
            # Another key for another payload, and in another ledger; the same in every attempt and life.
            key = hashlib.sha256(f"{epoch}\n{payload}".encode()).hexdigest()[:40]
            db.execute(
                "INSERT INTO outbound_actions (action_id, destination, payload, idempotency_key, next_attempt_at)"
                " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (name, destination, payload, key, now_ms()),
            )
        stored = db.execute("SELECT payload FROM outbound_actions WHERE action_id = ?", (name,)).fetchall()
        if {json.loads(row["payload"])["body"] for row in stored} != {body} or len(stored) != len(set(to)):
            db.execute("ROLLBACK")
            sys.exit(f"outbox_worker: {path}, line {number}: `{name}` is in the ledger with other contents")
        db.execute("COMMIT")
        print("enqueued", name, flush=True)


class Provider:
    """The provider's wire: one blocking request per call, nothing retried, nothing pooled."""

    def __init__(self, url, timeout_ms):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.timeout_s = parts.hostname, parts.port or 80, timeout_ms / 1000
        self.path = parts.path.rstrip("/") + "/v1/messages"
        self.token = os.environ.get("OUTBOX_API_TOKEN")

    def _ask(self, method, path, body=None, headers=None):
        """Status, headers and text of a whole answer. Raises OSError or HTTPException where none came."""
        headers = {"Connection": "close", **(headers or {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read(65536).decode("utf-8", "replace")
        finally:
            connection.close()

    def _shown(self, text):
        """What may be kept: a credential that the provider echoes may not."""
        text = text[:EXCERPT_CHARS_MAX]
        return text.replace(self.token, "***") if self.token else text

    def send(self, payload, key):
        """`(outcome, detail, retry_after_ms)`: accepted with an id, refused, limited, or doubtful."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            status, answered, text = self._ask("POST", self.path, payload.encode(), headers)
        except (OSError, http.client.HTTPException) as error:
            return "doubtful", self._shown(f"no answer: {error!r}"), 0
        retry_after_ms = 1000 * int(answered.get("Retry-After", "")) if answered.get("Retry-After", "").isdigit() else 0
        if status == 429:
            return "limited", "answered 429", retry_after_ms
        found = identity_of(parsed(text))
        if 200 <= status < 300 and found:
            return "accepted", found, 0
        why = self._shown(f"answered {status}: {text}")
        # A conflict is an earlier request's doing, and the other two ask for a repetition.
        if 400 <= status < 500 and status not in (408, 409, 425):
            return "refused", why, 0
        return "doubtful", why, retry_after_ms

    def look_up(self, key):
        """`(answered, id or reason)`; an id of None means that the provider has no such message."""
        try:
            query = urllib.parse.urlencode({"idempotency_key": key})
            status, _, text = self._ask("GET", f"{self.path}?{query}")
        except (OSError, http.client.HTTPException) as error:
            return False, self._shown(f"no answer: {error!r}")
        data = parsed(text).get("data")
        if not 200 <= status < 300 or not isinstance(data, list):
            return False, self._shown(f"answered {status}: {text}")
        if not data:
            return True, None
        found = identity_of(data[0])
        return bool(found), found or "a message without an id"


def parsed(text):
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def identity_of(value):
    found = value.get("id") if isinstance(value, dict) else None
    return str(found) if found not in (None, "") else None


class Worker:
    """The loop: deliver what is due, take over what nobody holds any more, wait for what belongs to others."""

    def __init__(self, db, options):
        self.db, self.options, self.bug = db, options, options.bug
        self.provider = Provider(options.provider, options.timeout_ms)
        self.lease_ms = max(options.lease_ms, options.timeout_ms + SEND_MARGIN_MS)
        self.reconcile_s = 0 if self.bug == "trust-first-lookup" else options.reconcile_ms / 1000
        self.stopping = False
        self.seen = {}

    def run(self):
        signal.signal(signal.SIGTERM, self.stop)
        while not self.stopping:
            if self.bug != "never-starts-sending" and self.deliver_next():
                continue
            if self.options.drain and not self.owes_anything():
                return clean_up(self.db)
            time.sleep(POLL_S)

    def stop(self, *_):
        self.stopping = True

    def owes_anything(self):
        if self.bug == "never-starts-sending":
            return False
        mine = " AND lease_owner IS NULL" if self.bug == "orphans-stay-locked" else ""
        return self.db.execute(f"SELECT 1 FROM outbound_actions WHERE {OPEN}{mine}").fetchone() is not None

    def deliver_next(self):
        item = self.orphan() or self.next_due()
        if item is None:
            return False
        if item["delivery_state"] == "dispatching":
            self.give_up_on_owner(item)
        elif item["delivery_state"] == "created" and item["attempt_count"] == 0:
            mark("before-claim")
            if self.claim(item):
                mark("item-claimed")
                self.dispatch(item)
        else:
            self.reconcile(item)
        return True

    def next_due(self):
        now = now_ms()
        row = self.db.execute(
            f"SELECT * FROM outbound_actions WHERE {OPEN} AND lease_owner IS NULL"
            " AND next_attempt_at NOT BETWEEN ? AND ? ORDER BY id LIMIT 1",
            (now + 1, now + HORIZON_MS),
        ).fetchone()
        return row and dict(row)

    def orphan(self):
        """An item whose claim was seen unchanged for as long as it lasts, whatever anybody's wall clock says."""
        rows = self.db.execute(f"SELECT * FROM outbound_actions WHERE {OPEN} AND lease_owner IS NOT NULL ORDER BY id")
        claimed = [dict(row) for row in rows]
        if self.bug == "orphans-stay-locked":
            return None
        now = time.monotonic()
        before, self.seen = self.seen, {}
        orphan = None
        for item in claimed:
            claim = (item["lease_token"], item["lease_until"])
            known, since = before.get(item["id"], (None, now))
            since = since if known == claim else now
            self.seen[item["id"]] = (claim, since)
            if now - since >= item["lease_ms"] / 1000:
                orphan = orphan or item
        return orphan

    def claim(self, item):
        """Compare and swap: nobody may have touched it since it was read."""
        until = now_ms() + self.lease_ms
        changed = self.db.execute(
            "UPDATE outbound_actions SET lease_owner = ?, lease_ms = ?, lease_until = ?, lease_token = lease_token + 1"
            " WHERE id = ? AND lease_token = ? AND delivery_state = ? AND lease_until = ?",
            (self.options.worker_id, self.lease_ms, until, item["id"], item["lease_token"], item["delivery_state"],
             item["lease_until"]),
        ).rowcount
        item["lease_token"] += 1
        item["lease_until"] = until
        return changed == 1

    def change(self, item, columns, values):
        """Writes to an item under its claim. Says whether the claim still held."""
        changed = self.db.execute(
            f"UPDATE outbound_actions SET {columns} WHERE id = ? AND lease_token = ?",
            (*values, item["id"], item["lease_token"]),
        ).rowcount
        if changed != 1:
            print(f"outbox_worker: {item['id']} was taken over by another worker; left to it", file=sys.stderr)
        return changed == 1

    def renew(self, item):
        return self.change(item, "lease_until = ?", (now_ms() + self.lease_ms,))

    def settle(self, item, state, evidence, provider_id=None, due_in_ms=None, doubt=0, interrupted=0):
        """Commits what became of an item and gives the claim back."""
        due_at = None if due_in_ms is None else now_ms() + due_in_ms
        held = self.change(
            item,
            "delivery_state = ?, last_error = ?, provider_id = coalesce(?, provider_id), next_attempt_at = ?,"
            " doubts = doubts + ?, interruptions = interruptions + ?, lease_owner = NULL, lease_until = 0",
            (state, evidence, provider_id, due_at, doubt, interrupted),
        )
        if held and state in ("failed", "review"):
            alarm(f"{item['action_id']} is not delivered: {evidence}")
        return held

    def give_up_on_owner(self, item):
        mark("recovery-scanned")
        owner = item["lease_owner"]
        if self.claim(item):
            self.doubt(item, f"the lease of {owner} ended in attempt {item['attempt_count']}", interrupted=1)

    def key_of(self, item):
        key = item["idempotency_key"]
        return f"{key}-{item['attempt_count'] + 1}" if self.bug == "key-per-attempt" else key

    def begin(self, item, key):
        """Commits the intent to send. Says whether the claim still held."""
        item["attempt_count"] += 1
        state = "confirmed" if self.bug == "mark-before-send" else "dispatching"
        columns = "delivery_state = ?, attempt_count = attempt_count + 1, idempotency_key = ?, lease_until = ?"
        return self.change(item, columns, (state, key, now_ms() + self.lease_ms))

    def dispatch(self, item):
        """Sends a claimed item, once."""
        seen = item["attempt_count"] - item["interruptions"]
        if seen >= self.options.attempts_max or item["interruptions"] >= INTERRUPTIONS_MAX:
            state = "review" if item["doubts"] else "failed"
            self.settle(item, state, f"no attempt is left after {item['attempt_count']}; key {item['idempotency_key']}")
            return
        key = self.key_of(item)
        if self.bug == "send-before-intent":
            mark("dispatch-started")
            answer = self.provider.send(item["payload"], key)
            self.begin(item, key)
            self.settle_answer(item, answer)
            return
        if not self.begin(item, key):
            return
        mark("dispatch-started")
        # Not a byte is sent under a claim that somebody else has taken.
        if self.renew(item):
            self.settle_answer(item, self.provider.send(item["payload"], key))

    def settle_answer(self, item, answer):
        outcome, detail, retry_after_ms = answer
        evidence = f"attempt {item['attempt_count']}: {detail}"
        if outcome == "refused" and self.bug == "retry-refused":
            outcome = "limited"
        if outcome == "accepted":
            mark("answer-read")
            if self.settle(item, "confirmed", f"attempt {item['attempt_count']}: accepted", provider_id=detail):
                mark("ack-committed")
        elif self.bug == "mark-before-send":
            return
        elif outcome == "refused":
            # A refusal of this attempt says nothing about an earlier one that may have been accepted.
            self.settle(item, "review" if item["doubts"] else "failed", evidence)
        elif outcome == "limited":
            pause_ms = max(retry_after_ms, RATE_PAUSE_MS << min(item["attempt_count"], 8))
            self.settle(item, "created", evidence, due_in_ms=min(pause_ms, HORIZON_MS))
        else:
            self.doubt(item, evidence, due_in_ms=min(retry_after_ms, HORIZON_MS))

    def doubt(self, item, why, due_in_ms=0, interrupted=0):
        """The outcome of an attempt is unknown, and the row says so."""
        state = {"swallow-timeout": "confirmed", "unknown-as-failed": "failed"}.get(self.bug, "unknown")
        due_in_ms = due_in_ms if state == "unknown" else None
        if self.settle(item, state, why, due_in_ms=due_in_ms, doubt=1, interrupted=interrupted):
            mark("outcome-unknown")

    def reconcile(self, item):
        """Asks the provider before anything is sent again, long enough for a late commit to show."""
        mark("before-reconcile")
        if not self.claim(item):
            return
        if self.bug == "blind-resend":
            self.dispatch(item)
            return
        # An answered refusal leaves no commit that could come late.
        window_s = 0 if item["delivery_state"] == "created" else self.reconcile_s
        absent_since, failures = None, 0
        while True:
            asked_at = time.monotonic()
            answered, found = self.provider.look_up(self.key_of(item))
            if answered and found:
                if self.settle(item, "confirmed", f"reconciled: a lookup found {found}", provider_id=found):
                    mark("reconciled")
                return
            if answered:
                failures, absent_since = 0, absent_since or asked_at
                if asked_at - absent_since >= window_s:
                    self.dispatch(item)
                    return
            else:
                failures += 1
                if failures == LOOKUP_FAILURES_MAX:
                    self.settle(item, "review", f"lookups failed, the last: {found}; key {item['idempotency_key']}")
                    return
            time.sleep(LOOKUP_PAUSE_S * (1 << min(failures, 2)))
            if self.stopping:
                self.change(item, "lease_owner = NULL, lease_until = 0", ())
                return
            if not self.renew(item):
                return


def clean_up(db):
    """Decided items leave the queue; their rows stay, as the audit."""
    mark("before-cleanup")
    db.execute("UPDATE outbound_actions SET queued = 0 WHERE delivery_state NOT IN ('created', 'dispatching', 'unknown')")
    mark("cleanup-done")


def status(db):
    for row in db.execute(STATUS):
        print(json.dumps({name: row[name] for name in row.keys() if row[name] is not None}))


def arguments():
    parser = argparse.ArgumentParser(prog="outbox_worker.py", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("enqueue", "run", "cleanup", "status"):
        command = commands.add_parser(name)
        command.add_argument("--db", required=True)
        if name == "enqueue":
            command.add_argument("--actions", required=True)
        if name == "run":
            command.add_argument("--provider", required=True)
            command.add_argument("--worker-id", default="host-1")
            for option, value in (("lease", 400), ("timeout", 400), ("reconcile", 600)):
                command.add_argument(f"--{option}-ms", type=int, default=value)
            command.add_argument("--attempts-max", type=int, default=5)
            command.add_argument("--drain", action="store_true")
            command.add_argument("--bug", choices=sorted(BUGS))
    commands.add_parser("bugs")
    return parser.parse_args()


def main():
    options = arguments()
    if options.command == "bugs":
        for name, summary in BUGS.items():
            print(f"{name:21} {summary}")
        return 0
    try:
        db = open_ledger(options.db)
        if options.command == "enqueue":
            enqueue(db, options.actions)
        elif options.command == "run":
            Worker(db, options).run()
        else:
            {"cleanup": clean_up, "status": status}[options.command](db)
    except MarkError as error:
        print(f"outbox_worker: {error}", file=sys.stderr)
        return 1
    except sqlite3.OperationalError as error:
        # Whatever was sent last is not recorded, so nothing more is sent.
        alarm(f"bookkeeping: {error}; stopped, because nothing is sent without a record")
        return EXIT_UNWRITABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
