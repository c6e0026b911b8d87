"""Prints what persist-queue's own store says of each item, as JSON lines. WORKER_DB is a copy."""

import json
import os

from persistqueue import SQLiteAckQueue

STATES = {0: "inited", 1: "ready", 2: "unack", 5: "acked", 9: "ack_failed"}


def rows(queue):
    for item in queue.queue():
        job = item["data"]
        yield {
            "action": job["ref"],
            "destination": job["to"],
            "text": job["body"],
            "state": STATES[item["status"]],
        }


if __name__ == "__main__":
    if os.path.exists(os.environ["WORKER_DB"]):
        # Without auto_resume, which would make ready again what was taken.
        for row in rows(SQLiteAckQueue(os.environ["WORKER_DB"], auto_resume=False)):
            print(json.dumps(row))
