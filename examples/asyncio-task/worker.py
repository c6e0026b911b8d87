"""An asyncio worker that sends in background tasks. With --wrong nobody keeps a reference to a task, and the
garbage collector takes it away while it waits: no exception, no restart, and the row stays due.

python3 worker.py enqueue N | run [--wrong], with PROVIDER_URL and WORKER_DB. Standard library only.
"""
import asyncio
import gc
import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.request
import weakref

BASE = os.environ["PROVIDER_URL"]
TASKS = set()            # what keeps a task alive while it waits
WAITING = weakref.WeakSet()  # the rate limiter knows its waiters, but does not own them


def open_db():
    db = sqlite3.connect(os.environ["WORKER_DB"], isolation_level=None, timeout=10)
    db.execute("pragma journal_mode=wal")
    db.execute("create table if not exists outbox (id text primary key, state text, due_ms integer, error text)")
    return db


def call(request):
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def post(item):
    body = json.dumps({"to": f"{item}@example.com", "body": f"hello {item}"}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": item}
    return call(urllib.request.Request(f"{BASE}/v1/messages", body, headers))["id"]


def found(item):
    return bool(call(f"{BASE}/v1/messages?idempotency_key={item}")["data"])


async def turn():
    """Waits for the rate limiter."""
    waiter = asyncio.get_running_loop().create_future()
    WAITING.add(waiter)
    await waiter


async def limiter():
    while True:
        await asyncio.sleep(0.2)
        gc.collect()  # it may run at any time; here it surely does
        for waiter in list(WAITING):
            WAITING.discard(waiter)
            if not waiter.done():
                waiter.set_result(None)


async def deliver(db, item, in_doubt):
    await turn()
    if in_doubt:
        try:
            # Asked for a while: what was accepted may show late.
            for _ in range(3):
                if await asyncio.to_thread(found, item):
                    db.execute("update outbox set state = 'sent' where id = ?", (item,))
                    return
                await asyncio.sleep(0.3)
        except (OSError, ValueError) as error:
            db.execute("update outbox set state = 'unknown', error = ? where id = ?", (repr(error), item))
            return
    db.execute("update outbox set state = 'sending' where id = ?", (item,))
    try:
        await asyncio.to_thread(post, item)
        db.execute("update outbox set state = 'sent' where id = ?", (item,))
    except urllib.error.HTTPError as error:
        refused = 400 <= error.code < 500
        state = "failed" if refused else "in-doubt"
        db.execute("update outbox set state = ?, error = ? where id = ?", (state, str(error), item))
        if not refused:
            await deliver(db, item, True)
    except (OSError, ValueError, KeyError) as error:
        db.execute("update outbox set state = 'in-doubt', error = ? where id = ?", (repr(error), item))
        await deliver(db, item, True)


async def run(db, wrong):
    # Whatever an earlier life was sending may have been accepted.
    db.execute("update outbox set state = 'in-doubt' where state = 'sending'")
    begun = set()
    limit = asyncio.create_task(limiter())
    while True:
        rows = db.execute("select id, state from outbox where state in ('new', 'in-doubt')").fetchall()
        for item, state in rows:
            if item not in begun:
                begun.add(item)
                task = asyncio.create_task(deliver(db, item, state == "in-doubt"))
                if not wrong:
                    TASKS.add(task)
                    task.add_done_callback(TASKS.discard)
                del task
        await asyncio.sleep(0.05)


def main():
    db = open_db()
    if sys.argv[1] == "enqueue":
        for number in range(int(sys.argv[2])):
            db.execute("insert into outbox values (?, 'new', ?, null)", (f"item-{number + 1}", int(time.time() * 1000)))
        print("ENQUEUED", flush=True)
    else:
        asyncio.run(run(db, "--wrong" in sys.argv))


main()
