"""A small outbox in one file, for the engine's tests: python3 outbox.py MODE, with PROVIDER_URL and STATE_DIR.

Modes: produce N (one transaction with the mark producer-open in it) | child (the work is done by a child
process, and the parent waits) | polite (drain; on SIGTERM it ends after the item in flight) | enqueue N | drain | forever | oneshot (one item per life, exit 75 while some are left) | daemon (drain,
double-forked) | crash (exit 3 at once) | prompt (one item without
marks, on a connection that is open before) | leave-child (drain, but a child stays behind).
"""
import http.client
import json
import os
import signal
import socket
import sqlite3
import sys
import time
import urllib.parse
import urllib.request

DB = os.path.join(os.environ["STATE_DIR"], "ledger.db")


def mark(name):
    path = os.environ.get("KILLPOINT_SOCKET")
    if not path:
        return
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(f"killpoint-mark 1 {name}\n".encode())
        if s.makefile().readline() != "go\n":
            sys.exit("killpoint did not let the worker go on")


def post(item):
    to = os.environ.get("ROSTER", f"user{item}@example.com")
    body = json.dumps({"to": to, "body": f"hello {item}"}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": f"item-{item}"}
    request = urllib.request.Request(os.environ["PROVIDER_URL"] + "/v1/messages", body, headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)["id"]


def open_db():
    db = sqlite3.connect(DB, isolation_level=None, timeout=10)
    db.execute("pragma journal_mode=wal")
    db.execute("create table if not exists items (id integer primary key, state text)")
    return db


def step(db):
    row = db.execute("select id from items where state != 'sent' order by id limit 1").fetchone()
    if row is None:
        return False
    db.execute("update items set state = 'sending' where id = ?", row)
    mark("claimed")
    post(row[0])
    db.execute("update items set state = 'sent' where id = ?", row)
    mark("done")
    return True


def prompt(db):
    """One item without marks, sent as soon as its row is seen to be sending."""
    (item,) = db.execute("select id from items where state != 'sent' order by id limit 1").fetchone()
    connection = http.client.HTTPConnection(urllib.parse.urlparse(os.environ["PROVIDER_URL"]).netloc, timeout=20)
    connection.connect()
    body = json.dumps({"to": f"user{item}@example.com", "body": f"hello {item}"})
    db.execute("begin immediate")
    db.execute("update items set state = 'sending' where id = ?", (item,))
    db.execute("commit")
    connection.request("POST", "/v1/messages", body, {"Idempotency-Key": f"item-{item}"})
    connection.getresponse().read()
    db.execute("update items set state = 'sent' where id = ?", (item,))


def main():
    mode = sys.argv[1]
    if mode == "crash":
        print("no configuration", file=sys.stderr)
        sys.exit(3)
    if mode == "daemon":
        if os.fork():
            os._exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
    if mode == "leave-child" and os.fork() == 0:
        os.setsid()
        time.sleep(1000)
    if mode == "child" and os.fork():
        os.wait()
        sys.exit(0)
    stopping = []
    if mode == "polite":
        signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
    db = open_db()
    if mode == "produce":
        db.execute("begin immediate")
        for _ in range(int(sys.argv[2])):
            db.execute("insert into items (state) values ('new')")
        mark("producer-open")
        db.execute("commit")
    elif mode == "polite":
        while not stopping and step(db):
            pass
    elif mode == "enqueue":
        for _ in range(int(sys.argv[2])):
            db.execute("insert into items (state) values ('new')")
        print("ENQUEUED", flush=True)
    elif mode == "prompt":
        if db.execute("select count(*) from items where state != 'sent'").fetchone()[0]:
            prompt(db)
    elif mode == "oneshot":
        step(db)
        left = db.execute("select count(*) from items where state != 'sent'").fetchone()[0]
        sys.exit(75 if left else 0)
    elif mode in ("forever", "daemon"):
        while True:
            if not step(db):
                time.sleep(0.02)
    else:
        while step(db):
            pass


main()
