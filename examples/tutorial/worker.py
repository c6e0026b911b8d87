"""Sends invoices by e-mail, through the HTTP API of a mail provider."""

import json
import os
import sqlite3
import sys
import urllib.request

API = os.environ.get("MAIL_API_URL", "https://api.mail.example.com")
DATABASE = os.environ.get("INVOICES_DB", "invoices.db")

SCHEMA = """
create table if not exists outbox (
    invoice    text primary key,
    email      text not null,
    body       text not null,
    status     text not null default 'pending',
    message_id text,
    error      text
)
"""


def connect():
    db = sqlite3.connect(DATABASE, timeout=5, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute(SCHEMA)
    return db


def load(db, path):
    """Takes over what billing wrote, one invoice per line; known ones are left alone."""
    with open(path) as lines:
        for line in lines:
            invoice = json.loads(line)
            db.execute(
                "insert or ignore into outbox (invoice, email, body) values (?, ?, ?)",
                (invoice["id"], ", ".join(invoice["to"]), invoice["body"]),
            )


def update(db, invoice, **columns):
    names = ", ".join(f"{name} = ?" for name in columns)
    db.execute(f"update outbox set {names} where invoice = ?", (*columns.values(), invoice))


def rows(db, columns, status):
    query = f"select {columns} from outbox where status = ? order by invoice"
    return db.execute(query, (status,)).fetchall()


def call(method, path, message=None):
    """One request; gives the answer, or raises what urllib raises."""
    headers = {"Content-Type": "application/json"}
    data = json.dumps(message).encode() if message else None
    request = urllib.request.Request(API + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def send(db, invoice, email, body):
    message = {"to": email, "subject": f"Invoice {invoice}", "text": body, "metadata": {"invoice": invoice}}
    try:
        answer = call("POST", "/messages", message)
    except OSError as error:
        update(db, invoice, status="failed", error=str(error))
        print(f"{invoice}: failed: {error}", flush=True)
        return
    update(db, invoice, status="sent", message_id=answer["id"])
    print(f"{invoice}: sent", flush=True)


def run(db):
    for invoice, email, body in rows(db, "invoice, email, body", "pending"):
        send(db, invoice, email, body)


def main(words):
    db = connect()
    if words != ["run"]:
        load(db, words[1] if words else "invoices.jsonl")
    if words[:1] != ["load"]:
        run(db)


if __name__ == "__main__":
    main(sys.argv[1:])
