"""python3 main.py --db FILE submit --count N | python3 main.py --db FILE deliver --api-url URL"""
import argparse
import json
import urllib.request

from mailer.store import connect


def submit(db, count):
    db.execute("BEGIN")
    for number in range(1, count + 1):
        db.execute(
            "INSERT INTO emails (ref, to_address, body) VALUES (?, ?, ?)",
            (f"mail-{number}", f"user{number}@example.com", f"hello {number}"),
        )
    db.execute("COMMIT")


def deliver(db, api_url):
    # An earlier life died in the middle: nobody knows whether it went out.
    db.execute("UPDATE emails SET status = 'uncertain', last_error = 'the worker died' WHERE status = 'sending'")
    while True:
        row = db.execute("SELECT id, ref, to_address, body FROM emails WHERE status = 'queued' LIMIT 1").fetchone()
        if row is None:
            break
        db.execute("UPDATE emails SET status = 'sending' WHERE id = ?", (row[0],))
        state, error = send(api_url, row)
        db.execute("UPDATE emails SET status = ?, last_error = ? WHERE id = ?", (state, error, row[0]))


def send(api_url, row):
    body = json.dumps({"to": row[2], "body": row[3], "ref": row[1]}).encode()
    request = urllib.request.Request(api_url + "/v1/messages", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()
        return "sent", None
    except OSError as error:
        return "uncertain", str(error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--db", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("submit")
    one.add_argument("--count", type=int, default=1)
    two = commands.add_parser("deliver")
    two.add_argument("--api-url", required=True)
    args = parser.parse_args()
    db = connect(args.db)
    if args.command == "submit":
        submit(db, args.count)
    else:
        deliver(db, args.api_url)


if __name__ == "__main__":
    main()
