"""persist-queue's SQLiteAckQueue as its documentation shows it, with one HTTP POST per item."""

import os
import sys
import time

import requests
from persistqueue import Empty, SQLiteAckQueue

queue = SQLiteAckQueue(os.environ["WORKER_DB"])


def enqueue(count):
    for number in range(count):
        queue.put({"to": f"user{number}@example.com", "body": f"hello {number}", "ref": f"order-{number}"})
    print("ENQUEUED", flush=True)


def run():
    while True:
        try:
            job = queue.get(timeout=1)
        except Empty:
            continue
        try:
            requests.post(os.environ["PROVIDER_URL"] + "/v1/messages", json=job).raise_for_status()
            queue.ack(job)
        except requests.RequestException as error:
            print("send failed, will retry:", error, flush=True)
            queue.nack(job)
            time.sleep(1)


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue(int(sys.argv[2]))
    else:
        run()
