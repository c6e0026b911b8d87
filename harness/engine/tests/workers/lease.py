"""A worker that holds a row by a lease of a minute: python3 lease.py enqueue | wall N | boot N, with PROVIDER_URL
and STATE_DIR. Leases are judged by the wall clock, or by the machine's time since it was booted. N is the worker; it
ends when no row is free.

Each life writes N, its wall clock and the offset that it was told to the file `lives`.
"""
import json
import os
import sqlite3
import subprocess
import sys
import time
import urllib.request

LEASE_S = 60
CLOCKS = {"wall": time.CLOCK_REALTIME, "boot": time.CLOCK_BOOTTIME}


def post(item):
    body = json.dumps({"to": "ann@example.com", "body": f"hello {item}"}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": f"item-{item}"}
    request = urllib.request.Request(os.environ["PROVIDER_URL"] + "/v1/messages", body, headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["id"]


def claim(db, clock, owner):
    now = time.clock_gettime(clock)
    db.execute("begin immediate")
    row = db.execute("select id from items where state = 'new' or state = 'sending' and until < ?", (now,)).fetchone()
    if row:
        db.execute("update items set state = 'sending', owner = ?, until = ? where id = ?", (owner, now + LEASE_S, row[0]))
    db.execute("commit")
    return row


def main():
    db = sqlite3.connect(os.path.join(os.environ["STATE_DIR"], "ledger.db"), isolation_level=None, timeout=10)
    db.execute("create table if not exists items (id integer primary key, state text, owner text, until real)")
    if sys.argv[1] == "enqueue":
        db.execute("insert into items (state) values ('new')")
        return
    clock, owner = CLOCKS[sys.argv[1]], sys.argv[2]
    told = os.environ.get("KILLPOINT_CLOCK_OFFSET_MS", "nothing")
    child = subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True).stdout.strip()
    with open(os.path.join(os.environ["STATE_DIR"], "lives"), "a") as lives:
        lives.write(f"{owner} {time.time():.0f} {child} {told}\n")
    while row := claim(db, clock, owner):
        post(row[0])
        db.execute("update items set state = 'sent' where id = ? and owner = ?", (row[0], owner))


main()
