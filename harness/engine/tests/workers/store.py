"""A worker that tells what its store does to it, for the engine's tests: python3 store.py MODE, with STATE_DIR.

Modes: rows (writes rows 1 to 5, with a mark after each) | insist (writes one row, again and again until it
works) | upgrade (reads and then writes in one transaction, until that works) | hold (makes a mark inside of a
write transaction). Each life first prints what it finds. SYNC is the synchronous level.
"""
import contextlib
import os
import socket
import sqlite3
import sys
import time

STATE = os.environ["STATE_DIR"]


def mark(name):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ["KILLPOINT_SOCKET"])
        s.sendall(f"killpoint-mark 1 {name}\n".encode())
        if s.makefile().readline() != "go\n":
            sys.exit("killpoint did not let the worker go on")


def until_it_works(write):
    told = None
    while True:
        try:
            return write()
        except sqlite3.Error as error:
            if error.sqlite_errorname != told:
                told = error.sqlite_errorname
                print(told, flush=True)
            time.sleep(0.01)


def upgrade(db):
    try:
        db.execute("begin")
        count = db.execute("select count(*) from t").fetchone()[0]
        mark("read")
        time.sleep(0.05)
        db.execute("insert into t values (?, '')", (count + 1,))
        db.execute("commit")
    except sqlite3.Error:
        db.execute("rollback")
        raise


def insist(row):
    # A connection that was opened on a read-only file stays read-only, and so does every one beside it.
    with contextlib.closing(connect()) as db:
        db.execute("insert into t values (?, zeroblob(200000))", (row,))


def connect():
    return sqlite3.connect(os.path.join(STATE, "ledger.db"), isolation_level=None, timeout=0)


def main():
    db = connect()
    if not db.execute("select count(*) from sqlite_master").fetchone()[0]:
        db.execute("pragma journal_mode=wal")
        db.execute("create table t (x integer primary key, y)")
        # The last one that closes it puts everything into the database file.
        db.close()
        db = connect()
    db.execute(f"pragma synchronous={os.environ.get('SYNC', 'full')}")
    rows = [row[0] for row in db.execute("select x from t order by x")]
    lock = os.path.join(STATE, "locks/owner")
    print("rows", rows, "lock", open(lock).read().strip() if os.path.exists(lock) else None, flush=True)
    if sys.argv[1] == "rows":
        for row in range(len(rows) + 1, 6):
            db.execute("insert into t values (?, '')", (row,))
            mark("row")
    elif sys.argv[1] == "insist":
        mark("before")
        db.close()
        until_it_works(lambda: insist(len(rows) + 1))
    elif sys.argv[1] == "hold":
        db.execute("begin immediate")
        mark("inside")
        db.execute("commit")
    else:
        mark("before")
        until_it_works(lambda: upgrade(db))
    print("done", flush=True)


main()
