"""A small outbox in one file, for the engine's tests: python3 outbox.py MODE, with PROVIDER_URL and STATE_DIR.

Modes: enqueue N | drain | forever | oneshot (one item per life, exit 75 while some are left) | daemon (drain,
double-forked) | crash (exit 3 at once) | leave-child (drain, but a child stays behind).
"""
import json
import os
import socket
import sqlite3
import sys
import time
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
    body = json.dumps({"to": f"user{item}@example.com", "body": f"hello {item}"}).encode()
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
    db = open_db()
    if mode == "enqueue":
        for _ in range(int(sys.argv[2])):
            db.execute("insert into items (state) values ('new')")
        print("ENQUEUED", flush=True)
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
