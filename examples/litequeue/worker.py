"""litequeue as its documentation shows it, with one HTTP POST per message."""

import json
import os
import sys
import time

import requests
from litequeue import LiteQueue

queue = LiteQueue(os.environ["WORKER_DB"])
# Only the variant that gives locked messages back after a while sets this.
LEASE_S = os.environ.get("WORKER_LEASE_S")


def enqueue(count):
    for number in range(count):
        message = {"to": f"user{number}@example.com", "body": f"hello {number}", "ref": f"order-{number}"}
        queue.put(json.dumps(message))
    print("ENQUEUED", flush=True)


def run():
    while True:
        if LEASE_S:
            for message in queue.list_locked(threshold_seconds=int(LEASE_S)):
                queue.retry(message.message_id)
        message = queue.pop()
        if message is None:
            time.sleep(0.5)
            continue
        try:
            requests.post(
                os.environ["PROVIDER_URL"] + "/v1/messages",
                json=json.loads(message.data),
                headers={"Idempotency-Key": str(message.message_id)},
            ).raise_for_status()
            queue.done(message.message_id)
        except requests.RequestException as error:
            print("send failed:", error, flush=True)
            queue.mark_failed(message.message_id)


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue(int(sys.argv[2]))
    else:
        run()
